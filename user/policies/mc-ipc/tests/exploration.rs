//! Every state that a gate can be in, for all systems of up to three clusters and a number of clients: whoever waits is
//! served; a cluster has at most one request at the global level; and no request costs its client more than the lemmas and
//! the bounds say. The gate and the paper's pseudo-code do the same, and each rule of it that is broken is noticed.

mod common;

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use common::paper::{Breach, Paper};
use common::{Explored, System};
use sandglass_mc_ipc::mc_ipc::View;
use sandglass_mc_ipc::{bound, ClientId, Standing};

/// Steps that each request takes, so that clients come and go in the middle of one.
const STEPS: u8 = 2;

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    Invoke(ClientId),
    Exhaust(ClientId),
    Replenish(ClientId),
    Withdraw(ClientId),
    /// The server does a step of its request, or begins with the next one.
    Work,
}

/// Which of the paper's intervals a request is in (section IV-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Interval {
    /// [t1, t2): its cluster's local head has to wait, from the start on.
    Blocked,
    /// [t2, t3'): it is in the tail queue.
    Tail,
    /// [t3', t4).
    Head,
}

/// The request that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Watched {
    interval: Interval,
    /// No client that contends has lost its budget since it began, and none was without one before it.
    is_undisturbed: bool,
}

/// Steps that the watched client has paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Paid {
    interval: u8,
    total: u8,
}

impl Paid {
    /// The most of both, each of its own: what comes is added to either.
    fn most(self, other: Self) -> Self {
        Self {
            interval: self.interval.max(other.interval),
            total: self.total.max(other.total),
        }
    }
}

#[derive(Clone, Debug)]
struct State<G> {
    gate: G,
    /// Steps that the request in service has left.
    left: u8,
    watched: Option<Watched>,
    paid: Paid,
}

type Key = (View, u8, Option<Watched>);

impl<G: Explored> State<G> {
    fn key(&self) -> Key {
        (self.gate.look(), self.left, self.watched)
    }
}

struct Exploration<'s, G> {
    system: &'s System,
    watched: ClientId,
    seen: FxHashMap<Key, Paid>,
    open: Vec<State<G>>,
}

/// The number of states, or what is wrong.
fn explore<G: Explored>(system: &System, gate: G, watched: ClientId) -> Result<usize, String> {
    let first = State {
        gate,
        left: 0,
        watched: None,
        paid: Paid::default(),
    };
    let mut exploration = Exploration {
        system,
        watched,
        seen: FxHashMap::default(),
        open: vec![first],
    };
    while let Some(state) = exploration.open.pop() {
        exploration.check(&state)?;
        for event in exploration.events(&state) {
            exploration.step(&state, event)?;
        }
    }
    Ok(exploration.seen.len())
}

