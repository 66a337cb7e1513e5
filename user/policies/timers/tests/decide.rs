//! The service's decisions against a model that looks at every timer.

use proptest::prelude::*;
use sandglass_timers::decide::{Armed, Described, Limit, Refusal, Slot, Timers, Timing};

/// A limit that limits nothing.
const FREE: Limit = Limit {
    every: 1,
    burst: u32::MAX,
};

/// An armed timer of the model.
#[derive(Clone, Copy, Debug)]
struct Armament {
    deadline: u64,
    period: Option<u64>,
}

#[derive(Clone, Debug)]
enum Step {
    Arm(usize, usize, u64, Option<u64>),
    Cancel(usize, usize),
    Pass(u64),
}

const GROUPS: usize = 3;
const TIMERS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    let which = (0..GROUPS, 0..TIMERS);
    prop_oneof![
        (which.clone(), 0u64..60, prop::option::of(1u64..30))
            .prop_map(|((g, t), at, period)| Step::Arm(g, t, at, period)),
        which.prop_map(|(g, t)| Step::Cancel(g, t)),
        (0u64..40).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Whatever is armed and cancelled, exactly those timers expire that are due, and never before; and the next time
    /// that is asked for is that of the first.
    #[test]
    fn timers_expire_when_they_are_due(steps in prop::collection::vec(step(), 0..120)) {
        let mut slots = vec![Slot::default(); GROUPS * TIMERS];
        let described = Described { timers: TIMERS as u32, limit: FREE };
        let mut timers = Timers::new(&[described; GROUPS], &mut slots);
        let mut model = [[None::<Armament>; TIMERS]; GROUPS];
        let mut now = 0;
        for step in steps {
            match step {
                Step::Arm(group, timer, ahead, period) => {
                    // Some of them in the past.
                    let first = (now + ahead).saturating_sub(10);
                    let timing = Timing { first, period };
                    let armed = timers.arm(now, group, timer as u64, timing).unwrap();
                    let deadline = match period {
                        Some(period) if first <= now => first + ((now - first) / period + 1) * period,
                        _ => first,
                    };
                    model[group][timer] = (deadline > now).then_some(Armament { deadline, period });
                    let expected = if deadline > now { Armed::Set } else { Armed::Passed };
                    prop_assert_eq!(armed, expected);
                }
                Step::Cancel(group, timer) => {
                    let was_armed = timers.cancel(group, timer as u64).unwrap();
                    prop_assert_eq!(was_armed, model[group][timer].take().is_some());
                }
                Step::Pass(time) => {
                    now += time;
                    let mut expired = [0; GROUPS];
                    while let Some(group) = timers.expire(now) {
                        expired[group] += 1;
                    }
                    for (group, expired) in model.iter_mut().zip(expired) {
                        let due = group.iter_mut().filter(|timer| {
                            timer.is_some_and(|timer| timer.deadline <= now)
                        });
                        prop_assert_eq!(due.map(|timer| expire(timer, now)).count(), expired);
                    }
                }
            }
            let armed = model.iter().flatten().flatten();
            prop_assert_eq!(timers.next(), armed.map(|timer| timer.deadline).min());
        }
    }

    /// A periodic timer expires on its grid, however late somebody looks, and counts what it missed.
    #[test]
    fn periods_do_not_drift(
        first in 1u64..100,
        period in 1u64..50,
        looks in prop::collection::vec(0u64..200, 1..60),
    ) {
        let mut slots = [Slot::default()];
        let limit = Limit { every: period, burst: 1 };
        let mut timers = Timers::new(&[Described { timers: 1, limit }], &mut slots);
        let timing = Timing { first, period: Some(period) };
        prop_assert_eq!(timers.arm(0, 0, 0, timing), Ok(Armed::Set));
        let mut now = 0;
        for look in looks {
            now += look;
            let due = now.checked_sub(first).map_or(0, |past| past / period + 1);
            while timers.expire(now).is_some() {}
            // Lateness does not make the next one late: not even the limit, at its period.
            prop_assert_eq!(timers.expiries(0, 0), Ok(due));
            let next = first + due * period;
            prop_assert!(timers.next().is_some_and(|at| at == next.max(now)), "{:?}, not {next}", timers.next());
        }
    }
}

