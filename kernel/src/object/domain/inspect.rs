//! A look into [`DomainSchedule`].

use super::DomainSchedule;
use crate::inspect::DomainView;

impl DomainSchedule {
    /// What the schedule does not tell in public.
    pub fn inspect(&self) -> DomainView {
        DomainView {
            entries: core::array::from_fn(|i| self.entries[i].get()),
        }
    }
}