impl<G: Explored> Exploration<'_, G> {
    fn events(&self, state: &State<G>) -> Vec<Event> {
        let view = state.gate.look();
        let mut events = vec![Event::Work];
        for client in self.system.all() {
            let is_real_time = self.system.clients[client.0].1.is_some();
            if !is_present(&view, client) {
                events.push(Event::Invoke(client));
                continue;
            }
            events.push(Event::Withdraw(client));
            if is_real_time && view.background.contains(&client) {
                events.push(Event::Replenish(client));
            } else if is_real_time {
                events.push(Event::Exhaust(client));
            }
        }
        events
    }

    fn step(&mut self, before: &State<G>, event: Event) -> Result<(), String> {
        let mut state = before.clone();
        match event {
            Event::Invoke(client) | Event::Replenish(client) => self.enter(&mut state, client),
            Event::Exhaust(client) => {
                let _ = state.gate.exhaust(client);
                self.disturb(&mut state, client);
            }
            Event::Withdraw(client) => {
                state.gate.withdraw(client);
                self.disturb(&mut state, client);
            }
            Event::Work => self.work(&mut state)?,
        }
        self.pass(&mut state);
        self.judge(&state).map_err(|wrong| {
            format!("{:?}, {event:?}: {wrong}: {:?}", self.system, before.key())
        })?;
        self.add(state);
        Ok(())
    }

    fn add(&mut self, mut state: State<G>) {
        match self.seen.entry(state.key()) {
            Entry::Vacant(entry) => {
                entry.insert(state.paid);
            }
            Entry::Occupied(mut entry) => {
                let most = entry.get().most(state.paid);
                if most == *entry.get() {
                    return;
                }
                entry.insert(most);
                state.paid = most;
            }
        }
        self.open.push(state);
    }

    fn enter(&self, state: &mut State<G>, client: ClientId) {
        let priority = self.system.clients[client.0].1;
        let is_new = !is_present(&state.gate.look(), client);
        match priority {
            Some(priority) if is_new => {
                let entered = state.gate.invoke(client, Standing::RealTime(priority));
                assert_eq!(entered, Ok(()));
            }
            Some(priority) => assert!(state.gate.replenish(client, priority)),
            None => assert_eq!(state.gate.invoke(client, Standing::BestEffort), Ok(())),
        }
        if client == self.watched && priority.is_some() {
            let view = state.gate.look();
            let blocked = view.clusters[self.cluster()].local_wait;
            state.watched = Some(Watched {
                interval: Interval::Blocked,
                is_undisturbed: !blocked,
            });
            state.paid = Paid::default();
        }
    }

    fn disturb(&self, state: &mut State<G>, client: ClientId) {
        if client == self.watched {
            // It begins anew, or not at all.
            state.watched = None;
            state.paid = Paid::default();
        } else if let Some(watched) = &mut state.watched {
            watched.is_undisturbed = false;
        }
    }

    /// A step of the server, which the watched client pays for if it is selected.
    fn work(&self, state: &mut State<G>) -> Result<(), String> {
        if state.gate.served().is_none() {
            if state.gate.next().is_some() {
                state.left = STEPS;
            }
            return Ok(());
        }
        if state.watched.is_some() && self.is_selected(&state.gate.look()) {
            state.paid.interval += 1;
            state.paid.total += 1;
        }
        state.left -= 1;
        if state.left > 0 {
            return Ok(());
        }
        let finished = state.gate.finish();
        if finished == Some(self.watched) && state.watched.is_some() {
            self.judge(state)?;
            state.watched = None;
            state.paid = Paid::default();
        }
        // The server takes the next request at once.
        if state.gate.next().is_some() {
            state.left = STEPS;
        }
        Ok(())
    }

    /// Whether the watched client is among those of its cluster, with budget and a request, that have its cores. Others
    /// may be selected before it, too: then it pays less.
    fn is_selected(&self, view: &View) -> bool {
        let cluster = self.cluster();
        let clients = self.system.all().filter(|client| {
            let (of, priority) = self.system.clients[client.0];
            let is_above = priority < self.system.clients[self.watched.0].1 && priority.is_some();
            of == cluster && is_above && has_budget(view, *client, cluster)
        });
        clients.count() < self.system.clusters[cluster].processors
    }

    fn cluster(&self) -> usize {
        self.system.clients[self.watched.0].0
    }

    /// The next interval, if the last one is over.
    fn pass(&self, state: &mut State<G>) {
        let view = state.gate.look();
        let Some(watched) = &mut state.watched else {
            return;
        };
        let blocked = view.clusters[self.cluster()].local_wait;
        if watched.interval == Interval::Blocked && !blocked {
            watched.interval = Interval::Tail;
            state.paid.interval = 0;
        }
        if watched.interval == Interval::Tail && !view.tails.contains(&self.watched) {
            watched.interval = Interval::Head;
            state.paid.interval = 0;
        }
    }

    /// Lemmas 1 to 4, and the theorem.
    fn judge(&self, state: &State<G>) -> Result<(), String> {
        let Some(watched) = state.watched else {
            return Ok(());
        };
        let clusters = self.system.clusters.len();
        let processors = self.system.clusters[self.cluster()].processors;
        let steps = u64::from(STEPS);
        let within = |paid: u8, requests: u64| u64::from(paid) <= requests * steps;
        let bound = match self.system.clients[self.watched.0].1 {
            Some(0) => bound::requests,
            _ => bound::requests_behind,
        };
        let all = bound(processors as u64, clusters as u64);
        if !within(state.paid.total, all) {
            return Err(format!("it pays for more than {all} requests"));
        }
        let most = (processors * clusters) as u64;
        let (lemma, requests) = match watched.interval {
            Interval::Blocked => (3, 1),
            Interval::Tail => (2, most),
            Interval::Head => (1, most),
        };
        let holds = lemma == 3 || watched.is_undisturbed;
        if holds && !within(state.paid.interval, requests) {
            return Err(format!(
                "lemma {lemma}: it pays for more than {requests} requests"
            ));
        }
        Ok(())
    }

    /// What holds in every state.
    fn check(&self, state: &State<G>) -> Result<(), String> {
        let view = state.gate.look();
        let wrong = |what: &str| Err(format!("{:?}: {what}: {view:?}", self.system));
        for cluster in 0..self.system.clusters.len() {
            let of = |client: &&ClientId| self.system.clients[client.0].0 == cluster;
            let global = view.global.iter().chain(&view.served).filter(of).count();
            if global > 1 {
                return wrong("a cluster has two requests at the global level");
            }
            if view.clusters[cluster].head.len() >= self.system.clusters[cluster].processors {
                return wrong("a head queue is too long");
            }
        }
        // Whoever waits is served, if nothing else happens.
        let mut gate = state.gate.clone();
        for _ in self.system.all() {
            gate.finish();
            if gate.next().is_none() {
                break;
            }
        }
        gate.finish();
        let rest = gate.look();
        if self.system.all().any(|client| is_present(&rest, client)) {
            return wrong("somebody waits, and is never served");
        }
        // With budget, before those without.
        let mut gate = state.gate.clone();
        if gate.served().is_none() && !view.global.is_empty() {
            let next = gate.next();
            if next.is_none_or(|next| view.background.contains(&next)) {
                return wrong("somebody without budget comes first");
            }
        }
        Ok(())
    }
}

