//! What a monitor makes of what it sees, without the kernel: [`state`], what a thread does by its registers;
//! [`meter`], what it has used and must have left; [`line`], what is typed; [`command`], what that means.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod command;
pub mod line;
pub mod meter;
pub mod state;
