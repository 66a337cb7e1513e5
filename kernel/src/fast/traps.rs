//! What is not asked for: a device's interrupt, a fault, and the end of a budget that somebody is to be told of.

use super::meeting::Meeting;
use super::signal::Signal;
use super::Outcome;
use crate::arch::abi::{Irq, Line};
use crate::arch::bounds;
use crate::arch::Platform;
use crate::ipc::fault;
use crate::mem::Ref;
use crate::object::{Core, Fault, SchedContext, Tcb, TcbSlot};
use crate::time::account;
use crate::{Kernel, View};

/// An interrupt of a device whose driver is told.
pub struct Interrupt {
    irq: Irq,
    line: Line,
    signal: Signal,
}

impl Interrupt {
    #[inline(always)]
    pub fn plan(k: &View, current: Ref<Tcb>, irq: Irq) -> Option<Interrupt> {
        bounds::mark::<{ bounds::PLANNING }>();
        let line = k.irqs.line(irq)?;
        let cap = k.irqs.slot(irq)?.at(k).cap().notification()?;
        if !cap.rights.write() {
            return None;
        }
        let signal = Signal::plan(k, current, cap)?;
        Some(Interrupt { irq, line, signal })
    }

    /// The line is masked; who runs is as for any signal.
    #[inline(always)]
    pub fn carry_out(self, k: &Kernel, core: &Core, current: Ref<Tcb>) -> Outcome {
        k.machine.mask_taken(self.line, self.irq);
        trace!(k, device_interrupt(self.irq));
        self.signal.carry_out(k, core, current)
    }
}

/// A fault, or the end of a budget, that is told to a handler who waits for it.
pub struct Told {
    fault: Fault,
    badge: u64,
    meeting: Meeting,
}

impl Told {
    /// Tells the handler in `slot` of `thread`, which may run on what is `lent`.
    #[inline(always)]
    fn plan(
        k: &View,
        core: &Core,
        thread: Ref<Tcb>,
        slot: TcbSlot,
        fault: Fault,
        lent: Option<Ref<SchedContext>>,
    ) -> Option<Told> {
        let handler = fault::handler(k, thread, slot)?;
        if !handler.rights.answerable() {
            return None;
        }
        Some(Told {
            fault,
            badge: handler.badge,
            meeting: Meeting::plan(k, core, thread, handler.object, lent)?,
        })
    }

    /// The handler runs.
    #[inline(always)]
    fn carry_out(self, k: &Kernel, thread: Ref<Tcb>) -> Outcome {
        thread.at(k).set_fault(k, Some(self.fault));
        fault::write_message(k, thread, self.meeting.callee, self.badge);
        Outcome::Switches(self.meeting.carry_out(k, thread))
    }
}

/// A fault of the current thread.
pub struct Faults(Told);

impl Faults {
    #[inline(always)]
    pub fn plan(k: &View, core: &Core, thread: Ref<Tcb>, fault: Fault) -> Option<Faults> {
        let lent = core.context();
        Told::plan(k, core, thread, TcbSlot::FaultHandler, fault, lent).map(Faults)
    }

    #[inline(always)]
    pub fn carry_out(self, k: &Kernel, thread: Ref<Tcb>) -> Outcome {
        trace!(k, fault(thread, self.0.fault));
        self.0.carry_out(k, thread)
    }
}

/// The budget of the current thread has ended, and somebody is to be told.
pub struct Expires {
    told: Told,
    context: Ref<SchedContext>,
}

impl Expires {
    #[inline(always)]
    pub fn plan(k: &View, core: &Core, thread: Ref<Tcb>) -> Option<Expires> {
        let context = core.context().filter(|it| it.at(k).period() != 0)?;
        let badge = context.at(k).badge();
        let fault = Fault::Timeout { badge };
        let told = Told::plan(k, core, thread, TcbSlot::TimeoutHandler, fault, None)?;
        Some(Expires { told, context })
    }

    #[inline(always)]
    pub fn carry_out(self, k: &Kernel, core: &Core, thread: Ref<Tcb>) -> Outcome {
        core.set_armed(k, u64::MAX);
        account::charge(k, core, self.context, core.consumed());
        trace!(k, timer_interrupt());
        trace!(k, timeout(thread, self.context.at(k).badge()));
        self.told.carry_out(k, thread)
    }
}
