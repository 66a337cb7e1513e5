//! The root task: its objects, its capabilities, and what it is told (06, sections 1 to 5).

use core::mem::offset_of;

use sandglass_abi::boot::{
    slot, BootInfo, SlotRegion, UntypedDesc, MAX_UNTYPEDS, ROOT_CNODE_RADIX,
};
use sandglass_abi::object::{ASID_POOL_BITS, MIN_SCHED_CONTEXT_BITS, SLOT_BITS, TCB_BITS};
use sandglass_abi::sched::{MAX_PRIORITY, ROOT_TASK_SLICE_US};

use super::elf::PAGE;
use super::memory::FreeRam;
use super::plan::{Plan, CNODE_BITS, SLOTS};
use super::untyped::{Gaps, Pieces};
use super::{Contents, Range, Refusal};
use crate::arch::abi::boot::{self as arch, extra, FirmwareInfo, Root, Tables};
use crate::arch::abi::retype;
use crate::arch::Platform;
use crate::cap::{derivation, Capability};
use crate::cores::CoreId;
use crate::mem::objects::region::Region;
use crate::mem::objects::{self, Ram};
use crate::mem::{user, ControlKind, PhysAddr, Ref, Slot, Span, Tagged};
use crate::object::irq::IRQ_SLOTS_RADIX;
use crate::object::tcb::NAME_BYTES;
use crate::object::{Parameters, SchedContext, State, Tcb, TcbSlot};
use crate::time::{context, Turn};
use crate::Kernel;

const PAGE_BITS: u8 = PAGE.trailing_zeros() as u8;
const NAME: &[u8] = b"rootserver";

/// The root CNode while it is filled.
struct Slots {
    span: Span,
    next: u64,
}

impl Slots {
    /// Puts `cap` into slot `i`.
    #[inline(never)]
    fn put(&self, k: &Kernel, i: u64, cap: Capability) -> Option<Ref<Slot>> {
        let slot = self.span.slot(i)?;
        derivation::insert_origin(k, slot, cap);
        Some(slot)
    }

    /// The next dynamic slot.
    fn next(&mut self) -> Option<Ref<Slot>> {
        let slot = self.span.slot(self.next)?;
        self.next += 1;
        Some(slot)
    }

    /// Puts `cap` into the next dynamic slot.
    #[inline(never)]
    fn push(&mut self, k: &Kernel, cap: Capability) -> Option<Ref<Slot>> {
        let slot = self.next()?;
        derivation::insert_origin(k, slot, cap);
        Some(slot)
    }

    /// The dynamic slots from `start` to the next one.
    fn since(&self, start: u64) -> SlotRegion {
        if start == self.next {
            SlotRegion::EMPTY
        } else {
            SlotRegion {
                start,
                end: self.next,
            }
        }
    }
}

/// The root task while it is made.
struct RootTask {
    plan: Plan,
    slots: Slots,
    root: Ref<Root>,
    boot_info: Tagged,
    regions: Regions,
}

/// Where the dynamic capabilities are.
#[derive(Default)]
struct Regions {
    sched_control: SlotRegion,
    paging: SlotRegion,
    extra: SlotRegion,
    frames: SlotRegion,
    untyped: SlotRegion,
}

/// The thread of the root task, and the time that it runs on.
struct Thread {
    tcb: Ref<Tcb>,
    context: Ref<SchedContext>,
}

/// How many levels I/O page tables have, as the boot information has it (06, section 2).
fn io_page_table_levels() -> u64 {
    arch::IO_PAGE_TABLE_LEVELS
}

/// What the plan has room for is there: a failure is a mistake of the kernel's.
const UNPLANNED: Refusal = Refusal::Machine("the root task's objects are not as planned");

/// Makes the root task, whose `image` is loaded, out of `memory`, gives it the rest, and makes its
/// thread ready to run from `entry` on.
///
/// # Errors
/// [`Refusal::TooLittleMemory`] if there is no room for its first objects, and
/// [`Refusal::NoSlotsForMemory`] if there are too few slots for what is left.
pub fn create(
    k: &mut Kernel,
    turn: &Turn,
    firmware: &FirmwareInfo,
    plan: Plan,
    entry: u64,
    image: Ram,
    mut memory: Memory,
) -> Result<(), Refusal> {
    let mut objects = memory.free.take_top(plan.object_bytes(), CNODE_BITS)?;
    let (mut task, thread) = make(k, firmware, plan, image, &mut objects).ok_or(UNPLANNED)?;
    // The crumbs between the objects and the end of their memory are given out too.
    memory.free.give(objects);
    task.give_untypeds(k, memory)?;
    task.write_boot_info(k, firmware);
    start_thread(k, turn, &task, &thread, entry);
    Ok(())
}

