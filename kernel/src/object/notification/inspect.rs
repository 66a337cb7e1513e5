//! A look into [`Notification`].

use crate::object::Notification;

impl Notification {
    /// The badges of the signals that are pending.
    pub fn pending(&self) -> u64 {
        self.pending.get()
    }
}
