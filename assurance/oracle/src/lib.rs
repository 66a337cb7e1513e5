//! An oracle for time: who executed when, on which context's time, and whether that is what the
//! contexts were promised.
//!
//! It is told of [`Stretch`]es of execution, as a machine sees them, and of configurations. It knows
//! nothing of refills, queues or accounts, and has no code in common with any kernel. What it asks,
//! of every context:
//!
//! 1. **Windows.** In every window of one period it executed for at most its budget, and the longest
//!    path of the kernel on its time. A sporadic context may be behind by as long as others ran since
//!    it last woke or was refused.
//! 2. **Payment.** What the kernel charged it is not more than what it executed, but for one path.
//! 3. **Supply.** If it was not used for so long that its whole budget is back, it is not refused
//!    (by a timeout fault, or by having to wait) before it has executed for that, less the least
//!    budget.
//! 4. **Turns.** No core keeps another one waiting for longer than the longest published stretch.
//! 5. **Overlap.** No context is in use on two cores at once.
//!
//! All times are ticks of one clock. Every question is answered in time that is constant on average.

#![forbid(unsafe_code)]

mod account;
mod finding;
mod longest;
mod oracle;
mod rule;
mod window;

pub use finding::Finding;
pub use oracle::{Configuration, Limits, Oracle, Place, Stretch};
pub use window::Window;

/// Ticks.
pub type Ticks = u64;
