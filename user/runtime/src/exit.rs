//! The end of a program.

use core::fmt::{Display, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass_abi::message::MAX_LENGTH;

use crate::cap::{Endpoint, IoPort};
use crate::console::Output;
use crate::logging::Text;
use crate::message::Message;
use crate::{arch, console, sys};

/// The I/O port of QEMU's isa-debug-exit device (`iobase=0xf4`): writing `v` ends QEMU with
/// status `2 v + 1`.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;
/// Exit status of a program that panicked.
pub const PANIC_STATUS: u8 = 101;

/// Name under which a component finds the endpoint of [`use_launcher`].
pub const LAUNCHER: &str = "launcher";
/// Label of the message that tells a launcher of an end; its first word is the status, and more follows if it is a panic:
/// see [`Panic`]. No fault has it.
pub const LABEL: u64 = 0x6578_6974;

/// Where a launcher lets the threads of a component go on that has ended. Nothing is ever mapped there (it is below
/// [`LOWEST_PROGRAM`](crate::arch::vspace::LOWEST_PROGRAM)), so that each of them is stopped by a fault, of which
/// its fault handler hears: see [`Fault::is_end`](crate::fault::Fault::is_end).
pub const ENDED_AT: u64 = 0xed0;

/// Capability pointer of the exit port; 0 if there is none.
static EXIT_PORT: AtomicU64 = AtomicU64::new(0);
/// Capability pointer of the launcher's endpoint; 0 if there is none.
static LAUNCHER_ENDPOINT: AtomicU64 = AtomicU64::new(0);

/// Lets [`exit`] end the machine through isa-debug-exit. `port` must cover [`DEBUG_EXIT_PORT`].
pub fn use_port(port: IoPort) {
    EXIT_PORT.store(port.address(), Ordering::Relaxed);
}

/// Lets [`exit`] tell the launcher of this component, and leave to it what follows.
pub fn use_launcher(endpoint: Endpoint) {
    LAUNCHER_ENDPOINT.store(endpoint.address(), Ordering::Relaxed);
}

/// Ends the program. A component with a launcher tells it, and continues where the launcher lets
/// it: at [`ENDED_AT`]. Else the machine
/// ends, if the program has the exit port, or if its console is the debug kernel's, by DebugHalt,
/// where the status is lost. Else this thread ends alone, by a capability fault (its fault
/// handler, if any, learns of it).
pub fn exit(status: u8) -> ! {
    let launcher = LAUNCHER_ENDPOINT.load(Ordering::Relaxed);
    let port = EXIT_PORT.load(Ordering::Relaxed);
    if launcher != 0 {
        Endpoint::at(launcher).call(Message::new(LABEL, [u64::from(status)]));
    } else if port != 0 {
        arch::end_machine(port, status);
    } else if console::output() == Output::Debug {
        sys::debug_halt();
    }
    stop()
}

/// What the message of a panic says.
///
/// Its words: the status, the thread's instruction, stack and frame pointers, the bytes of the text, and the text itself, eight bytes
/// a word. All of it is what a component claims.
#[derive(Clone, Debug)]
pub struct Panic {
    /// Where the thread was, and its stack.
    pub ip: u64,
    pub sp: u64,
    pub fp: u64,
    text: [u8; Self::TEXT],
    len: usize,
}

impl Panic {
    const TEXT_WORD: usize = 5;
    const TEXT: usize = 8 * (MAX_LENGTH - Self::TEXT_WORD);

    /// What a message of [`LABEL`] says beside the status, if anything. To be called before the next system call.
    pub fn decode(message: &Message) -> Option<Self> {
        if message.len() < Self::TEXT_WORD {
            return None;
        }
        let mut text = [0; Self::TEXT];
        for (number, bytes) in text.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&message.word(Self::TEXT_WORD + number).to_le_bytes());
        }
        Some(Self {
            ip: message.word(1),
            sp: message.word(2),
            fp: message.word(3),
            text,
            len: usize::try_from(message.word(4)).map_or(Self::TEXT, |len| len.min(Self::TEXT)),
        })
    }

    /// What the panic says: bytes of any values.
    pub fn text(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

pub(crate) fn has_launcher() -> bool {
    LAUNCHER_ENDPOINT.load(Ordering::Relaxed) != 0
}

/// Ends the program, and lets the launcher say why.
pub(crate) fn panic(report: &dyn Display) -> ! {
    let (ip, sp, fp) = arch::registers_here();
    let mut text = Text::<{ Panic::TEXT }>::new();
    // What does not fit is cut off.
    let _ = write!(text, "{report}");
    let text = text.as_bytes();
    let mut words = [0; MAX_LENGTH];
    words[..Panic::TEXT_WORD].copy_from_slice(&[
        u64::from(PANIC_STATUS),
        ip,
        sp,
        fp,
        text.len() as u64,
    ]);
    for (word, bytes) in words[Panic::TEXT_WORD..].iter_mut().zip(text.chunks(8)) {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(value);
    }
    let len = Panic::TEXT_WORD + text.len().div_ceil(8);
    let launcher = LAUNCHER_ENDPOINT.load(Ordering::Relaxed);
    Endpoint::at(launcher).call(Message::long(LABEL, &words[..len]));
    stop()
}

/// Stops the current thread for good: it waits on the null capability, which is a fault.
pub fn stop() -> ! {
    loop {
        crate::cap::Notification::at(0).wait();
    }
}
