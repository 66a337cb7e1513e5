//! Who pays for what (04, sections 3, 6 and 9).

use crate::state::{ContextId, State, Ticks};

/// The clock is read on entry (04, section 3).
pub fn update_time(s: &mut State, now: Ticks) {
    let _ = (s, now);
    todo!("model-time")
}

/// Whether the current context can pay for this event; if not, it is charged (04, section 6.1).
pub fn check_budget(s: &mut State) -> bool {
    let _ = (s,);
    todo!("model-time")
}

/// The current context pays what was consumed (04, section 3).
pub fn commit(s: &mut State) {
    let _ = (s,);
    todo!("model-time")
}

/// The current thread gives up the rest of its head refill or slice (04, section 9.1).
pub fn yield_rest(s: &mut State) {
    let _ = (s,);
    todo!("model-time")
}

/// Time in microseconds that `context` consumed since the last report, which this is (04, section 9.3).
pub fn report_consumed(s: &mut State, context: ContextId) -> u64 {
    let _ = (s, context);
    todo!("model-time")
}
