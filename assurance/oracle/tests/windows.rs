//! The oracle's answers about windows are those of a checker that tries every window.

use proptest::prelude::*;
use sandglass_oracle::{Configuration, Finding, Limits, Oracle, Place, Stretch, Window};

const LIMITS: Limits = Limits {
    least_budget: 2,
    path: 0,
    turn: 10,
};

/// Stretches (gap before, length, whether in the kernel, whether it looked at the budget at the end).
fn run() -> impl Strategy<Value = Vec<(u64, u64, bool, bool)>> {
    prop::collection::vec(
        (0u64..8, 1u64..6, prop::bool::weighted(0.3), any::<bool>()),
        1..40,
    )
}

/// The times of `run`, one behind the other from 1 on.
fn stretches(run: &[(u64, u64, bool, bool)]) -> Vec<Stretch> {
    let mut now = 1;
    run.iter()
        .map(|&(gap, length, kernel, checked)| {
            let start = now + gap;
            now = start + length;
            Stretch {
                core: 0,
                thread: 1,
                context: 1,
                start,
                end: now,
                place: if kernel { Place::Kernel } else { Place::User },
                checked,
            }
        })
        .collect()
}

/// Ticks of `stretches` in [from, to).
fn executed(stretches: &[Stretch], from: u64, to: u64) -> u64 {
    let part = |it: &Stretch| it.end.min(to).saturating_sub(it.start.max(from));
    stretches.iter().map(part).sum()
}

/// The lengths of paths of the kernel, as they grow, with the ticks at which they have that length.
fn paths(stretches: &[Stretch]) -> Vec<(u64, u64)> {
    let mut paths = Vec::new();
    let (mut path, mut until) = (0, 0);
    for it in stretches {
        if it.place == Place::User {
            (path, until) = (0, 0);
            continue;
        }
        if it.start != until {
            path = 0;
        }
        path += it.end - it.start;
        paths.push((it.end, path));
        until = it.end;
        if it.checked {
            path = 0;
        }
    }
    paths
}

