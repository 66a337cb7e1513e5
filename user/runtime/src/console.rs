//! `print!` and `println!`: the kernel's debug console, or a serial port driven from user level.
//!
//! The debug console exists in debug kernels only; on a release kernel its system call is a
//! fault. A program for both kinds takes the serial port: [`use_serial`].
//!
//! What a component without a console prints goes to its log, if it has one: [`crate::logging`].

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::cap::IoPort;
use crate::error::Result;
use crate::logging;
use crate::screen;
use crate::serial::{SerialPort, COM1_FIRST};
use crate::sys;
use crate::uart::{Kind, Uart};

/// Where output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The kernel's debug console.
    Debug,
    /// The first serial port ([`COM1_FIRST`]), and the screen, if there is one ([`screen`]).
    Serial(IoPort),
    /// The serial port whose registers are mapped.
    Mapped(Uart),
    /// Nowhere.
    Silent,
}

impl Output {
    const SILENT: u64 = u64::MAX;
    /// Set in the word of a mapped port: no address of a user has it.
    const MAPPED: u64 = 1 << 63;
    /// Set in it if the port is Cadence's: the registers of none begin there.
    const CADENCE: u64 = 1;

    /// As one word: 0, all ones, the capability pointer of the port, or the address of its registers
    /// with its kind and the highest bit.
    pub const fn to_word(self) -> u64 {
        match self {
            Self::Debug => 0,
            Self::Silent => Self::SILENT,
            Self::Serial(port) => port.address(),
            Self::Mapped(port) => {
                let kind = match port.kind() {
                    Kind::Pl011 => 0,
                    Kind::Cadence => Self::CADENCE,
                };
                port.address() | Self::MAPPED | kind
            }
        }
    }

    pub const fn from_word(word: u64) -> Self {
        match word {
            0 => Self::Debug,
            Self::SILENT => Self::Silent,
            word if word & Self::MAPPED != 0 => {
                let kind = match word & Self::CADENCE {
                    0 => Kind::Pl011,
                    _ => Kind::Cadence,
                };
                let address = word & !(Self::MAPPED | Self::CADENCE);
                // SAFETY: from `to_word` of one that is mapped: by this program, or by its loader, which says so.
                let port = unsafe { Uart::at(address, kind) };
                Self::Mapped(port)
            }
            port => Self::Serial(IoPort::at(port)),
        }
    }
}

static OUTPUT: AtomicU64 = AtomicU64::new(Output::Debug.to_word());

/// Where output goes now.
pub fn output() -> Output {
    Output::from_word(OUTPUT.load(Ordering::Relaxed))
}

/// Sends output elsewhere, without touching the device.
pub fn set_output(output: Output) {
    OUTPUT.store(output.to_word(), Ordering::Relaxed);
}

/// Sets up the serial port (115200 baud, 8N1) and sends output there. `port` must cover
/// [`COM1_FIRST`] and the seven ports after it.
///
/// # Errors
/// Those of the port's invocations; output then stays where it was.
pub fn use_serial(port: IoPort) -> Result<()> {
    SerialPort::open(port, COM1_FIRST)?;
    set_output(Output::Serial(port));
    Ok(())
}

/// Writes bytes as they are to the current output, except that a line feed is sent as carriage
/// return and line feed on a serial line, as the debug console does by itself.
pub fn write_bytes(bytes: &[u8]) {
    match output() {
        Output::Debug => bytes.iter().copied().for_each(sys::debug_put_char),
        Output::Serial(port) => {
            let line = SerialPort::at(port, COM1_FIRST);
            for &byte in bytes {
                // A failing port drops it: there is nowhere to report that.
                if byte == b'\n' {
                    let _ = line.put(b'\r');
                }
                let _ = line.put(byte);
            }
            screen::write(bytes);
        }
        Output::Mapped(line) => {
            for &byte in bytes {
                if byte == b'\n' {
                    line.put(b'\r');
                }
                line.put(byte);
            }
        }
        Output::Silent => {}
    }
}

/// The next byte that was typed at the console, if there is one: on a serial line only. Whoever has the console may
/// read, and a byte is for one of them.
pub fn read() -> Option<u8> {
    match output() {
        Output::Serial(port) => SerialPort::at(port, COM1_FIRST).get().ok().flatten(),
        Output::Mapped(line) => line.get(),
        Output::Debug | Output::Silent => None,
    }
}

struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_bytes(text.as_bytes());
        Ok(())
    }
}

#[doc(hidden)]
pub fn print(arguments: fmt::Arguments<'_>) {
    if output() == Output::Silent {
        if logging::is_open() {
            logging::print(arguments);
        }
        return;
    }
    // `Console` never fails; a failing `Display` is its author's matter.
    let _ = fmt::Write::write_fmt(&mut Console, arguments);
}

/// Prints to the console.
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::console::print(core::format_args!($($argument)*)) };
}

/// Prints a line to the console.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($argument:tt)*) => {
        $crate::console::print(core::format_args!("{}\n", core::format_args!($($argument)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_round_trip_through_a_word() {
        for output in [
            Output::Debug,
            Output::Silent,
            Output::Serial(IoPort::at(77)),
            // SAFETY: nobody uses it.
            Output::Mapped(unsafe { Uart::at(0x1000, Kind::Pl011) }),
            // SAFETY: as above.
            Output::Mapped(unsafe { Uart::at(0x1000, Kind::Cadence) }),
        ] {
            assert_eq!(Output::from_word(output.to_word()), output);
        }
    }
}
