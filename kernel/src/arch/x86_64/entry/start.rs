//! The machine's part of the boot: brings processor and interrupt controllers into the kernel's
//! state, and finds out what there is.

use super::loader::Loader;
use super::start_info::{free_memory, low_page, FreeMemory};
use super::{clocks, descriptors, handlers, legacy, start_cores};
use crate::arch::abi::boot::FirmwareInfo;
use crate::arch::turn::KernelGuard;
use crate::arch::x86_64::machine::acpi::{Error, Madt, Rsdp, BROADCAST};
use crate::arch::x86_64::machine::apic::{self, LOCAL_APIC};
use crate::arch::x86_64::machine::layout::{physical, PAGE_SIZE, WINDOW_SIZE};
use crate::arch::x86_64::machine::platform::Machine;
use crate::arch::x86_64::machine::window::Window;
use crate::arch::x86_64::machine::{barriers, cpu, mtrr, paging, serial};
use crate::arch::Platform;
use crate::boot::{self, List, MachineInfo, Range, Refusal, RootTask};
use crate::cores::{CoreId, CORES};
use crate::mem::objects::Ram;

/// Status with which the machine stops when the kernel refuses to start.
const REFUSED: u8 = 1;

/// The kernel's image and all RAM that is handed out begin here (06, section 5).
const FIRST_RAM: u64 = 0x10_0000;
/// End of the physical addresses that are handed out (06, section 5).
const DEVICE_TOP: u64 = 1 << 47;
/// Addresses that raise message-signalled interrupts (06, section 5).
const MSI_WINDOW: Range = Range {
    start: 0xffff_fff8,
    end: 0x1_0000_0000,
};

unsafe extern "C" {
    // From the linker script: the end of the kernel's image, and in it the bounds of the code that runs once.
    static kernel_end: u8;
    static init_text_start: u8;
    static init_text_end: u8;
}

/// Called by the loader's entry with the physical address of the loader's structure and what a
/// boot loader left in EAX, in the address space of start-up, on the kernel's stack, with
/// interrupts off.
pub extern "C" fn start(paddr: u64, magic: u32) -> ! {
    serial::init();
    cpu::init();
    barriers::init(CoreId::BOOT, descriptors::KERNEL_DATA);
    paging::init();
    descriptors::init(CoreId::BOOT);
    legacy::disable_pic();
    // SAFETY: called once, by assembly; does not return.
    let guard = unsafe { KernelGuard::enter(CoreId::BOOT) };
    let outcome = match find(&guard.k.machine, magic, paddr) {
        Ok(found) => boot::start(guard.k, guard.turn, found),
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(()) => handlers::leave_boot(guard),
        Err(refusal) => {
            let machine = &guard.k.machine;
            refusal.report(machine);
            machine.halt(REFUSED);
            cpu::stop()
        }
    }
}

/// Everything about the machine. Its interrupt controllers and its clock work afterwards.
fn find(machine: &Machine, magic: u32, paddr: u64) -> Result<MachineInfo, Refusal> {
    if let Some(what) = cpu::missing() {
        return Err(Refusal::Machine(what));
    }
    let info = Loader::at(&Window, magic, paddr).ok_or(Refusal::Machine(
        "the kernel was entered neither by PVH (QEMU: -kernel) nor by Multiboot2",
    ))?;
    #[cfg(feature = "debug")]
    if let Some(framebuffer) = info.framebuffer() {
        crate::arch::x86_64::machine::screen::init(&framebuffer, &info.memory_map());
    }
    barriers::report(machine);
    let rsdp = Rsdp::find(&Window, info.rsdp()).map_err(acpi)?;
    let madt = Madt::find(&Window, rsdp).map_err(acpi)?;

    let kernel = Range {
        start: FIRST_RAM,
        end: physical(&raw const kernel_end),
    };
    let mut reserved = List::new();
    let mut reserve = |range| reserved.push(range).unwrap_or(());
    reserve(kernel);
    reserve(MSI_WINDOW);
    let local_apics = start_interrupts(machine, madt, &mut reserve)?;
    let clock = clocks::start(machine, rsdp)?;

    let file = info.module().ok_or(Refusal::NoRootTask)?;
    let memory_map = info.memory_map();
    if CORES > 1 {
        if let Some(page) = low_page(&memory_map, file) {
            start_cores::start(machine, madt, local_apics, page)?;
        }
    }
    let FreeMemory { mut free, module } = free_memory(&memory_map, kernel, file, WINDOW_SIZE)?;
    mtrr::judge([kernel, module].into_iter().chain(free.iter().copied()))
        .map_err(Refusal::Machine)?;
    // SAFETY: available RAM of the firmware's memory map, inside the window, beside the kernel's
    // image; `free_memory` returns each byte once. What the loader told lies in it too, and has
    // been read. And the code that executes this: nobody writes there before the first user instruction, when this core
    // has left it (`leave_boot`); others never are in it.
    let vouch = |range: Range| unsafe { Ram::vouch(range.start, range.end) };
    let mut ram = List::new();
    for range in free.drain() {
        ram.push(vouch(range)).unwrap_or_else(drop);
    }
    let init_code = vouch(Range {
        start: physical(&raw const init_text_start),
        end: physical(&raw const init_text_end),
    });
    let module_is_free = module.start >= FIRST_RAM;
    let module = vouch(module);
    let firmware = FirmwareInfo {
        memory_map: if info.tells_memory_map() {
            memory_map
        } else {
            List::new()
        },
        rsdp: Some(rsdp.bytes(&Window)),
        framebuffer: info.framebuffer(),
        clock: Some(clock),
    };
    Ok(MachineInfo {
        firmware,
        ram,
        init_code,
        module,
        module_is_free,
        root_task: RootTask::File(file),
        reserved,
        device_top: DEVICE_TOP,
    })
}

fn acpi(error: Error) -> Refusal {
    Refusal::Machine(error.message())
}

/// Starts the local APIC and all I/O APICs, and reserves their pages. Returns the physical address of
/// the former.
fn start_interrupts(
    machine: &Machine,
    madt: Madt,
    reserve: &mut impl FnMut(Range),
) -> Result<u64, Refusal> {
    let local = LOCAL_APIC.init();
    if apic::id_of(CoreId::BOOT) >= BROADCAST {
        return Err(Refusal::Machine(
            "the core that boots has an APIC number above 254, which I/O APICs do not reach",
        ));
    }
    reserve(page(local));
    let mut all_driven = true;
    madt.io_apics(&Window, |paddr| {
        all_driven &= machine.io_apics.add(paddr);
        reserve(page(paddr));
    });
    if !all_driven {
        return Err(Refusal::Machine(
            "the machine has more than 8 I/O APICs, or one at an odd address",
        ));
    }
    if machine.io_apics.count() == 0 {
        return Err(Refusal::Machine("the ACPI tables name no I/O APIC"));
    }
    Ok(local)
}

/// The page around the physical address `paddr`.
fn page(paddr: u64) -> Range {
    let start = paddr & !(PAGE_SIZE - 1);
    Range {
        start,
        end: start.wrapping_add(PAGE_SIZE),
    }
}
