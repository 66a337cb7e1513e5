//! Requests, decided, without a kernel.

use fastrand::Rng;
use sandglass_allocations::demand::Excess;
use sandglass_allocations::{Kind, Refusal, Task};
use sandglass_description::policy::allocations::{Ahead, Allocations, Client, Task as Needed};
use sandglass_time_manager::admission::{allowance, Admission, Scheduling};
use sandglass_time_manager::protocol::{ask, pack, Denial, LONGEST_NAME};

/// A scheduler that does nothing, and a clock.
#[derive(Default)]
struct Scheduler {
    served: Vec<Option<(Task, Kind)>>,
    now: u64,
}

impl Scheduling for Scheduler {
    fn serve(&mut self, client: usize, task: Task, kind: Kind) {
        self.served.resize(8, None);
        self.served[client] = Some((task, kind));
    }

    fn dismiss(&mut self, client: usize) -> Option<u64> {
        let (task, _) = self.served[client].take()?;
        Some(self.now + task.deadline())
    }

    fn times(&mut self) -> (u64, u64) {
        (self.now, self.now)
    }
}

fn client(name: &str, share: Option<u64>) -> Client {
    Client {
        name: name.to_owned(),
        best_effort_priority: 10,
        timeout_badge: 0,
        share: share.map(|part| {
            sandglass_allocations::Rate::at_most(1, part)
                .unwrap()
                .parts()
        }),
        tasks: Vec::new(),
        supplier: None,
        records: 8,
        capabilities: 4,
        lends: false,
    }
}

/// Two thirds are given; the third client is supplied by the first.
fn table() -> Allocations {
    Allocations {
        core: 0,
        turn_priority: 100,
        shortest_us: 1_000,
        ahead: Vec::new(),
        clients: vec![
            client("first", Some(3)),
            client("second", Some(3)),
            Client {
                supplier: Some(0),
                ..client("third", None)
            },
        ],
    }
}

struct World {
    admission: Admission,
    scheduler: Scheduler,
}

impl World {
    fn new() -> Self {
        Self::of(&table())
    }

    fn of(table: &Allocations) -> Self {
        Self {
            admission: Admission::new(table).unwrap(),
            scheduler: Scheduler::default(),
        }
    }

    fn ask(&mut self, client: usize, label: u64, words: &[u64]) -> Result<u64, Denial> {
        self.admission
            .decide(client, label, words, &mut self.scheduler)
    }

    /// What a client has at first.
    fn own(&mut self, client: usize) -> (u64, u64) {
        let capability = self.ask(client, ask::CAPABILITY, &[]).unwrap();
        let allocation = self.ask(client, ask::ALLOCATION, &[capability, 0]).unwrap();
        (capability, allocation)
    }

    fn reserve(&mut self, client: usize, budget: u64) -> Result<u64, Denial> {
        let (capability, allocation) = self.own(client);
        self.ask(
            client,
            ask::RESERVE,
            &[capability, allocation, budget, 3_000, 3_000, 1],
        )
    }
}

#[test]
fn a_client_has_what_the_description_gives_and_no_more() {
    let mut world = World::new();
    assert!(world.reserve(0, 1_000).is_ok());
    let more = world.reserve(0, 20);
    assert!(
        matches!(
            more,
            Err(Denial::Refused(Refusal::TooMuch(
                Excess::Utilisation { .. }
            )))
        ),
        "{more:?}"
    );
    assert!(world.reserve(1, 1_000).is_ok());
}

#[test]
fn budgets_that_cannot_be_enforced_are_refused() {
    let mut world = World::new();
    let (capability, allocation) = world.own(0);
    for (budget, period) in [(19, 3_000), (3_000, 3_000), (100, 999)] {
        let words = [capability, allocation, budget, period, period, 1];
        assert_eq!(world.ask(0, ask::RESERVE, &words), Err(Denial::WrongBudget));
    }
    let words = [capability, allocation, 30, 3_000, 20, 1];
    assert_eq!(world.ask(0, ask::RESERVE, &words), Err(Denial::WrongTask));
}

