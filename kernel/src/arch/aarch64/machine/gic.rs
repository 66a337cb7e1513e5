//! The interrupt controller: ARM's Generic Interrupt Controller, version 2 (architecture specification IHI 0048)
//! or 3 (IHI 0069).
//!
//! Both have a distributor for shared interrupts. A GICv2 has an interface for each core at the same addresses; a
//! GICv3 has a redistributor for each core, with its private interrupts, and system registers. All interrupts are of
//! group 1, of the same priority: none interrupts the handling of another, since the kernel ends one when it has been
//! handled.
//!
//! Accesses to one controller's part are in program order (nGnRnE). What crosses from one part to another may be
//! late: an interrupt that has just been masked may arrive once more, which the kernel takes for one that nobody has
//! asked for.

use core::cell::Cell;

use super::change::{is_private, Change, PRIVATE};
use super::cpu::{self, icc};
use super::layout::PAGE_SIZE;
use super::mmio::Registers;
use super::paging;
use crate::arch::abi::devices::Trigger;
use crate::arch::device_tree::board::{Controller, MOST_REGIONS};
use crate::arch::Range;
use crate::cores::{CoreId, CORES};

/// The first number that is no interrupt's: 1020 to 1023 say that there is none.
const NO_INTERRUPT: u32 = 1020;
/// Bits of an acknowledgement that are the number.
const NUMBER: u32 = 0x3ff;

/// The priority of all interrupts, below that of the mask.
const PRIORITY: u32 = 0xa0a0_a0a0;
const PRIORITY_MASK: u32 = 0xf0;

/// Offsets in the distributor; those of private interrupts are in a redistributor's second part, too.
mod distributor {
    pub const CONTROL: u64 = 0x000;
    pub const TYPE: u64 = 0x004;
    pub const GROUP: u64 = 0x080;
    pub const ENABLE: u64 = 0x100;
    pub const DISABLE: u64 = 0x180;
    pub const CLEAR_PENDING: u64 = 0x280;
    pub const CLEAR_ACTIVE: u64 = 0x380;
    pub const PRIORITY: u64 = 0x400;
    pub const TARGET: u64 = 0x800;
    pub const TRIGGER: u64 = 0xc00;
    pub const SOFTWARE: u64 = 0xf00;
    pub const ROUTE: u64 = 0x6000;

    /// Bytes of the one of a GICv3.
    pub const BYTES: u64 = 0x1_0000;
    /// Of a GICv3: affinities are routed by, and group 1 is on.
    pub const AFFINITY_ROUTING: u32 = 1 << 4;
    pub const GROUP_1: u32 = 1 << 1;
    pub const GROUP_0: u32 = 1 << 0;
    /// Of a GICv3: a write to the control has not come through.
    pub const WRITE_PENDING: u32 = 1 << 31;
}

/// Offsets in the interface of a GICv2.
mod interface {
    pub const CONTROL: u64 = 0x00;
    pub const PRIORITY_MASK: u64 = 0x04;
    pub const BINARY_POINT: u64 = 0x08;
    pub const ACKNOWLEDGE: u64 = 0x0c;
    pub const END: u64 = 0x10;
    /// Both groups, and acknowledgement of both by the same register.
    pub const ENABLED: u32 = 1 | 1 << 1 | 1 << 2;
}

/// Offsets in a redistributor.
mod redistributor {
    pub const TYPE: u64 = 0x08;
    pub const WAKER: u64 = 0x14;
    /// Where its second part begins.
    pub const PRIVATE: u64 = 0x1_0000;
    /// Bytes of one, and of one that has registers for virtual interrupts, too.
    pub const BYTES: u64 = 0x2_0000;
    pub const VIRTUAL_BYTES: u64 = 0x4_0000;
    pub const HAS_VIRTUAL: u64 = 1 << 1;
    pub const IS_LAST: u64 = 1 << 4;
    pub const SLEEPS: u32 = 1 << 1;
    pub const IS_ASLEEP: u32 = 1 << 2;
}

/// Looks at a register that is to change, until it is given up. An answer takes some cycles.
const PATIENCE: u32 = 100_000;
/// Most redistributors in a region that are looked at.
const MOST_REDISTRIBUTORS: u64 = 128;

/// The controller. Written by the core that boots, and for each other core before that runs.
pub struct Gic {
    distributor: Cell<Registers>,
    /// Of a GICv2.
    interface: Cell<Registers>,
    /// Of a GICv3: the second part of each core's redistributor.
    private: [Cell<Registers>; CORES],
    /// Of a GICv2: the bit by which each core is a target.
    targets: [Cell<u8>; CORES],
    /// Affinities of the cores.
    affinities: [Cell<u64>; CORES],
    /// Numbers of interrupts, a multiple of 32.
    lines: Cell<u32>,
    controller: Cell<Option<Controller>>,
}

