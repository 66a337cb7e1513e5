//! What the launcher says of faults and panics: who, why, the registers, and the calls that led there. Addresses are
//! printed as they are; the `sandglass` command, which has the executables, adds what is at them.

use core::fmt;

use sandglass::arch::{self, order};
use sandglass::component;
use sandglass::context::UserContext;
use sandglass::exit::{self, Panic};
use sandglass::fault::Fault;
use sandglass_description::Component;

use crate::log::Log;
use crate::say;
use crate::window::Window;

/// Most addresses of a backtrace.
const MOST_CALLS: usize = 24;

/// A thread of a component, as it is called in reports.
pub struct Who<'a> {
    pub component: &'a Component,
    pub thread: u32,
}

impl fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.component.name;
        match self.component.threads.get(self.thread as usize) {
            Some(thread) if thread.name != *name => write!(f, "`{name}/{}`", thread.name),
            Some(_) => write!(f, "`{name}`"),
            None => write!(f, "a thread that `{name}` made"),
        }
    }
}

/// Reports a fault; `registers` are the thread's, if they can be read.
pub fn fault(
    log: &Log,
    window: &mut Window,
    who: &Who<'_>,
    made: &component::Component,
    fault: Fault,
    registers: Option<&UserContext>,
) {
    say!(log, Error, "{who} was stopped by a fault: {}", Words(fault));
    let Some(registers) = registers else { return };
    for line in order::REPORTED {
        say!(log, Error, "{who}: {}", Registers(registers, line));
    }
    let calls = Calls::of(window, made, registers.ip(), registers.get(order::FP));
    say!(log, Error, "{who}: backtrace:{calls}");
}

/// Reports a panic, whose text is the component's.
pub fn panic(
    log: &Log,
    window: &mut Window,
    component: &Component,
    made: &component::Component,
    panic: &Panic,
) {
    let name = &component.name;
    say!(log, Error, "component `{name}` {}", Printable(panic.text()));
    let calls = Calls::of(window, made, panic.ip, panic.fp);
    say!(log, Error, "`{name}`: backtrace:{calls}");
}

/// Some registers.
struct Registers<'a>(&'a UserContext, &'a [(&'static str, usize)]);

impl fmt::Display for Registers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(context, names) = self;
        let mut space = "";
        for (name, index) in *names {
            write!(f, "{space}{name} {:#x}", context.get(*index))?;
            space = " ";
        }
        Ok(())
    }
}

/// Addresses: where a thread was, and where its functions return to.
struct Calls {
    addresses: [u64; MOST_CALLS],
    len: usize,
}

impl Calls {
    /// Follows the frame pointers that the thread's stack holds, from `fp` up. Whatever they are, the number of steps is
    /// limited, and nothing is read but the component's memory.
    fn of(window: &mut Window, made: &component::Component, ip: u64, mut fp: u64) -> Self {
        let mut calls = Self {
            addresses: [ip; MOST_CALLS],
            len: 1,
        };
        while calls.len < MOST_CALLS {
            let Some([next, address]) = window.two_words(made, fp) else {
                break;
            };
            // Behind the first function of a thread stands no address.
            if made.frame_at(address).is_none() {
                break;
            }
            calls.addresses[calls.len] = address;
            calls.len += 1;
            if next <= fp {
                break;
            }
            fp = next;
        }
        calls
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for address in &self.addresses[..self.len] {
            write!(f, " {address:#x}")?;
        }
        Ok(())
    }
}

/// Text of a component, in a line: it cannot pass for one of the launcher.
struct Printable<'a>(&'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use core::fmt::Write;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                f.write_char(if c.is_control() { ' ' } else { c })?;
            }
            if !chunk.invalid().is_empty() {
                f.write_char('\u{fffd}')?;
            }
        }
        Ok(())
    }
}

/// A status in words.
pub struct Status(pub u8);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.0)?;
        if self.0 == exit::PANIC_STATUS {
            write!(f, " (a panic)")?;
        }
        Ok(())
    }
}

/// A fault in words.
struct Words(Fault);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fault::Memory {
                ip,
                address,
                instruction,
                status,
            } => {
                let is_write = status & arch::FAULT_IS_WRITE != 0;
                let access = match (instruction, is_write) {
                    (true, _) => "executing",
                    (false, true) => "writing",
                    (false, false) => "reading",
                };
                write!(f, "{access} address {address:#x}, at instruction {ip:#x}")
            }
            Fault::Capability {
                ip,
                address,
                in_receive_phase,
                failure,
            } => {
                let phase = if in_receive_phase {
                    "receiving from"
                } else {
                    "sending to"
                };
                write!(
                    f,
                    "{phase} the capability {address:#x}, which does not exist ({failure:?}), at \
                     instruction {ip:#x}"
                )
            }
            Fault::UnknownSyscall { ip, number } => {
                write!(f, "system call {number:#x}, at instruction {ip:#x}")
            }
            Fault::Exception {
                ip, number, code, ..
            } => {
                arch::show_exception(f, number, code)?;
                write!(f, ", at instruction {ip:#x}")
            }
            Fault::Timeout { badge, consumed_us } => write!(
                f,
                "its budget ran out; it consumed {consumed_us} µs since the last report (badge \
                 {badge} of its scheduling context)"
            ),
        }
    }
}