/// What user level gets besides the root task's image and objects.
pub struct Memory {
    pub free: FreeRam,
    pub init_code: Ram,
    pub devices: Gaps,
}

/// Makes the objects in `memory` and the capabilities to them.
fn make(
    k: &mut Kernel,
    firmware: &FirmwareInfo,
    plan: Plan,
    image: Ram,
    memory: &mut Ram,
) -> Option<(RootTask, Thread)> {
    let cnode = memory.take(k, CNODE_BITS)?.into_cnode()?;
    let slots = Slots {
        span: Span::of(cnode)?,
        next: slot::FIRST_DYNAMIC,
    };
    let guard = 64 - ROOT_CNODE_RADIX as u8;
    let cnode_slot = slots.put(
        k,
        slot::CNODE,
        Capability::original(cnode).with_zero_guard(guard),
    )?;

    // The larger objects first, so that all are aligned.
    let irq_slots = memory
        .take(k, IRQ_SLOTS_RADIX + SLOT_BITS as u8)?
        .into_cnode()?;
    k.irqs.set_slots(k, Span::of(irq_slots)?);

    let region = memory.take(k, PAGE_BITS)?;
    let root = retype::root_table(k, region)?;
    let root_slot = slots.put(k, slot::VSPACE, Capability::original(root))?;
    let region = memory.take(k, ASID_POOL_BITS as u8)?;
    slots.put(k, slot::ASID_POOL, arch::first_pool(k, region, root_slot)?)?;

    put_controls(k, &slots)?;

    let boot_info = memory.take(k, PAGE_BITS)?.into_frame();
    let buffer = memory.take(k, PAGE_BITS)?.into_frame();
    let mut task = RootTask {
        plan,
        slots,
        root: root.get()?,
        boot_info,
        regions: Regions::default(),
    };

    if arch::SCHED_CONTROL_FIRST {
        task.put_sched_controls(k)?;
    }
    task.make_tables(k, memory)?;

    let boot_info_cap = task.map(k, boot_info, plan.boot_info(), Contents::Data)?;
    task.slots.put(k, slot::BOOT_INFO_FRAME, boot_info_cap)?;
    let buffer_cap = task.map(k, buffer, plan.ipc_buffer(), Contents::Data)?;
    let buffer_slot = task.slots.put(k, slot::IPC_BUFFER, buffer_cap)?;

    task.tell_extra(k, firmware, memory)?;
    if !arch::SCHED_CONTROL_FIRST {
        task.put_sched_controls(k)?;
    }
    task.map_image(k, image)?;
    let thread = make_thread(k, &task, memory, [cnode_slot, root_slot, buffer_slot])?;
    Some((task, thread))
}

/// Puts the capabilities that name no memory where the ABI has them.
fn put_controls(k: &Kernel, slots: &Slots) -> Option<()> {
    for (i, kind) in arch::CONTROLS {
        slots.put(k, i, Capability::control(kind, 0))?;
    }
    Some(())
}

/// Makes the thread with its copies of the capabilities to its CSpace, VSpace and IPC buffer, and
/// its scheduling context.
fn make_thread(
    k: &mut Kernel,
    task: &RootTask,
    memory: &mut Ram,
    sources: [Ref<Slot>; 3],
) -> Option<Thread> {
    let word = memory.take(k, TCB_BITS as u8)?.into_tcb(k, 0)?;
    task.slots.put(k, slot::TCB, Capability::original(word))?;
    let tcb: Ref<Tcb> = word.get()?;
    let word = memory
        .take(k, MIN_SCHED_CONTEXT_BITS as u8)?
        .into_sched_context(k)?;
    task.slots
        .put(k, slot::SCHED_CONTEXT, Capability::original(word))?;
    let context = word.get()?;
    let targets = [TcbSlot::CSpace, TcbSlot::VSpace, TcbSlot::Buffer];
    for (source, target) in sources.into_iter().zip(targets) {
        derivation::insert_copy(
            k,
            source,
            objects::tcb_slot(tcb, target),
            source.at(k).cap(),
        );
    }
    Some(Thread { tcb, context })
}

