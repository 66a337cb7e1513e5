//! Static mixed criticality with any number of levels (thesis 6.1.8 and 8.4.1; Vestal's model).
//!
//! Tasks have budgets that are enough nearly always. When a critical one needs more, the *mode*
//! rises: tasks of a lower criticality are suspended or demoted, those of a higher one get the
//! budgets of the new level. When the processor idles, the mode falls to the lowest again.
//!
//! Everything is described, in the table `[modes]`; the component `mode-manager` is all the
//! program that it takes. A custom manager is a few lines:
//!
//! ```text
//! let manager = Manager::new(env);
//! let idle = manager.idle();
//! env.thread("idle").prepare(move || idle.run());
//! manager.serve(env.ready(), |manager, event| ...)
//! ```
//!
//! [`decide`] has the decisions, without the kernel; [`manager`] carries them out.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

pub mod decide;
pub mod manager;

pub use manager::{Event, Manager};
pub use sandglass_description::policy::modes::badge;
