//! The conformance suite: checks, from a root task, of what a program can observe of the ABI pages
//! (docs/src/abi). It uses nothing but the ABI, so it runs on any kernel that claims the same ABI.
//!
//! # How to add a check
//!
//! Each page of the ABI has a folder, `page01` to `page08`, with a file for each group of
//! sections and a `mod.rs` that lists the files; what only one architecture has is in the same
//! folders of `arch/x86_64` and `arch/aarch64`. A file ends its imports with its `CHECKS`:
//!
//! ```ignore
//! use crate::prelude::*;
//!
//! pub const CHECKS: &[Check] = &[check(
//!     "03/4.5/priority-above-the-authority's-mcp",
//!     priority_above_mcp,
//! )];
//!
//! fn priority_above_mcp(f: &mut Fixture) -> TestResult {
//!     let (target, authority) = (f.tcb()?, f.tcb()?);
//!     authority.set_mc_priority(boot::TCB, 7)?;
//!     let set = Invocation::new(target, label::TCB_SET_PRIORITY, &[7], &[authority.cptr()]);
//!     set.expect_ok(&[])?;
//!     set.with_word(0, 8).expect_error(RangeError, &[0, 7])
//! }
//! ```
//!
//! - The name is page/section/property: the page's number, the number of its heading, and a
//!   property in kebab case, without spaces. One check states one property; many cases of it may
//!   be a loop.
//! - Each check runs on a thread of its own, of priority [`PRIORITY`] and MCP 255, with a fresh
//!   [`Fixture`]. Whatever it makes through the fixture is taken back afterwards, its threads
//!   included, also if it faults, panics or hangs: never tidy up. Only what it takes elsewhere (a
//!   changed schedule of domains, say) it must put back itself.
//! - A check ends after [`LIMIT_US`] of virtual time at the latest, as failed. Time is virtual:
//!   an instruction takes 1 ns, waiting costs the host nothing.
//! - The heap is not taken back: threads that may be stopped while they run should not allocate.
//! - What only one kind of kernel has is skipped with a reason: `f.needs_debug_kernel()?`.
//! - Where Sandglass differs from the reference and programs can rely on neither, a check accepts
//!   both, and says which it saw: `f.choice = Some(Choice::of(...))`.
//! - A check that makes debug calls with wrong arguments says so: `.with_wrong_debug_calls()`.
//!
//! [`PRIORITY`]: harness::PRIORITY
//! [`LIMIT_US`]: harness::LIMIT_US
//! [`Fixture`]: fixture::Fixture

#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod page01;
mod page02;
mod page03;
mod page04;
mod page05;
mod page06;
mod page07;
mod page08;

use conformance_kit::{fixture, harness, prelude};
use harness::{Check, Conductor};
use sandglass::{BootInfo, SetupError};

sandglass::entry!(main, stack = 0x1_0000, heap = 0x40_0000);

/// The checks of every page.
const PAGES: &[&[&[Check]]] = &[
    page01::CHECKS,
    arch::page01::CHECKS,
    page02::CHECKS,
    arch::page02::CHECKS,
    page03::CHECKS,
    arch::page03::CHECKS,
    page04::CHECKS,
    page04::SEVERAL_CORES,
    page05::CHECKS,
    arch::page05::CHECKS,
    page06::CHECKS,
    arch::page06::CHECKS,
    page07::CHECKS,
    arch::page07::CHECKS,
    page08::CHECKS,
    arch::page08::CHECKS,
];

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut conductor = Conductor::new(boot)?;
    for check in PAGES
        .iter()
        .flat_map(|page| page.iter())
        .flat_map(|file| file.iter())
    {
        conductor.run(check);
    }
    Ok(conductor.finish())
}
