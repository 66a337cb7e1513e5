//! Starts the other cores (Intel's manual, volume 3, section on the initialisation of several
//! processors).
//!
//! The core that boots resets all others, and then starts one after the other until there are as many
//! as the kernel is built for. Each begins in real mode in a page of low memory, which is lent for
//! that time, takes the number that is offered there and then, and waits for its turn in the kernel,
//! which comes when the boot has ended. In its first turn it brings itself into the kernel's state,
//! and looks for something to run. One that does not answer is reset again, and does not count; so it
//! never begins when nobody expects it.
//!
//! Of the hardware threads of one core, only the first of the table is started: they would share
//! execution units and caches, and what one does would take time from the other, on nobody's budget.

use core::arch::global_asm;
use core::mem::size_of;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::handlers::{self, KernelStack, KERNEL_STACKS, STACK_START};
use super::pvh::{CR0_PAGING, CR4_PAE};
use super::{descriptors, same_time};
use crate::arch::turn::KernelGuard;
use crate::arch::x86_64::machine::acpi::{Madt, BROADCAST, NOBODY};
use crate::arch::x86_64::machine::apic::{self, Mode, Signal, IS_X2APIC, LOCAL_APIC};
use crate::arch::x86_64::machine::layout::{KERNEL_BASE, PAGE_SIZE, WINDOW_BASE};
use crate::arch::x86_64::machine::paging::{self, START_PML4};
use crate::arch::x86_64::machine::platform::Machine;
use crate::arch::x86_64::machine::window::Window;
use crate::arch::x86_64::machine::{barriers, cpu, mtrr};
use crate::arch::Platform;
use crate::boot::{List, Refusal};
use crate::cores::{CoreId, CORES};
use crate::event::Trap;

/// What the next core that begins takes: 0, or the number of a core. When it is taken, the bit
/// [`TAKEN`] is set.
///
/// Release and Acquire: who takes it sees what the core that boots has done, and the other way round.
static OFFER: AtomicU32 = AtomicU32::new(0);
const TAKEN_BIT: u32 = 16;
const TAKEN: u32 = 1 << TAKEN_BIT;

/// Physical address of the local APICs.
static LOCAL_APICS: AtomicU64 = AtomicU64::new(0);

/// What each begins with in EFER: the kernel's page tables cannot be read without it.
static START_EFER: AtomicU32 = AtomicU32::new(0);

/// What the memory types of the core that boots come to, and whether another core's come to something else.
static MEMORY_TYPES: AtomicU64 = AtomicU64::new(0);
static MEMORY_TYPES_DIFFER: AtomicBool = AtomicBool::new(false);

/// Time between a reset and the start, in microseconds, as the manual wants it.
const RESET_US: u64 = 10_000;
/// Time after which a core that has not answered is told to start once more.
const FIRST_START_US: u64 = 200;
/// Time after which it is given up. It answers after a few dozen instructions, but an emulator on a busy
/// host may begin with them late.
const LAST_START_US: u64 = 1_000_000;

/// Most that the time-stamp counters of two cores may be seen to differ by, in microseconds: a tenth
/// of the longest kernel path that the ABI's constants allow for (04, section 1).
const MAX_DISAGREEMENT_US: u64 = 1;

/// Time after which a core that has started, and was asked for its counter, is taken to have stopped.
/// It answers at once, but an emulator on a busy host may not let it for long.
const LAST_ANSWER_US: u64 = 10_000_000;

/// Most bytes of the code in low memory.
const LOW_CODE: usize = 64;
/// Where in it the operand of LGDT is.
const LOW_TABLE: usize = 48;

unsafe extern "C" {
    static sandglass_low_start: [u8; LOW_CODE];
}

/// Most cores that are tried.
const MAX_TRIED: usize = 255;

