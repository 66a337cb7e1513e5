//! x86_64.

use sandglass_abi::boot::slot;
use sandglass_kernel::arch::abi::{Exception, Irq};
use sandglass_kernel::arch::Register;

pub use sandglass_kernel::arch::abi::context::FPU_WORDS;

pub use sandglass_abi::context::x86_64::SYSCALL_INSTRUCTION_BYTES;
pub use sandglass_abi::vspace::x86_64::{ASIDS_PER_POOL, ASID_POOLS, ROOT_TASK_ASID};

use sandglass_abi::vspace::x86_64::IRQ_USER_OFFSET;

/// The slot of the scheduling control of the first core, behind which are those of the others.
pub const SCHED_CONTROL: u64 = slot::FIRST_DYNAMIC;

/// Of ELF files.
pub const ELF_MACHINE: u16 = 62;

/// Registers of a system call, and of its answer.
pub const NUMBER: Register = Register::Rdx;
/// The capability invoked, or waited for; the badge of what was received.
pub const CAP: Register = Register::Rdi;
pub const INFO: Register = Register::Rsi;
pub const REPLY: Register = Register::R12;
pub const DESTINATION: Register = Register::R13;
pub const MESSAGE: [Register; 4] = [Register::R10, Register::R8, Register::R9, Register::R15];
/// The stack pointer, and the flags.
pub const SP: Register = Register::Rsp;
pub const FLAGS: Register = Register::Rflags;
/// One of no role, of those that CopyRegisters calls frame registers.
pub const PLAIN: Register = Register::Rbx;
/// The fourth register that ReadRegisters tells (07, section 1.1).
pub const FOURTH: Register = Register::Rax;

/// Objects.
pub mod types {
    pub use sandglass_abi::object::x86_64::{HUGE_PAGE, LARGE_PAGE, LARGE_PAGE_BITS, PAGE};
    use sandglass_abi::object::x86_64::{PAGE_DIRECTORY, PAGE_TABLE, PDPT, PML4};

    pub const ROOT_TABLE: u64 = PML4;
    /// Tables below the root, from the upper level to the lower.
    pub const TABLES: [u64; 3] = [PDPT, PAGE_DIRECTORY, PAGE_TABLE];
}

/// Labels.
pub mod label {
    pub use sandglass_abi::invocation::x86_64::{
        ASID_CONTROL_MAKE_POOL, ASID_POOL_ASSIGN, PAGE_GET_ADDRESS, PAGE_MAP, PAGE_UNMAP,
    };
    use sandglass_abi::invocation::x86_64::{
        PAGE_DIRECTORY_MAP, PAGE_DIRECTORY_UNMAP, PAGE_TABLE_MAP, PAGE_TABLE_UNMAP, PDPT_MAP,
        PDPT_UNMAP,
    };

    /// Of the tables, as [`super::types::TABLES`] has them.
    pub const TABLE_MAP: [u64; 3] = [PDPT_MAP, PAGE_DIRECTORY_MAP, PAGE_TABLE_MAP];
    pub const TABLE_UNMAP: [u64; 3] = [PDPT_UNMAP, PAGE_DIRECTORY_UNMAP, PAGE_TABLE_UNMAP];
}

/// The kernel's number of the device interrupt that tests call `number`, below 24.
pub const fn irq(number: u64) -> Irq {
    (number + IRQ_USER_OFFSET) as Irq
}

/// What the hosted machine calls the line of the interrupt `number`: its pin.
pub const fn mask(number: u64) -> u8 {
    number as u8
}

/// Whether every core is told to forget a translation, also if it runs elsewhere.
pub const FORGETS_EVERYWHERE: bool = false;

/// How to ask IRQ control for the handler of the interrupt `number`, to be put into `slot`: the label and the words.
pub fn issue(number: u64, slot: u64) -> (u64, Vec<u64>) {
    (
        sandglass_abi::invocation::x86_64::IRQ_CONTROL_GET_IOAPIC,
        vec![slot, 64, 0, number, 0, 0, number],
    )
}

/// What the kernel makes of flags that are all ones (07, section 1.3).
pub const SANITISED_FLAGS: u64 = 0xed7;

/// A fault by an access to data at `address`, and what the message about it says of it (05, section 2.5).
pub const fn data_fault(address: u64) -> Exception {
    Exception::PageFault {
        address,
        code: DATA_FAULT as u32,
    }
}
pub const DATA_FAULT: u64 = 0b110;

/// An exception that is no fault of memory: its number is below 2^32.
pub const fn exception(number: u32) -> Exception {
    Exception::Other { number, code: 0 }
}

/// One exception of each kind.
pub fn exceptions() -> Vec<Exception> {
    let interrupt = Exception::SoftwareInterrupt { vector: 0x9e };
    vec![exception(6), data_fault(0xdead_0000), interrupt]
}
