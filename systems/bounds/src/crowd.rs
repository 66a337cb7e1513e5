//! The crowd: many threads, each with a scheduling context of its own.

use alloc::vec::Vec;

use sandglass::cap::{
    CPtr, Capability, ObjectType, SchedContext, SchedControl, SchedParams, Tcb, Untyped,
};
use sandglass::context::UserContext;
use sandglass::thread::{self, ThreadParams};
use sandglass::{Process, SetupError};

use crate::lab::LONG;

/// Priorities of the crowd: half of it is above the other, and there is room in between.
pub const LOW: u8 = 10;
pub const MIDDLE: u8 = 20;
pub const HIGH: u8 = 30;

/// Objects that one Retype makes at most.
const BATCH: u64 = 256;

/// Extra refills that the contexts have room for: all that fit into the smallest with any.
const EXTRA_REFILLS: u64 = 8;

/// A thread, with an address space and capability space as this one's, without a buffer.
#[derive(Clone, Copy)]
pub struct Member {
    pub tcb: Tcb,
    pub context: SchedContext,
}

impl Member {
    /// The thread starts with these registers.
    pub fn start(self, registers: &UserContext) -> Result<(), SetupError> {
        Ok(self.tcb.write_registers(registers, true)?)
    }

    /// The thread is to start with these registers.
    pub fn prepare(self, registers: &UserContext) -> Result<(), SetupError> {
        Ok(self.tcb.write_registers(registers, false)?)
    }
}

/// The threads.
pub struct Crowd {
    members: Vec<Member>,
    /// What threads and contexts were made of.
    pub memory: Untyped,
}

impl Crowd {
    /// Makes `count` threads, of low and high priority by turns, with much time; they do not run.
    pub fn new(
        process: &mut Process,
        control: SchedControl,
        count: u64,
    ) -> Result<Self, SetupError> {
        let mut members = Vec::with_capacity(count as usize);
        let size_bits = LONG.extra_refills(EXTRA_REFILLS).size_bits();
        let kinds = [ObjectType::Tcb, ObjectType::SchedContext(size_bits)];
        let bytes: u64 = kinds.iter().map(|kind| 1 << kind.size_bits()).sum();
        let memory_bits = (count.max(BATCH) * bytes).next_power_of_two().ilog2();
        let memory = process.resources.untyped(memory_bits)?;
        while (members.len() as u64) < count {
            let batch = BATCH.min(count - members.len() as u64);
            let [tcbs, contexts] = [
                process.resources.allocate_slots(batch)?,
                process.resources.allocate_slots(batch)?,
            ];
            memory.retype(kinds[0], tcbs, batch)?;
            memory.retype(kinds[1], contexts, batch)?;
            for i in 0..batch {
                members.push(Member {
                    tcb: nth(tcbs.capability(), i),
                    context: nth(contexts.capability(), i),
                });
            }
        }
        for (member, i) in members.iter().zip(0..) {
            let priority = if i % 2 == 0 { LOW } else { HIGH };
            control.configure(member.context, LONG)?;
            let params = ThreadParams::new(priority, member.context);
            thread::configure(process, member.tcb, params, None)?;
        }
        Ok(Self { members, memory })
    }

    /// All of it.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The first `count`.
    pub fn first(&self, count: u64) -> &[Member] {
        &self.members[..count as usize]
    }

    /// Stops the first `count`.
    pub fn stop(&self, count: u64) -> Result<(), SetupError> {
        for member in self.first(count) {
            member.tcb.suspend()?;
        }
        Ok(())
    }

    /// Gives the first `count` another configuration.
    pub fn configure(
        &self,
        control: SchedControl,
        count: u64,
        params: SchedParams,
    ) -> Result<(), SetupError> {
        for member in self.first(count) {
            control.configure(member.context, params)?;
        }
        Ok(())
    }

    /// Gives the first `count` another priority.
    pub fn prioritise(
        &self,
        authority: Tcb,
        count: u64,
        priority: impl Fn(u64) -> u8,
    ) -> Result<(), SetupError> {
        for (member, i) in self.first(count).iter().zip(0..) {
            member.tcb.set_priority(authority, priority(i))?;
        }
        Ok(())
    }
}

/// The capability `i` places behind `first`.
pub fn nth<C: Capability>(first: C, i: u64) -> C {
    C::from_cptr(CPtr::new(first.cptr().raw() + i))
}
