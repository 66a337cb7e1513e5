//! A kernel on a small machine, with a root task that does nothing by itself.

use sandglass_abi::profile;
use sandglass_kernel::arch::hosted::Machine;
use sandglass_kernel::Kernel;
use sandglass_testkit::{boot, isa};

/// Bytes of memory: what sweeps look at all of. The root task's CNode alone has 4 MiB in some profiles.
const MEMORY: usize = match profile::THIS.root_cnode_bits {
    ..=13 => 8 << 20,
    _ => 16 << 20,
};

/// A kernel that has just booted: the root task runs.
///
/// # Panics
/// If the kernel refuses the machine or the root task.
pub fn boot() -> Box<Kernel> {
    boot::boot(Machine::new(MEMORY, isa::TICKS_PER_UNIT)).0
}
