//! Clients that nobody should trust, on several cores, beside honest ones: whatever they do, no request of an honest client
//! costs it more than the bound.

use sandglass_abi::invocation as label;
use std::future::Future;

use sandglass_gates::{
    ClientId, ClientThread, Director, Gates, History, Made, Parameters, Protocol, Slot, Spec, Step,
    US,
};
use sandglass_parallel::{delete, migrate, Time};

const MS: u64 = 1_000 * US;
const CORES: usize = 4;
/// Of the highest priority of a core, and of the lowest.
const URGENT: u8 = 120;
const RELAXED: u8 = 60;

/// What an attacker does beside flooding the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attack {
    /// Nothing.
    Flood,
    /// Sends messages that are no requests, or too long, or not answered.
    Forge,
    /// Dies, at any time: queued, served, or neither.
    Die,
    /// Is stopped, and goes on.
    Stop,
    /// Loses its processor time.
    LoseContext,
    /// Its context is taken from whoever has it.
    LoseBinding,
    /// Is moved to another core and back.
    Move,
    /// Its budget is changed.
    Reconfigure,
}

const ATTACKS: [Attack; 8] = [
    Attack::Flood,
    Attack::Forge,
    Attack::Die,
    Attack::Stop,
    Attack::LoseContext,
    Attack::LoseBinding,
    Attack::Move,
    Attack::Reconfigure,
];

async fn honest(client: ClientThread, processing: u64, mut random: fastrand::Rng) {
    loop {
        client.started().await;
        client.compute(random.u64(0..=processing)).await;
        let words: Vec<u64> = (0..random.u64(0..9)).collect();
        let sum = words.iter().sum();
        let answer = client.request(&words).await;
        assert_eq!(
            answer,
            (0, vec![words.len() as u64, sum]),
            "{:?}",
            client.id()
        );
    }
}

async fn attacker(client: ClientThread, attack: Attack, mut random: fastrand::Rng) {
    loop {
        if attack == Attack::Forge {
            client.send(random.u64(..), &[random.u64(..); 5]).await;
            client.request(&[7; 60]).await;
        }
        client.compute(random.u64(0..=100) * US).await;
        client.request(&[1]).await;
    }
}

/// What is done to an attacker from outside, at random times.
async fn strike(
    director: &Director,
    attack: Attack,
    victim: (Made, usize),
    random: &mut fastrand::Rng,
) {
    let (made, core) = victim;
    let time = Time::new(4_000, 20_000);
    match attack {
        Attack::Flood | Attack::Forge => {}
        Attack::Die => {
            director.enter(delete(made.tcb)).await;
        }
        Attack::Stop => {
            director.enter(Step::suspend(made.tcb)).await;
            director.thread().compute(random.u64(0..=300) * US).await;
            director.enter(Step::resume(made.tcb)).await;
        }
        Attack::LoseContext => {
            director.enter(delete(made.context)).await;
        }
        Attack::LoseBinding => {
            let unbind = label::SCHED_CONTEXT_UNBIND;
            director
                .enter(Step::invoke(made.context, unbind, &[], &[]))
                .await;
        }
        Attack::Move => {
            let target = random.usize(0..CORES);
            director.enter(migrate(made, target, time)).await;
        }
        Attack::Reconfigure => {
            let budget = random.u64(20..=4_000);
            let time = Time::new(budget, budget * random.u64(5..=9));
            director.enter(migrate(made, core, time)).await;
        }
    }
}

struct System {
    history: History,
    /// Each with whether nobody on its core is more urgent.
    honest: Vec<(ClientId, bool)>,
    parameters: Parameters,
}

