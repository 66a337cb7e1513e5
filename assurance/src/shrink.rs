//! Making a failing script small: delta debugging, then simpler arguments.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::pair::{Checks, Failure};
use crate::script::{Action, Call, Source};
use crate::world;

/// Runs `script` in the world, with all checks.
///
/// # Errors
/// What is wrong first.
pub fn run(script: &[Action], checks: Checks) -> Result<(), Failure> {
    guarded(|| {
        let mut pair = world::create(Checks::None)?;
        pair.set_checks(checks);
        script.iter().try_for_each(|action| pair.perform(action))
    })
}

thread_local! {
    /// What the panic of a guarded thread said, and where.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// What `work` says, or the panic that it ends with, which is not printed.
///
/// # Errors
/// As those of `work`.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                PANIC.set(Some(info.to_string()));
            } else {
                others(info);
            }
        }));
    });
    GUARDED.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    result.unwrap_or_else(|_| Err(Failure::Panic(PANIC.take().unwrap_or_default())))
}

/// The smallest script found that fails in the same way as `script`, which fails with `failure`; and
/// how it fails.
pub fn shrink(script: &[Action], failure: Failure, checks: Checks) -> (Vec<Action>, Failure) {
    let mut best = (script.to_vec(), failure);
    let mut tries = 0;
    loop {
        let size = weight(&best.0);
        drop_events(&mut best, checks, &mut tries);
        simplify(&mut best, checks, &mut tries);
        if weight(&best.0) == size || tries > MOST_TRIES {
            return best;
        }
    }
}

/// Most runs of a script while it is made smaller.
const MOST_TRIES: usize = 3000;

fn weight(script: &[Action]) -> usize {
    script.iter().map(|action| format!("{action}").len()).sum()
}

/// Takes `candidate` if it fails in the same way.
fn try_one(
    best: &mut (Vec<Action>, Failure),
    candidate: Vec<Action>,
    checks: Checks,
    tries: &mut usize,
) -> bool {
    *tries += 1;
    if *tries > MOST_TRIES {
        return false;
    }
    match run(&candidate, checks) {
        Err(failure) if failure.kind() == best.1.kind() => {
            *best = (candidate, failure);
            true
        }
        _ => false,
    }
}

/// Drops events, many at once at first.
fn drop_events(best: &mut (Vec<Action>, Failure), checks: Checks, tries: &mut usize) {
    let mut chunk = best.0.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < best.0.len() {
            let mut candidate = best.0.clone();
            candidate.drain(at..(at + chunk).min(best.0.len()));
            if !try_one(best, candidate, checks, tries) {
                at += chunk;
            }
        }
        if chunk == 1 {
            return;
        }
        chunk = chunk.div_ceil(2);
    }
}

/// Makes arguments simpler, one at a time.
fn simplify(best: &mut (Vec<Action>, Failure), checks: Checks, tries: &mut usize) {
    for at in 0..best.0.len() {
        for simpler in simpler(&best.0[at]) {
            let mut candidate = best.0.clone();
            candidate[at] = simpler;
            try_one(best, candidate, checks, tries);
        }
    }
}

fn simpler(action: &Action) -> Vec<Action> {
    match action {
        Action::Delays(delays) => simpler_delays(delays),
        Action::Pass(ticks) => [0, 1000, ticks / 2].map(Action::Pass).to_vec(),
        Action::Preempted(looks, call) => {
            let mut simpler = vec![Action::Call(call.clone())];
            let calls = simpler_calls(call).into_iter();
            simpler.extend(calls.map(|call| Action::Preempted(*looks, call)));
            simpler
        }
        Action::Late(call) => {
            let mut simpler = vec![Action::Call(call.clone())];
            simpler.extend(simpler_calls(call).into_iter().map(Action::Late));
            simpler
        }
        Action::Call(call) => simpler_calls(call).into_iter().map(Action::Call).collect(),
        _ => Vec::new(),
    }
}

/// One delay only, or one less, or one that is shorter.
fn simpler_delays(delays: &[u64]) -> Vec<Action> {
    let mut simpler = vec![Vec::new()];
    simpler.extend(delays.iter().map(|&delay| vec![delay]));
    for i in 0..delays.len() {
        let mut without = delays.to_vec();
        without.remove(i);
        simpler.push(without);
        let mut none = delays.to_vec();
        none[i] = 0;
        simpler.push(none);
    }
    simpler.retain(|other| other != delays);
    simpler.into_iter().map(Action::Delays).collect()
}

fn simpler_calls(call: &Call) -> Vec<Call> {
    let mut simpler = Vec::new();
    let mut change = |change: &dyn Fn(&mut Call)| {
        let mut other = call.clone();
        change(&mut other);
        if other != *call {
            simpler.push(other);
        }
    };
    change(&|call| call.reply = 0);
    change(&|call| call.destination = 0);
    change(&|call| call.words.truncate(4));
    change(&|call| {
        call.words.pop();
    });
    change(&|call| {
        call.caps.pop();
    });
    for i in 0..call.words.len() {
        change(&|call| call.words[i] = 0);
    }
    simpler
}

/// A failure as text: what is wrong, and a test that can be pasted into
/// `assurance/tests/regressions.rs`.
pub fn report(script: &[Action], failure: &Failure, seed: u64) -> String {
    format!(
        "{failure}\nas a test:\n\n#[test]\nfn found_by_seed_{seed}() {{\n    run({});\n}}\n",
        Source(script)
    )
}
