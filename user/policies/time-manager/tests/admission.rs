//! Requests, decided, without a kernel.

use fastrand::Rng;
use sandglass_allocations::demand::Excess;
use sandglass_allocations::{Kind, Refusal, Task};
use sandglass_description::policy::allocations::{Allocations, Client, Task as Needed};
use sandglass_time_manager::admission::{Admission, Scheduling};
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
        Self {
            admission: Admission::new(&table()).unwrap(),
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
        matches!(refused, Err((3, Refusal::TooMuch(_)))),
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