#[test]
fn who_attaches_runs_by_turns_and_who_ends_does_not() {
    let mut world = World::new();
    let reservation = world.reserve(0, 1_000).unwrap();
    let (capability, _) = world.own(0);
    assert!(
        world
            .ask(1, ask::ATTACH, &[capability, reservation])
            .is_err(),
        "it is another's"
    );
    world
        .ask(0, ask::ATTACH, &[capability, reservation])
        .unwrap();
    assert_eq!(
        world.ask(0, ask::ATTACH, &[capability, reservation]),
        Err(Denial::Attached)
    );
    assert!(world.scheduler.served[0].is_some());

    world.admission.end(0, &mut world.scheduler);
    assert!(world.scheduler.served[0].is_none());
    // Its deadline has not passed.
    assert!(world.reserve(0, 1_000).is_err());
    world.scheduler.now = 3_001;
    assert!(
        world.reserve(0, 1_000).is_ok(),
        "what it had is whole again"
    );
}

#[test]
fn a_supplied_client_loses_what_it_has_with_its_supplier() {
    let mut world = World::new();
    let reservation = world.reserve(2, 500).unwrap();
    let (capability, _) = world.own(2);
    world
        .ask(2, ask::ATTACH, &[capability, reservation])
        .unwrap();
    world.admission.end(0, &mut world.scheduler);
    assert!(world.scheduler.served[2].is_none());
    let again = world.ask(2, ask::CAPABILITY, &[]).unwrap();
    assert_ne!(again, capability);
}

#[test]
fn time_is_given_to_a_client_by_its_name_and_taken_back() {
    let mut world = World::new();
    let mut words = [0; LONGEST_NAME / 8];
    let count = pack("second", &mut words);
    let second = world.ask(0, ask::CLIENT, &words[..count]).unwrap();
    assert_eq!(second, 1);
    let count = pack("seconds", &mut words);
    assert_eq!(
        world.ask(0, ask::CLIENT, &words[..count]),
        Err(Denial::NoSuchName)
    );

    let (capability, allocation) = world.own(0);
    let sixth = sandglass_allocations::Rate::at_most(1, 6).unwrap().parts();
    let part = world
        .ask(0, ask::ALLOCATE, &[capability, allocation, 0, 0, 0, sixth])
        .unwrap();
    let derived = world
        .ask(0, ask::DERIVE, &[capability, second, part])
        .unwrap();
    let made = world
        .ask(1, ask::RESERVE, &[derived, part, 500, 3_000, 3_000, 0])
        .unwrap();
    world.ask(1, ask::ATTACH, &[derived, made]).unwrap();
    world.ask(0, ask::REVOKE, &[capability]).unwrap();
    assert!(world.scheduler.served[1].is_none());
    assert_eq!(
        world.ask(1, ask::RESERVE, &[derived, part, 20, 3_000, 3_000, 0]),
        Err(Refusal::NotHeld.into())
    );
}

#[test]
fn more_than_the_core_is_not_given() {
    let mut table = table();
    table.clients.push(Client {
        tasks: vec![Needed {
            budget_us: 1_001,
            period_us: 3_000,
            deadline_us: 3_000,
        }],
        ..client("fourth", None)
    });
    let refused = Admission::new(&table).map(|_| ());
    assert!(
        matches!(refused, Err((Some(3), Refusal::TooMuch(_)))),
        "{refused:?}"
    );
}

/// A table in which one client has a third, and these are ahead of turns.
fn behind(ahead: &[(u64, u64)], tasks: Vec<Needed>) -> Allocations {
    let ahead = ahead.iter().map(|&(budget_us, period_us)| Ahead {
        budget_us,
        period_us,
    });
    Allocations {
        ahead: ahead.collect(),
        clients: vec![Client {
            tasks,
            ..client("first", None)
        }],
        ..table()
    }
}

