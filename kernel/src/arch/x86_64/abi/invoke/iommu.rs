//! Invocations that would be about an IOMMU, in a profile with support for one: there is none, so no capability of an
//! I/O address space exists, and nothing can be mapped in one (09, section 4).

use sandglass_abi::invocation::x86_64 as label;

use crate::invoke::{Error, Invocation, Outcome};

/// Invokes an I/O page table: address; I/O address space.
///
/// # Errors
/// Whatever is to be mapped, and what is neither Map nor Unmap.
pub fn invoke(call: &Invocation) -> Result<Outcome, Error> {
    match call.label() {
        label::IO_PAGE_TABLE_MAP => Err(no_space(call, 1)),
        // None is mapped.
        label::IO_PAGE_TABLE_UNMAP => Ok(Outcome::Done),
        _ => Err(Error::IllegalOperation),
    }
}

/// Why a frame is not mapped for devices: rights, address; I/O address space.
pub fn map_frame(call: &Invocation) -> Error {
    no_space(call, 2)
}

/// Why a mapping of `words` words fails: a message is too short, or the capability that it brings is of no I/O address
/// space, since none is.
fn no_space(call: &Invocation, words: usize) -> Error {
    let complete = call.need(words).and(call.extra_slot(0).map(drop));
    complete.err().unwrap_or(Error::InvalidCapability(0))
}
