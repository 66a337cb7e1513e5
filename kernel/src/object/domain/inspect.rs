//! A look into [`DomainSchedule`].

use crate::inspect::DomainView;
use crate::object::DomainSchedule;

impl DomainSchedule {
    /// What the schedule does not tell in public.
    pub fn inspect(&self) -> DomainView {
        DomainView {
            entries: core::array::from_fn(|i| self.entries[i].get()),
            index: self.index.get(),
        }
    }
}
