//! Time: refills, accounting, scheduling contexts, and who runs next (04).

pub mod account;
pub mod context;
pub mod refills;
pub mod schedule;
