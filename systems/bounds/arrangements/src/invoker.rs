//! The thread that does the operation, in a capability space of its own.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::{ipc_buffer, MessageInfo, REGISTER_MRS};
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;

use crate::machine::{Call, Machine, Program, Refused};
use crate::parameters::Arrangement;
use crate::space::Space;
use crate::workshop::{Budget, Workshop};

/// Leaves of its space: the space itself, what is operated on, and something else.
pub const ROOT: usize = 0;
pub const TARGET: usize = 1;
pub const OTHER: usize = 2;
/// A leaf that is empty.
pub const NOTHING: usize = 3;

/// Priority, below or above all others.
const LOW: u64 = 5;
const HIGH: u64 = 250;

/// A budget that a long operation uses up again and again, µs.
const POOR: Budget = Budget {
    budget_us: 60,
    period_us: 100,
    extra_refills: 0,
    sporadic: false,
};

/// After how long it is looked whether a poor invoker has come to its end, µs.
const PATIENCE_US: u64 = 1_000;

pub struct Invoker {
    tcb: u64,
    context: u64,
    space: Space,
    is_poor: bool,
}

impl Invoker {
    /// As the parameters `levels`, `caller` and `rank` say.
    pub fn new<M: Machine>(
        workshop: &mut Workshop<M>,
        arrangement: &Arrangement,
    ) -> Result<Self, Refused> {
        let levels = arrangement.number("levels").max(1) as u32;
        let space = Space::new(workshop, levels)?;
        space.put_root(workshop, ROOT)?;
        let tcb = workshop.make(types::TCB, 0, 1)?;
        let context = workshop.make_long_context()?;
        let (address, frame) = workshop.machine.buffer();
        let caps = [space.root, slot::VSPACE, frame];
        let words = [space.guard, 0, address];
        workshop
            .machine
            .invoke(tcb, label::TCB_CONFIGURE, &words, &caps)?;
        let is_above = arrangement.value("rank") != "above";
        workshop.prioritise(tcb, if is_above { HIGH } else { LOW })?;
        let is_poor = arrangement.value("caller") == "poor";
        if is_poor {
            workshop.configure(context, POOR)?;
        }
        workshop.bind(context, tcb)?;
        Ok(Self {
            tcb,
            context,
            space,
            is_poor,
        })
    }

    /// Gives it the capability `cap` of the root task as leaf `leaf`.
    pub fn take<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        leaf: usize,
        cap: u64,
    ) -> Result<(), Refused> {
        self.space.take(workshop, leaf, cap)
    }

    /// Gives it a copy of the capability `cap` of the root task as leaf `leaf`.
    pub fn copy<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        leaf: usize,
        cap: u64,
    ) -> Result<(), Refused> {
        self.space.copy(workshop, leaf, cap)
    }

    /// Takes from it what it was given copies of.
    pub fn clear<M: Machine>(&self, workshop: &mut Workshop<M>) -> Result<(), Refused> {
        self.space.clear(workshop, TARGET)?;
        self.space.clear(workshop, OTHER)
    }

    /// Takes it out of where it waits.
    pub fn stop<M: Machine>(&self, workshop: &mut Workshop<M>) -> Result<(), Refused> {
        workshop.suspend(self.tcb)
    }

    /// Gives it another budget.
    pub fn configure<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        budget: Budget,
    ) -> Result<(), Refused> {
        workshop.configure(self.context, budget)
    }

    /// Gives it another priority.
    pub fn prioritise<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        priority: u64,
    ) -> Result<(), Refused> {
        workshop.prioritise(self.tcb, priority)
    }

    /// The address of a leaf.
    pub fn address(&self, leaf: usize) -> u64 {
        self.space.address(leaf)
    }

    /// The operation `label` on slot `leaf` by its CNode, measured.
    pub fn operate_on_slot<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        label: u64,
        leaf: usize,
    ) -> Result<(), Refused> {
        let words = [self.address(leaf), 64];
        self.operate(workshop, ROOT, label, &words, &[])
    }

    /// The invocation `label` of the capability at `leaf`, measured.
    pub fn operate<M: Machine>(
        &self,
        workshop: &mut Workshop<M>,
        leaf: usize,
        label: u64,
        words: &[u64],
        caps: &[usize],
    ) -> Result<(), Refused> {
        let mut call = Call::new(Syscall::Call, self.address(leaf));
        call.info = MessageInfo::new(label, 0, caps.len(), words.len());
        for (i, &word) in words.iter().enumerate() {
            match call.words.get_mut(i) {
                Some(register) => *register = word,
                None => workshop
                    .machine
                    .write_buffer(self.tcb, ipc_buffer::MESSAGE + i, word),
            }
        }
        const { assert!(REGISTER_MRS == 4) };
        for (i, &cap) in caps.iter().enumerate() {
            let word = ipc_buffer::CAPS_OR_BADGES + i;
            let address = self.address(cap);
            workshop.machine.write_buffer(self.tcb, word, address);
        }
        self.call(workshop, call)
    }

    /// Makes `call`, measured.
    pub fn call<M: Machine>(&self, workshop: &mut Workshop<M>, call: Call) -> Result<(), Refused> {
        workshop.raise()?;
        workshop
            .machine
            .write(self.tcb, Program::Once, call, true)?;
        workshop.machine.begin();
        workshop.lower()?;
        // One that has used up its budget does not keep this thread from going on.
        while self.is_poor && !workshop.machine.has_called(self.tcb)? {
            let patience = workshop.machine.us_to_ticks(PATIENCE_US);
            let until = workshop.machine.now() + patience;
            workshop.machine.pass_until(until);
        }
        workshop.machine.end();
        workshop.raise()
    }
}
