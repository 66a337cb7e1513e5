//! A uniprocessor, tick by tick: jobs with critical sections, the arbiter between them and the
//! servers. Scheduling is by fixed priority, preemptive; only the priorities that the arbiter gives
//! servers differ from the clients' own.

use std::collections::HashMap;
use std::vec::Vec;

use proptest::prelude::*;
use sandglass_description::policy::sharing::{Entry, Protocol, Requester};

use super::{entry, Client, Server};
use crate::arbiter::{Action, Actions, Arbiter, Then};

/// What a server does for a request: it works, asks for another resource, works.
#[derive(Clone, Debug)]
pub struct Section {
    pub resource: u32,
    pub before: u64,
    pub nested: Option<Box<Section>>,
    pub after: u64,
}

impl Section {
    /// Ticks, with what is nested.
    pub fn length(&self) -> u64 {
        self.before + self.after + self.nested.as_ref().map_or(0, |nested| nested.length())
    }

    /// It and all that is nested.
    pub fn all(&self) -> Vec<&Section> {
        let mut all = vec![self];
        all.extend(self.nested.iter().flat_map(|nested| nested.all()));
        all
    }
}

/// A job: it is released, and alternates between its own work and sections.
#[derive(Clone, Debug)]
pub struct Job {
    pub release: u64,
    /// Ticks of own work, each followed by a section.
    pub parts: Vec<(u64, Section)>,
    pub last: u64,
}

/// What happened to a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Ticks at which a server worked for a client of lower priority while the job was not done.
    pub blocked: u64,
    /// Outermost sections of lower clients that were worked on meanwhile.
    pub blocked_by: usize,
    pub is_done: bool,
    pub refused: usize,
}

/// What a thread still has to do.
#[derive(Clone, Debug)]
enum Step {
    Work(u64),
    Ask(Section),
}

/// The entries that these jobs need; client N has priority N + 1.
pub fn entries(jobs: &[Job]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut add = |new: Entry| {
        if !entries.contains(&new) {
            entries.push(new);
        }
    };
    for (client, job) in jobs.iter().enumerate() {
        for (_, section) in &job.parts {
            add(entry(Client(client as u32), section.resource));
            for outer in section.all() {
                if let Some(nested) = &outer.nested {
                    add(entry(Server(outer.resource), nested.resource));
                }
            }
        }
    }
    entries
}

pub struct Simulation {
    entries: Vec<Entry>,
    arbiter: Arbiter,
    jobs: Vec<Job>,
    /// Of each client; the last step is first.
    clients: Vec<Vec<Step>>,
    servers: Vec<Vec<Step>>,
    client_runs: Vec<bool>,
    server_runs: Vec<bool>,
    server_priority: Vec<u8>,
    /// Of the thread that reminds the arbiter, if it runs.
    reminder: Option<u8>,
    /// Which section a server is to work on when it gets its request, by entry.
    asked: HashMap<usize, Section>,
    /// For which client each server works, and on which of its outermost sections.
    works_for: Vec<Option<usize>>,
    sections_begun: Vec<usize>,
    blockers: Vec<Vec<(usize, usize)>>,
    pub outcomes: Vec<Outcome>,
    time: u64,
}

impl Simulation {
    pub fn new(protocol: Protocol, resources: u32, jobs: &[Job]) -> Self {
        let entries = entries(jobs);
        let priorities: Vec<u8> = (1..=jobs.len() as u8).collect();
        let steps = |job: &Job| {
            let mut steps = vec![Step::Work(job.last)];
            for (work, section) in job.parts.iter().rev() {
                steps.push(Step::Ask(section.clone()));
                steps.push(Step::Work(*work));
            }
            steps
        };
        let servers = resources as usize;
        Self {
            arbiter: super::arbiter(protocol, &priorities, resources, &entries),
            entries,
            clients: jobs.iter().map(steps).collect(),
            servers: vec![Vec::new(); servers],
            client_runs: vec![false; jobs.len()],
            server_runs: vec![false; servers],
            server_priority: vec![0; servers],
            reminder: None,
            asked: HashMap::new(),
            works_for: vec![None; servers],
            sections_begun: vec![0; jobs.len()],
            blockers: vec![Vec::new(); jobs.len()],
            outcomes: vec![Outcome::default(); jobs.len()],
            jobs: jobs.to_vec(),
            time: 0,
        }
    }

    /// Runs to the end, or until nothing moves; returns what happened to each job.
    pub fn run(mut self) -> (Vec<Outcome>, bool) {
        let last_release = self.jobs.iter().map(|job| job.release).max().unwrap_or(0);
        loop {
            for (client, job) in self.jobs.iter().enumerate() {
                self.client_runs[client] |= job.release == self.time;
            }
            self.advance_all();
            let worked = self.work();
            self.time += 1;
            if !worked && self.time > last_release {
                break;
            }
        }
        for (outcome, blockers) in self.outcomes.iter_mut().zip(&self.blockers) {
            outcome.blocked_by = blockers.len();
        }
        let idle = self.arbiter.is_idle();
        (self.outcomes, idle)
    }

    /// Lets whoever is at an instant that takes no time pass it, the highest priority first: a
    /// request, an answer, an end.
    fn advance_all(&mut self) {
        if self.highest().is_none() && self.reminder.is_some() {
            self.remind();
        }
        while let Some((priority, runner)) = self.highest() {
            if self.reminder.is_some_and(|reminder| reminder >= priority) {
                self.remind();
                continue;
            }
            let steps = self.steps(runner);
            match steps.last().cloned() {
                Some(Step::Work(0)) => {
                    steps.pop();
                }
                Some(Step::Work(_)) => return,
                Some(Step::Ask(section)) => {
                    steps.pop();
                    self.ask(runner, section);
                }
                None => self.end(runner),
            }
            if self.highest().is_none() && self.reminder.is_some() {
                self.remind();
            }
        }
    }