/// The first stretch with a window, of all that end in it, with more than it may have.
fn first_excess(stretches: &[Stretch], budget: u64, period: u64) -> Option<usize> {
    let paths = paths(stretches);
    stretches.iter().position(|it| {
        let from = it.end.saturating_sub(period);
        let known = paths
            .iter()
            .filter(|&&(end, _)| end <= it.end && end >= from);
        let allowance = known.map(|&(_, path)| path).max().unwrap_or(0);
        let windows = it.start + 1..=it.end;
        windows
            .map(|end| executed(stretches, end.saturating_sub(period), end))
            .any(|sum| sum > budget + allowance)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn a_window_has_the_sum_of_what_is_in_it(run in run(), length in 1u64..30) {
        let stretches = stretches(&run);
        let mut window = Window::new(length);
        for (i, it) in stretches.iter().enumerate() {
            let sum = window.add(it.start, it.end);
            let so_far = &stretches[..=i];
            let most = (it.start + 1..=it.end)
                .map(|end| executed(so_far, end.saturating_sub(length), end))
                .max();
            prop_assert_eq!(Some(sum), most, "no window that ends in the stretch has more");
        }
    }

    #[test]
    fn the_first_window_that_has_too_much_is_found(
        run in run(), budget in 1u64..12, more in 1u64..12,
    ) {
        let period = budget + more;
        let stretches = stretches(&run);
        let mut oracle = Oracle::new(LIMITS);
        let configuration = Configuration { budget, period, sporadic: false };
        oracle.starts(1, Some(configuration), 0);
        let found = stretches.iter().position(|it| oracle.ran(it).is_err());
        prop_assert_eq!(found, first_excess(&stretches, budget, period));
    }

    #[test]
    fn a_sporadic_context_that_always_runs_when_it_may_is_judged_like_others(
        run in run(), budget in 1u64..12, more in 1u64..12,
    ) {
        // On time at every start, so never behind.
        let period = budget + more;
        let stretches = stretches(&run);
        let mut oracle = Oracle::new(LIMITS);
        let configuration = Configuration { budget, period, sporadic: true };
        oracle.starts(1, Some(configuration), 0);
        let found = stretches.iter().position(|it| {
            oracle.is_on_time(1, it.start);
            oracle.ran(it).is_err()
        });
        prop_assert_eq!(found, first_excess(&stretches, budget, period));
    }

    #[test]
    fn a_sporadic_context_may_have_what_it_was_kept_from(
        run in run(), budget in 1u64..12, more in 1u64..12,
    ) {
        // Never on time again: behind by all that it did not execute since it started.
        let period = budget + more;
        let mut stretches = stretches(&run);
        stretches.iter_mut().for_each(|it| it.place = Place::User);
        let mut oracle = Oracle::new(LIMITS);
        let configuration = Configuration { budget, period, sporadic: true };
        oracle.starts(1, Some(configuration), 0);
        let mut behind = Vec::new();
        for it in &stretches {
            let lag = it.end - executed(&stretches, 0, it.end);
            behind.push((it.end, lag));
            let from = it.end.saturating_sub(period);
            let lags = behind.iter().filter(|&&(end, _)| end >= from).map(|&(_, lag)| lag);
            let lag = lags.max().unwrap_or(0);
            let most = budget + lag.min(lag.div_ceil(period) * budget);
            let is_too_much = executed(&stretches, from, it.end) > most;
            prop_assert_eq!(oracle.ran(it).is_err(), is_too_much);
            if is_too_much {
                break;
            }
        }
    }
}

fn user(context: u64, start: u64, end: u64) -> Stretch {
    Stretch {
        core: 0,
        thread: 1,
        context,
        start,
        end,
        place: Place::User,
        checked: false,
    }
}

const FIVE_OF_TWENTY: Configuration = Configuration {
    budget: 5,
    period: 20,
    sporadic: false,
};

fn oracle() -> Oracle {
    let mut oracle = Oracle::new(LIMITS);
    oracle.starts(1, Some(FIVE_OF_TWENTY), 0);
    oracle
}

#[test]
fn a_tick_too_many_in_a_window_is_found() {
    let mut oracle = oracle();
    assert_eq!(oracle.ran(&user(1, 10, 15)), Ok(()));
    assert_eq!(oracle.ran(&user(1, 30, 35)), Ok(()));
    let found = oracle.ran(&user(1, 49, 51));
    assert_eq!(found.unwrap_err().kind(), "windows");
}

#[test]
fn a_change_in_use_has_at_most_the_larger_budget_in_the_shorter_period() {
    let change = |oracle: &mut Oracle| {
        let next = Configuration {
            budget: 7,
            period: 15,
            sporadic: false,
        };
        oracle.changes(1, Some(next), 5);
    };
    let mut fair = oracle();
    fair.ran(&user(1, 0, 5)).unwrap();
    change(&mut fair);
    assert_eq!(fair.ran(&user(1, 5, 7)), Ok(()), "seven in fifteen");
    let mut unfair = oracle();
    unfair.ran(&user(1, 0, 5)).unwrap();
    change(&mut unfair);
    assert!(unfair.ran(&user(1, 5, 8)).is_err(), "eight in fifteen");
}

#[test]
fn a_context_that_starts_anew_has_its_budget_at_once() {
    let mut oracle = oracle();
    oracle.ran(&user(1, 0, 5)).unwrap();
    oracle.starts(1, Some(FIVE_OF_TWENTY), 5);
    assert_eq!(oracle.ran(&user(1, 5, 10)), Ok(()));
    assert!(oracle.ran(&user(1, 10, 11)).is_err());
}

#[test]
fn to_be_refused_with_budget_is_found() {
    let mut fresh = oracle();
    assert_eq!(fresh.refused(1, 3).unwrap_err().kind(), "supply");
    let mut used = oracle();
    used.ran(&user(1, 1, 3)).unwrap();
    assert!(
        used.refused(1, 3).is_err(),
        "two of five, and the least is two"
    );
    let mut spent = oracle();
    spent.ran(&user(1, 1, 4)).unwrap();
    assert_eq!(spent.refused(1, 4), Ok(()));
    // Forty ticks after that all is there again.
    assert!(spent.refused(1, 44).is_err());
    let mut given_up = oracle();
    given_up.gives_up(1, 3);
    assert_eq!(given_up.refused(1, 3), Ok(()));
}

#[test]
fn to_pay_for_others_is_found() {
    let mut oracle = oracle();
    oracle.ran(&user(1, 0, 4)).unwrap();
    assert_eq!(oracle.charged(1, 4, 4), Ok(()));
    assert_eq!(oracle.charged(1, 1, 4).unwrap_err().kind(), "payment");
}

#[test]
fn two_cores_at_once_are_found() {
    let mut oracle = oracle();
    oracle.ran(&user(1, 0, 3)).unwrap();
    let found = oracle.ran(&user(1, 2, 4)).unwrap_err();
    assert!(matches!(found, Finding::Overlap { context: 1, .. }));
}

#[test]
fn a_turn_that_lasts_too_long_is_found() {
    let mut oracle = oracle();
    assert_eq!(oracle.turn(0, 5, 15), Ok(()));
    assert_eq!(oracle.turn(0, 5, 16).unwrap_err().kind(), "turns");
}
