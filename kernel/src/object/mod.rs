//! What is managed: a file per object, with its layout and its invariants, and what every kernel
//! has once, or once per core. Data only: whatever decides anything stands in the rooms above.

#![forbid(unsafe_code)]

pub mod cnode;
pub mod constants;
pub mod core;
pub mod domain;
pub mod endpoint;
pub mod fault;
pub mod irq;
pub mod notification;
pub mod priorities;
pub mod queue;
pub mod ready;
pub mod records;
pub mod release;
pub mod reply;
pub mod rights;
pub mod sched_context;
pub mod tcb;

pub use self::core::{Cancellation, Core, Queues};
pub use constants::Constants;
pub use domain::{DomainSchedule, DOMAINS};
pub use endpoint::{Endpoint, EndpointState};
pub use fault::{Fault, LookupFailure};
pub use irq::IrqTable;
pub use notification::Notification;
pub use queue::{Key, Queue};
pub use reply::{Above, Reply};
pub use rights::{FrameRights, Rights};
pub use sched_context::{Parameters, Queued, Refill, SchedContext};
pub use tcb::{Place, ResumePoint, Retyping, Sender, State, Tcb, TcbSlot};
