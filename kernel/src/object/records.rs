//! What there is for the records of a trace (`trace/`): nothing, in a kernel without.

/// What a core has for its records.
#[cfg(feature = "trace")]
pub type OfCore = crate::mem::Log;
/// What a core has for its records: nothing.
#[cfg(not(feature = "trace"))]
#[derive(Default)]
pub struct OfCore;

#[cfg(not(feature = "trace"))]
impl OfCore {
    pub const fn new() -> Self {
        OfCore
    }
}

/// What the kernel has for the records of all cores: the number of the last one.
#[cfg(feature = "trace")]
pub type OfKernel = core::cell::Cell<u32>;
/// What the kernel has for the records of all cores: nothing.
#[cfg(not(feature = "trace"))]
pub struct OfKernel;

#[cfg(not(feature = "trace"))]
impl OfKernel {
    pub const fn new(_: u32) -> Self {
        OfKernel
    }
}
