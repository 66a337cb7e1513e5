//! I/O ports (03, sections 8.6 and 8.7).
//!
//! Invariant: a port is marked issued exactly if some I/O-port capability covers it.

#[cfg(not(target_os = "none"))]
#[path = "../inspect/ioport.rs"]
mod inspect;

use core::cell::Cell;

use sandglass_abi::invocation::x86_64 as label;

use super::error::Error;
use super::{Invocation, Outcome};
use crate::arch::{Platform, PortWidth};
use crate::cap::{derivation, Capability, IoPortCap, Slot};
use crate::mem::Ref;
use crate::Kernel;

const PORTS: usize = 1 << 16;
const WORDS: usize = PORTS / 64;

/// Which ports are issued: a bit for each.
pub struct PortTable {
    words: [Cell<u64>; WORDS],
}

impl PortTable {
    pub const fn new() -> Self {
        PortTable {
            words: [const { Cell::new(0) }; WORDS],
        }
    }

    /// Whether any port of the range is issued.
    fn any(&self, ports: IoPortCap) -> bool {
        let (edges, inner) = self.cover(ports);
        edges
            .into_iter()
            .flatten()
            .any(|(word, bits)| word.get() & bits != 0)
            || any_bit(inner)
    }

    fn mark(&self, ports: IoPortCap, issued: bool) {
        let (edges, inner) = self.cover(ports);
        for (word, bits) in edges.into_iter().flatten() {
            word.set(if issued {
                word.get() | bits
            } else {
                word.get() & !bits
            });
        }
        // Two loops, of which each fills memory with a constant.
        if issued {
            inner.iter().for_each(|word| word.set(u64::MAX));
        } else {
            inner.iter().for_each(|word| word.set(0));
        }
    }

    /// The first and the last word that the range covers, or the only one, with the bits of its
    /// ports; and the words in between.
    fn cover(&self, ports: IoPortCap) -> ([Option<Edge<'_>>; 2], &[Cell<u64>]) {
        let (first, last) = (usize::from(ports.first), usize::from(ports.last));
        let (from, to) = (first / 64, last / 64);
        let low = u64::MAX << (first % 64);
        let high = u64::MAX >> (63 - last % 64);
        let edge = |i: usize, bits| self.words.get(i).map(|word| (word, bits));
        if from == to {
            return ([edge(from, low & high), None], &[]);
        }
        let inner = self.words.get(from + 1..to).unwrap_or_default();
        ([edge(from, low), edge(to, high)], inner)
    }
}

/// A word of the table, and the bits of it that a range covers.
type Edge<'a> = (&'a Cell<u64>, u64);

/// Whether a bit of `words` is set; eight of them are a step.
fn any_bit(words: &[Cell<u64>]) -> bool {
    let mut rest = words;
    while let Some(([a, b, c, d, e, f, g, h], behind)) = rest.split_first_chunk::<8>() {
        let first = a.get() | b.get() | c.get() | d.get();
        if first | e.get() | f.get() | g.get() | h.get() != 0 {
            return true;
        }
        rest = behind;
    }
    rest.iter().any(|word| word.get() != 0)
}

impl Default for PortTable {
    fn default() -> Self {
        Self::new()
    }
}

/// A checked Issue.
#[derive(Clone, Copy)]
struct Issue {
    control: Ref<Slot>,
    slot: Ref<Slot>,
    ports: IoPortCap,
}

/// Invokes I/O-port control.
pub fn invoke_control(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let issue = decode_control(k, call)?;
    Ok(commit_control(k, issue))
}

fn decode_control(k: &Kernel, call: &Invocation) -> Result<Issue, Error> {
    if call.label != label::IO_PORT_CONTROL_ISSUE {
        return Err(Error::IllegalOperation);
    }
    call.need(4)?;
    let root = call.extra_cap(k, 0)?;
    let ports = IoPortCap {
        first: call.word(k, 0) as u16,
        last: call.word(k, 1) as u16,
    };
    if ports.last < ports.first {
        return Err(Error::InvalidArgument(1));
    }
    if k.ports.any(ports) {
        return Err(Error::RevokeFirst);
    }
    let slot = call.empty_slot(k, root, call.word(k, 2), call.word(k, 3))?;
    Ok(Issue {
        control: call.slot,
        slot,
        ports,
    })
}

/// Issues the capability to a range of ports.
fn commit_control(k: &Kernel, issue: Issue) -> Outcome {
    k.ports.mark(issue.ports, true);
    derivation::insert_copy(
        k,
        issue.control,
        issue.slot,
        Capability::io_port(issue.ports),
    );
    Outcome::Done
}

/// The last capability to a range of ports goes.
pub fn release(k: &Kernel, ports: IoPortCap) {
    k.ports.mark(ports, false);
}

/// A checked access to a port.
#[derive(Clone, Copy)]
struct Access {
    port: u16,
    width: PortWidth,
    /// The value to write; `None` to read.
    value: Option<u32>,
}

/// Invokes an I/O-port capability.
pub fn invoke(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let access = decode(k, call)?;
    Ok(commit(k, access))
}

fn decode(k: &Kernel, call: &Invocation) -> Result<Access, Error> {
    let (width, writes) = match call.label {
        label::IO_PORT_IN8 => (PortWidth::Byte, false),
        label::IO_PORT_IN16 => (PortWidth::Word, false),
        label::IO_PORT_IN32 => (PortWidth::Long, false),
        label::IO_PORT_OUT8 => (PortWidth::Byte, true),
        label::IO_PORT_OUT16 => (PortWidth::Word, true),
        label::IO_PORT_OUT32 => (PortWidth::Long, true),
        _ => return Err(Error::IllegalOperation),
    };
    call.need(if writes { 2 } else { 1 })?;
    let ports = call.cap.io_ports().ok_or(Error::InvalidCapability(0))?;
    let port = call.word(k, 0) as u16;
    let last = port
        .checked_add(width.bytes() - 1)
        .ok_or(Error::IllegalOperation)?;
    if port < ports.first || last > ports.last {
        return Err(Error::IllegalOperation);
    }
    Ok(Access {
        port,
        width,
        value: writes.then(|| call.word(k, 1) as u32),
    })
}

/// Performs an access to a port.
fn commit(k: &Kernel, access: Access) -> Outcome {
    match access.value {
        Some(value) => {
            k.machine.port_out(access.port, access.width, value);
            Outcome::Done
        }
        None => Outcome::Value(u64::from(k.machine.port_in(access.port, access.width))),
    }
}