/// Sets the thread up (06, section 1.1) and makes it ready.
fn start_thread(k: &Kernel, turn: &Turn, task: &RootTask, thread: &Thread, entry: u64) {
    let Thread { tcb, context } = *thread;
    let thread = tcb.at(k);
    let mut name = [0; NAME_BYTES];
    for (place, &letter) in name.iter_mut().zip(NAME) {
        *place = letter;
    }
    thread.set_name(k, name);
    thread.set_priority(k, MAX_PRIORITY);
    thread.set_max_controlled_priority(k, MAX_PRIORITY);
    thread.set_buffer_address(k, task.plan.ipc_buffer());
    thread.context().start(k, entry, task.plan.boot_info());
    thread.set_state(k, State::Running);
    let slice = k.constants.ticks(ROOT_TASK_SLICE_US);
    let parameters = Parameters {
        budget: slice,
        period: slice,
        max_refills: 2,
        badge: 0,
        sporadic: false,
    };
    context::configure(k, turn, context, CoreId::BOOT, parameters);
    context::bind_thread(k, turn, context, tcb);
}

impl RootTask {
    /// Makes a capability of scheduling control for each core.
    fn put_sched_controls(&mut self, k: &Kernel) -> Option<()> {
        let first = self.slots.next;
        for core in CoreId::all() {
            let control = Capability::control(ControlKind::SchedControl, core.index() as u64);
            self.slots.push(k, control)?;
        }
        self.regions.sched_control = self.slots.since(first);
        Some(())
    }

    /// Makes and installs the tables for everything that is mapped.
    fn make_tables(&mut self, k: &mut Kernel, memory: &mut Ram) -> Option<()> {
        let first = self.slots.next;
        let mapped = self.plan.mapped;
        for table in Tables::of(mapped) {
            let region = memory.take(k, PAGE_BITS)?;
            let cap = table.install(k, self.root, region)?;
            self.slots.push(k, cap)?;
        }
        self.regions.paging = self.slots.since(first);
        Some(())
    }

    /// Makes, fills and maps the pages of extra boot information.
    fn tell_extra(
        &mut self,
        k: &mut Kernel,
        firmware: &FirmwareInfo,
        memory: &mut Ram,
    ) -> Option<()> {
        let first = self.slots.next;
        for (page, vaddr) in (0..).zip(self.plan.extra()) {
            let frame = memory.take(k, PAGE_BITS)?.into_frame();
            let cap = self.map(k, frame, vaddr, Contents::Extra)?;
            self.slots.push(k, cap)?;
            extra::write(k, frame, page, firmware);
        }
        self.regions.extra = self.slots.since(first);
        Some(())
    }

    /// Maps the frame with these contents at `vaddr`; returns its capability.
    fn map(&self, k: &Kernel, frame: Tagged, vaddr: u64, contents: Contents) -> Option<Capability> {
        arch::map(k, self.root, frame, vaddr, contents)
    }

    /// Maps the image, page by page.
    fn map_image(&mut self, k: &Kernel, mut image: Ram) -> Option<()> {
        let first = self.slots.next;
        let mut vaddr = self.plan.image.start;
        for _ in 0..self.plan.image_pages() {
            let frame = image.take_frame(PAGE_BITS)?;
            let cap = self.map(k, frame, vaddr, Contents::Image)?;
            self.slots.push(k, cap)?;
            vaddr += PAGE;
        }
        self.regions.frames = self.slots.since(first);
        Some(())
    }

