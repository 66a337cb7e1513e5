//! What firmware and loader leave in memory: start info, memory map and ACPI tables, as any bytes;
//! and the boot from there.

use core::mem::offset_of;

use sandglass_abi::boot::{BootInfo, UntypedDesc, MAX_UNTYPEDS};
use sandglass_kernel::arch::abi::boot::FirmwareInfo;
use sandglass_kernel::arch::hosted::Machine;
use sandglass_kernel::arch::x86_64::entry::loader::Loader;
use sandglass_kernel::arch::x86_64::entry::multiboot2;
use sandglass_kernel::arch::x86_64::entry::start_info::free_memory;
use sandglass_kernel::arch::x86_64::machine::acpi::{self, Madt, PhysicalMemory, Rsdp};
use sandglass_kernel::arch::Register;
use sandglass_kernel::boot::{self, List, MachineInfo, Range, RootTask, MAX_RAM, MAX_RESERVED};
use sandglass_kernel::event::{self, Next, Trap};
use sandglass_kernel::mem::objects::Ram;
use sandglass_kernel::time::account;
use sandglass_kernel::time::turn::Turn;
use sandglass_kernel::Kernel;
use sandglass_testkit::boot::root_task;

use crate::bytes::Bytes;
use crate::{memory, Target};

pub const TARGET: Target = Target {
    name: "loader",
    what: "memory as firmware and loader leave it",
    run,
    explain,
};

/// Memory of the machine in bytes, and the end of what the kernel reaches.
const MEMORY: u64 = 4 << 20;
const KERNEL: Range = Range {
    start: 1 << 20,
    end: 2 << 20,
};
const DEVICE_TOP: u64 = 1 << 47;
const PAGE: u64 = 4096;
/// Most sums that an input has put right.
const MAX_SUMS: u8 = 7;

/// Physical memory with the input at address 0, and zeroes behind it up to the machine's end.
struct Memory(Vec<u8>);

impl PhysicalMemory for Memory {
    fn byte(&self, paddr: u64) -> Option<u8> {
        let there = usize::try_from(paddr)
            .ok()
            .and_then(|i| self.0.get(i))
            .copied();
        there.or((paddr < MEMORY).then_some(0))
    }
}

impl Memory {
    /// Sets the byte at `place` so that the `length` bytes at `start` sum up to 0, as far as all of
    /// this is in the input.
    fn put_right(&mut self, start: usize, length: usize, place: usize) {
        if let Some(byte) = self.0.get_mut(place) {
            *byte = 0;
        }
        let range = start..(start + length).min(self.0.len()).max(start);
        let sum = self
            .0
            .get(range)
            .unwrap_or(&[])
            .iter()
            .fold(0u8, |sum, &byte| sum.wrapping_add(byte));
        if let Some(byte) = self.0.get_mut(place) {
            *byte = sum.wrapping_neg();
        }
    }
}

/// An input: the sums to put right, as fuzzers do not find them, where the loader's structure
/// is, and the memory from address 0 on.
fn read(input: &[u8]) -> (Memory, u64) {
    let mut bytes = Bytes::new(input);
    let sums: Vec<[usize; 3]> = (0..bytes.byte() & MAX_SUMS)
        .map(|_| [2, 2, 1].map(|size| bytes.number(size) as usize))
        .collect();
    let paddr = bytes.number(2);
    let mut memory = Memory(bytes.rest().to_vec());
    for [start, length, place] in sums {
        memory.put_right(start, length, start + place);
    }
    (memory, paddr)
}

/// What the loader left at `paddr`: PVH's start info, which has a magic number, else what a boot
/// loader leaves, which has none.
fn loader(memory: &Memory, paddr: u64) -> Option<Loader<'_, Memory>> {
    [0, multiboot2::MAGIC]
        .into_iter()
        .find_map(|magic| Loader::at(memory, magic, paddr))
}