    /// The runnable thread of the highest priority. A server goes before its equals: they wait for
    /// it.
    fn highest(&self) -> Option<(u8, Requester)> {
        let servers = (0..self.servers.len())
            .filter(|&server| self.server_runs[server])
            .map(|server| (self.server_priority[server], 1, Server(server as u32)));
        let clients = (0..self.clients.len())
            .filter(|&client| self.client_runs[client])
            .map(|client| (client as u8 + 1, 0, Client(client as u32)));
        let all = servers.chain(clients);
        all.max_by_key(|&(priority, kind, _)| (priority, kind))
            .map(|(priority, _, runner)| (priority, runner))
    }

    fn remind(&mut self) {
        self.reminder = None;
        let actions = self.arbiter.reminded();
        self.perform(&actions);
    }

    fn steps(&mut self, runner: Requester) -> &mut Vec<Step> {
        match runner {
            Client(client) => &mut self.clients[client as usize],
            Server(server) => &mut self.servers[server as usize],
        }
    }

    fn set_runs(&mut self, runner: Requester, runs: bool) {
        match runner {
            Client(client) => self.client_runs[client as usize] = runs,
            Server(server) => self.server_runs[server as usize] = runs,
        }
    }

    fn ask(&mut self, runner: Requester, section: Section) {
        let wanted = entry(runner, section.resource);
        let index = self.entries.iter().position(|e| *e == wanted).unwrap();
        if let Client(client) = runner {
            self.sections_begun[client as usize] += 1;
        }
        self.asked.insert(index, section);
        match self.arbiter.request(index) {
            Ok(actions) => {
                self.set_runs(runner, false);
                self.perform(&actions);
            }
            Err(_) => {
                let client = self.client_of(runner);
                self.outcomes[client].refused += 1;
            }
        }
    }

    fn end(&mut self, runner: Requester) {
        self.set_runs(runner, false);
        match runner {
            Client(client) => self.outcomes[client as usize].is_done = true,
            Server(server) => {
                self.works_for[server as usize] = None;
                let actions = self.arbiter.completed(server as usize);
                self.perform(&actions);
            }
        }
    }

    fn perform(&mut self, actions: &Actions) {
        for action in actions.iter() {
            match *action {
                Action::Prioritise { server, priority } => self.server_priority[server] = priority,
                Action::Answer { entry } => self.set_runs(self.entries[entry].requester, true),
                Action::Gone { .. } => unreachable!("no server ends here"),
                Action::Help { .. } => unreachable!("no budget runs out here"),
                Action::Remind { priority } => self.reminder = Some(priority),
                Action::Lend {
                    client,
                    server,
                    then,
                    ..
                } => {
                    if let Then::Forward { entry } = then {
                        self.start(server, entry);
                    }
                    assert_eq!(
                        self.works_for[server],
                        Some(client),
                        "its own client's context"
                    );
                    self.server_runs[server] = true;
                }
            }
        }
    }

    /// A server gets a request: it must have none.
    fn start(&mut self, server: usize, entry: usize) {
        assert!(
            self.works_for[server].is_none(),
            "a resource has two holders"
        );
        self.works_for[server] = Some(self.client_of(self.entries[entry].requester));
        let section = self.asked.remove(&entry).unwrap();
        let mut steps = vec![Step::Work(section.after)];
        steps.extend(section.nested.map(|nested| Step::Ask(*nested)));
        steps.push(Step::Work(section.before));
        self.servers[server] = steps;
    }

    fn client_of(&self, runner: Requester) -> usize {
        match runner {
            Client(client) => client as usize,
            Server(server) => self.works_for[server as usize].unwrap(),
        }
    }

    /// One tick; whether anybody worked.
    fn work(&mut self) -> bool {
        let Some((_, runner)) = self.highest() else {
            return false;
        };
        let client = self.client_of(runner);
        let is_section = matches!(runner, Server(_));
        for higher in client + 1..self.clients.len() {
            let is_released = self.jobs[higher].release <= self.time;
            if !is_released || self.outcomes[higher].is_done {
                continue;
            }
            assert!(is_section, "client {client} runs while a higher one could");
            self.outcomes[higher].blocked += 1;
            let section = (client, self.sections_begun[client]);
            if !self.blockers[higher].contains(&section) {
                self.blockers[higher].push(section);
            }
        }
        match self.steps(runner).last_mut() {
            Some(Step::Work(left)) => *left -= 1,
            _ => unreachable!("instants were passed"),
        }
        true
    }
}

/// A section with at most two nested, in the order of the resources if `ordered`.
pub fn section(resources: u32, ordered: bool) -> impl Strategy<Value = Section> {
    let one = (0..resources, 1..4u64, 0..3u64);
    prop::collection::vec(one, 1..4).prop_map(move |mut levels| {
        if ordered {
            levels.sort_by_key(|level| core::cmp::Reverse(level.0));
        }
        let mut section: Option<Box<Section>> = None;
        let mut used = Vec::new();
        for (resource, before, after) in levels {
            if used.contains(&resource) {
                continue;
            }
            used.push(resource);
            section = Some(Box::new(Section {
                resource,
                before,
                nested: section,
                after,
            }));
        }
        *section.unwrap()
    })
}

/// Jobs of different priorities.
pub fn jobs(resources: u32, ordered: bool) -> impl Strategy<Value = Vec<Job>> {
    let part = (0..4u64, section(resources, ordered));
    let parts = prop::collection::vec(part, 0..3);
    let job = (0..25u64, parts, 0..4u64).prop_map(|(release, parts, last)| Job {
        release,
        parts,
        last,
    });
    prop::collection::vec(job, 2..6)
}
