//! Interrupts and other devices (ABI 03, section 7).

use alloc::vec::Vec;

use sandglass_abi::invocation::IRQ_HANDLER_SET_NOTIFICATION;

use crate::case::{call, capability, Case};
use crate::isa;
use crate::scene::Scene;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = isa::devices::cases(s);
    handlers(s, &mut cases);
    cases
}

fn handlers(s: &Scene, cases: &mut Vec<Case>) {
    let caps = [s.notification];
    let set = call(IRQ_HANDLER_SET_NOTIFICATION, s.irq_handler, &[], &caps);
    cases.extend(set.truncated());
    for other in [s.empty, s.endpoint, s.thread] {
        let other = set.clone().cap(0, other);
        cases.push(other.fails("no notification", capability(0)));
    }
    let weak = set.cap(0, s.read_notification);
    cases.push(weak.fails("no right to write", capability(0)));
}