/// Two honest clients on each core, an urgent one and a relaxed one, and two attackers with priorities around that of the
/// relaxed one.
fn run(attack: Attack, seed: u64, end: u64) -> System {
    let mut random = fastrand::Rng::with_seed(seed);
    let parameters = Parameters {
        cores: CORES,
        protocol: Protocol::McIpc,
        operation: 200 * US..=400 * US,
        gate_core: random.usize(0..CORES),
        seed,
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    let (mut honest_ones, mut victims) = (Vec::new(), Vec::new());
    for core in 0..CORES {
        for priority in [URGENT, RELAXED] {
            let spec = Spec::sporadic(core, priority, 14_000, 30_000);
            let fork = random.fork();
            let client = gates.client(spec, |client| honest(client, 100 * US, fork));
            honest_ones.push((client, priority == URGENT));
        }
        for _ in 0..2 {
            // Even, as all others: the odd ones are the server's.
            let priority = RELAXED - 10 + 2 * random.u8(0..10);
            let spec = Spec::sporadic(core, priority, 4_000, 20_000);
            let fork = random.fork();
            let client = gates.client(spec, |client| attacker(client, attack, fork));
            victims.push((gates.capabilities(client), core));
        }
    }
    let clients: Vec<_> = honest_ones.iter().map(|(client, _)| *client).collect();
    gates.director(0, 500, |director| async move {
        for tick in 0.. {
            // Each honest client has its own phase.
            let due = clients.iter().enumerate();
            for (_, client) in due.filter(|(i, _)| tick % 60 == 7 * i % 60) {
                director.start(*client).await;
            }
            if tick >= 40 && random.u8(0..4) == 0 {
                let victim = victims[random.usize(0..victims.len())];
                strike(&director, attack, victim, &mut random).await;
            }
            director.next_period().await;
        }
    });
    System {
        history: gates.run_until(end),
        honest: honest_ones,
        parameters,
    }
}

/// Every request of an honest client, and what it paid.
fn check(system: &System, what: &str, end: u64) {
    let Parameters {
        operation, timing, ..
    } = &system.parameters;
    // Two looks until it is seen that the server stands still, and the way through the kernel for it to be moved.
    let episode = 2 * timing.poll + 20 * US;
    let longest = operation.end() + episode;
    for &(client, is_urgent) in &system.honest {
        let requests = system.history.requests.iter();
        let mine: Vec<_> = requests
            .filter(|request| request.client == client)
            .collect();
        assert!(
            mine.len() as u64 >= end / (30 * MS) - 2,
            "{what}: {client:?} was served {} times",
            mine.len()
        );
        for request in mine {
            let paid = system
                .history
                .paid(client, request.called, request.answered);
            let requests = 2 + 2 * CORES as u64 - u64::from(is_urgent);
            let bound = requests * longest + paid.stretches.saturating_sub(1) * episode;
            assert!(
                paid.ticks <= bound,
                "{what}: {client:?} paid {paid:?} for {request:?}, at most {bound}"
            );
        }
    }
}

/// Seeds: more of them on request.
fn seeds() -> std::ops::RangeInclusive<u64> {
    match std::env::var("SANDGLASS_EXPLORE").as_deref() {
        Ok("long") => 1..=200,
        _ => 1..=3,
    }
}

#[test]
fn no_attack_makes_an_honest_client_pay_more_than_the_bound() {
    let end = 600 * MS;
    for attack in ATTACKS {
        for seed in seeds() {
            let system = run(attack, seed, end);
            check(&system, &format!("{attack:?}, seed {seed}"), end);
        }
    }
}

/// A relaxed client on core 0, and `count` attackers of its core that are more urgent, each with this budget in every 20 ms.
/// What is done to them, the director does after 20 ms. Returns what the relaxed client paid for its requests at most.
fn most_paid_beside<F: Future<Output = ()> + 'static>(
    count: usize,
    budget: u64,
    strike: impl FnOnce(Director, Vec<Made>) -> F + 'static,
) -> (u64, u64) {
    let parameters = Parameters {
        cores: CORES,
        operation: 200 * US..=200 * US,
        gate_core: 3,
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    let random = fastrand::Rng::with_seed(1);
    let time = Spec::sporadic(0, RELAXED, 40_000, 50_000);
    let victim = gates.client(time, |client| honest(client, 1, random));
    let attackers: Vec<_> = (0..count)
        .map(|_| {
            let spec = Spec::sporadic(0, URGENT, budget, 20_000);
            let random = fastrand::Rng::with_seed(1);
            gates.client(spec, |client| attacker(client, Attack::Flood, random))
        })
        .collect();
    let made = attackers
        .iter()
        .map(|&client| gates.capabilities(client))
        .collect();
    gates.director(3, 20_000, move |director| async move {
        director.next_period().await;
        director.start(victim).await;
        strike(director, made).await;
    });
    let end = 400 * MS;
    let history = gates.run_until(end);
    // One that has no answer yet has paid too.
    let requests = history
        .requests
        .iter()
        .filter(|request| request.client == victim);
    let answered =
        requests.map(|request| history.paid(victim, request.called, request.answered).ticks);
    let all = history.paid(victim, 0, end).ticks;
    let most = answered.max().unwrap_or(all);
    let episode = 2 * parameters.timing.poll + 20 * US;
    (
        most,
        (2 + 2 * CORES as u64) * (parameters.operation.end() + episode),
    )
}

#[test]
fn clients_that_move_to_other_cores_do_not_pass_one_that_stays() {
    let (most, bound) = most_paid_beside(3, 19_000, |director, attackers| async move {
        for (core, made) in (1..).zip(attackers) {
            let time = Time::new(19_000, 20_000);
            assert!(director.enter(migrate(made, core, time)).await);
        }
        loop {
            director.next_period().await;
        }
    });
    assert!(most <= bound, "paid {most}, at most {bound}");
}

#[test]
fn clients_that_run_out_of_budget_while_they_wait_do_not_stay_in_the_way() {
    let (most, bound) = most_paid_beside(40, 150, |director, _| async move {
        loop {
            director.next_period().await;
        }
    });
    assert!(most <= bound, "paid {most}, at most {bound}");
}

/// Spinners of equal clients never block. Whoever pays has to come before them: here, when they all begin again with requests that
/// wait since the end of their last slot.
#[test]
fn clients_of_one_priority_do_not_keep_the_server_from_each_other() {
    let parameters = Parameters {
        cores: 2,
        operation: 5 * MS..=5 * MS,
        gate_core: 1,
        ..Parameters::default()
    };
    let mut gates = Gates::new(&parameters);
    let slot = Slot {
        at: 0,
        length: 50_000,
    };
    for _ in 0..4 {
        let spec = Spec::table_driven(0, URGENT, &[slot]);
        gates.client(spec, |client| async move {
            loop {
                client.request(&[]).await;
            }
        });
    }
    let end = 450 * MS;
    let history = gates.run_until(end);
    // In each slot. It may take two looks to see that the server stands still.
    let each = parameters.operation.end() + 30 * US + 2 * parameters.timing.poll;
    let (served, expected) = (history.requests.len() as u64, 5 * (50 * MS / each - 1));
    assert!(served >= expected, "{served} requests, at least {expected}");
}
