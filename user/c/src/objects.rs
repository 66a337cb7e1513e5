//! Invocations of objects to which the description gives capabilities.

use sandglass::cap::{
    CNode, IoPort, IrqHandler, Rights, SchedContext, SchedControl, SchedParams, Slot, Tcb,
};

use crate::environment::Capability;
use crate::error::{self, code, code_with, Code};

/// A slot: as the kernel's invocations name one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SlotAddress {
    pub root: Capability,
    pub index: u64,
    /// Bits of `index` that count.
    pub depth: u8,
}

impl From<SlotAddress> for Slot {
    fn from(slot: SlotAddress) -> Self {
        CNode::at(slot.root).slot_at(slot.index, slot.depth)
    }
}

#[no_mangle]
pub extern "C" fn sg_copy_capability(to: SlotAddress, from: SlotAddress, rights: u64) -> Code {
    code(Slot::from(to).copy_from(from.into(), Rights(rights)))
}

#[no_mangle]
pub extern "C" fn sg_mint_capability(
    to: SlotAddress,
    from: SlotAddress,
    rights: u64,
    badge: u64,
) -> Code {
    code(Slot::from(to).mint_from(from.into(), Rights(rights), badge))
}

#[no_mangle]
pub extern "C" fn sg_move_capability(to: SlotAddress, from: SlotAddress) -> Code {
    code(Slot::from(to).move_from(from.into()))
}

#[no_mangle]
pub extern "C" fn sg_delete_capability(slot: SlotAddress) -> Code {
    code(Slot::from(slot).delete())
}

#[no_mangle]
pub extern "C" fn sg_revoke_capability(slot: SlotAddress) -> Code {
    code(Slot::from(slot).revoke())
}

#[no_mangle]
pub extern "C" fn sg_suspend(thread: Capability) -> Code {
    code(Tcb::at(thread).suspend())
}

#[no_mangle]
pub extern "C" fn sg_resume(thread: Capability) -> Code {
    code(Tcb::at(thread).resume())
}

#[no_mangle]
pub extern "C" fn sg_set_priority(thread: Capability, authority: Capability, priority: u8) -> Code {
    code(Tcb::at(thread).set_priority(Tcb::at(authority), priority))
}

/// Processor time for a scheduling context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    pub budget_us: u64,
    pub period_us: u64,
    pub extra_refills: u64,
    pub badge: u64,
    pub sporadic: bool,
}

#[no_mangle]
pub extern "C" fn sg_configure_context(
    control: Capability,
    context: Capability,
    reservation: Option<&Reservation>,
) -> Code {
    let Some(wanted) = reservation else {
        return error::INVALID_ARGUMENT;
    };
    let params = SchedParams {
        sporadic: wanted.sporadic,
        ..SchedParams::new(wanted.budget_us, wanted.period_us)
            .extra_refills(wanted.extra_refills)
            .badge(wanted.badge)
    };
    code(SchedControl::at(control).configure(SchedContext::at(context), params))
}

#[no_mangle]
pub extern "C" fn sg_consumed_us(context: Capability, us: Option<&mut u64>) -> Code {
    code_with(SchedContext::at(context).consumed_us(), us)
}

#[no_mangle]
pub extern "C" fn sg_yield_to(context: Capability, consumed_us: Option<&mut u64>) -> Code {
    code_with(SchedContext::at(context).yield_to(), consumed_us)
}

#[no_mangle]
pub extern "C" fn sg_acknowledge_interrupt(handler: Capability) -> Code {
    code(IrqHandler::at(handler).ack())
}

#[no_mangle]
pub extern "C" fn sg_port_read8(ports: Capability, port: u16, value: Option<&mut u8>) -> Code {
    store(IoPort::at(ports).in8(port), value)
}

#[no_mangle]
pub extern "C" fn sg_port_read16(ports: Capability, port: u16, value: Option<&mut u16>) -> Code {
    store(IoPort::at(ports).in16(port), value)
}

#[no_mangle]
pub extern "C" fn sg_port_read32(ports: Capability, port: u16, value: Option<&mut u32>) -> Code {
    store(IoPort::at(ports).in32(port), value)
}

#[no_mangle]
pub extern "C" fn sg_port_write8(ports: Capability, port: u16, value: u8) -> Code {
    code(IoPort::at(ports).out8(port, value))
}

#[no_mangle]
pub extern "C" fn sg_port_write16(ports: Capability, port: u16, value: u16) -> Code {
    code(IoPort::at(ports).out16(port, value))
}

#[no_mangle]
pub extern "C" fn sg_port_write32(ports: Capability, port: u16, value: u32) -> Code {
    code(IoPort::at(ports).out32(port, value))
}

fn store<T>(read: Result<T, sandglass::Error>, value: Option<&mut T>) -> Code {
    code(read.map(|read| {
        if let Some(value) = value {
            *value = read;
        }
    }))
}
