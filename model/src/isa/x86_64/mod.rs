//! x86_64.

mod frame;
mod ioport;
pub mod irq;
mod paging;

pub use sandglass_abi::context::x86_64::{
    CAP_OR_BADGE, COUNT, FRAME_COUNT, FS_BASE as TLS_BASE, MESSAGE_INFO, MESSAGE_REGISTERS,
    NB_SEND_RECV_DEST, REPLY, RIP as PC, SYSCALL_NUMBER, TIMEOUT_REPLY_ORDER, USER_EXCEPTION_ORDER,
};
pub use sandglass_abi::invocation::x86_64::{ASID_CONTROL_MAKE_POOL, ASID_POOL_ASSIGN};
pub use sandglass_abi::object::x86_64::FIRST_INVALID;
pub use sandglass_abi::syscall::x86_64::HAS_SET_TLS_BASE;
pub use sandglass_abi::vspace::x86_64::{ASIDS_PER_POOL, ASID_POOLS};

use crate::error::Error;
use crate::event::Event;
use crate::invoke::{Call, Outcome};
use crate::object::Kind;
use crate::state::{Cap, Fault, Level, Registers, State, TableId, ThreadId};
use sandglass_abi::context::x86_64::{
    FIRST_NON_CANONICAL, GS_BASE, INITIAL_RFLAGS, LAST_NON_CANONICAL, RAX, RFLAGS, RFLAGS_CLEAR,
    RFLAGS_KEEP, RFLAGS_SET, UNKNOWN_SYSCALL_ORDER,
};
use sandglass_abi::object::x86_64 as types;

/// The microseconds in which the clock counts a whole number of ticks; and how many before the end of a budget the timer
/// fires (04, section 1).
pub const UNIT_US: u64 = 1;
pub const PRECISION_US: u64 = 1;

/// The kernel's number of an interrupt.
pub type IrqNumber = u8;

/// What raises interrupts: a pin of an I/O APIC.
pub type Pin = (u8, u8);

/// The register of a new thread that is not 0, and what it holds (07, section 1.4): interrupts enabled, and the bit that
/// is always 1.
pub const INITIAL: (usize, u64) = (RFLAGS, INITIAL_RFLAGS);

/// What a register, by its place in the user context, may hold of `value` (07, section 1.3).
pub fn sanitise(register: usize, value: u64) -> u64 {
    match register {
        RFLAGS => ((value | RFLAGS_SET) & !RFLAGS_CLEAR) & RFLAGS_KEEP,
        PC | TLS_BASE | GS_BASE if !is_canonical(value) => 0,
        _ => value,
    }
}

/// Whether the processor accepts `address` (07, section 1.3).
pub fn is_canonical(address: u64) -> bool {
    !(FIRST_NON_CANONICAL..=LAST_NON_CANONICAL).contains(&address)
}

/// The registers that the message about an unknown system call has (05, section 2.2).
pub fn unknown_syscall(registers: &Registers) -> Vec<u64> {
    UNKNOWN_SYSCALL_ORDER.map(|i| registers.user[i]).to_vec()
}

/// Sets the registers that the answer to it has (05, section 6).
pub fn answer_unknown_syscall(registers: &mut Registers, words: &[u64]) {
    for (&i, &word) in UNKNOWN_SYSCALL_ORDER.iter().zip(words) {
        registers.user[i] = sanitise(i, word);
    }
}

/// The fault that `event`, by `thread`, is; `None` for a system call (05, section 2).
pub fn fault_of(s: &State, thread: ThreadId, event: Event) -> Option<Fault> {
    match event {
        Event::SoftwareInterrupt { vector } => {
            let eax = s.threads[&thread].registers.user[RAX] as u32;
            let number = u32::from(vector) << 24 | eax & 0xff_ffff;
            Some(Fault::UnknownSyscall {
                number: i64::from(number as i32) as u64,
            })
        }
        Event::Exception { number, code } => Some(Fault::UserException { number, code }),
        Event::PageFault { address, code } => Some(Fault::Vm {
            address,
            instruction: code & 1 << 4 != 0,
            status: code & 0x1f,
        }),
        Event::Syscall | Event::Interrupt { .. } | Event::Timer | Event::Look => None,
    }
}

/// The kind of paging structures or frames with this number (02, section 1).
pub fn kind(number: u64) -> Kind {
    match number {
        types::PDPT => Kind::Paging { level: Level::Pdpt },
        types::PML4 => Kind::Paging { level: Level::Pml4 },
        types::PAGE_DIRECTORY => Kind::Paging {
            level: Level::PageDirectory,
        },
        types::PAGE_TABLE => Kind::Paging {
            level: Level::PageTable,
        },
        types::HUGE_PAGE => Kind::Frame {
            bits: types::HUGE_PAGE_BITS,
        },
        types::LARGE_PAGE => Kind::Frame {
            bits: types::LARGE_PAGE_BITS,
        },
        _ => Kind::Frame {
            bits: types::PAGE_BITS,
        },
    }
}

/// Invokes a capability of this architecture's.
///
/// # Errors
/// In the order of 03, section 8.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    match call.cap {
        Cap::Frame { .. } => frame::invoke(s, call),
        Cap::Paging { .. } => paging::invoke(s, call),
        // 03, section 8.1.
        Cap::Root { .. } => Err(Error::IllegalOperation),
        Cap::IoPortControl => ioport::invoke_control(s, call),
        Cap::IoPort { first, last } => ioport::invoke(s, call, first, last),
        other => panic!("{other:?} is not of this architecture"),
    }
}

/// At which levels entries can refer to the table `object` of `level`: at that above.
pub fn parents(level: Level, _: TableId) -> impl Iterator<Item = Level> {
    std::iter::once(crate::vspace::parent(level))
}
