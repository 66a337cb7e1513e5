//! What happens to a kernel, and how bytes say it.

use std::fmt;

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_testkit::call::Call;

use super::slots;
use crate::bytes::Bytes;

/// Something that happens. Registers and buffers are those of the thread that runs.
#[derive(Clone, Debug)]
pub enum Event {
    /// The system-call instruction with these registers and buffer contents.
    SystemCall(Call),
    /// The last system call once more, with the registers as they are.
    Again,
    /// The buffer says where received capabilities go.
    ReceiveSlot {
        cnode: u64,
        index: u64,
        depth: u64,
    },
    /// A word of the buffer is written.
    Store {
        word: usize,
        value: u64,
    },
    SoftwareInterrupt {
        vector: u8,
        rax: u64,
    },
    Exception {
        number: u32,
        code: u32,
    },
    PageFault {
        address: u64,
        code: u32,
    },
    Interrupt {
        irq: u8,
    },
    Timer,
    /// User code runs for so many ticks; the timer fires when it is due.
    Pass {
        ticks: u64,
    },
    /// So many ticks pass in which no interrupt is taken.
    Delay {
        ticks: u64,
    },
    /// Preemption points see a pending interrupt from now on, or none.
    Pending(bool),
}

/// The system calls of every kernel.
const CALLS: [Syscall; 11] = [
    Syscall::Call,
    Syscall::ReplyRecv,
    Syscall::NBSendRecv,
    Syscall::NBSendWait,
    Syscall::Send,
    Syscall::NBSend,
    Syscall::Recv,
    Syscall::NBRecv,
    Syscall::Wait,
    Syscall::NBWait,
    Syscall::Yield,
];

/// Longest time in ticks that passes at once: a minute.
const LONGEST: u64 = 60_000_000_000;

/// Words that stand for something, or are at a limit.
const NOTED: [u64; 16] = [
    u64::MAX,
    64,
    1 << 12,
    slots::BUFFER_ADDRESS,
    slots::BUFFER_ADDRESS + (32 << 12),
    0x40_0000,
    1 << 30,
    1 << 39,
    (1 << 47) - (1 << 12),
    1 << 47,
    u64::MAX << 47,
    1 << 63,
    10_000,
    1_000_000,
    // Guard data: 56 zeroes above eight bits.
    56,
    0x20_0000,
];

/// A word: mostly a byte that is the number of a slot, else one of the noted, or a number of
/// several bytes.
fn word(bytes: &mut Bytes) -> u64 {
    match bytes.byte() {
        small @ 0..=0xdf => small.into(),
        noted @ 0xe0..=0xef => NOTED[usize::from(noted & 15)],
        shift @ 0xf0..=0xf3 => {
            let value = u64::from(bytes.byte());
            let shift = shift & 3;
            value << (6 * (1 + u32::from(shift)))
        }
        0xf4..=0xf7 => bytes.number(2),
        0xf8..=0xfb => bytes.number(4),
        0xfc..=0xff => bytes.number(8),
    }
}

impl Event {
    /// The next event of an input.
    pub fn read(bytes: &mut Bytes) -> Event {
        match bytes.byte() {
            kind @ 0..=0xaf => Event::SystemCall(read_call(usize::from(kind >> 4), bytes)),
            0xb0..=0xb7 => Event::SystemCall(read_call(CALLS.len(), bytes)),
            0xb8..=0xbf => Event::Again,
            0xc0..=0xc7 => Event::ReceiveSlot {
                cnode: word(bytes),
                index: word(bytes),
                depth: word(bytes),
            },
            0xc8..=0xcb => Event::Store {
                word: bytes.byte().into(),
                value: word(bytes),
            },
            0xcc..=0xcd => Event::SoftwareInterrupt {
                vector: bytes.byte(),
                rax: word(bytes),
            },
            0xce..=0xd0 => Event::Exception {
                number: word(bytes) as u32,
                code: word(bytes) as u32,
            },
            0xd1..=0xd3 => Event::PageFault {
                address: word(bytes),
                code: word(bytes) as u32,
            },
            0xd4..=0xdf => Event::Interrupt { irq: bytes.byte() },
            0xe0..=0xe3 => Event::Timer,
            // In units of 5 µs and of 1 ms.
            0xe4..=0xeb => Event::Pass {
                ticks: u64::from(bytes.byte()) * 5_000,
            },
            0xec..=0xef => Event::Pass {
                ticks: u64::from(bytes.byte()) * 1_000_000,
            },
            0xf0..=0xf3 => Event::Pass {
                ticks: word(bytes) % LONGEST,
            },
            0xf4..=0xf7 => Event::Delay {
                ticks: word(bytes) % LONGEST,
            },
            pending @ 0xf8..=0xff => Event::Pending(pending & 1 != 0),
        }
    }
}

/// The arguments of the system call `CALLS[which]`, or of one of any number.
fn read_call(which: usize, bytes: &mut Bytes) -> Call {
    let number = match CALLS.get(which) {
        Some(call) => call.raw(),
        None => !word(bytes),
    };
    let shape = bytes.byte();
    let label = u64::from(bytes.byte());
    let cap = word(bytes);
    let caps = usize::from(shape & 3);
    let words = match shape >> 2 & 15 {
        few @ 0..=8 => usize::from(few),
        more => 4 * usize::from(more - 6),
    };
    let info = if shape & 0x40 != 0 {
        word(bytes)
    } else {
        MessageInfo::new(label, 0, caps, words).raw()
    };
    let second = shape & 0x80 != 0;
    Call {
        number: number as i64,
        cap,
        info,
        reply: if second { word(bytes) } else { slots::REPLIES },
        destination: if second { word(bytes) } else { cap },
        words: (0..words).map(|_| word(bytes)).collect(),
        caps: (0..caps).map(|_| word(bytes)).collect(),
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::SystemCall(call) => explain(call, f),
            other => write!(f, "{other:x?}"),
        }
    }
}

/// A system call as a person reads it.
fn explain(call: &Call, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match Syscall::from_raw(call.number as u64) {
        Some(number) => write!(f, "{number:?}")?,
        None => write!(f, "system call {:#x}", call.number)?,
    }
    let info = MessageInfo::from_raw(call.info);
    write!(
        f,
        " cap {:#x} label {} length {} caps {} words {:x?} caps {:x?} reply {:#x} destination {:#x}",
        call.cap,
        info.label(),
        info.length(),
        info.extra_caps(),
        call.words,
        call.caps,
        call.reply,
        call.destination
    )
}