/// Whether all jobs end in time, in steps of a microsecond: of those ahead, each of which takes its budget at the beginning of
/// each of its periods, and of tasks, by their deadlines. All begin at once.
fn meets_deadlines(ahead: &[(u64, u64)], tasks: &[Needed], until: u64) -> bool {
    let mut left_ahead = vec![0; ahead.len()];
    // Of each task, its jobs that are not done: deadline and rest.
    let mut jobs: Vec<(u64, u64)> = Vec::new();
    for now in 0..until {
        for (left, &(budget, period)) in left_ahead.iter_mut().zip(ahead) {
            if now % period == 0 {
                *left = budget;
            }
        }
        let released = tasks.iter().filter(|task| now % task.period_us == 0);
        jobs.extend(released.map(|task| (now + task.deadline_us, task.budget_us)));
        if jobs
            .iter()
            .any(|&(deadline, left)| left > 0 && deadline <= now)
        {
            return false;
        }
        if let Some(left) = left_ahead.iter_mut().find(|left| **left > 0) {
            *left -= 1;
        } else if let Some((_, left)) = jobs.iter_mut().filter(|job| job.1 > 0).min() {
            *left -= 1;
        }
        jobs.retain(|&(_, left)| left > 0);
    }
    true
}

/// What is admitted beside those ahead of turns meets its deadlines, though these come first; and there is much of both.
#[test]
fn turns_are_in_time_behind_those_ahead_of_them() {
    let mut rng = Rng::with_seed(3);
    let (mut admitted, mut missed) = (0, 0);
    for _ in 0..1_500 {
        let mut few = |budgets: core::ops::Range<u64>, periods: core::ops::Range<u64>| {
            let count = rng.usize(1..4);
            let one = |_| (rng.u64(budgets.clone()), rng.u64(periods.clone()));
            (0..count).map(one).collect::<Vec<_>>()
        };
        let ahead = few(1..6, 10..60);
        let tasks = few(1..16, 20..80);
        let tasks = tasks.iter().map(|&(budget_us, period_us)| Needed {
            budget_us,
            period_us,
            deadline_us: rng.u64(20..=period_us),
        });
        let tasks: Vec<Needed> = tasks.collect();
        let table = Allocations {
            shortest_us: 20,
            ..behind(&ahead, tasks.clone())
        };
        if allowance(&table.clients[0]).is_none() {
            // More than a processor has no function.
            continue;
        }
        let in_time = meets_deadlines(&ahead, &tasks, 2_000);
        let is_admitted = Admission::new(&table).is_ok();
        assert!(in_time || !is_admitted, "{table:?}");
        admitted += u32::from(is_admitted);
        missed += u32::from(!in_time);
    }
    assert!(admitted > 100 && missed > 100, "{admitted}, {missed}");
}

/// They are counted in intervals of the shortest period and longer: so no deadline may be shorter.
#[test]
fn behind_others_deadlines_are_not_short() {
    let task = |deadline_us| {
        vec![Needed {
            budget_us: 100,
            period_us: 3_000,
            deadline_us,
        }]
    };
    for (ahead, refused) in [(&[][..], false), (&[(200, 2_000)][..], true)] {
        let mut world = World::of(&behind(ahead, task(500)));
        let (own, part) = world.own(0);
        let words = [own, part, 100, 3_000, 999, 0];
        let made = world.ask(0, ask::RESERVE, &words);
        assert_eq!(made == Err(Denial::WrongBudget), refused, "{made:?}");
    }
}

#[test]
fn more_than_the_core_is_not_kept_ahead_of_turns() {
    let refused = Admission::new(&behind(&[(600, 2_000), (500, 900)], Vec::new())).map(|_| ());
    assert!(
        matches!(refused, Err((None, Refusal::TooMuch(_)))),
        "{refused:?}"
    );
}

/// Whatever the first client says, the second may still reserve what it could, and nothing of the first is left when it
/// has ended.
#[test]
fn words_at_random_change_nothing_for_others() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..60 {
        let mut world = World::new();
        let mut known: Vec<u64> = (0..40).collect();
        let own = world.own(0);
        known.extend([own.0, own.1, u64::MAX, 1_000, 3_000]);
        for _ in 0..150 {
            let label = rng.u64(0..16);
            let count = rng.usize(0..9);
            let words: Vec<u64> = (0..count)
                .map(|_| known[rng.usize(..known.len())])
                .collect();
            world.scheduler.now += rng.u64(0..500);
            if let Ok(word) = world.ask(0, label, &words) {
                known.push(word);
            }
        }
        let before = world.reserve(1, 1_000);
        assert!(before.is_ok(), "{before:?}");
        assert!(world.reserve(1, 20).is_err());
        world.admission.end(0, &mut world.scheduler);
        world.scheduler.now += 10_000_000_000;
        assert!(world.reserve(0, 1_000).is_ok());
    }
}
