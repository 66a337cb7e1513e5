//! Diagnostics of the debug kernel. In the release kernel none of this exists: no formatting
//! machinery is linked.

#![forbid(unsafe_code)]

use core::fmt::{self, Write};

use crate::arch::{Machine, Platform};
use crate::mem::Ref;
use crate::object::tcb::NAME_BYTES;
use crate::object::{Fault, Tcb};
use crate::Kernel;

/// Writes formatted text to the console of a kernel.
macro_rules! print {
    ($k:expr, $($arg:tt)*) => {{
        // The console cannot fail.
        let _ = write!($crate::debug::Console(&$k.machine), $($arg)*);
    }};
}

pub mod calls;
pub mod check;

/// Whether this is a debug kernel.
pub const AVAILABLE: bool = cfg!(feature = "debug");

/// The kernel console, for formatted text.
pub struct Console<'k>(pub &'k Machine);

impl Write for Console<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            put_char(self.0, byte);
        }
        Ok(())
    }
}

/// Writes a character; a line ends with a carriage return and a line feed.
pub fn put_char(machine: &Machine, byte: u8) {
    if byte == b'\n' {
        machine.put_char(b'\r');
    }
    machine.put_char(byte);
}

/// A thread's name, for printing.
pub struct Name([u8; NAME_BYTES]);

impl Name {
    pub fn of(k: &Kernel, thread: Ref<Tcb>) -> Self {
        Name(thread.at(k).name())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0.iter().take_while(|&&byte| byte != 0) {
            let printable = byte.is_ascii_graphic() || byte == b' ';
            f.write_char(if printable { byte as char } else { '?' })?;
        }
        Ok(())
    }
}

/// Says that `thread` stops because nobody handles its fault.
pub fn unhandled_fault(k: &Kernel, thread: Ref<Tcb>, fault: Fault) {
    if AVAILABLE {
        let ip = thread.at(k).context().fault_ip();
        let name = Name::of(k, thread);
        print!(
            k,
            "Thread {name} stops at {ip:#x}: no handler for {fault:x?}\n"
        );
    }
}
