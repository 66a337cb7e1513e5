//! What capabilities name, and whether two name the same (02, sections 2 and 5.2).

use crate::state::{Address, Cap};
use sandglass_abi::object;

/// The memory of the object that `cap` names: where it starts, and log2 of its bytes. `None` if
/// the capability names no memory.
pub fn memory(cap: Cap) -> Option<(Address, u32)> {
    match cap {
        Cap::Untyped { start, bits, .. } | Cap::Frame { start, bits, .. } => {
            Some((start, bits.into()))
        }
        Cap::Endpoint { object, .. } => Some((object.0, object::ENDPOINT_BITS)),
        Cap::Notification { object, .. } => Some((object.0, object::NOTIFICATION_BITS)),
        Cap::Reply { object, .. } => Some((object.0, object::REPLY_BITS)),
        Cap::CNode { object, radix, .. } => Some((object.0, u32::from(radix) + object::SLOT_BITS)),
        Cap::Thread(object) => Some((object.0, object::TCB_BITS)),
        Cap::SchedContext { object, bits } => Some((object.0, bits.into())),
        Cap::Paging { object, .. } | Cap::Root { object, .. } => {
            Some((object.0, object::PAGING_STRUCTURE_BITS))
        }
        Cap::AsidPool { object, .. } => Some((object.0, object::ASID_POOL_BITS)),
        Cap::SchedControl { .. }
        | Cap::Domain
        | Cap::IrqControl
        | Cap::IrqHandler { .. }
        | Cap::AsidControl
        | Cap::IoPortControl
        | Cap::IoPort { .. }
        | Cap::SgiSignal { .. } => None,
    }
}

/// Whether the memory of `b` lies entirely inside that of `a`.
fn contains(a: Cap, b: Cap) -> bool {
    let (Some((outer, outer_bits)), Some((inner, inner_bits))) = (memory(a), memory(b)) else {
        return false;
    };
    outer <= inner && inner + (1 << inner_bits) <= outer + (1 << outer_bits)
}

/// Whether what `b` names is (part of) what `a` names (02, section 5.2).
pub fn same_region(a: Cap, b: Cap) -> bool {
    match (a, b) {
        (Cap::Untyped { .. }, _) | (Cap::Frame { .. }, Cap::Frame { .. }) => contains(a, b),
        (Cap::Endpoint { object: a, .. }, Cap::Endpoint { object: b, .. }) => a == b,
        (Cap::Notification { object: a, .. }, Cap::Notification { object: b, .. }) => a == b,
        (Cap::Thread(a), Cap::Thread(b)) => a == b,
        (Cap::Reply { object: a, .. }, Cap::Reply { object: b, .. }) => a == b,
        (Cap::CNode { .. }, Cap::CNode { .. })
        | (Cap::SchedContext { .. }, Cap::SchedContext { .. }) => memory(a) == memory(b),
        (Cap::SchedControl { .. }, Cap::SchedControl { .. })
        | (Cap::Domain, Cap::Domain)
        | (Cap::IrqControl, Cap::IrqControl | Cap::IrqHandler { .. } | Cap::SgiSignal { .. })
        | (Cap::AsidControl, Cap::AsidControl)
        | (Cap::IoPortControl, Cap::IoPortControl | Cap::IoPort { .. }) => true,
        (Cap::IrqHandler { irq: a }, Cap::IrqHandler { irq: b }) => a == b,
        (
            Cap::Paging {
                object: a, level, ..
            },
            Cap::Paging {
                object: b,
                level: other,
                ..
            },
        ) => a == b && level == other,
        (Cap::Root { object: a, .. }, Cap::Root { object: b, .. }) => a == b,
        (Cap::AsidPool { object: a, .. }, Cap::AsidPool { object: b, .. }) => a == b,
        (Cap::IoPort { .. }, Cap::IoPort { .. })
        | (Cap::SgiSignal { .. }, Cap::SgiSignal { .. }) => a == b,
        _ => false,
    }
}

/// Whether `a` and `b` name the same object, so that neither is the last one to it while the other
/// is there (02, section 5.3).
pub fn same_object(a: Cap, b: Cap) -> bool {
    match (a, b) {
        (Cap::Untyped { .. } | Cap::IrqControl | Cap::SgiSignal { .. }, _)
        | (Cap::IoPortControl, Cap::IoPort { .. }) => false,
        (Cap::Frame { device, .. }, Cap::Frame { device: other, .. }) => {
            memory(a) == memory(b) && device == other
        }
        _ => same_region(a, b),
    }
}

#[cfg(test)]
#[path = "region_tests.rs"]
mod tests;