fn is_present(view: &View, client: ClientId) -> bool {
    let in_cluster = view
        .clusters
        .iter()
        .any(|of| of.local_head == Some(client) || of.head.contains(&client));
    in_cluster
        || view.served == Some(client)
        || view.global.contains(&client)
        || view.background.contains(&client)
        || view.tails.contains(&client)
}

/// Whether a client with a reservation has a request in its cluster's queues or in service, and budget.
fn has_budget(view: &View, client: ClientId, cluster: usize) -> bool {
    let cluster = &view.clusters[cluster];
    cluster.local_head == Some(client)
        || cluster.head.contains(&client)
        || view.tails.contains(&client)
}

/// All clients of all systems watched, and how many systems and states that are.
fn explore_all(clusters: usize, clients: usize) -> (usize, usize) {
    let systems = System::up_to(clusters, clients);
    let mut states = 0;
    for system in &systems {
        for client in watchable(system) {
            states += explore(system, system.gate(), client).unwrap();
        }
    }
    (systems.len(), states)
}

/// Clients with a reservation; or any, so that the rest is checked.
fn watchable(system: &System) -> Vec<ClientId> {
    let real_time = system
        .all()
        .filter(|client| system.clients[client.0].1.is_some());
    let found: Vec<ClientId> = real_time.collect();
    if found.is_empty() {
        vec![ClientId(0)]
    } else {
        found
    }
}

#[test]
fn in_every_state_of_small_systems_everybody_is_served_within_the_bounds() {
    explore_all(3, 4);
}

/// `cargo test --profile host -p sandglass-mc-ipc --test exploration -- --ignored --nocapture`
#[test]
#[ignore = "takes a quarter of an hour"]
fn in_every_state_of_all_systems_everybody_is_served_within_the_bounds() {
    let (systems, states) = explore_all(3, 6);
    println!("{systems} systems, {states} states");
}

/// The paper's pseudo-code with a rule broken does not pass, in one of the small systems; with none, it does.
#[test]
fn every_rule_that_is_broken_is_noticed() {
    let systems = System::up_to(3, 4);
    let fails = |breach| {
        systems.iter().any(|system| {
            let mut clients = watchable(system).into_iter();
            clients.any(|client| explore(system, Paper::new(system, breach), client).is_err())
        })
    };
    assert!(!fails(None));
    for breach in Breach::ALL {
        assert!(fails(Some(breach)), "{breach:?} is not noticed");
    }
}

/// The gate does what the pseudo-code does, in 100,000 random steps of random systems.
#[test]
fn the_gate_does_what_the_pseudo_code_does() {
    let mut random = fastrand::Rng::with_seed(20);
    let systems = System::up_to(3, 6);
    for _ in 0..1_000 {
        let system = &systems[random.usize(..systems.len())];
        let (mut gate, mut paper) = (system.gate(), Paper::new(system, None));
        for _ in 0..100 {
            let client = ClientId(random.usize(..system.clients.len()));
            both(&mut random, system, client, (&mut gate, &mut paper));
            assert_eq!(gate.look(), paper.look(), "{system:?}");
        }
    }
}

fn both(
    random: &mut fastrand::Rng,
    system: &System,
    client: ClientId,
    (gate, paper): (&mut impl Explored, &mut impl Explored),
) {
    let priority = system.clients[client.0].1;
    let standing = priority.map_or(Standing::BestEffort, Standing::RealTime);
    match random.u8(..8) {
        0..3 => assert_eq!(
            gate.invoke(client, standing),
            paper.invoke(client, standing)
        ),
        3 => assert_eq!(gate.next(), paper.next()),
        4 => assert_eq!(gate.finish(), paper.finish()),
        5 if priority.is_some() => assert_eq!(gate.exhaust(client), paper.exhaust(client)),
        6 => {
            if let Some(priority) = priority {
                assert_eq!(
                    gate.replenish(client, priority),
                    paper.replenish(client, priority)
                );
            }
        }
        _ => assert_eq!(gate.withdraw(client), paper.withdraw(client)),
    }
}
