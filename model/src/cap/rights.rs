//! Masking, updating and deriving capabilities (02, sections 3 and 6).

use crate::error::Error;
use crate::state::{Cap, SlotId, State};

/// `cap` with at most the rights of the word `rights` (02, section 3).
pub fn mask(cap: Cap, rights: u64) -> Cap {
    let _ = (cap, rights);
    todo!("model-caps")
}

/// `cap` with `data` as badge or guard; `None` is the null capability (02, section 6.1).
pub fn update(cap: Cap, data: u64, preserve: bool) -> Option<Cap> {
    let _ = (cap, data, preserve);
    todo!("model-caps")
}

/// What a copy of `cap`, which is (a form of) the one in `source`, holds; `None` is the null capability (02, section 6.2).
pub fn derive(s: &State, source: SlotId, cap: Cap) -> Result<Option<Cap>, Error> {
    let _ = (s, source, cap);
    todo!("model-caps")
}
