//! aarch64.

mod frame;
pub mod irq;
mod paging;
mod vspace;

pub use sandglass_abi::context::aarch64::{
    CAP_OR_BADGE, COUNT, FRAME_COUNT, MESSAGE_INFO, MESSAGE_REGISTERS, NB_SEND_RECV_DEST, PC,
    REPLY, SYSCALL_NUMBER, TIMEOUT_REPLY_ORDER, TPIDR_EL0 as TLS_BASE, USER_EXCEPTION_ORDER,
};
pub use sandglass_abi::invocation::aarch64::{ASID_CONTROL_MAKE_POOL, ASID_POOL_ASSIGN};
pub use sandglass_abi::object::aarch64::FIRST_INVALID;
pub use sandglass_abi::syscall::aarch64::HAS_SET_TLS_BASE;
pub use sandglass_abi::vspace::aarch64::{ASIDS_PER_POOL, ASID_POOLS};

use crate::error::Error;
use crate::event::Event;
use crate::invoke::{Call, Outcome};
use crate::object::Kind;
use crate::state::{Cap, Fault, Level, Registers, State, TableId, ThreadId};
use sandglass_abi::context::aarch64::{
    SPSR, SPSR_FIXED_DEBUG, SPSR_FIXED_RELEASE, SPSR_FLAGS, UNKNOWN_SYSCALL_ORDER,
};
use sandglass_abi::fault::unknown_syscall_aarch64 as unknown;
use sandglass_abi::object::aarch64 as types;

/// The microseconds in which the clock counts a whole number of ticks; and how many before the end of a budget the timer
/// fires (04, section 1).
pub const UNIT_US: u64 = 1000;
pub const PRECISION_US: u64 = 0;

/// The kernel's number of an interrupt: that of the GIC, for one core.
pub type IrqNumber = u16;

/// What raises interrupts: each has a line of its own.
pub type Pin = u16;

/// What SPSR always is, but for the flags (07, section 1.3).
const SPSR_FIXED: u64 = if cfg!(feature = "debug") {
    SPSR_FIXED_DEBUG
} else {
    SPSR_FIXED_RELEASE
};

/// The register of a new thread that is not 0, and what it holds (07, section 1.4).
pub const INITIAL: (usize, u64) = (SPSR, SPSR_FIXED);

/// What a register, by its place in the user context, may hold of `value` (07, section 1.3).
pub fn sanitise(register: usize, value: u64) -> u64 {
    match register {
        SPSR => value & SPSR_FLAGS | SPSR_FIXED,
        _ => value,
    }
}

/// Every address can be that of thread-local storage.
pub fn is_canonical(_: u64) -> bool {
    true
}

/// The registers that the message about an unknown system call has (05, section 2.2).
pub fn unknown_syscall(registers: &Registers) -> Vec<u64> {
    let user = UNKNOWN_SYSCALL_ORDER.map(|i| registers.user[i]);
    [&user[..], &[registers.next_ip, registers.user[SPSR]]].concat()
}

/// Sets the registers that the answer to it has (05, section 6).
pub fn answer_unknown_syscall(registers: &mut Registers, words: &[u64]) {
    for (&i, &word) in UNKNOWN_SYSCALL_ORDER.iter().zip(words) {
        registers.user[i] = word;
    }
    if let Some(&next_ip) = words.get(unknown::NEXT_IP) {
        registers.next_ip = next_ip;
    }
    if let Some(&spsr) = words.get(unknown::SPSR) {
        registers.user[SPSR] = sanitise(SPSR, spsr);
    }
}

/// The fault that `event`, by `thread`, is; `None` for a system call (05, section 2).
pub fn fault_of(s: &State, thread: ThreadId, event: Event) -> Option<Fault> {
    /// The exception class of an instruction abort from EL0, in ESR.
    const INSTRUCTION_ABORT: u32 = 0x20;
    match event {
        Event::Exception { number, .. } => Some(Fault::UserException { number, code: 0 }),
        Event::PageFault { code, .. } if code >> 26 == INSTRUCTION_ABORT => Some(Fault::Vm {
            address: s.threads[&thread].registers.user[PC],
            instruction: true,
            status: code,
        }),
        Event::PageFault { address, code } => Some(Fault::Vm {
            address,
            instruction: false,
            status: code,
        }),
        Event::SoftwareInterrupt { .. } => panic!("there are none"),
        Event::Syscall | Event::Interrupt { .. } | Event::Timer | Event::Look => None,
    }
}

/// The kind of paging structures or frames with this number (02, section 1).
pub fn kind(number: u64) -> Kind {
    match number {
        types::VSPACE => Kind::Paging { level: Level::Pml4 },
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
            bits: types::SMALL_PAGE_BITS,
        },
    }
}

/// Invokes a capability of this architecture's.
///
/// # Errors
/// In the order of 03, section 9.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    match call.cap {
        Cap::Frame { .. } => frame::invoke(s, call),
        Cap::Paging {
            object, mapping, ..
        } => paging::invoke(s, call, object, mapping),
        Cap::Root { object, asid } => vspace::invoke(s, call, object, asid),
        // Whatever the label (03, section 7.5).
        Cap::SgiSignal { sgi, target } => {
            s.devices.sgi = Some((sgi, target));
            Ok(Outcome::Done)
        }
        other => panic!("{other:?} is not of this architecture"),
    }
}

/// At which levels entries can refer to a table: at all but the last.
pub fn parents(_: Level, _: TableId) -> impl Iterator<Item = Level> {
    [Level::Pml4, Level::Pdpt, Level::PageDirectory].into_iter()
}

/// Where the walk of tables for `vaddr` ends below `root`: at the last level, or where an entry refers to no table (03,
/// section 9.2).
fn walk(s: &State, root: TableId, vaddr: u64) -> (TableId, Level) {
    use crate::state::Entry;
    let mut at = (root, Level::Pml4);
    for below in [Level::Pdpt, Level::PageDirectory, Level::PageTable] {
        match crate::vspace::entry(s, at.0, at.1, vaddr) {
            Some(Entry::Table { table, .. }) => at = (table, below),
            _ => break,
        }
    }
    at
}

/// log2 of the bytes that an entry of a table of `level` covers.
fn entry_bits(level: Level) -> u32 {
    crate::vspace::coverage_bits(level) - sandglass_abi::vspace::aarch64::TABLE_INDEX_BITS
}
