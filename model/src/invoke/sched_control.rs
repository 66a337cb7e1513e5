//! Control of scheduling (03, section 6.1).

use sandglass_abi::invocation::SCHED_CONTROL_CONFIGURE_FLAGS;
use sandglass_abi::sched::{flags, max_extra_refills, MIN_BUDGET_US, MIN_REFILLS};

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::{Cap, CoreId, State};
use crate::time::context::{configure, Parameters};

/// Invokes the control capability of `core`: ConfigureFlags (33).
pub fn invoke(s: &mut State, call: &Call, core: CoreId) -> Result<Outcome, Error> {
    if call.label != SCHED_CONTROL_CONFIGURE_FLAGS {
        return Err(Error::IllegalOperation);
    }
    call.require(5, 1)?;
    let [budget_us, period_us, extra_refills] = [0, 1, 2].map(|i| call.words[i]);
    // Checks 4 to 8.
    check_times(s, budget_us, period_us)?;
    // Check 9.
    let Some(Cap::SchedContext { object, bits }) = call.extra_cap(s, 0).flatten() else {
        return Err(Error::InvalidCapability(1));
    };
    // Check 10.
    let max = max_extra_refills(bits.into());
    if extra_refills > max {
        return Err(Error::Range { min: 0, max });
    }
    let parameters = Parameters {
        budget: s.clock.ticks(budget_us),
        period: s.clock.ticks(period_us),
        max_refills: extra_refills + MIN_REFILLS,
        badge: call.words[3],
        sporadic: call.words[4] & flags::SPORADIC != 0,
    };
    configure(s, object, core, parameters);
    Ok(Outcome::Done)
}

/// Checks 4 to 8: budget and period, in microseconds, are possible, and the budget fits the period.
/// (With whole ticks per microsecond, comparing microseconds is comparing ticks.)
fn check_times(s: &State, budget: u64, period: u64) -> Result<(), Error> {
    let (min, max) = (MIN_BUDGET_US, s.clock.max_period_us());
    let is_possible = |us: u64| (min..=max).contains(&us);
    if !is_possible(budget) || !is_possible(period) {
        return Err(Error::Range { min, max });
    }
    if budget > period {
        return Err(Error::Range { min, max: period });
    }
    Ok(())
}
