//! A look into [`SchedContext`].

use super::SchedContext;
use crate::inspect::ContextView;

impl SchedContext {
    /// What the context does not tell in public.
    pub fn inspect(&self) -> ContextView {
        ContextView {
            consumed: self.consumed.get(),
        }
    }
}