/// The boot is refused, or all memory is accounted for: every byte of RAM is the root task's, once,
/// and no device memory is RAM or the kernel's.
fn run(input: &[u8]) {
    let (memory, paddr) = read(input);
    let info = loader(&memory, paddr);
    let mut reserved = List::new();
    // A list that is full forgets ranges, and has a message for it (more than 8 I/O APICs).
    let mut reserve = |range| reserved.push(range).unwrap_or(());
    reserve(KERNEL);
    let rsdp = Rsdp::find(&memory, info.as_ref().map_or(0, Loader::rsdp));
    if let Ok(madt) = rsdp.and_then(|rsdp| Madt::find(&memory, rsdp)) {
        if let Some(paddr) = madt.local_apic(&memory) {
            reserve(page(paddr));
        }
        madt.io_apics(&memory, |paddr| reserve(page(paddr)));
    }
    if let Ok(rsdp) = rsdp {
        let _ = (acpi::hpet(&memory, rsdp), acpi::power_timer(&memory, rsdp));
    }
    let Some(info) = info else { return };
    let Some(file) = info.module() else { return };
    let memory_map = info.memory_map();
    let Ok(found) = free_memory(&memory_map, KERNEL, file, MEMORY) else {
        return;
    };
    let firmware = FirmwareInfo {
        memory_map,
        rsdp: rsdp.ok().map(|rsdp| rsdp.bytes(&memory)),
        framebuffer: info.framebuffer(),
        clock: None,
    };
    let free: Vec<Range> = found.free.iter().copied().collect();
    check_ram(&free, found.module, file);
    boot(firmware, &free, found.module, file, reserved);
}

/// The page around `paddr`.
fn page(paddr: u64) -> Range {
    let start = paddr & !(PAGE - 1);
    Range {
        start,
        end: start.wrapping_add(PAGE),
    }
}

/// Whether the module's memory is free once the root task has been loaded.
fn is_free(module: Range) -> bool {
    module.start >= KERNEL.start
}

