//! Objects that are made.

use sandglass_abi::invocation as label;
use sandglass_abi::object as types;

use crate::invoker::{self, Invoker};
use crate::isa;
use crate::machine::{Machine, Refused};
use crate::parameters::Arrangement;
use crate::workshop::Workshop;

/// log2 of the bytes of the memory, and of the slots of the CNode for the new capabilities.
const MEMORY_BITS: u64 = 22;
const RADIX: u64 = 10;

pub fn run<M: Machine>(machine: &mut M, arrangement: &Arrangement) -> Result<(), Refused> {
    let mut workshop = Workshop::new(machine);
    let workshop = &mut workshop;
    let invoker = Invoker::new(workshop, arrangement)?;
    let memory = workshop.make(types::UNTYPED, MEMORY_BITS, 1)?;
    let used = arrangement.number("used");
    let endpoint_bytes = 1 << types::ENDPOINT_BITS;
    if used > 0 {
        workshop.make_of(memory, types::ENDPOINT, 0, used / endpoint_bytes)?;
        let words = [memory, 64];
        let root = sandglass_abi::boot::slot::CNODE;
        workshop
            .machine
            .invoke(root, label::CNODE_REVOKE, &words, &[])?;
    }
    let node = workshop.make(types::CNODE, RADIX, 1)?;
    if arrangement.value("children") == "yes" {
        workshop.make_of(memory, types::ENDPOINT, 0, 1)?;
    }
    invoker.take(workshop, invoker::TARGET, memory)?;
    invoker.take(workshop, invoker::OTHER, node)?;
    let (object, size) = object(arrangement);
    let count = arrangement.number("count").max(1);
    let words = [
        object,
        size,
        invoker.address(invoker::OTHER),
        64,
        arrangement.number("first"),
        count,
    ];
    invoker.operate(
        workshop,
        invoker::TARGET,
        label::UNTYPED_RETYPE,
        &words,
        &[invoker::ROOT],
    )
}

/// The type, and the argument for its size.
fn object(arrangement: &Arrangement) -> (u64, u64) {
    let bits = arrangement.number("bits");
    match arrangement.value("type") {
        "tcb" => (types::TCB, 0),
        "endpoint" => (types::ENDPOINT, 0),
        "notification" => (types::NOTIFICATION, 0),
        "reply" => (types::REPLY, 0),
        "cnode" => (types::CNODE, bits - u64::from(types::SLOT_BITS)),
        "sched-context" => (types::SCHED_CONTEXT, bits),
        "page" => (isa::PAGE, 0),
        "page-table" => (isa::PAGE_TABLE, 0),
        "page-directory" => (isa::PAGE_DIRECTORY, 0),
        "pdpt" => (isa::PDPT, 0),
        "pml4" => (isa::PML4, 0),
        _ => (types::UNTYPED, bits),
    }
}
