//! Endpoints (01, sections 5.3 and 5.4).

use crate::state::{EndpointId, State};

/// Everybody leaves the queue of `endpoint`, whose last capability is deleted (02, section 7.1).
pub fn cancel_all(s: &mut State, endpoint: EndpointId) {
    let _ = (s, endpoint);
    todo!("model-ipc")
}

/// Senders with `badge` leave the queue (02, section 7.4).
pub fn cancel_badged_sends(s: &mut State, endpoint: EndpointId, badge: u64) {
    let _ = (s, endpoint, badge);
    todo!("model-ipc")
}
