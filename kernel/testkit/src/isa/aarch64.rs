//! aarch64.

use sandglass_abi::boot::slot;
use sandglass_kernel::arch::abi::context::SPSR_FIXED;
use sandglass_kernel::arch::abi::{Exception, Irq};
use sandglass_kernel::arch::Register;

pub use sandglass_kernel::arch::abi::context::FPU_WORDS;
use sandglass_kernel::CORES;

pub use sandglass_abi::context::aarch64::SYSCALL_INSTRUCTION_BYTES;
pub use sandglass_abi::vspace::aarch64::{ASIDS_PER_POOL, ASID_POOLS, ROOT_TASK_ASID};

use sandglass_abi::vspace::aarch64::FIRST_SPI;

/// The slot of the scheduling control of the first core, behind which are those of the others. Before it are the root
/// task's page tables and the pages of its extra boot information.
pub const SCHED_CONTROL: u64 = slot::FIRST_DYNAMIC + 3 + 2;

/// Of ELF files.
pub const ELF_MACHINE: u16 = 183;

/// Registers of a system call, and of its answer.
pub const NUMBER: Register = Register::X7;
/// The capability invoked, or waited for; the badge of what was received.
pub const CAP: Register = Register::X0;
pub const INFO: Register = Register::X1;
pub const REPLY: Register = Register::X6;
pub const DESTINATION: Register = Register::X8;
pub const MESSAGE: [Register; 4] = [Register::X2, Register::X3, Register::X4, Register::X5];
/// The stack pointer, and the flags.
pub const SP: Register = Register::Sp;
pub const FLAGS: Register = Register::Spsr;
/// One of no role, of those that CopyRegisters calls frame registers.
pub const PLAIN: Register = Register::X16;
/// The fourth register that ReadRegisters tells (07, section 1.1).
pub const FOURTH: Register = Register::X0;

/// Objects.
pub mod types {
    pub use sandglass_abi::object::aarch64::{HUGE_PAGE, LARGE_PAGE, LARGE_PAGE_BITS};
    use sandglass_abi::object::aarch64::{PAGE_TABLE, SMALL_PAGE, VSPACE};

    pub const PAGE: u64 = SMALL_PAGE;
    pub const ROOT_TABLE: u64 = VSPACE;
    /// Tables below the root, from the upper level to the lower: the same.
    pub const TABLES: [u64; 3] = [PAGE_TABLE; 3];
}

/// Labels.
pub mod label {
    pub use sandglass_abi::invocation::aarch64::{
        ASID_CONTROL_MAKE_POOL, ASID_POOL_ASSIGN, PAGE_GET_ADDRESS, PAGE_MAP, PAGE_UNMAP,
    };
    use sandglass_abi::invocation::aarch64::{PAGE_TABLE_MAP, PAGE_TABLE_UNMAP};

    /// Of the tables, as [`super::types::TABLES`] has them.
    pub const TABLE_MAP: [u64; 3] = [PAGE_TABLE_MAP; 3];
    pub const TABLE_UNMAP: [u64; 3] = [PAGE_TABLE_UNMAP; 3];
}

/// The kernel's number of the device interrupt that tests call `number`, below 24: that of a shared one.
pub const fn irq(number: u64) -> Irq {
    (number + FIRST_SPI * CORES as u64) as Irq
}

/// What the hosted machine calls the line of the interrupt `number`.
pub const fn mask(number: u64) -> Irq {
    irq(number)
}

/// Whether every core is told to forget a translation, also if it runs elsewhere.
pub const FORGETS_EVERYWHERE: bool = true;

/// How to ask IRQ control for the handler of the interrupt `number`, to be put into `slot`: the label and the words.
pub fn issue(number: u64, slot: u64) -> (u64, Vec<u64>) {
    (
        sandglass_abi::invocation::aarch64::IRQ_CONTROL_GET_TRIGGER,
        vec![FIRST_SPI + number, 1, slot, 64],
    )
}

/// What the kernel makes of flags that are all ones (07, section 1.3).
pub const SANITISED_FLAGS: u64 = 0xf000_0000 | SPSR_FIXED;

/// A fault by an access to data at `address`, and what the message about it says of it (05, section 2.5).
pub const fn data_fault(address: u64) -> Exception {
    Exception::DataAbort {
        address,
        status: DATA_FAULT as u32,
    }
}
/// A write from EL0 that a translation fault at level 3 stopped.
pub const DATA_FAULT: u64 = 0x9200_0047;

/// An exception that is no fault of memory: its number is below 2^32.
pub const fn exception(number: u32) -> Exception {
    Exception::Other { status: number }
}

/// One exception of each kind.
pub fn exceptions() -> Vec<Exception> {
    let abort = Exception::InstructionAbort {
        status: 0x8200_0007,
    };
    vec![exception(0x0200_0000), data_fault(0xdead_0000), abort]
}