/// Starts other processors of the table, as many as the kernel is built for, and leaves the rest
/// reset. `page` is the physical address of a page of RAM below 1 MiB; it is as before on return.
/// `local_apics` is the physical address of the local APICs.
///
/// # Errors
/// The time-stamp counter of one that has started does not agree with this core's, or its memory types are others.
pub fn start(machine: &Machine, madt: Madt, local_apics: u64, page: u64) -> Result<(), Refusal> {
    LOCAL_APICS.store(local_apics, Ordering::Relaxed);
    MEMORY_TYPES.store(mtrr::digest(), Ordering::Relaxed);
    let own = apic::id_of(CoreId::BOOT);
    let end = if apic::mode() == Mode::X2Apic {
        NOBODY
    } else {
        BROADCAST
    };
    let thread_bits = cpu::thread_bits();
    let core_of = |id: u32| id.wrapping_shr(thread_bits);
    let mut is_alone = true;
    let mut firsts: List<u32, MAX_TRIED> = List::new();
    madt.processors(&Window, end, |id| {
        if id == own {
            return;
        }
        is_alone = false;
        LOCAL_APIC.send(id, Signal::Reset);
        let is_other = |&first: &u32| core_of(first) != core_of(id);
        if is_other(&own) && firsts.iter().all(is_other) {
            firsts.push(id).unwrap_or(());
        }
    });
    if is_alone {
        return Ok(());
    }
    paging::init_start();
    START_EFER.store(cpu::efer() as u32, Ordering::Relaxed);
    let before = read_low(page);
    // SAFETY: constant bytes of the kernel's image.
    write_low(page, unsafe { sandglass_low_start });
    pass(machine, RESET_US);
    let mut ids = firsts.iter();
    let mut cores = CoreId::all().skip(1);
    let mut next = cores.next();
    while let (Some(core), Some(&id)) = (next, ids.next()) {
        same_time::prepare();
        if start_one(machine, core, id, page) {
            check_time(machine)?;
            if MEMORY_TYPES_DIFFER.load(Ordering::Relaxed) {
                return Err(Refusal::Machine(
                    "the memory-type range registers (MTRRs) of two cores differ: the firmware must set them alike, or \
                     the single-core kernel be booted",
                ));
            }
            machine.add_core();
            next = cores.next();
        }
    }
    write_low(page, before);
    Ok(())
}

/// Whether the core that was just started has the same time as this one.
fn check_time(machine: &Machine) -> Result<(), Refusal> {
    let us = machine.ticks_per_us.get();
    match same_time::ask(
        LAST_ANSWER_US.wrapping_mul(us),
        MAX_DISAGREEMENT_US.wrapping_mul(us),
    ) {
        Some(true) => Ok(()),
        Some(false) => Err(Refusal::Machine(
            "the time-stamp counters of two cores are more than 1 us apart: the firmware must set \
             them alike, or the single-core kernel be booted",
        )),
        None => Err(Refusal::Machine(
            "a core has stopped in the middle of its start",
        )),
    }
}

/// Starts the processor with the local APIC number `id` as `core`. Whether one has answered, which might be one that was
/// given up before.
fn start_one(machine: &Machine, core: CoreId, id: u32, page: u64) -> bool {
    OFFER.store(core.index() as u32, Ordering::Release);
    let first_page = (page / PAGE_SIZE) as u8;
    for patience in [FIRST_START_US, LAST_START_US] {
        LOCAL_APIC.send(id, Signal::Start { page: first_page });
        await_answer(machine, patience);
        if is_taken() {
            return true;
        }
    }
    // Acquire: if it is taken just now.
    if OFFER.swap(0, Ordering::Acquire) & TAKEN != 0 {
        return true;
    }
    LOCAL_APIC.send(id, Signal::Reset);
    false
}

/// Whether somebody has taken the offer.
fn is_taken() -> bool {
    OFFER.load(Ordering::Acquire) & TAKEN != 0
}

/// Waits until the offer is taken, for `us` microseconds at most.
fn await_answer(machine: &Machine, us: u64) {
    let end = deadline(machine, us);
    while !is_taken() && machine.now() < end {
        core::hint::spin_loop();
    }
}

/// Lets `us` microseconds pass.
fn pass(machine: &Machine, us: u64) {
    let end = deadline(machine, us);
    while machine.now() < end {
        // An emulator reads clocks slowly.
        for i in 0..1_000 {
            core::hint::black_box(i);
        }
    }
}

fn deadline(machine: &Machine, us: u64) -> u64 {
    let ticks = us.wrapping_mul(machine.ticks_per_us.get());
    machine.now().wrapping_add(ticks)
}

/// The first bytes of the page of low memory at `page`.
fn read_low(page: u64) -> [u8; LOW_CODE] {
    let address = WINDOW_BASE.wrapping_add(page) as *const [u8; LOW_CODE];
    // SAFETY: RAM, through the window. Volatile, since no Rust object is known to lie there.
    unsafe { address.read_volatile() }
}

/// Writes them.
fn write_low(page: u64, bytes: [u8; LOW_CODE]) {
    let address = WINDOW_BASE.wrapping_add(page) as *mut [u8; LOW_CODE];
    // SAFETY: as for reading; nobody uses the page meanwhile.
    unsafe { address.write_volatile(bytes) }
}

