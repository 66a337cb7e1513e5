//! I/O ports (03, sections 8.6 and 8.7).

use crate::cap::{derivation, lookup};
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::state::{Cap, State};
use sandglass_abi::invocation::x86_64 as invocation;

/// Invokes the control capability: a range of ports is issued (03, section 8.6).
///
/// # Errors
/// In the order of 03, section 8.6.
pub fn invoke_control(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    if call.label != invocation::IO_PORT_CONTROL_ISSUE {
        return Err(Error::IllegalOperation);
    }
    call.require(4, 1)?;
    // Of both words the low 16 bits count.
    let (first, last) = (call.words[0] as u16, call.words[1] as u16);
    if last < first {
        return Err(Error::InvalidArgument(1));
    }
    if s.ports
        .iter()
        .any(|issued| issued.0 <= last && first <= issued.1)
    {
        return Err(Error::RevokeFirst);
    }
    let root = call.extra_cap(s, 0).flatten();
    let slot = lookup::of_operation(s, root, call.words[2], call.words[3], false)?;
    if derivation::get(s, slot).is_some() {
        return Err(Error::DeleteFirst);
    }
    s.ports.insert((first, last));
    derivation::insert(s, slot, Cap::IoPort { first, last }, call.slot);
    Ok(Outcome::Done)
}

/// Invokes the ports `first` to `last` (03, section 8.7).
///
/// # Errors
/// TruncatedMessage; IllegalOperation for other labels and for other ports.
pub fn invoke(s: &mut State, call: &Call, first: u16, last: u16) -> Result<Outcome, Error> {
    let (bytes, is_write) = match call.label {
        invocation::IO_PORT_IN8 => (1, false),
        invocation::IO_PORT_IN16 => (2, false),
        invocation::IO_PORT_IN32 => (4, false),
        invocation::IO_PORT_OUT8 => (1, true),
        invocation::IO_PORT_OUT16 => (2, true),
        invocation::IO_PORT_OUT32 => (4, true),
        _ => return Err(Error::IllegalOperation),
    };
    call.require(if is_write { 2 } else { 1 }, 0)?;
    let port = call.words[0] as u16;
    if port < first || u32::from(port) + (bytes - 1) > last.into() {
        return Err(Error::IllegalOperation);
    }
    let mask = u32::MAX >> (32 - 8 * bytes);
    if is_write {
        s.devices.ports.insert(port, call.words[1] as u32 & mask);
        return Ok(Outcome::Done);
    }
    // Where there is no device, reading gives ones.
    let value = s.devices.ports.get(&port).unwrap_or(&u32::MAX) & mask;
    Ok(Outcome::Words(vec![value.into()]))
}
