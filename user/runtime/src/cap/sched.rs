//! Scheduling contexts and the authority to fill them with time (ABI 03, section 6, ABI page 04).

use sandglass_abi::{invocation, sched};

use super::{capability, invoke, invoke_unit, Capability, Notification, Tcb};
use crate::error::Result;

capability! {
    /// Processor time: a budget, replenished every period.
    SchedContext
}
capability! {
    /// Authority over the time of one core.
    SchedControl
}

/// Budget and period, µs: `budget_us` in every `period_us`. Equal ones make a round-robin
/// context, which is never postponed and never times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSlice {
    pub budget_us: u64,
    pub period_us: u64,
}

/// How [`SchedControl::configure`] fills a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedParams {
    pub time: TimeSlice,
    /// Replenishments to keep beyond two; bounded by the object's size
    /// ([`sched::max_extra_refills`]).
    pub extra_refills: u64,
    /// What a timeout fault reports.
    pub badge: u64,
    /// Sporadic server, else constant bandwidth (ABI 04, sections 5.3 and 5.4).
    pub sporadic: bool,
}

impl SchedParams {
    /// Constant bandwidth with two replenishments and badge 0.
    pub const fn new(budget_us: u64, period_us: u64) -> Self {
        Self {
            time: TimeSlice {
                budget_us,
                period_us,
            },
            extra_refills: 0,
            badge: 0,
            sporadic: false,
        }
    }

    pub const fn badge(self, badge: u64) -> Self {
        Self { badge, ..self }
    }

    pub const fn extra_refills(self, extra_refills: u64) -> Self {
        Self {
            extra_refills,
            ..self
        }
    }

    pub const fn sporadic(self) -> Self {
        Self {
            sporadic: true,
            ..self
        }
    }

    /// The smallest size of a context, as log2 bytes, that holds this many replenishments.
    pub const fn size_bits(&self) -> u32 {
        let mut bits = sandglass_abi::object::MIN_SCHED_CONTEXT_BITS;
        while sched::max_extra_refills(bits) < self.extra_refills
            && bits < sandglass_abi::object::MAX_UNTYPED_BITS
        {
            bits += 1;
        }
        bits
    }
}

impl SchedControl {
    /// Configures `context` for this control's core.
    ///
    /// # Errors
    /// Range for a budget or period below 20 µs or above the maximum, a budget above the period,
    /// or more replenishments than fit.
    #[inline]
    pub fn configure(self, context: SchedContext, params: SchedParams) -> Result<()> {
        let words = [
            params.time.budget_us,
            params.time.period_us,
            params.extra_refills,
            params.badge,
            if params.sporadic {
                sched::flags::SPORADIC
            } else {
                0
            },
        ];
        let label = invocation::SCHED_CONTROL_CONFIGURE_FLAGS;
        invoke_unit(self.cptr(), label, words, [context.cptr()])
    }
}

impl SchedContext {
    #[inline]
    pub fn bind(self, tcb: Tcb) -> Result<()> {
        invoke_unit(
            self.cptr(),
            invocation::SCHED_CONTEXT_BIND,
            [],
            [tcb.cptr()],
        )
    }

    /// Binds to a notification: a passive thread that it wakes runs on this context.
    #[inline]
    pub fn bind_notification(self, notification: Notification) -> Result<()> {
        invoke_unit(
            self.cptr(),
            invocation::SCHED_CONTEXT_BIND,
            [],
            [notification.cptr()],
        )
    }

    /// Unbinds thread, notification and reply stack.
    #[inline]
    pub fn unbind(self) -> Result<()> {
        invoke_unit(self.cptr(), invocation::SCHED_CONTEXT_UNBIND, [], [])
    }

    #[inline]
    pub fn unbind_tcb(self, tcb: Tcb) -> Result<()> {
        invoke_unit(
            self.cptr(),
            invocation::SCHED_CONTEXT_UNBIND_OBJECT,
            [],
            [tcb.cptr()],
        )
    }

    #[inline]
    pub fn unbind_notification(self, notification: Notification) -> Result<()> {
        let caps = [notification.cptr()];
        invoke_unit(
            self.cptr(),
            invocation::SCHED_CONTEXT_UNBIND_OBJECT,
            [],
            caps,
        )
    }

    /// Time consumed since the last report, µs.
    #[inline]
    pub fn consumed_us(self) -> Result<u64> {
        invoke(self.cptr(), invocation::SCHED_CONTEXT_CONSUMED, [], []).map(|m| m.word(0))
    }

    /// Directed yield: lets this context's thread run first among those of its priority, if that
    /// is not below the caller's. Returns the time that it consumed, µs.
    #[inline]
    pub fn yield_to(self) -> Result<u64> {
        invoke(self.cptr(), invocation::SCHED_CONTEXT_YIELD_TO, [], []).map(|m| m.word(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_as_large_as_its_replenishments_need() {
        assert_eq!(SchedParams::new(1, 2).size_bits(), 7);
        assert_eq!(SchedParams::new(1, 2).extra_refills(1).size_bits(), 8);
        assert_eq!(SchedParams::new(1, 2).extra_refills(8).size_bits(), 8);
        assert_eq!(SchedParams::new(1, 2).extra_refills(9).size_bits(), 9);
    }
}
