//! What happens, as records in memory that the root task gave: execution traces.
//!
//! A kernel with the feature `trace` writes a record at each of its trace points. Every other kernel
//! has none: [`trace!`] is nothing there, so that not a byte of its code depends on them, and
//! `object/records.rs` is empty. The format of the records is `sandglass_abi::trace`; where
//! they are kept, `mem/log.rs`.
//!
//! All cores number their records from one counter, since the kernel is never executed by two of
//! them at once: so the numbers are the order in which things happened. A record goes into the log
//! of the core that executes; its tag names the core that it is about.

#![forbid(unsafe_code)]

#[cfg(feature = "trace")]
pub mod calls;
#[cfg(feature = "trace")]
pub mod points;

/// A trace point: calls the function of that name in [`points`].
#[cfg(feature = "trace")]
macro_rules! trace {
    ($k:expr, $point:ident($($argument:expr),* $(,)?)) => {
        $crate::trace::points::$point($k, $($argument),*)
    };
}

/// A trace point, in a kernel without.
#[cfg(not(feature = "trace"))]
macro_rules! trace {
    ($k:expr, $point:ident($($argument:expr),* $(,)?)) => {};
}
