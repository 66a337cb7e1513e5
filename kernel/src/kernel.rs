//! The kernel's whole state.
//!
//! Any number of kernels can live side by side: there are no statics, everything takes the
//! `Kernel`, or the [`View`] of it. What user level can create lives in memory that it gave; here is
//! only what exists once, or once per core.
//!
//! Whoever has a `&Kernel` may change the state, its own and that of every object: each setter asks
//! for one. Whoever has only the `&View` may look at everything. What decodes an invocation gets the
//! view, so it cannot change anything, and no `&Kernel` comes from a `&View`.

use core::cell::Cell;
use core::mem::offset_of;
use core::ops::{Deref, DerefMut};

use crate::arch::{abi, Machine, Platform};
use crate::cells::Owner;
use crate::cores::{CoreId, Cores, CORES};
use crate::mem::{Memory, PerCore, Ref};
use crate::object::{records, Constants, Core, DomainSchedule, IrqTable, Queues, Tcb, DOMAINS};

/// The kernel's state, to be looked at. In this order: what is used most is near the beginning, where an instruction of aarch64
/// reaches it without another one.
#[repr(C)]
pub struct View {
    executing: Cell<CoreId>,
    looks: Cell<Cores>,
    memory: Memory,
    sequence: Cell<u64>,
    pub constants: Constants,
    pub domains: DomainSchedule,
    pub trace: records::OfKernel,
    cores: PerCore<Core>,
    pub arch: abi::State,
    pub irqs: IrqTable,
    moved: Cell<u64>,
}

/// A kernel with its machine: its state, and the right to change it.
#[repr(transparent)]
pub struct Kernel(View);

/// The one owner.
impl Owner for Kernel {}

impl AsRef<Memory> for Kernel {
    fn as_ref(&self) -> &Memory {
        &self.0.memory
    }
}

impl View {
    /// The core that executes the kernel.
    pub fn core(&self) -> &Core {
        self.cores.here()
    }

    /// Number of the core that executes the kernel.
    pub fn core_id(&self) -> CoreId {
        self.executing.get()
    }

    /// The state of `core`.
    pub fn core_of(&self, core: CoreId) -> &Core {
        self.cores.of(core)
    }

    /// The core on which `thread` runs.
    pub fn home(&self, thread: Ref<Tcb>) -> &Core {
        self.core_of(thread.at(self).core())
    }

    /// The queues in which `thread` is when it is in any.
    #[inline(always)]
    pub fn queues(&self, thread: Ref<Tcb>) -> Queues<'_> {
        self.home(thread).of(thread.at(self).domain())
    }

    /// Whether `thread` belongs to the core that executes the kernel.
    pub fn is_on_this_core(&self, thread: Ref<Tcb>) -> bool {
        CORES == 1 || thread.at(self).core() == self.core_id()
    }

    /// Whether `thread` belongs to the core that executes the kernel, and to the domain that runs there.
    pub fn is_here(&self, thread: Ref<Tcb>) -> bool {
        self.is_on_this_core(thread)
            && (DOMAINS == 1 || thread.at(self).domain() == self.core().domain())
    }
}

impl Kernel {
    /// Offset of the first core; the others follow.
    pub const CORES: usize = offset_of!(View, cores) + PerCore::<Core>::FIRST;

    /// A kernel before boot: no thread, no memory.
    pub const fn new(machine: Machine) -> Self {
        Kernel(View {
            memory: Memory { machine },
            cores: PerCore::new([const { Core::new() }; CORES]),
            executing: Cell::new(CoreId::BOOT),
            looks: Cell::new(Cores::NONE),
            irqs: IrqTable::new(),
            arch: abi::State::new(),
            domains: DomainSchedule::new(),
            constants: Constants::new(),
            sequence: Cell::new(0),
            moved: Cell::new(0),
            trace: records::OfKernel::new(0),
        })
    }

    /// From now on `core` executes the kernel.
    pub fn execute_on(&self, core: CoreId) {
        if CORES > 1 && self.core_id() != core {
            self.executing.set(core);
            self.cores.select(core);
            self.machine.execute_on(core);
        }
    }

    /// `core` is to look at its queues when this event ends.
    pub fn request_reschedule(&self, core: CoreId) {
        self.looks.set(self.looks.get().with(core));
    }

    /// Whether any core is to look at its queues.
    pub fn has_reschedules(&self) -> bool {
        !self.looks.get().is_empty()
    }

    /// The other cores that are to look at their queues; none any more.
    pub fn take_reschedules(&self) -> Cores {
        self.looks.replace(Cores::NONE).without(self.core_id())
    }

    /// A number larger than every one before: the position of an insertion among equals. 64 bits
    /// do not run out at one insertion a nanosecond in 500 years.
    pub fn next_sequence(&self) -> u64 {
        let next = self.sequence.get() + 1;
        self.sequence.set(next);
        next
    }

    /// A sender whom no remembered cancellation concerns has taken another place, with the last number.
    pub fn sender_has_moved(&self) {
        self.moved.set(self.sequence.get());
    }

    /// Whether no sender has taken another place, of which a cancellation need not know, since `number` was given out.
    pub fn no_sender_has_moved_since(&self, number: u64) -> bool {
        self.moved.get() < number
    }
}

/// Who may change the state may look at it.
impl Deref for Kernel {
    type Target = View;

    fn deref(&self) -> &View {
        &self.0
    }
}

impl DerefMut for Kernel {
    fn deref_mut(&mut self) -> &mut View {
        &mut self.0
    }
}

/// Objects are found in the kernel's memory: `object.at(k)`.
impl Deref for View {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl DerefMut for View {
    fn deref_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
}