fn expire(timer: &mut Option<Armament>, now: u64) {
    *timer = timer.and_then(|timer| {
        let period = timer.period?;
        let passed = (now - timer.deadline) / period + 1;
        let deadline = timer.deadline + passed * period;
        Some(Armament { deadline, ..timer })
    });
}

#[test]
fn requests_beyond_the_description_are_refused() {
    let mut slots = [Slot::default(); 2];
    let limit = Limit {
        every: 10,
        burst: 1,
    };
    let mut timers = Timers::new(&[Described { timers: 2, limit }], &mut slots);
    let every = |period| Timing {
        first: 5,
        period: Some(period),
    };
    assert_eq!(timers.arm(0, 0, 2, every(10)), Err(Refusal::NoSuchTimer));
    assert_eq!(timers.arm(0, 1, 0, every(10)), Err(Refusal::NoSuchTimer));
    assert_eq!(timers.cancel(0, u64::MAX), Err(Refusal::NoSuchTimer));
    assert_eq!(timers.arm(0, 0, 0, every(9)), Err(Refusal::TooFrequent));
    assert_eq!(timers.arm(0, 0, 0, every(0)), Err(Refusal::TooFrequent));
    assert_eq!(timers.next(), None);
    assert_eq!(timers.arm(0, 0, 1, every(10)), Ok(Armed::Set));
}

#[test]
fn the_end_of_time_is_no_panic() {
    let mut slots = [Slot::default()];
    let limit = Limit {
        every: u64::MAX,
        burst: u32::MAX,
    };
    let mut timers = Timers::new(&[Described { timers: 1, limit }], &mut slots);
    let timing = Timing {
        first: u64::MAX - 1,
        period: Some(u64::MAX),
    };
    assert_eq!(timers.arm(0, 0, 0, timing), Ok(Armed::Set));
    assert_eq!(timers.expire(u64::MAX), Some(0));
    assert_eq!(timers.next(), Some(u64::MAX));
}

/// Two groups, one with many timers that are due at one instant: the other has its turn after one of them.
#[test]
fn many_timers_of_one_group_are_one_turn_to_the_others() {
    let mut slots = [Slot::default(); 101];
    let many = Described {
        timers: 100,
        limit: FREE,
    };
    let one = Described {
        timers: 1,
        limit: FREE,
    };
    let mut timers = Timers::new(&[many, one], &mut slots);
    let once = |first| Timing {
        first,
        period: None,
    };
    for timer in 0..100 {
        assert_eq!(timers.arm(0, 0, timer, once(10)), Ok(Armed::Set));
    }
    assert_eq!(timers.arm(0, 1, 0, once(12)), Ok(Armed::Set));
    assert_eq!(timers.expire(11), Some(0));
    assert_eq!(timers.expire(12), Some(0));
    assert_eq!(timers.expire(12), Some(1));
}

/// Arming shortly ahead and cancelling when it rings costs the same as letting it expire.
#[test]
fn ringing_for_nothing_counts_against_the_limit() {
    let mut slots = [Slot::default()];
    let limit = Limit {
        every: 100,
        burst: 1,
    };
    let mut timers = Timers::new(&[Described { timers: 1, limit }], &mut slots);
    let once = |first| Timing {
        first,
        period: None,
    };
    assert_eq!(timers.arm(0, 0, 0, once(10)), Ok(Armed::Set));
    assert_eq!(timers.setting(), Some(Some(10)));
    timers.was_set(1);
    assert_eq!(timers.cancel(0, 0), Ok(true));
    assert_eq!(timers.setting(), Some(None));
    timers.was_set(11);
    timers.rang();
    assert_eq!(timers.expire(12), None);
    assert_eq!(timers.arm(12, 0, 0, once(20)), Ok(Armed::Set));
    assert_eq!(timers.setting(), Some(Some(110)));
}
