//! Timers of the timer service.

use sandglass::cap::{Endpoint, Notification};
use sandglass::time;
use sandglass_timers::{Armed, Refusal, Timer as Inner};

use crate::clock;
use crate::environment::{self, Capability};
use crate::error::{self, Code};
use crate::foreign::Text;
use crate::releases::{sg_next_release, Release, Releases};

/// A timer: by its number, of those that the service has under one capability.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    pub service: Capability,
    /// What it signals.
    pub signal: Capability,
    pub number: u64,
}

impl From<Timer> for Inner {
    fn from(timer: Timer) -> Self {
        let signal = Notification::at(timer.signal);
        Self::with_parts(Endpoint::at(timer.service), signal).nth(timer.number)
    }
}

fn code<T>(result: Result<T, Refusal>, store: impl FnOnce(T)) -> Code {
    match result {
        Ok(value) => {
            store(value);
            error::OK
        }
        Err(Refusal::NoSuchTimer) => error::NO_SUCH_TIMER,
        Err(Refusal::TooFrequent) => error::TOO_FREQUENT,
        Err(Refusal::NoSuchRequest) => error::UNKNOWN,
    }
}

fn store<T>(place: Option<&mut T>) -> impl FnOnce(T) + '_ {
    |value| {
        if let Some(place) = place {
            *place = value;
        }
    }
}

#[no_mangle]
pub extern "C" fn sg_timer_named(name: Text) -> Timer {
    let (env, name) = (environment::get(), name.text());
    Timer {
        service: env.capability::<Endpoint>(name).address(),
        signal: env
            .capability::<Notification>(&alloc::format!("{name}.signal"))
            .address(),
        number: 0,
    }
}

#[no_mangle]
pub extern "C" fn sg_set_timer(timer: Timer, at: u64, is_set: Option<&mut bool>) -> Code {
    let armed = Inner::from(timer).at(at);
    code(armed.map(|armed| armed == Armed::Set), store(is_set))
}

#[no_mangle]
pub extern "C" fn sg_repeat_timer(timer: Timer, first: u64, period: u64) -> Code {
    code(Inner::from(timer).every(first, period), |()| ())
}

#[no_mangle]
pub extern "C" fn sg_cancel_timer(timer: Timer, was_set: Option<&mut bool>) -> Code {
    code(Inner::from(timer).cancel(), store(was_set))
}

#[no_mangle]
pub extern "C" fn sg_timer_expiries(timer: Timer, count: Option<&mut u64>) -> Code {
    code(Inner::from(timer).expiries(), store(count))
}

#[no_mangle]
pub extern "C" fn sg_wait_until(timer: Timer, at: u64) -> Code {
    code(Inner::from(timer).wait_until(at), |()| ())
}

#[no_mangle]
pub extern "C" fn sg_start_releases(
    releases: Option<&mut Releases>,
    timer: Timer,
    period_us: u64,
    skip_missed: bool,
) -> Code {
    let period = clock::sg_us_to_ticks(period_us).max(1);
    let at = time::ticks().saturating_add(period);
    code(Inner::from(timer).every(at, period), |()| {
        store(releases)(Releases {
            number: 0,
            at,
            period,
            skip_missed,
        });
    })
}

#[no_mangle]
pub extern "C" fn sg_wait_for_release(releases: Option<&mut Releases>, timer: Timer) -> Release {
    let release = sg_next_release(releases, time::ticks());
    // What is signalled may be an earlier release, which was caught up with.
    while time::ticks() < release.at {
        Inner::from(timer).wait();
    }
    release
}
