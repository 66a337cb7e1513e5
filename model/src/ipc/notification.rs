//! Notifications (01, section 5.5).

use crate::state::{NotificationId, State};

/// Everybody stops waiting for `notification`, whose last capability is deleted (02, section 7.1).
pub fn cancel_all(s: &mut State, notification: NotificationId) {
    let _ = (s, notification);
    todo!("model-ipc")
}

/// Signals `notification` with `badge` (01, section 5.5).
pub fn signal(s: &mut State, notification: NotificationId, badge: u64) {
    let _ = (s, notification, badge);
    todo!("model-ipc")
}
