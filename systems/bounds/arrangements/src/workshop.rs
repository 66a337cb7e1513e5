//! Makes objects, threads and budgets, of the machine's memory.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::rights::Rights;
use sandglass_abi::sched::{self, flags};

use crate::machine::{Call, Machine, Program, Refused};

/// Priority of the root task while it works, and while it lets all others run.
pub const TOP: u64 = 254;
pub const BOTTOM: u64 = 1;

/// Objects that one Retype makes at most.
const BATCH: u64 = 256;

/// A slice that nobody uses up, µs.
pub const LONG_US: u64 = 3_600_000_000;

/// How a scheduling context is filled.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub budget_us: u64,
    pub period_us: u64,
    pub extra_refills: u64,
    pub sporadic: bool,
}

impl Budget {
    /// Round robin, with much time.
    pub const LONG: Self = Self {
        budget_us: LONG_US,
        period_us: LONG_US,
        extra_refills: 0,
        sporadic: false,
    };
}

/// The machine, with what of its slots is used.
pub struct Workshop<'m, M> {
    pub machine: &'m mut M,
    next_slot: u64,
}

impl<'m, M: Machine> Workshop<'m, M> {
    pub fn new(machine: &'m mut M) -> Self {
        let next_slot = machine.slots().start;
        Self { machine, next_slot }
    }

    /// The first of `count` empty slots in a row.
    pub fn slots(&mut self, count: u64) -> Result<u64, Refused> {
        let first = self.next_slot;
        self.next_slot += count;
        if self.next_slot > self.machine.slots().end {
            // As the kernel says that a slot is missing.
            return Err(Refused {
                label: label::UNTYPED_RETYPE,
                error: sandglass_abi::error::ErrorNumber::RangeError as u64,
            });
        }
        Ok(first)
    }

    /// Makes `count` objects; returns the slot of the first. `size` is the argument of Retype.
    pub fn make(&mut self, object: u64, size: u64, count: u64) -> Result<u64, Refused> {
        let memory = self.machine.memory().0;
        self.make_of(memory, object, size, count)
    }

    /// The same, of `memory`.
    pub fn make_of(
        &mut self,
        memory: u64,
        object: u64,
        size: u64,
        count: u64,
    ) -> Result<u64, Refused> {
        let first = self.slots(count)?;
        let mut made = 0;
        while made < count {
            let batch = BATCH.min(count - made);
            let words = [object, size, 0, 0, first + made, batch];
            self.machine
                .invoke(memory, label::UNTYPED_RETYPE, &words, &[slot::CNODE])?;
            made += batch;
        }
        Ok(first)
    }

    /// A scheduling context with room for `extra_refills`, of `memory`.
    pub fn make_context_of(&mut self, memory: u64, extra_refills: u64) -> Result<u64, Refused> {
        let fits = |&bits: &u32| sched::max_extra_refills(bits) >= extra_refills;
        let bits = (types::MIN_SCHED_CONTEXT_BITS..).find(fits).unwrap_or(0);
        self.make_of(memory, types::SCHED_CONTEXT, u64::from(bits), 1)
    }

    /// A copy of the endpoint `cap` with a badge.
    pub fn badged(&mut self, cap: u64, badge: u64) -> Result<u64, Refused> {
        let slot = self.slots(1)?;
        let words = [slot, 64, cap, 64, Rights::ALL.raw(), badge];
        self.machine
            .invoke(slot::CNODE, label::CNODE_MINT, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    pub fn configure(&mut self, context: u64, budget: Budget) -> Result<(), Refused> {
        let flags = if budget.sporadic { flags::SPORADIC } else { 0 };
        let words = [
            budget.budget_us,
            budget.period_us,
            budget.extra_refills,
            0,
            flags,
        ];
        let control = self.machine.control();
        let label = label::SCHED_CONTROL_CONFIGURE_FLAGS;
        self.machine.invoke(control, label, &words, &[context])
    }

    /// A context with much time.
    pub fn make_long_context(&mut self) -> Result<u64, Refused> {
        let memory = self.machine.memory().0;
        let context = self.make_context_of(memory, 0)?;
        self.configure(context, Budget::LONG)?;
        Ok(context)
    }

    pub fn bind(&mut self, context: u64, object: u64) -> Result<(), Refused> {
        self.machine
            .invoke(context, label::SCHED_CONTEXT_BIND, &[], &[object])
    }

    pub fn unbind(&mut self, context: u64) -> Result<(), Refused> {
        self.machine
            .invoke(context, label::SCHED_CONTEXT_UNBIND, &[], &[])
    }

    /// Gives `tcb` the spaces of the root task, and a priority.
    pub fn prepare(&mut self, tcb: u64, priority: u64) -> Result<(), Refused> {
        let caps = [slot::CNODE, slot::VSPACE, slot::NULL];
        self.machine
            .invoke(tcb, label::TCB_CONFIGURE, &[0, 0, 0], &caps)?;
        self.prioritise(tcb, priority)
    }

    pub fn prioritise(&mut self, tcb: u64, priority: u64) -> Result<(), Refused> {
        self.machine
            .invoke(tcb, label::TCB_SET_PRIORITY, &[priority], &[slot::TCB])
    }

    pub fn suspend(&mut self, tcb: u64) -> Result<(), Refused> {
        self.machine.invoke(tcb, label::TCB_SUSPEND, &[], &[])
    }

    /// Thread `tcb` makes `call`, once.
    pub fn start(&mut self, tcb: u64, call: Call) -> Result<(), Refused> {
        self.machine.write(tcb, Program::Once, call, true)
    }

    /// The root task lets all others run first.
    pub fn lower(&mut self) -> Result<(), Refused> {
        self.prioritise(slot::TCB, BOTTOM)
    }

    /// The root task runs before all others.
    pub fn raise(&mut self) -> Result<(), Refused> {
        self.prioritise(slot::TCB, TOP)
    }
}