/// Pieces of RAM are whole pages of memory that nobody has, ascending; below the kernel there is
/// the file alone, if that.
fn check_ram(free: &[Range], module: Range, file: Range) {
    assert!(module.start <= file.start && file.end <= module.end);
    assert!(is_free(module) || module == file && file.end <= KERNEL.start);
    let free_module = Some(&module).filter(|module| is_free(**module));
    for range in free.iter().chain(free_module) {
        assert!(range.start >= KERNEL.end && range.end <= MEMORY && range.start < range.end);
        assert!(range.start % PAGE == 0 && range.end % PAGE == 0);
    }
    assert!(free.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert!(free.iter().all(|range| !range.overlaps(module)));
}

/// Boots a machine with this memory, with the smallest root task where the loader put its file, and
/// checks what the root task is told.
fn boot(
    firmware: FirmwareInfo,
    free: &[Range],
    module: Range,
    file: Range,
    reserved: List<Range, MAX_RESERVED>,
) {
    let machine = Machine::new(MEMORY as usize, 1000);
    let mut bytes = root_task();
    bytes.truncate((file.end - file.start) as usize);
    // SAFETY: the machine is new, nothing is in its memory.
    unsafe { machine.write_memory(file.start, &bytes) };
    let mut k = Box::new(Kernel::new(machine));
    // SAFETY: memory of this machine, each byte once (`check_ram`), which nothing uses.
    let vouch = |range: Range| unsafe { Ram::vouch(range.start, range.end) };
    let mut ram: List<Ram, MAX_RAM> = List::new();
    for &range in free {
        ram.push(vouch(range))
            .expect("room for all that a memory map has");
    }
    let taken: Vec<Range> = reserved.iter().copied().collect();
    let found = MachineInfo {
        firmware,
        ram,
        init_code: vouch(Range { start: 0, end: 0 }),
        module: vouch(module),
        module_is_free: is_free(module),
        root_task: RootTask::File(file),
        reserved,
        device_top: DEVICE_TOP,
    };
    let turn = Turn::new();
    if boot::start(&mut k, &turn, found).is_err() {
        return;
    }
    account::update_time(&k, k.core());
    let next = event::trap(&mut k, &turn, Trap::Look);
    let Next::Thread(root) = next else {
        panic!("a root task was started, but nobody runs");
    };
    let boot_info = root.at(&k).context().get(Register::Rdi);
    let page = memory::page(&k.machine, boot_info).expect("the boot information is mapped");
    let untypeds = untypeds(&page);
    let module = Some(module).filter(|&module| is_free(module));
    let all: Vec<Range> = free.iter().copied().chain(module).collect();
    check_untypeds(&untypeds, &all, &taken);
}

/// Memory that the root task was given.
#[derive(Clone, Copy, Debug)]
struct Untyped {
    range: Range,
    is_device: bool,
}

/// The list of untyped memory of a boot-information page.
fn untypeds(page: &[u8]) -> Vec<Untyped> {
    let number = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
    let slots = offset_of!(BootInfo, untyped);
    let count = number(slots + 8) - number(slots);
    assert!(count <= MAX_UNTYPEDS as u64);
    let entry = |i: u64| {
        let at = offset_of!(BootInfo, untyped_list) + i as usize * size_of::<UntypedDesc>();
        let start = number(at + offset_of!(UntypedDesc, paddr));
        let bits = page[at + offset_of!(UntypedDesc, size_bits)];
        Untyped {
            range: Range {
                start,
                end: start + (1 << bits),
            },
            is_device: page[at + offset_of!(UntypedDesc, is_device)] != 0,
        }
    };
    (0..count).map(entry).collect()
}

/// Bytes of RAM that the image and the first objects of the smallest root task take on every
/// machine: the image's page; a CNode of 8192 slots; root table, ASID pool, slots of interrupts,
/// and the tables of three levels; IPC buffer, boot information and its second page; a TCB; a
/// scheduling context.
const ROOT_TASK_BYTES: u64 = PAGE + (1 << 18) + 6 * PAGE + 3 * PAGE + (1 << 11) + (1 << 7);

/// Start of the kernel's alias of physical memory, by which device memory is aligned (ABI 06,
/// section 5).
const ALIAS: u64 = 0xffff_ff80_0000_0000;

fn check_untypeds(untypeds: &[Untyped], free: &[Range], reserved: &[Range]) {
    for (i, untyped) in untypeds.iter().enumerate() {
        let range = untyped.range;
        let size = range.end - range.start;
        let alias = range.start.wrapping_add(ALIAS);
        assert!(size.is_power_of_two() && alias % size == 0, "{untyped:x?}");
        let others = untypeds[..i].iter().map(|other| other.range);
        let ram = free.iter().copied();
        let taken: Vec<Range> = if untyped.is_device {
            others.chain(ram).chain(reserved.iter().copied()).collect()
        } else {
            others.chain([KERNEL]).collect()
        };
        assert!(
            taken.iter().all(|other| !other.overlaps(range)),
            "{untyped:x?} is taken"
        );
    }
    let bytes = |ranges: &mut dyn Iterator<Item = Range>| -> u64 {
        ranges.map(|range| range.end - range.start).sum()
    };
    let all = bytes(&mut free.iter().copied());
    let given = bytes(&mut untypeds.iter().filter(|u| !u.is_device).map(|u| u.range));
    // What exceeds the boot information is lost (ABI 06, section 2).
    if untypeds.len() < MAX_UNTYPEDS {
        assert_eq!(all - given, ROOT_TASK_BYTES, "RAM that nobody has");
    }
}

fn explain(input: &[u8]) -> String {
    let (memory, paddr) = read(input);
    let Some(info) = loader(&memory, paddr) else {
        return format!("no structure of a loader at {paddr:#x}");
    };
    let rsdp = Rsdp::find(&memory, info.rsdp());
    let madt = rsdp.and_then(|rsdp| Madt::find(&memory, rsdp));
    let map: Vec<_> = info.memory_map().iter().copied().collect();
    format!(
        "module {:x?}\nroot pointer {rsdp:x?}\ninterrupt controllers {:?}\nmemory map {map:#x?}",
        info.module(),
        madt.map(|madt| madt.local_apic(&memory)),
    )
}
