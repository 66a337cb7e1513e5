//! Instruction counts of kernel operations, for `sandglass bench`.
//!
//! Prints `bench NAME MIN MEAN MAX` for each operation: instructions that the kernel executes for
//! it, from the instruction after the user's SYSCALL (SVC), or from the interrupted instruction, to the
//! kernel's return instruction, that one included. To be run under virtual time in which the
//! counter that programs read counts instructions (`-icount shift=0`, on aarch64 `shift=4`).
//!
//! # Method
//!
//! The thread that enters the kernel reads the counter right before, and the one that the kernel
//! returns to right after; both are small programs without a stack, in assembly ([`script`]).
//! From the difference is subtracted what the same instructions take without the system call,
//! which is measured first ([`script::Overhead`]). Each operation is done 16 times to warm up, and
//! 16 times to be counted. Threads that talk to each other are in different address spaces
//! ([`twin`]). Unless the name says `fpu`, they do not use the FPU (their TCBs say so); with `fpu`
//! the server does, and with `fpu-both` both do.
//!
//! The method was checked against QEMU's own trace of executed instructions (`-singlestep
//! -d exec`), counted from one entry of the kernel to the next: the figures are the same.

#![no_std]
#![no_main]

extern crate alloc;

mod interrupts;
mod invocations;
mod ipc;
mod isa;
mod lab;
mod results;
mod script;
mod signals;
mod twin;

use lab::Lab;
use sandglass::{BootInfo, SetupError};

sandglass::entry!(main);

fn main(boot: &'static BootInfo) -> Result<(), SetupError> {
    let mut lab = Lab::new(boot)?;
    ipc::measure(&mut lab)?;
    signals::measure(&mut lab)?;
    invocations::measure(&mut lab)?;
    interrupts::measure(&mut lab)?;
    Ok(())
}
