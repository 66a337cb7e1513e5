//! Invocations of I/O-port control and I/O ports (03, sections 8.6 and 8.7).

use sandglass_abi::invocation::x86_64 as label;

use crate::arch::abi::devices::{Devices, PortWidth};
use crate::arch::abi::object::ioport::Ports;
use crate::arch::bounds;
use crate::cap::{derivation, Capability};
use crate::invoke::{empty_slot, Error, Invocation, Outcome};
use crate::mem::{Ref, Slot};
use crate::{Kernel, View};

/// A checked Issue.
#[derive(Clone, Copy)]
struct Issue {
    control: Ref<Slot>,
    slot: Ref<Slot>,
    ports: Ports,
}

/// Invokes I/O-port control.
pub fn invoke_control(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let issue = decode_control(k, call)?;
    Ok(commit_control(k, issue))
}

fn decode_control(k: &View, call: &Invocation) -> Result<Issue, Error> {
    if call.label() != label::IO_PORT_CONTROL_ISSUE {
        return Err(Error::IllegalOperation);
    }
    call.need(4)?;
    let root = call.extra_cap(k, 0)?;
    let ports = Ports {
        first: call.word(k, 0) as u16,
        last: call.word(k, 1) as u16,
    };
    if ports.last < ports.first {
        return Err(Error::InvalidArgument(1));
    }
    if k.arch.ports.any(ports) {
        return Err(Error::RevokeFirst);
    }
    let slot = empty_slot(k, root, call.word(k, 2), call.word(k, 3))?;
    Ok(Issue {
        control: call.slot,
        slot,
        ports,
    })
}

/// Issues the capability to a range of ports.
fn commit_control(k: &Kernel, issue: Issue) -> Outcome {
    bounds::commit();
    k.arch.ports.mark(k, issue.ports, true);
    derivation::insert_copy(
        k,
        issue.control,
        issue.slot,
        Capability::io_port(issue.ports),
    );
    Outcome::Done
}

/// The last capability to a range of ports goes.
pub fn release(k: &Kernel, ports: Ports) {
    k.arch.ports.mark(k, ports, false);
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

fn decode(k: &View, call: &Invocation) -> Result<Access, Error> {
    let (width, writes) = match call.label() {
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
