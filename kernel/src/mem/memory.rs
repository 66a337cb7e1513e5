//! [`Memory`]: the machine, as the home of every kernel object.

use crate::arch::Machine;

/// The machine in whose memory the kernel objects lie. A borrow of an object borrows this, and
/// whatever reclaims memory takes it exclusively: so no borrow survives a reclamation.
pub struct Memory {
    pub machine: Machine,
}
