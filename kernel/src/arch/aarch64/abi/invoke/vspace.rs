//! Invocations of an address space: maintenance of the caches for what is mapped there (03, section 9.1).

use super::cache;
use crate::arch::abi::devices::Maintenance;
use crate::arch::abi::object::Work;
use crate::arch::abi::space;
use crate::invoke::{Error, Invocation, Outcome, Stop};
use crate::mem::PhysAddr;
use crate::{Kernel, View};

/// Invokes a root table.
pub fn invoke(k: &Kernel, call: &Invocation) -> Result<Outcome, Stop> {
    if let Some(work) = decode(k, call)? {
        cache::perform(k, call, work)?;
    }
    Ok(Outcome::Done)
}

/// What is to be done, if there is a page.
fn decode(k: &View, call: &Invocation) -> Result<Option<Work>, Error> {
    let label = call.label();
    let what = cache::requested(call).filter(|_| label < super::frame::FIRST_LABEL);
    let what = what.ok_or(Error::IllegalOperation)?;
    call.need(2)?;
    let (start, end) = (call.word(k, 0), call.word(k, 1));
    if end <= start {
        return Err(Error::InvalidArgument(1));
    }
    if end > space::TOP {
        return Err(Error::IllegalOperation);
    }
    let asid = call.cap.root_asid().ok_or(Error::InvalidCapability(0))?;
    let root = super::resolve(k, call.cap, asid, 0)?;
    let place = space::find(k, root.at(k).as_ref(), start);
    let Some(page) = place.table.page(place.index) else {
        return Ok(None);
    };
    let within = (1 << place.level.entry_bits()) - 1;
    let last = start | within;
    if end - 1 > last {
        return Err(Error::Range {
            min: start,
            max: last,
        });
    }
    if what == Maintenance::Invalidate && !page.is_writable {
        return Err(Error::IllegalOperation);
    }
    Ok(Some(Work {
        what,
        start: PhysAddr::new(page.start).offset(start & within),
        bytes: end - start,
    }))
}
