//! The herd: many threads of low priority, each with a budget of its own, which they have used up
//! and get back at a chosen time.

use alloc::vec::Vec;
use core::arch::global_asm;

use sandglass::cap::{CPtr, Capability, ObjectType, SchedContext, SchedParams, Tcb};
use sandglass::thread::{self, ThreadParams};
use sandglass::time::{spin_until, ticks, PASSED};
use sandglass::{BootInfo, Process, SetupError};

use crate::arch::jump;

/// Priority of the herd.
pub const PRIORITY: u8 = 10;

/// Budget of a member, µs: the least there is.
const BUDGET_US: u64 = 20;

/// Ticks between the releases of two members; a member is resumed in less.
const STEP: u64 = 4_000;

/// Objects that one Retype makes at most.
const BATCH: u64 = 256;

global_asm!(
    ".global herd_spin",
    // As `pass`, for ever.
    "herd_spin:",
    ".rept {passed}",
    "nop",
    ".endr",
    concat!(jump!(), " herd_spin"),
    passed = const PASSED,
);

unsafe extern "C" {
    fn herd_spin();
}

/// The threads.
pub struct Herd {
    members: Vec<(Tcb, SchedContext)>,
}

/// When the budgets of the herd fall due: the first at `at` ticks, each of the others
/// `apart_us` microseconds later than the one before, where halves alternate.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub at: u64,
    /// Half microseconds between two members.
    pub half_us_apart: u64,
}

impl Herd {
    /// Makes `count` threads; they run nowhere yet.
    pub fn new(process: &mut Process, count: u64) -> Result<Self, SetupError> {
        let mut members = Vec::with_capacity(count as usize);
        while (members.len() as u64) < count {
            let batch = BATCH.min(count - members.len() as u64);
            let tcb: Tcb = process.resources.create_many(ObjectType::Tcb, batch)?;
            let size_bits = SchedParams::new(BUDGET_US, BUDGET_US).size_bits();
            let kind = ObjectType::SchedContext(size_bits);
            let context: SchedContext = process.resources.create_many(kind, batch)?;
            for i in 0..batch {
                members.push((nth(tcb, i), nth(context, i)));
            }
        }
        for &(tcb, context) in &members {
            thread::configure(process, tcb, ThreadParams::new(PRIORITY, context), None)?;
            tcb.write_first_registers(&[herd_spin as *const () as u64, 0], false)?;
        }
        Ok(Herd { members })
    }

    pub fn len(&self) -> u64 {
        self.members.len() as u64
    }

    /// Starts the herd such that each member, once it has used up its budget, gets it back as
    /// `due` says.
    ///
    /// The contexts are sporadic: their budget counts from the moment at which the thread is
    /// resumed, and comes back one period after that, however late it is used. So the members are
    /// resumed at known times, and their periods are what is left from there.
    pub fn start(&self, boot: &BootInfo, ticks_per_us: u64, due: Due) -> Result<(), SetupError> {
        let control = boot.sched_control(0).expect("there is a first core");
        for &(tcb, _) in &self.members {
            tcb.suspend()?;
        }
        let configuring = self.len() * STEP;
        let first = ticks() + configuring + STEP;
        for (i, &(_, context)) in (0..).zip(&self.members) {
            let resumed = first + i * STEP;
            let period_us = (due.at - resumed) / ticks_per_us + i * due.half_us_apart / 2;
            control.configure(context, SchedParams::new(BUDGET_US, period_us).sporadic())?;
        }
        for (i, &(tcb, _)) in (0..).zip(&self.members) {
            spin_until(first + i * STEP);
            tcb.resume()?;
        }
        Ok(())
    }

    /// Ticks that it takes until all members have used up what they start with, at most.
    pub fn lead(&self, ticks_per_us: u64) -> u64 {
        self.len() * (2 * STEP + 2 * BUDGET_US * ticks_per_us)
    }

    /// Stops the herd.
    pub fn stop(&self) -> Result<(), SetupError> {
        for &(tcb, _) in &self.members {
            tcb.suspend()?;
        }
        Ok(())
    }
}

/// The capability `i` places behind `first`.
fn nth<C: Capability>(first: C, i: u64) -> C {
    C::from_cptr(CPtr::new(first.cptr().raw() + i))
}
