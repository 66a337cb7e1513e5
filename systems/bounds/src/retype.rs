//! Retype: the most objects of every type, and the largest.

use sandglass::cap::{ObjectType, Slot, Untyped};
use sandglass::{println, SetupError};

use crate::isa;
use crate::lab::{single, Cost, Lab};

/// Most objects of one Retype.
const MOST: u64 = 256;

/// log2 bytes of a huge page.
const HUGE_BITS: u32 = 30;

/// The types that every architecture has, 256 of each at once; of those with a size, one that 256 fit into little memory with.
const COMMON_TYPES: [(&str, ObjectType); 9] = [
    ("untyped", ObjectType::Untyped(12)),
    ("tcb", ObjectType::Tcb),
    ("endpoint", ObjectType::Endpoint),
    ("notification", ObjectType::Notification),
    ("reply", ObjectType::Reply),
    ("cnode", ObjectType::CNode(8)),
    ("sched-context", ObjectType::SchedContext(12)),
    ("page", ObjectType::Page),
    ("page-table", ObjectType::PageTable),
];

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    println!("bounds: retype");
    let first = lab.process.resources.allocate_slots(MOST)?;
    let memory = lab.process.resources.untyped(21)?;
    for (name, kind) in COMMON_TYPES.into_iter().chain(isa::TYPES) {
        let (memory, count) = match kind.size_bits() {
            ..=13 => (memory, MOST),
            21 => (memory, 1),
            // Few machines have the memory for it.
            _ => match lab.process.resources.untyped(HUGE_BITS) {
                Ok(memory) => (memory, 1),
                Err(_) => continue,
            },
        };
        measure_type(lab, name, kind, memory, first, count)?;
    }
    let slot = lab.process.resources.slot_of(memory);
    slot.delete()?;
    Ok(())
}

/// Makes the objects twice: the second time, the memory was in use, and is zeroed first.
fn measure_type(
    lab: &Lab,
    name: &str,
    kind: ObjectType,
    memory: Untyped,
    first: Slot,
    count: u64,
) -> Result<(), SetupError> {
    let slot = lab.process.resources.slot_of(memory);
    for _ in 0..2 {
        let retype = || memory.retype(kind, first, count);
        single(
            &alloc::format!("retype-{name}"),
            count,
            Cost::Stretch,
            retype,
        )?;
        let revoke = || slot.revoke();
        single(
            &alloc::format!("revoke-{name}"),
            count,
            Cost::Stretch,
            revoke,
        )?;
    }
    Ok(())
}
