//! The refills of the kernel, where many are gone through in one search, and those of the specification, which goes through
//! them one by one, become the same: for queues of up to 128 refills, around the ring, of which many nearly touch each other
//! (an invariant keeps them apart, `invariants/refills.rs`) and the last touches the head that comes back, and
//! charges that end within a tick of the end of one.

use fastrand::Rng;
use sandglass_abi::object as types;
use sandglass_kernel::arch::Platform;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::{Refill, SchedContext};
use sandglass_kernel::time::refills::Refills;
use sandglass_model::state::{self, Clock};
use sandglass_model::time::refills as model;
use sandglass_testkit::refills;
use sandglass_testkit::world::World;

const ROUNDS: u64 = 30_000;

/// What happens to a queue.
#[derive(Clone, Copy, Debug)]
enum Step {
    Charge(u64),
    /// Of the head, which has the least budget left.
    ChargePart(u64),
    Unblock(u64),
    Delay(u64),
}

/// A queue, and what is to happen to it.
#[derive(Clone, Debug)]
struct Case {
    period: u64,
    max: u8,
    first: u8,
    refills: Vec<Refill>,
    step: Step,
}

/// A refill of some size behind one that ends at `end`, often a tick later.
fn behind(rng: &mut Rng, end: u64) -> Refill {
    let gap = [1, 2, rng.u64(1..200)][rng.usize(0..3)];
    let amount = [1, rng.u64(1..60), rng.u64(1..30_000)][rng.usize(0..3)];
    Refill::new(amount, end + gap)
}

fn case(rng: &mut Rng, least: u64) -> Case {
    let max = [rng.u8(2..6), rng.u8(2..=Refill::MAX)][rng.usize(0..2)];
    let count = rng.u8(1..=max);
    let head = Refill::new(least + rng.u64(0..3) * rng.u64(0..10_000), 1_000_000);
    let mut refills = vec![head];
    for _ in 1..count {
        let end = refills[refills.len() - 1].end();
        refills.push(behind(rng, end));
    }
    let total: u64 = refills.iter().map(|refill| refill.amount).sum();
    // The head comes back when the last refill ends, or later.
    let end = refills[refills.len() - 1].end();
    let period = end - head.time + 1 - u64::from(end - head.time > total)
        + rng.u64(0..2) * rng.u64(0..50_000);
    let some = rng.usize(0..refills.len());
    let up_to: u64 = refills[..=some].iter().map(|refill| refill.amount).sum();
    let step = match rng.u8(0..8) {
        0..4 => Step::Charge((up_to + rng.u64(0..3)).saturating_sub(1).max(1)),
        4 => Step::Charge(rng.u64(1..4) * total + rng.u64(0..total)),
        5 => Step::ChargePart(rng.u64(0..=head.amount - least)),
        6 => Step::Unblock(head.time + up_to + rng.u64(0..300)),
        _ => Step::Delay(rng.u64(0..60_000)),
    };
    Case {
        period,
        max,
        first: rng.u8(0..Refill::MAX),
        refills,
        step,
    }
}

/// What the kernel makes of it.
fn shipped(w: &World, context: Ref<SchedContext>, case: &Case) -> Vec<Refill> {
    context.at(&w.k).configure(&w.k, case.period, case.max);
    refills::put(&w.k, context, case.first, case.refills.iter().copied());
    let refills = Refills::of(&w.k, context);
    match case.step {
        Step::Charge(used) => refills.charge(used),
        Step::ChargePart(used) => refills.charge_part(used),
        Step::Delay(ticks) => refills.delay(ticks),
        Step::Unblock(now) => {
            w.k.core().set_now(&w.k, now);
            refills.unblock();
        }
    }
    refills.iter().collect()
}

/// What the specification does.
fn specified(case: &Case, clock: Clock) -> Vec<Refill> {
    let mut context = state::SchedContext {
        bits: 12,
        period: case.period,
        max_refills: case.max.into(),
        refills: Vec::new(),
        consumed: 0,
        badge: 0,
        sporadic: false,
        core: state::CoreId(0),
        thread: None,
        notification: None,
        reply: None,
        yield_from: None,
    };
    let refills = case
        .refills
        .iter()
        .map(|&Refill { amount, time }| state::Refill { amount, time });
    context.refills.extend(refills);
    match case.step {
        Step::Charge(used) | Step::ChargePart(used) => {
            model::budget_check(&mut context, used, clock)
        }
        Step::Delay(ticks) => {
            let time = context.refills[0].time + ticks;
            model::start_head(&mut context, time);
        }
        Step::Unblock(now) => {
            model::unblock_check(&mut context, now);
        }
    }
    let refills = context.refills.iter();
    refills
        .map(|refill| Refill::new(refill.amount, refill.time))
        .collect()
}

#[test]
fn many_refills_become_what_the_specification_makes_of_them_one_by_one() {
    let mut w = World::new();
    let slot = w.make(types::SCHED_CONTEXT, 12);
    let context = w.context(slot);
    let clock = Clock {
        ticks_per_unit: w.k.machine.ticks_per_unit(),
    };
    let least = w.k.constants.min_budget();
    for seed in 0..ROUNDS {
        let case = case(&mut Rng::with_seed(seed), least);
        let (is, right) = (shipped(&w, context, &case), specified(&case, clock));
        assert_eq!(is, right, "seed {seed}: {case:?}");
    }
}
