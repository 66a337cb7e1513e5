//! Messages of kernels without the hardware-debug API: there are none.

use super::no_debugging::Event;
use crate::arch::Context;
use crate::ipc::Writer;
use crate::mem::Ref;
use crate::object::Tcb;
use crate::Kernel;

/// The words of the message about `event`; returns its label.
pub fn write(event: Event, _context: &Context, _message: &mut Writer) -> u64 {
    match event {}
}

/// The handler has answered. Returns whether the thread goes on.
pub fn answered(event: Event, _k: &Kernel, _sender: Ref<Tcb>, _thread: Ref<Tcb>) -> bool {
    match event {}
}
