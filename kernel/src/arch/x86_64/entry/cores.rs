//! How further cores begin (Intel's manual, volume 3, section on the initialisation of several
//! processors), when [`super::start_cores`] has started them.
//!
//! Each begins in real mode in a page of low memory, which is lent for
//! that time, takes the number that is offered there and then, and waits for its turn in the kernel,
//! which comes when the boot has ended. In its first turn it brings itself into the kernel's state,
//! and looks for something to run. All of this stays: the last of it runs when the boot has ended.

use core::arch::global_asm;
use core::mem::size_of;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::handlers::{self, KernelStack, KERNEL_STACKS, STACK_START};
use super::pvh::{CR0_PAGING, CR4_PAE};
use super::{descriptors, same_time};
use crate::arch::spaces;
use crate::arch::turn::KernelGuard;
use crate::arch::x86_64::machine::apic::{self, IS_X2APIC, LOCAL_APIC};
use crate::arch::x86_64::machine::layout::KERNEL_BASE;
use crate::arch::x86_64::machine::paging::{self, START_PML4};
use crate::arch::x86_64::machine::{barriers, cpu, mtrr};
use crate::cores::{CoreId, CORES};
use crate::event::Trap;

/// What the next core that begins takes: 0, or the number of a core. When it is taken, the bit
/// [`TAKEN`] is set.
///
/// Release and Acquire: who takes it sees what the core that boots has done, and the other way round.
pub static OFFER: AtomicU32 = AtomicU32::new(0);
const TAKEN_BIT: u32 = 16;
pub const TAKEN: u32 = 1 << TAKEN_BIT;

/// Physical address of the local APICs.
pub static LOCAL_APICS: AtomicU64 = AtomicU64::new(0);

/// What each begins with in EFER: the kernel's page tables cannot be read without it.
pub static START_EFER: AtomicU32 = AtomicU32::new(0);

/// What the memory types of the core that boots come to, and whether another core's come to something else.
pub static MEMORY_TYPES: AtomicU64 = AtomicU64::new(0);
pub static MEMORY_TYPES_DIFFER: AtomicBool = AtomicBool::new(false);

/// Most bytes of the code in low memory.
pub const LOW_CODE: usize = 64;
/// Where in it the operand of LGDT is.
const LOW_TABLE: usize = 48;

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
    spaces::leave(guard.k);
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
