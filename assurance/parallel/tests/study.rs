//! The case studies of several cores (thesis, section 8.5).

use sandglass_parallel::study::cipher::{self, Variant};
use sandglass_parallel::study::{pairs, Study};

const CORES: usize = 4;

#[test]
fn one_server_for_all_is_as_fast_on_four_cores_as_on_one_and_a_server_each_four_times() {
    let points = cipher::run(&cipher::Parameters::default(), CORES);
    for point in &points {
        match point.variant {
            Variant::Single => assert!((0.97..=1.03).contains(&point.speedup), "{point:?}"),
            Variant::Multiple => {
                assert!(point.speedup >= 0.98 * point.cores as f64, "{point:?}");
            }
        }
    }
    // The one server is at work all the time, wherever it is; the others wait for it.
    let single = &points[CORES - 1];
    let user: u64 = single.spent.iter().map(|spent| spent.user).sum();
    assert!(user as f64 >= 0.98 * single.ticks as f64, "{single:?}");
    assert!(single
        .spent
        .iter()
        .all(|spent| spent.idle > single.ticks / 2));
}

#[test]
fn small_requests_show_what_the_lock_and_the_migration_cost() {
    let small = cipher::Parameters {
        request_bytes: 16,
        ..cipher::Parameters::default()
    };
    let points = cipher::run(&small, CORES);
    let of = |variant| {
        let last = points.iter().rfind(|point| point.variant == variant);
        last.expect("a point").speedup
    };
    // A migration takes the interrupt to another core, which a request on one core does not need.
    assert!((0.5..1.0).contains(&of(Variant::Single)), "{points:?}");
    assert!((1.5..3.8).contains(&of(Variant::Multiple)), "{points:?}");
}

/// Figure 8.9: the less there is to do between the calls, the more the lock is what they wait for.
#[test]
fn pairs_on_all_cores_are_limited_by_the_lock_only() {
    let parameters = pairs::Parameters::default();
    let points = pairs::run(&parameters, CORES);
    let costs = parameters.costs;
    let round = costs.straight.call + costs.straight.reply_recv + 2 * costs.lock;
    for point in &points {
        let least = point.calls * round;
        assert!(point.ticks >= least, "{point:?}");
        if point.bound == 0 && point.cores > 1 {
            assert!(
                point.ticks < least + least / 100,
                "the lock is always held: {point:?}"
            );
        }
        if point.bound >= 32_000 {
            assert!(point.speedup > 0.95 * point.cores as f64, "{point:?}");
        }
    }
    // With every bound, more cores are never slower; and with a larger one they gain more.
    for four in points.windows(CORES).step_by(CORES) {
        assert!(
            four.is_sorted_by(|a, b| a.speedup <= b.speedup * 1.001),
            "{four:?}"
        );
    }
    let last = points.iter().filter(|point| point.cores == CORES);
    let gains: Vec<_> = last.map(|point| point.speedup).collect();
    assert!(gains.is_sorted_by(|a, b| *a <= b * 1.02), "{gains:?}");
}

#[test]
fn a_study_is_the_same_every_time_and_a_line_for_every_run() {
    let run = || -> Study {
        let requests = cipher::Parameters {
            requests: 5,
            ..cipher::Parameters::default()
        };
        let calls = pairs::Parameters {
            calls: 20,
            ..pairs::Parameters::default()
        };
        sandglass_parallel::study::run(&requests, &calls, CORES)
    };
    let study = run();
    assert_eq!(study, run());
    let csv = study.csv();
    assert_eq!(csv.lines().count(), 1 + 2 * CORES + 6 * CORES);
    assert!(
        csv.starts_with("scenario,spin,cores,work,time\nsingle,0,1,20480,"),
        "{csv}"
    );
}
