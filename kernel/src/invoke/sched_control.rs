//! Scheduling control: the right to give processor time to scheduling contexts (03, section 6.1;
//! thesis, section 6.1.1).

use sandglass_abi::invocation::SCHED_CONTROL_CONFIGURE_FLAGS;
use sandglass_abi::sched::{flags, max_extra_refills, MIN_REFILLS};

use super::{Error, Invocation, Outcome, Stop};
use crate::cores::CoreId;
use crate::ipc::stall;
use crate::mem::Ref;
use crate::object::{Parameters, Refill, SchedContext};
use crate::time::{context, Turn};
use crate::{Kernel, View};

/// Invokes scheduling control.
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    let (target, parameters) = decode(k, call)?;
    let Some(core) = CoreId::new(call.cap.core()) else {
        never!("a core that the kernel is not built for has no capability");
        return Err(Error::InvalidCapability(0).into());
    };
    stall::quiesce_user(k, turn, target)?;
    context::configure(k, turn, target, core, parameters);
    Ok(Outcome::Done)
}

/// Checks a configuration.
fn decode(k: &View, call: &Invocation) -> Result<(Ref<SchedContext>, Parameters), Error> {
    Error::IllegalOperation.when(call.label() != SCHED_CONTROL_CONFIGURE_FLAGS)?;
    let target = call.extra_cap(k, 0)?;
    call.need(5)?;
    let constants = &k.constants;
    let (budget_us, period_us) = (call.word(k, 0), call.word(k, 1));
    let (least, longest) = (constants.min_budget_us, constants.max_period_us());
    Error::check_range(budget_us, least, longest)?;
    Error::check_range(period_us, least, longest)?;
    Error::check_range(budget_us, least, period_us)?;
    let (budget, period) = (constants.ticks(budget_us), constants.ticks(period_us));
    let word = target.word();
    let target = word.get().ok_or(Error::InvalidCapability(1))?;
    let extra = call.word(k, 2);
    let most = max_extra_refills(word.shape() as u32 & 63);
    Error::check_range(extra, 0, most)?;
    let max_refills = (extra + MIN_REFILLS).min(u64::from(Refill::MAX)) as u8;
    let sporadic = call.word(k, 4) & flags::SPORADIC != 0;
    let badge = call.word(k, 3);
    let parameters = Parameters {
        budget,
        period,
        max_refills,
        badge,
        sporadic,
    };
    Ok((target, parameters))
}
