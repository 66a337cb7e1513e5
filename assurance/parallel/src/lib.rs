//! Parallel virtual time: the kernel that ships, on a machine of several cores.
//!
//! An emulator's clock is one for all its cores, so it cannot tell what cores do at the same time.
//! Here every core has a clock of its own. The machine is a simulation by discrete events: what runs
//! in user code is a [`Script`] of computations and system calls, or a program of the same steps, what the kernel does is done by
//! the kernel, [`sandglass_kernel::event::handle`] on its hosted machine, and takes as long as the
//! [`Costs`] say. Times are exact, and a run repeats to the tick.
//!
//! ```
//! use sandglass_parallel::{Costs, Script, Step, System, Time, US};
//!
//! let mut system = System::new(1);
//! let work = vec![Step::Compute(300 * US), Step::Done];
//! let task = system.task(100, 0, Time::new(1_000, 4_000), |_| Script::forever(work));
//! let record = system.start(Costs::default(), 1).run_until(4_000 * US);
//! assert_eq!(record.jobs_of(task.task), 3);
//! ```

#![forbid(unsafe_code)]

mod costs;
mod execution;
mod program;
mod record;
mod script;
mod simulation;
pub mod study;
mod system;

pub use costs::{Costs, Path, Way};
pub use program::{Thread, Told};
pub use record::{Doing, Interval, Job, Record, Spent, Task};
pub use script::{Entry, Message, Script, Step};
pub use simulation::Simulation;
pub use system::{copy, delete, migrate, revoke, use_up, Made, System, Time, US};