// SAFETY: written during boot only: by the core that boots, before others run, and by each core that starts in its own
// places, in its turn.
unsafe impl Sync for Gic {}

/// The machine's controller.
pub static GIC: Gic = Gic::new();

/// An interrupt that has been acknowledged and not ended.
#[derive(Clone, Copy)]
pub struct Acknowledged(u32);

impl Acknowledged {
    /// The number of the interrupt; `None` if there is none any more.
    #[inline(always)]
    pub fn number(self) -> Option<u32> {
        let number = self.0 & NUMBER;
        (number < NO_INTERRUPT).then_some(number)
    }
}

impl Gic {
    const fn new() -> Self {
        Gic {
            distributor: Cell::new(Registers::NONE),
            interface: Cell::new(Registers::NONE),
            private: [const { Cell::new(Registers::NONE) }; CORES],
            targets: [const { Cell::new(1) }; CORES],
            affinities: [const { Cell::new(0) }; CORES],
            lines: Cell::new(0),
            controller: Cell::new(None),
        }
    }

    /// Starts the controller, with everything masked, and this core's part, the one of the core that boots.
    /// `reserve` is told the pages that nobody else is to have.
    ///
    /// # Errors
    /// Why it cannot be driven, in words.
    pub(in crate::arch::aarch64) fn init(
        &self,
        controller: &Controller,
        mut reserve: impl FnMut(Range),
    ) -> Result<(), &'static str> {
        const UNMAPPED: &str =
            "the device tree has an interrupt controller at an impossible address";
        let mut map = |paddr: u64, bytes: u64, own: u64| {
            let end = paddr.saturating_add(own);
            reserve(Range { start: paddr, end });
            paging::map_device(paddr, bytes).ok_or(UNMAPPED)
        };
        match *controller {
            Controller::Gic2 {
                distributor,
                interface,
            } => {
                // The second page of an interface has a register that is not used here.
                let mut map =
                    |part: Range| map(part.start, PAGE_SIZE, part.end.wrapping_sub(part.start));
                let distributor = map(distributor)?;
                let interface = map(interface)?;
                self.distributor.set(distributor);
                self.interface.set(interface);
            }
            Controller::Gic3 { distributor, .. } => {
                if !cpu::has_gic_registers() {
                    return Err("the processor has no system registers for its GICv3");
                }
                let bytes = distributor::BYTES;
                self.distributor.set(map(distributor, bytes, bytes)?);
            }
        }
        if let Controller::Gic3 { redistributors, .. } = controller {
            for region in redistributors.iter().filter(|region| !region.is_empty()) {
                let bytes = region.end.wrapping_sub(region.start);
                map(region.start, bytes, bytes)?;
            }
        }
        self.controller.set(Some(*controller));
        self.start_distributor();
        self.init_core(CoreId::BOOT)
    }

    /// Whether each core reaches its private interrupts and nobody else's: they are at the same addresses.
    pub fn is_banked(&self) -> bool {
        !self.is_gic3()
    }

    /// Changes an interrupt, of `core` if it is private; then `core` executes this, if [`Self::is_banked`].
    pub fn change(&self, core: CoreId, change: Change) {
        if change.route {
            self.route(core, change.number, change.trigger);
        }
        self.set_masked(core, change.number, change.masked);
    }

    /// Whether it is a GICv3.
    #[inline(always)]
    fn is_gic3(&self) -> bool {
        self.interface.get().is_none()
    }

    fn start_distributor(&self) {
        let gic = self.distributor.get();
        gic.write(distributor::CONTROL, 0);
        self.await_distributor();
        let lines = (gic.read(distributor::TYPE) & 0x1f).wrapping_add(1);
        let lines = lines.wrapping_mul(32).min(NO_INTERRUPT);
        self.lines.set(lines);
        for word in 1..lines.div_ceil(32) {
            let at = u64::from(word).wrapping_mul(4);
            gic.write(distributor::DISABLE.wrapping_add(at), u32::MAX);
            gic.write(distributor::CLEAR_PENDING.wrapping_add(at), u32::MAX);
            gic.write(distributor::CLEAR_ACTIVE.wrapping_add(at), u32::MAX);
            if self.is_gic3() {
                gic.write(distributor::GROUP.wrapping_add(at), u32::MAX);
            }
        }
        for word in PRIVATE / 4..lines.div_ceil(4) {
            let at = u64::from(word).wrapping_mul(4);
            gic.write(distributor::PRIORITY.wrapping_add(at), PRIORITY);
        }
        let on = if self.is_gic3() {
            distributor::AFFINITY_ROUTING | distributor::GROUP_1
        } else {
            distributor::GROUP_0 | distributor::GROUP_1
        };
        gic.write(distributor::CONTROL, on);
        self.await_distributor();
    }

    /// Waits until what was written to a GICv3's distributor counts.
    fn await_distributor(&self) {
        let gic = self.distributor.get();
        for _ in 0..PATIENCE {
            let pending = gic.read(distributor::CONTROL) & distributor::WRITE_PENDING;
            if !self.is_gic3() || pending == 0 {
                return;
            }
        }
    }

    /// Starts the part of `core`, which executes this.
    ///
    /// # Errors
    /// It has none, in words.
    pub(in crate::arch::aarch64) fn init_core(&self, core: CoreId) -> Result<(), &'static str> {
        let affinity = cpu::affinity();
        self.affinities[core.index()].set(affinity);
        let private = match self.controller.get() {
            None | Some(Controller::Gic2 { .. }) => self.distributor.get(),
            Some(Controller::Gic3 { redistributors, .. }) => {
                let own = find_redistributor(affinity, &redistributors)
                    .ok_or("the interrupt controller has no redistributor for a core")?;
                wake(own);
                own.behind(redistributor::PRIVATE)
            }
        };
        self.private[core.index()].set(private);
        private.write(distributor::DISABLE, u32::MAX);
        private.write(distributor::CLEAR_PENDING, u32::MAX);
        private.write(distributor::CLEAR_ACTIVE, u32::MAX);
        for word in 0..PRIVATE / 4 {
            let at = u64::from(word).wrapping_mul(4);
            private.write(distributor::PRIORITY.wrapping_add(at), PRIORITY);
        }
        if self.is_gic3() {
            private.write(distributor::GROUP, u32::MAX);
            start_registers()
        } else {
            // Each core reads its own bit there.
            let bits = private.read(distributor::TARGET);
            let own = bits | bits >> 8 | bits >> 16 | bits >> 24;
            self.targets[core.index()].set(if own == 0 { 1 } else { own as u8 });
            let interface = self.interface.get();
            interface.write(interface::PRIORITY_MASK, PRIORITY_MASK);
            interface.write(interface::BINARY_POINT, 7);
            interface.write(interface::CONTROL, interface::ENABLED);
            Ok(())
        }
    }

    /// Whether this controller has the interrupt `number`.
    pub fn has(&self, number: u32) -> bool {
        number < self.lines.get()
    }

    /// Takes the interrupt that waits. A read of memory that follows sees what the device or core that raised it had
    /// written before.
    #[inline(always)]
    pub fn acknowledge(&self) -> Acknowledged {
        let taken = if self.is_gic3() {
            icc::acknowledge() as u32
        } else {
            self.interface.get().read(interface::ACKNOWLEDGE)
        };
        // The acknowledgement is done before anything that depends on it.
        cpu::data_barrier();
        Acknowledged(taken)
    }

    /// Ends an interrupt: it, and others, can come again.
    #[inline(always)]
    pub fn end(&self, taken: Acknowledged) {
        // What was done about it, at devices too, is done before it ends.
        cpu::data_barrier();
        if self.is_gic3() {
            // SAFETY: the kernel acknowledged it, and ends each once.
            unsafe { icc::end(taken.0.into()) }
        } else {
            self.interface.get().write(interface::END, taken.0);
        }
    }

    /// The registers for an interrupt, and its place in words with one bit for each.
    #[inline(always)]
    fn place(&self, core: CoreId, number: u32) -> (Registers, u64, u32) {
        let registers = if is_private(number) {
            self.private[core.index()].get()
        } else {
            self.distributor.get()
        };
        let word = u64::from(number / 32).wrapping_mul(4);
        (registers, word, 1 << (number % 32))
    }

    /// Masks or unmasks the interrupt `number`; a private one is that of `core`, which executes this if
    /// [`Self::is_banked`].
    #[inline(always)]
    pub fn set_masked(&self, core: CoreId, number: u32, masked: bool) {
        let (registers, word, bit) = self.place(core, number);
        let offset = if masked {
            distributor::DISABLE
        } else {
            distributor::ENABLE
        };
        registers.write(offset.wrapping_add(word), bit);
    }

    /// Lets the interrupt `number` arrive at `core`, triggered as said.
    pub fn route(&self, core: CoreId, number: u32, trigger: Option<Trigger>) {
        let (registers, _, _) = self.place(core, number);
        if let Some(trigger) = trigger {
            let at = u64::from(number / 16).wrapping_mul(4);
            let at = distributor::TRIGGER.wrapping_add(at);
            let bit = 2u32 << (number % 16 * 2);
            let others = registers.read(at) & !bit;
            registers.write(
                at,
                match trigger {
                    Trigger::Edge => others | bit,
                    Trigger::Level => others,
                },
            );
        }
        if is_private(number) {
            return;
        }
        if self.is_gic3() {
            let at = u64::from(number).wrapping_mul(8);
            let affinity = self.affinities[core.index()].get();
            registers.write_long(distributor::ROUTE.wrapping_add(at), affinity);
        } else {
            let at = distributor::TARGET.wrapping_add(number.into());
            registers.write_byte(at, self.targets[core.index()].get());
        }
    }

    /// Raises the software-generated interrupt `number` at `core`.
    pub fn signal(&self, core: CoreId, number: u8) {
        if self.is_gic3() {
            self.signal_affinity(self.affinities[core.index()].get(), number);
        } else {
            self.signal_interface(self.targets[core.index()].get(), number);
        }
    }

    /// Raises the software-generated interrupt `number` at what the controller calls `target`: a GICv2 the interface
    /// of that number, a GICv3 the core of that affinity, in the order of MPIDR's lower half.
    pub fn signal_target(&self, target: u32, number: u8) {
        if self.is_gic3() {
            self.signal_affinity(target.into(), number);
        } else {
            self.signal_interface(1 << (target & 7), number);
        }
    }

    /// The highest target.
    pub fn max_target(&self) -> u64 {
        if self.is_gic3() {
            u32::MAX.into()
        } else {
            7
        }
    }

    fn signal_interface(&self, targets: u8, number: u8) {
        // Who is interrupted sees what this core has stored before.
        cpu::data_barrier();
        let value = u32::from(targets) << 16 | u32::from(number & 15);
        self.distributor.get().write(distributor::SOFTWARE, value);
    }

    fn signal_affinity(&self, affinity: u64, number: u8) {
        let field = |at: u32| affinity >> at & 0xff;
        let value = 1u64.wrapping_shl(field(0) as u32 & 15)
            | field(8) << 16
            | u64::from(number & 15) << 24
            | field(16) << 32
            | (field(0) >> 4) << 44
            | field(32) << 48;
        // As above; a system register is no memory access, so that it takes the barrier's stronger half.
        cpu::data_barrier();
        // SAFETY: an interrupt that user level, or the kernel, has asked for.
        unsafe { icc::signal(value) }
        cpu::synchronise();
    }
}

