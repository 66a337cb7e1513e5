//! A look into [`SchedContext`].

use crate::inspect::ContextView;
use crate::object::SchedContext;

impl SchedContext {
    /// What the context does not tell in public.
    pub fn inspect(&self) -> ContextView {
        ContextView {
            consumed: self.consumed.get(),
        }
    }
}
