//! Scheduling control: the right to give processor time to scheduling contexts (03, section 6.1;
//! thesis, section 6.1.1).

use sandglass_abi::invocation::SCHED_CONTROL_CONFIGURE_FLAGS;
use sandglass_abi::sched::{flags, max_extra_refills, MIN_BUDGET_US, MIN_REFILLS};

use super::error::Error;
use super::sched_context::SchedContext;
use super::{Invocation, Outcome};
use crate::mem::Ref;
use crate::time::context::{self, Parameters};
use crate::time::Refill;
use crate::Kernel;

/// A checked configuration.
#[derive(Clone, Copy)]
pub struct Configure {
    target: Ref<SchedContext>,
    parameters: Parameters,
}

/// Checks an invocation of scheduling control.
pub fn decode(call: &Invocation) -> Result<Configure, Error> {
    if call.label != SCHED_CONTROL_CONFIGURE_FLAGS {
        return Err(Error::IllegalOperation);
    }
    let target = call.extra_cap(0)?;
    call.need(5)?;
    let constants = &call.k.constants;
    let (budget_us, period_us) = (call.word(0), call.word(1));
    let longest = constants.max_period_us();
    let allowed = MIN_BUDGET_US..=longest;
    if !allowed.contains(&budget_us) || !allowed.contains(&period_us) {
        return Err(Error::Range {
            min: MIN_BUDGET_US,
            max: longest,
        });
    }
    let (budget, period) = (constants.ticks(budget_us), constants.ticks(period_us));
    if budget > period {
        return Err(Error::Range {
            min: MIN_BUDGET_US,
            max: period_us,
        });
    }
    let word = target.word();
    let target = word
        .get::<SchedContext>()
        .ok_or(Error::InvalidCapability(1))?;
    let extra = call.word(2);
    let most = max_extra_refills(word.shape() as u32 & 63);
    if extra > most {
        return Err(Error::Range { min: 0, max: most });
    }
    let max_refills = (extra + MIN_REFILLS).min(u64::from(Refill::MAX)) as u8;
    let sporadic = call.word(4) & flags::SPORADIC != 0;
    let badge = call.word(3);
    let parameters = Parameters {
        budget,
        period,
        max_refills,
        badge,
        sporadic,
    };
    Ok(Configure { target, parameters })
}

/// Configures the context.
pub fn commit(k: &Kernel, configure: Configure) -> Outcome {
    context::configure(k, configure.target, configure.parameters);
    Outcome::Done
}
