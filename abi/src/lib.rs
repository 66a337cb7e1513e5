//! The binary interface between the kernel and user level: numbers and layouts of the seL4 16.0.0
//! ABI in its MCS configuration (64 bits, little endian), and nothing else.
//!
//! Every item names the section of the ABI pages (docs/src/abi) that fixes it, as in "ABI 03,
//! section 1". Both the kernel and the user-level runtime depend on this crate and on no other
//! common code, so a number has exactly one home. Constants of one architecture live in a module
//! named after it (`x86_64`, `aarch64`).
//!
//! What differs by configuration follows from the profile that the crate is built for ([`profile`]).
//!
//! Units: sizes are bytes, or bits where the name ends in `_BITS`; times are microseconds where
//! the name ends in `_US`; "word" is 64 bits.

#![no_std]
#![forbid(unsafe_code)]

pub mod boot;
pub mod cap_identify;
pub mod cnode;
pub mod context;
pub mod error;
pub mod fault;
pub mod invocation;
pub mod message;
pub mod object;
pub mod profile;
pub mod rights;
pub mod sched;
pub mod syscall;
pub mod trace;
pub mod vspace;