    /// Gives the task all memory that is left: devices, then the code of the boot, then RAM (06, section 5). What exceeds the
    /// boot information is lost (06, section 2).
    ///
    /// # Errors
    /// [`Refusal::NoSlotsForMemory`]: a task that gets its last memory without slots, RAM of all
    /// things, would fail later and not know why.
    fn give_untypeds(&mut self, k: &mut Kernel, memory: Memory) -> Result<(), Refusal> {
        let Memory {
            mut free,
            init_code,
            devices,
        } = memory;
        let no_slot = Refusal::NoSlotsForMemory {
            pages: self.plan.image_pages(),
        };
        let first = self.slots.next;
        for gap in devices {
            for piece in Pieces::of(gap) {
                if self.untypeds(first) < MAX_UNTYPEDS as u64 {
                    let slot = self.slots.next().ok_or(no_slot)?;
                    let region = Region::device(PhysAddr::new(piece.start), piece.bits);
                    give_untyped(k, slot, region.into_untyped(), piece.bits);
                    self.describe(k, first, piece.start, piece.bits, true);
                }
            }
        }
        for mut ram in core::iter::once(init_code).chain(free.drain()) {
            for piece in Pieces::of(Range {
                start: ram.start(),
                end: ram.end(),
            }) {
                ram = ram.split(piece.start).1;
                if self.untypeds(first) < MAX_UNTYPEDS as u64 {
                    let slot = self.slots.next().ok_or(no_slot)?;
                    if let Some(word) = ram.take_untyped(piece.bits) {
                        give_untyped(k, slot, word, piece.bits);
                        self.describe(k, first, piece.start, piece.bits, false);
                    }
                }
            }
        }
        self.regions.untyped = self.slots.since(first);
        Ok(())
    }

    /// Number of untypeds so far, of which the first is in slot `first`.
    fn untypeds(&self, first: u64) -> u64 {
        self.slots.next.saturating_sub(first)
    }

    /// Describes the untyped memory in the last slot that was used.
    fn describe(&self, k: &mut Kernel, first: u64, start: u64, bits: u8, device: bool) {
        let i = self.untypeds(first).saturating_sub(1);
        let entry = offset_of!(BootInfo, untyped_list) as u64 + i * size_of::<UntypedDesc>() as u64;
        self.tell(
            k,
            entry + offset_of!(UntypedDesc, paddr) as u64,
            &start.to_le_bytes(),
        );
        self.tell(
            k,
            entry + offset_of!(UntypedDesc, size_bits) as u64,
            &[bits],
        );
        self.tell(
            k,
            entry + offset_of!(UntypedDesc, is_device) as u64,
            &[device.into()],
        );
    }

    fn write_boot_info(&self, k: &mut Kernel, firmware: &FirmwareInfo) {
        let Regions {
            sched_control,
            paging,
            extra,
            frames,
            untyped,
        } = self.regions;
        let empty = SlotRegion {
            start: self.slots.next,
            end: SLOTS,
        };
        let words = [
            (offset_of!(BootInfo, extra_len), extra::length(firmware)),
            (offset_of!(BootInfo, num_nodes), k.machine.cores().into()),
            (
                offset_of!(BootInfo, num_io_pt_levels),
                io_page_table_levels(),
            ),
            (offset_of!(BootInfo, ipc_buffer), self.plan.ipc_buffer()),
            (
                offset_of!(BootInfo, init_thread_cnode_size_bits),
                ROOT_CNODE_RADIX.into(),
            ),
            (offset_of!(BootInfo, empty.start), empty.start),
            (offset_of!(BootInfo, empty.end), empty.end),
            (offset_of!(BootInfo, user_image_frames.start), frames.start),
            (offset_of!(BootInfo, user_image_frames.end), frames.end),
            (offset_of!(BootInfo, user_image_paging.start), paging.start),
            (offset_of!(BootInfo, user_image_paging.end), paging.end),
            (offset_of!(BootInfo, extra_bi_pages.start), extra.start),
            (offset_of!(BootInfo, extra_bi_pages.end), extra.end),
            (
                offset_of!(BootInfo, sched_control.start),
                sched_control.start,
            ),
            (offset_of!(BootInfo, sched_control.end), sched_control.end),
            (offset_of!(BootInfo, untyped.start), untyped.start),
            (offset_of!(BootInfo, untyped.end), untyped.end),
        ];
        for (offset, word) in words {
            self.tell(k, offset as u64, &word.to_le_bytes());
        }
    }

    /// Writes `bytes` at `offset` of the boot-information page.
    #[inline(never)]
    fn tell(&self, k: &mut Kernel, offset: u64, bytes: &[u8]) {
        user::fill_frame(k, self.boot_info, offset, bytes);
    }
}

/// Puts the untyped memory that `word` names into the empty `slot`, as used up: what is in it is not
/// zero, so it is reset before anything else.
#[inline(never)]
fn give_untyped(k: &Kernel, slot: Ref<Slot>, word: Tagged, bits: u8) {
    derivation::insert_origin(k, slot, Capability::original(word));
    slot.at(k).set_data(k, 1 << bits);
}
