//! Attacks on a gate (`systems/gate-attacks`), each at a moment that is chosen: its client is queued, or served. Everybody else
//! is served, each of their requests within what a trace can say of its bound, and the victim can use the gate afterwards.

use std::time::Duration;

use sandglass_mc_ipc::marks::{self, Mark as Did};
use sandglass_mc_ipc::ClientId;
use sandglass_tools::qemu::End;
use sandglass_tools::system::{self, Source};
use sandglass_tools::trace::check::{self, Verdict};
use sandglass_tools::trace::record::{Event, Mark};
use sandglass_tools::trace::{self, Traced};
use sandglass_tools::workspace;

/// Attacks that the judge makes. On one core, nobody is moved.
const ON_FOUR_CORES: usize = 22;
const ON_ONE_CORE: usize = 20;

/// Different moments: more of them on request.
fn seeds() -> u64 {
    match std::env::var("SANDGLASS_EXPLORE").as_deref() {
        Ok("long") => 20,
        _ => 1,
    }
}

/// Seeds of which one makes the victim wait until its budget is there again, on one core. On several cores it is a matter of
/// moments, which differ with each change of a program: six of twenty seeds did it, or none.
const MOST_SEEDS: u64 = 20;

/// Runs the system to its end, with attacks at moments of this seed.
fn attack(system: &str, seed: u64) -> (Traced, Verdict) {
    let mut source = Source::read(&workspace::root().join(system)).unwrap();
    let seeded = source.text.replace("seed = 1,", &format!("seed = {seed},"));
    assert!(seeded.contains(&format!("seed = {seed},")), "{system}");
    source.text = seeded;
    let description = system::check(&source).unwrap_or_else(|report| panic!("{report}"));
    let options = trace::Options {
        timeout: Some(Duration::from_secs(240)),
        // A few thousand records a core and attack.
        log_mib: 4,
        ..Default::default()
    };
    let traced = trace::trace_checked(description, &options).unwrap();
    let verdict = check::check_with(&traced.history, &traced.expected);
    (traced, verdict)
}

/// What the gate did about the victim, or an heir of it, in order; and how much of that before the victim's fault.
fn done_about_victim(traced: &Traced) -> (Vec<Did>, usize) {
    const VICTIM: &str = "victim";
    let history = &traced.history;
    let gates = &traced.expected.gates;
    let victim = gates
        .iter()
        .flat_map(|gate| &gate.clients)
        .position(|client| client.name == VICTIM)
        .map(ClientId);
    let (mut all, mut before) = (Vec::new(), None);
    for record in &history.records {
        match record.event {
            Event::Fault { thread, .. } if history.name(thread) == VICTIM => {
                before = Some(all.len());
            }
            Event::Mark {
                subject,
                mark:
                    Mark::Gate {
                        what,
                        first,
                        second,
                    },
            } if history.name(subject) == VICTIM
                || history.name(subject) == "server" && marks::named([first, second]) == victim =>
            {
                all.extend(Did::decode(ClientId(0), what, [first, second]));
            }
            _ => {}
        }
    }
    let before = before.expect("the victim has a fault in the end");
    (all, before)
}

/// The gate hears of what becomes of the victim: that it is gone; that it has no budget any more; and that it is moved, if
/// there is another core. Returns whether it also hears that it has budget again.
#[track_caller]
#[must_use]
fn assert_heard(traced: &Traced, is_moved: bool) -> bool {
    let (all, before) = done_about_victim(traced);
    let victim = ClientId(0);
    assert_eq!(all[before..], [Did::Withdraw(victim)], "after its fault");
    let count = |is_it: fn(&Did) -> bool| all.iter().filter(|did| is_it(did)).count();
    assert!(count(|did| matches!(did, Did::Withdraw(_))) >= 3);
    assert!(count(|did| matches!(did, Did::Exhaust(_))) > 0);
    let moves = count(|did| matches!(did, Did::Move(_, 1 | 3, _)));
    assert!(moves >= 2 || !is_moved, "{moves} moves");
    count(|did| matches!(did, Did::Replenish(..))) > 0
}

/// The number of attacks, as the console says it.
fn attacks(console: &str) -> Option<usize> {
    let line = console
        .lines()
        .find(|line| line.contains(" attacks, and everybody"))?;
    line.split(' ').find_map(|word| word.parse().ok())
}

#[track_caller]
fn assert_harmless(system: &str, expected: usize, requests: u64) {
    let mut is_replenished = expected == ON_FOUR_CORES;
    for seed in 1..=MOST_SEEDS {
        if seed > seeds() && is_replenished {
            return;
        }
        let (traced, verdict) = attack(system, seed);
        let console = &traced.console;
        assert_eq!(traced.end, End::Guest(0), "seed {seed}:\n{console}");
        assert_eq!(attacks(console), Some(expected), "seed {seed}:\n{console}");
        assert_eq!(traced.history.lost, 0, "seed {seed}");
        let violations = &verdict.violations;
        assert!(
            violations.is_empty(),
            "seed {seed}: {violations:#?}\n{console}"
        );
        assert!(
            verdict.looked.requests > requests,
            "seed {seed}: {verdict:?}"
        );
        is_replenished |= assert_heard(&traced, expected == ON_FOUR_CORES);
    }
    assert!(is_replenished, "the victim's budget is never there again");
}

/// By counts of operations, and by lengths as far as the emulator's turns leave something of them.
#[test]
fn attacks_on_a_gate_of_four_cores_harm_nobody_honest() {
    assert_harmless("systems/gate-attacks/SYSTEM.toml", ON_FOUR_CORES, 200);
}

/// By lengths, which are exact.
#[test]
fn attacks_on_a_gate_of_one_core_harm_nobody_honest() {
    assert_harmless("systems/gate-attacks/ONE-CORE.toml", ON_ONE_CORE, 100);
}