/// The redistributor of the core with that `affinity`.
fn find_redistributor(affinity: u64, regions: &[Range; MOST_REGIONS]) -> Option<Registers> {
    for region in regions.iter().filter(|region| !region.is_empty()) {
        let bytes = region.end.wrapping_sub(region.start);
        let base = paging::map_device(region.start, bytes)?;
        let mut offset = 0;
        for _ in 0..MOST_REDISTRIBUTORS {
            if offset >= bytes {
                break;
            }
            let one = base.behind(offset);
            let kind = one.read_long(redistributor::TYPE);
            // Its upper half is the affinity, with the highest field beside the others.
            let (high, low) = (kind >> 56, kind >> 32 & 0xff_ffff);
            if high << 32 | low == affinity {
                return Some(one);
            }
            if kind & redistributor::IS_LAST != 0 {
                break;
            }
            offset = offset.wrapping_add(if kind & redistributor::HAS_VIRTUAL != 0 {
                redistributor::VIRTUAL_BYTES
            } else {
                redistributor::BYTES
            });
        }
    }
    None
}

/// Wakes the redistributor of this core up.
fn wake(own: Registers) {
    let waker = own.read(redistributor::WAKER);
    own.write(redistributor::WAKER, waker & !redistributor::SLEEPS);
    for _ in 0..PATIENCE {
        if own.read(redistributor::WAKER) & redistributor::IS_ASLEEP == 0 {
            return;
        }
    }
}

/// Starts this core's system registers of a GICv3.
fn start_registers() -> Result<(), &'static str> {
    // SAFETY: interrupts are masked, and these are about them only.
    unsafe {
        icc::set_system_registers(icc::system_registers() | 1);
        cpu::synchronise();
        if icc::system_registers() & 1 == 0 {
            return Err("firmware withholds the system registers of the GICv3");
        }
        icc::set_priority_mask(PRIORITY_MASK.into());
        icc::set_binary_point(7);
        // The end of an interrupt is its deactivation, too.
        icc::set_control(icc::control() & !2);
        icc::set_group1(1);
    }
    cpu::synchronise();
    Ok(())
}
