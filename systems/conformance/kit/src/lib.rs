//! What the checks of the conformance suite are made with ([`fixture`], [`prelude`], [`timing`]), and what runs them
//! ([`harness`]).
//!
//! Apart from the checks, because it is compiled otherwise: they are many, each line runs once, and is compiled as it is
//! written; the kit is optimised, so that what it measures is the kernel.

#![no_std]

extern crate alloc;

pub mod arch;
pub mod fixture;
pub mod harness;
pub mod prelude;
pub mod timing;
