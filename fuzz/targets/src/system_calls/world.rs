//! A kernel and its threads: how events happen to them.

use sandglass_abi::message::ipc_buffer;
use sandglass_assurance::census::{Anchor, Census};
use sandglass_assurance::invariants;
use sandglass_assurance::witness::Witness;
use sandglass_kernel::arch::abi::Exception;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{self, Trap};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;
use sandglass_oracle::Finding;
use sandglass_testkit::call;
use sandglass_testkit::world::{self, KERNEL_PATH};

use super::event::Event;
use super::prepare;

/// Memory of the machine in bytes: half of it is the kernel's image.
const MEMORY: usize = 4 << 20;
/// Most times that the timer fires while time passes.
const MAX_TIMERS: usize = 16;

/// The kernel and its users.
pub struct World {
    pub k: Box<Kernel>,
    /// Where sweeps begin.
    anchor: Anchor,
    /// Tells the oracle for time who executes when.
    witness: Option<Witness>,
}

impl World {
    /// The prepared world: the same whenever it is made.
    pub fn new() -> Self {
        let mut made = world::World::with_memory(MEMORY);
        let anchor = Anchor::of(&made.k);
        prepare::prepare(&mut made);
        let mut world = World {
            k: made.k,
            anchor,
            witness: None,
        };
        world.sweep();
        let census = Census::of(&world.k, world.anchor);
        let contexts = census.contexts.iter().map(|&(context, _)| context);
        let threads = census.threads.iter().copied();
        let witness = Witness::new(&world.k, contexts, threads);
        world.witness = Some(witness);
        world
    }

    /// Whether the machine was stopped, as the debug kernel offers.
    pub fn has_ended(&self) -> bool {
        self.k.machine.halted().is_some()
    }

    /// Lets an event happen, and checks what must hold afterwards.
    pub fn apply(&mut self, event: &Event) {
        match *event {
            Event::Pass { ticks } => self.pass(ticks),
            Event::Delay { ticks } => {
                self.k.machine.advance(ticks);
                if self.now() > self.k.machine.deadline() {
                    // A machine whose timer does not fire in time keeps no promise about time.
                    self.witness = None;
                }
            }
            Event::Pending(pending) => self.k.machine.set_interrupt_pending(pending),
            Event::Interrupt { irq } => {
                self.k.machine.set_interrupt_pending(false);
                self.enter(event::Event::Trap(Trap::Interrupt { irq }));
            }
            Event::Timer => self.enter(event::Event::Trap(Trap::Timer)),
            // The rest is done by threads.
            _ => {
                if let Some(thread) = self.running() {
                    self.act(thread, event);
                }
            }
        }
    }

    /// What the thread that runs does.
    fn act(&mut self, thread: Ref<Tcb>, event: &Event) {
        match event {
            Event::SystemCall(call) => {
                call.issue(&self.k, thread);
                self.enter(event::Event::Syscall);
            }
            Event::Again => self.instruction(thread, event::Event::Syscall),
            Event::ReceiveSlot {
                cnode,
                index,
                depth,
            } => {
                call::store(&self.k, thread, ipc_buffer::RECEIVE_CNODE, *cnode);
                call::store(&self.k, thread, ipc_buffer::RECEIVE_INDEX, *index);
                call::store(&self.k, thread, ipc_buffer::RECEIVE_DEPTH, *depth);
            }
            Event::Store { word, value } => call::store(&self.k, thread, *word, *value),
            &Event::SoftwareInterrupt { vector, rax } => {
                thread
                    .at(&self.k)
                    .context()
                    .set(&*self.k, Register::Rax, rax);
                let trap = Trap::Exception(Exception::SoftwareInterrupt { vector });
                self.instruction(thread, event::Event::Trap(trap));
            }
            &Event::Exception { number, code } => {
                let trap = Trap::Exception(Exception::Other { number, code });
                self.instruction(thread, event::Event::Trap(trap));
            }
            &Event::PageFault { address, code } => {
                let trap = Trap::Exception(Exception::PageFault { address, code });
                self.instruction(thread, event::Event::Trap(trap));
            }
            other => unreachable!("{other} is not done by a thread"),
        }
    }

    pub fn running(&self) -> Option<Ref<Tcb>> {
        self.k.core().thread()
    }

    fn now(&self) -> u64 {
        self.k.machine.clock()
    }

    /// Enters the kernel and checks what it leaves.
    fn enter(&mut self, event: event::Event) {
        let is_call = event == event::Event::Syscall;
        self.watch(|witness, k| {
            let _ = k.machine.take_seen();
            witness.enters(k, k.machine.clock(), is_call)
        });
        let next = world::enter(&mut self.k, event);
        self.watch(|witness, k| {
            let seen = k.machine.take_seen();
            witness.leaves(k, &seen, next, k.machine.clock() + KERNEL_PATH)
        });
        self.sweep();
        self.k.machine.advance(KERNEL_PATH);
    }

    /// Checks every invariant, and asks the oracle for time.
    fn sweep(&mut self) {
        let census = Census::of(&self.k, self.anchor);
        if let Err(violation) = invariants::sweep_census(&census) {
            panic!("{violation}");
        }
        if let Some(witness) = &mut self.witness {
            let contexts = census.contexts.iter().map(|&(context, _)| context);
            let found = witness.surveys(&self.k, contexts, census.threads.iter().copied());
            found.unwrap_or_else(|found| panic!("the oracle for time: {found}"));
        }
    }

    /// Lets the witness see something, which the oracle is to find right.
    fn watch(&mut self, see: impl FnOnce(&mut Witness, &Kernel) -> Result<(), Finding>) {
        if let Some(witness) = &mut self.witness {
            see(witness, &self.k).unwrap_or_else(|found| panic!("the oracle for time: {found}"));
        }
    }

    /// Lets `ticks` pass in user code. The timer fires when it is due.
    fn pass(&mut self, ticks: u64) {
        let end = self.now() + ticks;
        for _ in 0..MAX_TIMERS {
            let due = self.k.machine.deadline().max(self.now());
            if due >= end {
                break;
            }
            self.k.machine.advance(due - self.now());
            self.enter(event::Event::Trap(Trap::Timer));
        }
        if self.k.machine.deadline() < end {
            // A machine that stands still keeps no promise about time.
            self.witness = None;
        }
        self.k.machine.advance(end.saturating_sub(self.now()));
    }

    /// An instruction of `thread` enters the kernel.
    fn instruction(&mut self, thread: Ref<Tcb>, event: event::Event) {
        call::step(&self.k, thread);
        self.enter(event);
    }
}
