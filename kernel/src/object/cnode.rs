//! CNodes (02, section 4).

use crate::mem::Slot;

/// A CNode: an array of slots, of which this is the first. Its capabilities know how many.
#[repr(transparent)]
pub struct CNode {
    first: Slot,
}
