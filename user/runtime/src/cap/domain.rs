//! Scheduling domains (ABI 03, section 6.3, ABI 04, section 11).

use sandglass_abi::invocation;

use super::{capability, invoke_unit, Capability, Tcb};
use crate::error::Result;

capability! {
    /// Authority over domains and their schedule.
    Domain
}

impl Domain {
    /// Puts a thread into a domain.
    #[inline]
    pub fn set(self, tcb: Tcb, domain: u64) -> Result<()> {
        invoke_unit(self.cptr(), invocation::DOMAIN_SET, [domain], [tcb.cptr()])
    }

    /// Sets entry `index` of the schedule; `duration` in timer ticks. (0, 0) is an end marker.
    #[inline]
    pub fn configure_schedule(self, index: u64, domain: u64, duration: u64) -> Result<()> {
        let words = [index, domain, duration];
        invoke_unit(
            self.cptr(),
            invocation::DOMAIN_SCHEDULE_CONFIGURE,
            words,
            [],
        )
    }

    /// Starts the schedule anew at entry `index`.
    #[inline]
    pub fn set_schedule_start(self, index: u64) -> Result<()> {
        invoke_unit(
            self.cptr(),
            invocation::DOMAIN_SCHEDULE_SET_START,
            [index],
            [],
        )
    }
}