/// Called by the code below, on the kernel's stack of `core`, which executes it, in the address space
/// of start-up, with interrupts off.
extern "C" fn begin(core: CoreId) -> ! {
    apic::set_id(core, cpu::apic_id());
    if !mtrr::agree(MEMORY_TYPES.load(Ordering::Relaxed)) {
        MEMORY_TYPES_DIFFER.store(true, Ordering::Relaxed);
    }
    same_time::answer();
    // SAFETY: called by assembly, once on each core; nothing is borrowed when the turn ends.
    let guard = unsafe { KernelGuard::enter(core) };
    // SAFETY: the present root without the low memory that only the start needed; code, stack and
    // data of the kernel stay where they are.
    unsafe { cpu::set_root(paging::kernel_root()) }
    cpu::init();
    barriers::init(core, descriptors::KERNEL_DATA);
    descriptors::init(core);
    LOCAL_APIC.enable(core, LOCAL_APICS.load(Ordering::Relaxed));
    guard.k.machine.start_timer();
    guard.k.machine.use_address_space(None);
    guard.leave();
    // Others may have left threads here already, and could not reach this core.
    handlers::act(core, Trap::Look)
}

global_asm!(
    // Copied to low memory, where it begins at a multiple of 4 KiB: all addresses are relative to
    // its start, or of the kernel's image.
    ".section .rodata.cores, \"a\", @progbits",
    ".balign 16",
    ".global sandglass_low_start",
    "sandglass_low_start:",
    ".code16",
    "cli",
    "cld",
    "lgdt cs:[{low_table}]",
    "mov eax, cr0",
    "or al, 1",
    "mov cr0, eax",
    // A far jump with an offset of 32 bits, to code of 32 bits.
    ".byte 0x66, 0xea",
    ".long sandglass_core_start + {to_physical}",
    ".word 8",
    ".org sandglass_low_start + {low_table}",
    ".word 31",
    ".long sandglass_start_descriptors + {to_physical}",
    ".org sandglass_low_start + {low_code}",
    // Null, code of 32 bits, data, code of 64 bits.
    "sandglass_start_descriptors:",
    ".quad 0",
    ".quad 0x00cf9b000000ffff",
    ".quad 0x00cf93000000ffff",
    ".quad 0x00af9b000000ffff",

    ".section .text.cores, \"ax\", @progbits",
    ".code32",
    ".global sandglass_core_start",
    ".type sandglass_core_start, @function",
    "sandglass_core_start:",
    "mov eax, 16",
    "mov ds, eax",
    "mov ss, eax",
    // A local APIC in x2APIC mode, which it cannot leave, is of no use where the kernel's are not.
    "mov ecx, {msr_apic_base}",
    "rdmsr",
    "bt eax, {x2apic_bit}",
    "setc al",
    "cmp al, [{is_x2apic} + {to_physical}]",
    "ja sandglass_core_stop",
    // The offer, if there is one. Two cores never take the same.
    "mov eax, [{offer} + {to_physical}]",
    "test eax, eax",
    "jz sandglass_core_stop",
    "mov ebx, eax",
    "bts ebx, {taken_bit}",
    "jc sandglass_core_stop",
    "lock cmpxchg [{offer} + {to_physical}], ebx",
    "jne sandglass_core_stop",
    "mov edi, eax",

    "mov eax, {pae}",
    "mov cr4, eax",
    "mov eax, offset {pml4} + {to_physical}",
    "mov cr3, eax",
    "mov ecx, 0xc0000080",
    "rdmsr",
    "or eax, [{efer} + {to_physical}]",
    "wrmsr",
    // Caches are on from here: a reset had switched them off.
    "mov eax, {paging}",
    "mov cr0, eax",
    "imul esp, edi, {stack_size}",
    "add esp, offset {stacks} + {stack_start} + {to_physical}",
    "push 24",
    "mov eax, offset sandglass_core_long_mode + {to_physical}",
    "push eax",
    "retf",
    "sandglass_core_stop:",
    "cli",
    "hlt",
    "jmp sandglass_core_stop",

    ".code64",
    "sandglass_core_long_mode:",
    "mov eax, 16",
    "mov ss, eax",
    "add rsp, {from_physical}",
    "mov rax, offset sandglass_core_high",
    "push rax",
    "ret",
    "sandglass_core_high:",
    "jmp {begin}",
    ".size sandglass_core_start, . - sandglass_core_start",
    ".text",

    to_physical = const KERNEL_BASE.wrapping_neg(),
    from_physical = const KERNEL_BASE as i64,
    low_code = const LOW_CODE,
    low_table = const LOW_TABLE,
    msr_apic_base = const cpu::Msr::ApicBase as u32,
    x2apic_bit = const 10,
    is_x2apic = sym IS_X2APIC,
    offer = sym OFFER,
    taken_bit = const TAKEN_BIT,
    pae = const CR4_PAE,
    pml4 = sym START_PML4,
    efer = sym START_EFER,
    paging = const CR0_PAGING as i32,
    stack_size = const size_of::<KernelStack>(),
    stacks = sym KERNEL_STACKS,
    stack_start = const STACK_START,
    begin = sym begin,
);

const _: () = assert!(CORES <= TAKEN_BIT as usize);
