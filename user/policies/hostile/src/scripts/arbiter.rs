//! The arbiter of shared resources (`sandglass_sharing::arbiter`), between clients of which some are rogues, and servers
//! that keep to the rules. Around it is the proxy's part: one processor with fixed priorities, and scheduling contexts
//! that are lent. A rogue asks for what it likes whenever it likes, from further threads of any priority, too; its
//! budget runs out anywhere; its context is elsewhere when it is to be lent. Servers say that they are done when they
//! serve nobody, or wait for another; and they end at any time: who asked for them is told once, and not while another
//! server works for the one that has ended.
//!
//! - A resource has one holder; each request is granted once and answered once, or refused for a reason that there is.
//! - A server has the highest priority of those that wait for it, and a context of such a one and of nobody else; of its
//!   own client, but under bandwidth inheritance.
//! - A job of an honest client is blocked, that is, others run for clients of lower priority, for at most (Sha, Rajkumar,
//!   Lehoczky 1990; thesis 2.3)
//!   - one section of each lower client, under inheritance and bandwidth inheritance;
//!   - one section of one lower client, under the original ceiling,
//!
//!   the longest that has a resource which somebody of the job's priority or above may ask for. If a lower client asks
//!   from threads of a higher priority, it can block anew for each request at the job's priority or above. Where a
//!   server waits for its client's budget, there is no bound: the price of inheritance and the original ceiling.

use sandglass_description::policy::sharing::{Entry, Protocol, Requester, Sharing};
use sandglass_sharing::arbiter::{Action, Actions, Arbiter, Refusal, Then};
use Requester::{Client as ByClient, Server as ByServer};

use crate::promise::promise;
use crate::{Broken, Held, Journal, Source};

pub const WHAT: &str = "clients of shared resources, and what the rogues among them do";

const GRANTED: &str = "granted";
const WAITED: &str = "a request waits";
const NESTED: &str = "a nested request";
const BLOCKED: &str = "an honest job is blocked";
const DONE: &str = "an honest job is done within its bound";
const BUSY: &str = "refused: busy";
const DEADLOCK: &str = "refused: deadlock";
const NO_CLIENT: &str = "refused: no client";
const GONE: &str = "refused: its server has ended";
const ENDED: &str = "a server ends";
const ENDED_BUSY: &str = "a server ends that another works for";
const TIMED_OUT: &str = "a budget runs out in a server";
const REFUSED: &str = "a lent context is empty";
const OTHERS_BUDGET: &str = "a server runs on another client's budget";
const HELPED: &str = "whoever comes helps with his budget";
const STALLED: &str = "a server waits for its client's budget";
const NO_TIME: &str = "a context is elsewhere";
const REMINDED: &str = "reminded";
const FALSE_DONE: &str = "done by a server that serves nobody";
const EARLY_DONE: &str = "done by a server that waits for another";
const FURTHER: &str = "a further thread asks";
const FURTHER_EMPTY: &str = "a further thread asks whose client has no budget";

pub const SITUATIONS: &[&str] = &[
    GRANTED,
    WAITED,
    NESTED,
    BLOCKED,
    DONE,
    BUSY,
    DEADLOCK,
    NO_CLIENT,
    GONE,
    ENDED,
    ENDED_BUSY,
    TIMED_OUT,
    REFUSED,
    OTHERS_BUDGET,
    STALLED,
    HELPED,
    NO_TIME,
    REMINDED,
    FALSE_DONE,
    EARLY_DONE,
    FURTHER,
    FURTHER_EMPTY,
];

/// Ticks in which everybody is done when the rogues have stopped.
const ENOUGH: u64 = 5_000;

/// What a server does for a request; times in ticks.
#[derive(Clone, Debug)]
struct Section {
    resource: usize,
    before: u64,
    nested: Option<Box<Section>>,
    after: u64,
}

impl Section {
    /// Of different resources; each is above the one before if they are to be taken in order.
    fn new(resources: usize, in_order: bool, source: &mut Source) -> Self {
        let mut wanted: Vec<usize> = Vec::new();
        for _ in 0..source.number(1..=3) {
            let resource = source.index(resources);
            if !wanted.contains(&resource) {
                wanted.push(resource);
            }
        }
        if in_order {
            wanted.sort_unstable();
        }
        let mut section = None;
        for resource in wanted.into_iter().rev() {
            section = Some(Box::new(Self {
                resource,
                before: source.number(1..=3),
                nested: section,
                after: source.number(0..=2),
            }));
        }
        *section.expect("at least one is wanted")
    }

    fn length(&self) -> u64 {
        self.before + self.after + self.nested.as_ref().map_or(0, |nested| nested.length())
    }

    /// It, and all that is nested.
    fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        all.extend(self.nested.iter().flat_map(|nested| nested.all()));
        all
    }

    fn steps(self) -> Vec<Step> {
        let mut steps = vec![Step::Work(self.after)];
        steps.extend(self.nested.map(|nested| Step::Ask(*nested)));
        steps.push(Step::Work(self.before));
        steps
    }
}

/// What a thread has still to do; the next step is last.
#[derive(Clone, Debug)]
enum Step {
    Work(u64),
    Ask(Section),
}

/// The job of an honest client.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    /// Ticks in which others ran for lower clients.
    blocked: u64,
    /// Requests of those at or above its priority since it was released.
    requests: u64,
    /// A further thread of a rogue has asked meanwhile.
    has_further: bool,
    /// A server waited for its client's budget.
    is_spoilt: bool,
}

struct Client {
    priority: u8,
    is_honest: bool,
    /// What it may ask for.
    sections: Vec<Section>,
    /// Honest: of its job.
    steps: Vec<Step>,
    job: Option<Job>,
    /// Longest blocking, in ticks, of one section of each lower client, and of the longest.
    bound: u64,
    /// Its thread waits for an answer.
    waits: bool,
    has_budget: bool,
    /// When its budget comes back.
    budget_at: u64,
    /// A rogue that does not run.
    sleeps: bool,
    context: Place,
}

/// Where a client's context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Home,
    Lent,
    /// With the proxy, bound to no thread.
    Nowhere,
    /// A further thread of the client has taken it to a server that the proxy does not know.
    Elsewhere,
}

/// The request that a server works on.
struct Work {
    entry: usize,
    /// For whom, in the end.
    client: usize,
    steps: Vec<Step>,
    /// The server has the request: before, it is only sure to get it.
    has_begun: bool,
    /// It waits for an answer itself.
    waits: bool,
}

#[derive(Default)]
struct Server {
    work: Option<Work>,
    priority: u8,
    /// Whose context it has.
    context: Option<usize>,
    /// Its budget ran out, and its fault was not answered.
    is_faulted: bool,
    has_ended: bool,
}

/// Who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    Client(usize),
    Server(usize),
}

struct World {
    arbiter: Arbiter,
    table: Sharing,
    clients: Vec<Client>,
    servers: Vec<Server>,
    /// Entries whose requests wait, with what is asked.
    waiting: Vec<(usize, Section)>,
    /// The priority of the thread that reminds the arbiter, if it is to.
    reminder: Option<u8>,
    /// A context was not there to be lent when nobody else had budget.
    was_elsewhere: bool,
    now: u64,
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let mut world = World::new(source, journal);
    while !source.is_empty() {
        world.hostility(source, journal)?;
        world.release(source, journal);
        world.tick(source, journal)?;
    }
    world.finish(source, journal)
}

/// The table of a system in which each client asks for these sections.
fn table(protocol: Protocol, resources: usize, clients: &[Client]) -> Sharing {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |requester, resource: usize| {
        let entry = Entry {
            requester,
            resource: resource as u32,
        };
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    };
    for (number, client) in clients.iter().enumerate() {
        for section in &client.sections {
            add(ByClient(number as u32), section.resource);
            for outer in section.all() {
                if let Some(nested) = &outer.nested {
                    add(ByServer(outer.resource as u32), nested.resource);
                }
            }
        }
    }
    Sharing {
        protocol,
        clients: clients.iter().map(|client| client.priority).collect(),
        resources: resources as u32,
        entries,
    }
}

/// Of each resource: the highest priority of those that can ask for it, also through servers.
fn ceilings(table: &Sharing) -> Vec<u8> {
    let mut ceilings = vec![0; table.resources as usize];
    for _ in 0..=table.resources {
        for entry in &table.entries {
            let priority = match entry.requester {
                ByClient(client) => table.clients[client as usize],
                ByServer(server) => ceilings[server as usize],
            };
            let ceiling = &mut ceilings[entry.resource as usize];
            *ceiling = priority.max(*ceiling);
        }
    }
    ceilings
}

/// How long a client can be blocked once, in ticks.
fn bound(table: &Sharing, clients: &[Client], number: usize) -> u64 {
    let ceilings = ceilings(table);
    let priority = clients[number].priority;
    let can_block = |section: &&Section| {
        let mut all = section.all().into_iter();
        all.any(|section| ceilings[section.resource] >= priority)
    };
    let lower = clients.iter().filter(|client| client.priority < priority);
    let longest = lower.map(|client| {
        let sections = client.sections.iter().filter(can_block);
        sections.map(Section::length).max().unwrap_or(0)
    });
    match table.protocol {
        Protocol::OriginalCeiling => longest.max().unwrap_or(0),
        Protocol::Inheritance | Protocol::BandwidthInheritance => longest.sum(),
    }
}

impl World {
    fn new(source: &mut Source, journal: &Journal) -> Self {
        let protocol = source.one_of(&[
            Protocol::Inheritance,
            Protocol::OriginalCeiling,
            Protocol::BandwidthInheritance,
        ]);
        let resources = source.number(1..=4) as usize;
        let count = source.number(2..=5) as u8;
        // Honest clients do not need what the original ceiling prevents: circles.
        let in_order = protocol != Protocol::OriginalCeiling;
        let mut clients: Vec<Client> = (1..=count)
            .map(|priority| {
                let sections = 0..source.number(1..=3);
                let is_honest = source.once_in(2);
                Client {
                    priority,
                    is_honest,
                    sections: sections
                        .map(|_| Section::new(resources, is_honest && in_order, source))
                        .collect(),
                    steps: Vec::new(),
                    job: None,
                    bound: 0,
                    waits: false,
                    has_budget: true,
                    budget_at: 0,
                    sleeps: true,
                    context: Place::Home,
                }
            })
            .collect();
        let table = table(protocol, resources, &clients);
        for number in 0..clients.len() {
            clients[number].bound = bound(&table, &clients, number);
            let client = &clients[number];
            journal.note(format_args!(
                "client {number}: priority {}, honest: {}, bound {}, {:?}",
                client.priority, client.is_honest, client.bound, client.sections
            ));
        }
        journal.note(format_args!("{protocol:?}, {:?}", table.entries));
        Self {
            arbiter: Arbiter::new(table.clone()),
            table,
            clients,
            servers: (0..resources).map(|_| Server::default()).collect(),
            waiting: Vec::new(),
            reminder: None,
            was_elsewhere: false,
            now: 0,
        }
    }

    fn is_strict(&self) -> bool {
        self.table.protocol != Protocol::BandwidthInheritance
    }

    /// What rogues do at any time.
    fn hostility(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let number = source.index(self.clients.len());
        let resource = source.index(self.servers.len());
        match source.number(0..=23) {
            0 | 1 if !self.clients[number].is_honest => self.further_thread(number, source, journal),
            2 | 3 if !self.clients[number].is_honest => self.runs_out(number, source, journal),
            4 | 5 => {
                self.clients[number].sleeps ^= true;
                Ok(())
            }
            6 if !self.clients[number].is_honest => {
                let client = &mut self.clients[number];
                client.context = match client.context {
                    Place::Home => Place::Elsewhere,
                    Place::Elsewhere => Place::Home,
                    // It is not the client's to take.
                    with_proxy => with_proxy,
                };
                Ok(())
            }
            7 => self.false_done(resource, journal),
            8 => self.false_request(resource, source, journal),
            9 if source.once_in(8) => self.end(resource, journal),
            _ => Ok(()),
        }
    }

    /// A thread of a rogue beside its main one, of whatever priority, asks.
    fn further_thread(&mut self, number: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let section = self.any_section(number, source);
        journal.saw(FURTHER);
        let client = &self.clients[number];
        let has_none = !client.has_budget || client.context != Place::Home;
        if !self.is_strict() && has_none {
            // A server that waits for budget is not helped by this.
            journal.saw(FURTHER_EMPTY);
        }
        for client in &mut self.clients {
            if let Some(job) = &mut client.job {
                job.has_further = true;
            }
        }
        self.ask(ByClient(number as u32), false, section, journal)?;
        Ok(())
    }

    fn any_section(&self, number: usize, source: &mut Source) -> Section {
        let sections = &self.clients[number].sections;
        sections[source.index(sections.len())].clone()
    }

    /// A rogue's budget runs out, wherever it is.
    fn runs_out(&mut self, number: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let client = &mut self.clients[number];
        if !client.has_budget {
            return Ok(());
        }
        client.has_budget = false;
        client.budget_at = self.now + source.number(1..=30);
        journal.note(format_args!("client {number} has no budget left"));
        let on_it = |server: &Server| {
            let works = server.work.as_ref().is_some_and(|work| !work.waits);
            server.context == Some(number) && works && !server.is_faulted && !server.has_ended
        };
        let Some(server) = self.servers.iter().position(on_it) else {
            return Ok(());
        };
        self.servers[server].is_faulted = true;
        let actions = self.arbiter.timed_out(server);
        journal.saw(TIMED_OUT);
        journal.step(format_args!("server {server} times out: {actions:?}"));
        self.perform(actions, journal)?;
        self.check()
    }

    /// A server ends, whatever it does.
    fn end(&mut self, resource: usize, journal: &mut Journal) -> Held {
        if std::mem::replace(&mut self.servers[resource].has_ended, true) {
            return Ok(());
        }
        let own = ByServer(resource as u32);
        let entries = &self.table.entries;
        self.waiting
            .retain(|(entry, _)| entries[*entry].requester != own);
        let is_served = self.in_progress(own).is_some();
        journal.saw(if is_served { ENDED_BUSY } else { ENDED });
        let actions = self.arbiter.ended(resource);
        journal.step(format_args!("server {resource} ends: {actions:?}"));
        self.perform(actions, journal)?;
        self.check_told(resource)?;
        self.check()
    }

    /// Whoever asked for a resource whose server has ended is told, unless another server works for that one.
    fn check_told(&self, resource: usize) -> Held {
        let is_served = self.in_progress(ByServer(resource as u32)).is_some();
        let holds = self.servers[resource].work.is_some();
        let waits = self.waiting.iter().any(|(_, section)| section.resource == resource);
        promise!(
            is_served || !holds && !waits,
            "server {resource} has ended, and not everybody is told"
        );
        Ok(())
    }

    /// A request that nobody will serve any more, nor what the ended server asked of others that have ended.
    fn forget(&mut self, entry: usize) -> Held {
        let resource = self.table.entries[entry].resource as usize;
        let mut lost = entry;
        loop {
            let server = self.table.entries[lost].resource as usize;
            promise!(
                self.servers[server].has_ended,
                "entry {entry} is told that server {resource} has ended, and {server} still works for that"
            );
            let nested = self.in_progress(ByServer(server as u32));
            self.waiting.retain(|(waits, _)| *waits != lost);
            self.servers[server].work.take_if(|work| work.entry == lost);
            match nested {
                Some(nested) => lost = nested,
                None => return Ok(()),
            }
        }
    }

    /// A server that works for nobody, or waits for another, says that it is done.
    fn false_done(&mut self, resource: usize, journal: &mut Journal) -> Held {
        if self.servers[resource].has_ended {
            return Ok(());
        }
        match &self.servers[resource].work {
            None => journal.saw(FALSE_DONE),
            Some(work) if work.waits => journal.saw(EARLY_DONE),
            Some(_) => return Ok(()),
        }
        let actions = self.arbiter.completed(resource);
        journal.step(format_args!("server {resource} is not done, and says so: {actions:?}"));
        promise!(
            actions == Actions::default(),
            "server {resource} is wrong about being done, and this comes of it: {actions:?}"
        );
        self.check()
    }

    /// A server that works for nobody asks, or one for what would be a circle.
    fn false_request(&mut self, resource: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let is_its = |(_, entry): &(usize, &Entry)| entry.requester == ByServer(resource as u32);
        let entries = self.table.entries.iter().enumerate().filter(is_its);
        let own: Vec<usize> = entries.map(|(number, _)| number).collect();
        if self.servers[resource].has_ended {
            return Ok(());
        }
        let works = self.servers[resource]
            .work
            .as_ref()
            .is_some_and(|work| !work.waits);
        if own.is_empty() || works {
            return Ok(());
        }
        let entry = source.one_of(&own);
        let asked = self.arbiter.request(entry);
        journal.step(format_args!("server {resource} asks by entry {entry}: {asked:?}"));
        let expected = match self.servers[resource].work {
            None => Refusal::NoClient,
            // It has asked already.
            Some(_) => Refusal::Busy,
        };
        journal.saw(refusal(expected));
        promise!(
            asked == Err(expected),
            "server {resource} may not ask: {expected:?}, not {asked:?}"
        );
        self.check()
    }

    /// Jobs of honest clients may be released, and budgets come back.
    fn release(&mut self, source: &mut Source, journal: &mut Journal) {
        for (number, client) in self.clients.iter_mut().enumerate() {
            if !client.has_budget && client.budget_at <= self.now {
                client.has_budget = true;
            }
            if !client.is_honest || client.job.is_some() || !source.once_in(8) {
                continue;
            }
            journal.note(format_args!("at {}: a job of client {number}", self.now));
            client.job = Some(Job::default());
            client.steps = vec![Step::Work(source.number(0..=2))];
            for section in client.sections.iter().rev() {
                client.steps.push(Step::Ask(section.clone()));
                client.steps.push(Step::Work(source.number(0..=2)));
            }
        }
    }

    /// Lets everybody pass what takes no time, then work for a tick.
    fn tick(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let mut rogue_may_ask = true;
        loop {
            let highest = self.highest();
            if self.reminder.is_some_and(|at| highest.is_none_or(|(priority, _)| at >= priority)) {
                self.remind(journal)?;
                continue;
            }
            let Some((_, runner)) = highest else { break };
            if !self.pass(runner, &mut rogue_may_ask, source, journal)? {
                break;
            }
        }
        self.work(journal)?;
        self.now += 1;
        Ok(())
    }

    /// Passes the runner's next instant; false if it has work to do.
    fn pass(
        &mut self,
        runner: Runner,
        rogue_may_ask: &mut bool,
        source: &mut Source,
        journal: &mut Journal,
    ) -> Result<bool, Broken> {
        let (requester, steps) = match runner {
            Runner::Client(number) if !self.clients[number].is_honest => {
                // Works for ever, but when it asks.
                let asks = std::mem::take(rogue_may_ask) && source.once_in(4);
                if asks {
                    let section = self.any_section(number, source);
                    self.ask(ByClient(number as u32), true, section, journal)?;
                }
                return Ok(asks);
            }
            Runner::Client(number) => (ByClient(number as u32), &mut self.clients[number].steps),
            Runner::Server(number) => match &mut self.servers[number].work {
                Some(work) => (ByServer(number as u32), &mut work.steps),
                None => return Err(Broken(format!("server {number} runs for nobody"))),
            },
        };
        match steps.pop() {
            Some(Step::Work(0)) => {}
            Some(Step::Work(ticks)) => {
                steps.push(Step::Work(ticks));
                return Ok(false);
            }
            Some(Step::Ask(section)) => {
                let has_ended = self.servers[section.resource].has_ended;
                let is_taken = self.ask(requester, true, section, journal)?;
                promise!(
                    is_taken || has_ended || matches!(requester, ByServer(_)),
                    "{requester:?} is honest, and refused"
                );
            }
            None => match runner {
                Runner::Client(number) => self.job_done(number, journal),
                Runner::Server(number) => self.server_done(number, journal)?,
            },
        }
        Ok(true)
    }

    /// Whether a requester has a request that waits or is served.
    fn in_progress(&self, requester: Requester) -> Option<usize> {
        let held = self.servers.iter().filter_map(|server| server.work.as_ref());
        let held = held.map(|work| work.entry);
        let waiting = self.waiting.iter().map(|(entry, _)| *entry);
        held.chain(waiting)
            .find(|entry| self.table.entries[*entry].requester == requester)
    }

    /// The resources at which whoever waits for `resource` waits: it, what its server asked for, and so on.
    fn chain(&self, resource: usize) -> Vec<usize> {
        let mut chain = vec![resource];
        let mut last = resource;
        while let Some(entry) = self.in_progress(ByServer(last as u32)) {
            last = self.table.entries[entry].resource as usize;
            if chain.contains(&last) {
                break;
            }
            chain.push(last);
        }
        chain
    }

    /// Why this request is to be refused, if it is.
    fn refusal(&self, requester: Requester, resource: usize) -> Option<Refusal> {
        match requester {
            ByServer(server) if self.servers[server as usize].work.is_none() => Some(Refusal::NoClient),
            _ if self.in_progress(requester).is_some() => Some(Refusal::Busy),
            _ if self.servers[resource].has_ended => Some(Refusal::Gone),
            ByServer(server) if self.chain(resource).contains(&(server as usize)) => {
                Some(Refusal::Deadlock)
            }
            _ => None,
        }
    }

    /// Somebody asks, by its main thread or a further one; whether the request is taken.
    fn ask(
        &mut self,
        requester: Requester,
        by_main_thread: bool,
        section: Section,
        journal: &mut Journal,
    ) -> Result<bool, Broken> {
        let resource = section.resource;
        let entries = &self.table.entries;
        let is_this = |entry: &Entry| entry.requester == requester && entry.resource == resource as u32;
        let Some(entry) = entries.iter().position(is_this) else {
            return Err(Broken(format!("{requester:?} has no entry for {resource}")));
        };
        let expected = self.refusal(requester, resource);
        let asked = self.arbiter.request(entry);
        journal.step(format_args!("{requester:?} asks for {resource}: {asked:?}"));
        promise!(
            asked.as_ref().err() == expected.as_ref(),
            "{requester:?}, asking for {resource}, is to be refused: {expected:?}"
        );
        // What the client holds itself, nobody could give it.
        let holder = self.servers[resource].work.as_ref().map(|work| work.client);
        promise!(
            self.table.protocol != Protocol::OriginalCeiling
                || expected != Some(Refusal::Deadlock)
                || holder == self.client_of(requester),
            "under the original ceiling, {requester:?} is refused {resource}, which client {holder:?} holds"
        );
        let Ok(actions) = asked else {
            expected.into_iter().for_each(|why| journal.saw(refusal(why)));
            return Ok(false);
        };
        self.waiting.push((entry, section));
        self.count_request(requester);
        match requester {
            ByClient(client) => self.clients[client as usize].waits |= by_main_thread,
            ByServer(server) => {
                journal.saw(NESTED);
                let work = self.servers[server as usize].work.as_mut();
                work.into_iter().for_each(|work| work.waits = true);
            }
        }
        self.perform(actions, journal)?;
        if self.waiting.iter().any(|(waits, _)| *waits == entry) {
            journal.saw(WAITED);
        }
        self.check()?;
        Ok(true)
    }

    /// For whom a requester asks, in the end.
    fn client_of(&self, requester: Requester) -> Option<usize> {
        match requester {
            ByClient(client) => Some(client as usize),
            ByServer(server) => {
                let work = self.servers[server as usize].work.as_ref();
                work.map(|work| work.client)
            }
        }
    }

    /// A request was made; with each, those at or below its priority may be blocked anew by who has further threads.
    fn count_request(&mut self, requester: Requester) {
        let Some(client) = self.client_of(requester) else {
            return;
        };
        let priority = self.clients[client].priority;
        for other in &mut self.clients {
            if let (Some(job), true) = (&mut other.job, other.priority <= priority) {
                job.requests += 1;
            }
        }
    }

    /// What the proxy does.
    fn perform(&mut self, actions: Actions, journal: &mut Journal) -> Held {
        for action in actions {
            match action {
                Action::Prioritise { server, priority } => self.servers[server].priority = priority,
                Action::Help { client, server } => self.help(client, server, journal)?,
                Action::Answer { entry } => self.answer(entry)?,
                Action::Gone { entry } => {
                    self.forget(entry)?;
                    self.answer(entry)?;
                }
                Action::Remind { priority } => self.reminder = Some(priority),
                Action::Lend {
                    client,
                    server,
                    then,
                    even_if_empty,
                } => self.lend(client, server, then, even_if_empty, journal)?,
            }
        }
        Ok(())
    }

    /// A server that waits for budget gets a context if there is some in it.
    fn help(&mut self, client: usize, server: usize, journal: &mut Journal) -> Held {
        self.check_lender(client, server)?;
        if self.clients[client].context == Place::Elsewhere {
            return Ok(());
        }
        if !self.clients[client].has_budget {
            self.clients[client].context = Place::Nowhere;
            return Ok(());
        }
        self.take(client, server);
        self.servers[server].context = Some(client);
        self.clients[client].context = Place::Lent;
        self.arbiter.helped(server, client);
        journal.saw(HELPED);
        Ok(())
    }

    fn lend(
        &mut self,
        client: usize,
        server: usize,
        then: Then,
        even_if_empty: bool,
        journal: &mut Journal,
    ) -> Held {
        if let Then::Forward { entry } = then {
            let work = self.servers[server].work.as_ref();
            // Else the first context that was to be lent was empty.
            if work.is_none_or(|work| work.entry != entry || work.has_begun) {
                self.grant(entry, server, journal)?;
            }
        }
        if let Then::Gone { entry } = then {
            self.forget(entry)?;
        }
        self.check_lender(client, server)?;
        let own = self.servers[server].work.as_ref().map_or(client, |work| work.client);
        let is_elsewhere = self.clients[client].context == Place::Elsewhere;
        if is_elsewhere && own == client && matches!(then, Then::Forward { .. }) {
            // Its thread is told; the server has not heard of it.
            journal.saw(NO_TIME);
            promise!(
                self.clients[own].context == Place::Elsewhere,
                "client {own} is told that its context is elsewhere, where client {client}'s is"
            );
            self.servers[server].work = None;
            let actions = self.arbiter.completed(server);
            journal.step(format_args!(
                "the context of {client} is elsewhere: {actions:?}"
            ));
            return self.perform(actions, journal);
        }
        // If it is not there when nobody has budget, the server waits for that of its own client.
        let payer = if is_elsewhere { own } else { client };
        let has_none = self.clients[payer].context == Place::Elsewhere;
        if !is_elsewhere {
            self.take(client, server);
        }
        if !even_if_empty && (is_elsewhere || !self.clients[client].has_budget) {
            let actions = self.arbiter.refused(server);
            journal.saw(REFUSED);
            journal.step(format_args!("client {client} has no budget: {actions:?}"));
            return self.perform(actions, journal);
        }
        promise!(
            !has_none || self.clients[own].context == Place::Elsewhere,
            "server {server} waits for nobody's budget, though client {own}'s context is there"
        );
        if has_none {
            self.was_elsewhere = true;
        } else {
            self.take(payer, server);
            self.servers[server].context = Some(payer);
            self.clients[payer].context = Place::Lent;
        }
        if self.servers[server].work.as_ref().is_some_and(|work| work.client != client) {
            journal.saw(OTHERS_BUDGET);
        }
        match then {
            Then::Answer { entry } | Then::Gone { entry } => self.answer(entry)?,
            Then::Continue => self.servers[server].is_faulted = false,
            Then::Forward { .. } => {
                let work = self.servers[server].work.as_mut();
                work.into_iter().for_each(|work| work.has_begun = true);
            }
            Then::Nothing => {}
        }
        Ok(())
    }

    /// A client's context is taken from where it is, and a server's, if it has one.
    fn take(&mut self, client: usize, server: usize) {
        for (number, other) in self.servers.iter_mut().enumerate() {
            if other.context == Some(client) || number == server {
                if let Some(taken) = other.context.take() {
                    self.clients[taken].context = Place::Nowhere;
                }
            }
        }
        self.clients[client].context = Place::Nowhere;
    }

    /// Nobody's context is lent who does not wait for this server.
    fn check_lender(&self, client: usize, server: usize) -> Held {
        let entry = self.in_progress(ByClient(client as u32));
        let waits_for = entry.map(|entry| self.chain(self.table.entries[entry].resource as usize));
        promise!(
            waits_for.as_ref().is_some_and(|chain| chain.last() == Some(&server)),
            "server {server} is lent the context of client {client}, which waits for {waits_for:?}"
        );
        let own = self.servers[server].work.as_ref().map(|work| work.client);
        promise!(
            !self.is_strict() || own == Some(client),
            "server {server} works for client {own:?}, and is lent the context of {client}"
        );
        Ok(())
    }

    /// A request that waits is handed to its server, which has none.
    fn grant(&mut self, entry: usize, server: usize, journal: &mut Journal) -> Held {
        let waiting = self.waiting.iter().position(|(waits, _)| *waits == entry);
        let Some(waiting) = waiting else {
            return Err(Broken(format!("entry {entry} is granted, and does not wait")));
        };
        let (_, section) = self.waiting.remove(waiting);
        promise!(
            section.resource == server,
            "entry {entry} is granted {server}, not {}",
            section.resource
        );
        promise!(
            self.servers[server].work.is_none(),
            "resource {server} has two holders"
        );
        let client = match self.table.entries[entry].requester {
            ByClient(client) => client as usize,
            ByServer(asking) => match &self.servers[asking as usize].work {
                Some(work) => work.client,
                None => return Err(Broken(format!("server {asking} works for nobody"))),
            },
        };
        journal.saw(GRANTED);
        let held = &mut self.servers[server];
        held.is_faulted = false;
        held.work = Some(Work {
            entry,
            client,
            steps: section.steps(),
            has_begun: false,
            waits: false,
        });
        Ok(())
    }

    /// The requester gets its answer, and a client its context.
    fn answer(&mut self, entry: usize) -> Held {
        let requester = self.table.entries[entry].requester;
        promise!(
            self.in_progress(requester).is_none(),
            "{requester:?} is answered while its request waits or is served"
        );
        match requester {
            ByClient(client) => {
                let client = client as usize;
                self.clients[client].waits = false;
                for server in &mut self.servers {
                    server.context.take_if(|context| *context == client);
                }
                if self.clients[client].context != Place::Elsewhere {
                    self.clients[client].context = Place::Home;
                }
            }
            ByServer(server) => {
                let work = self.servers[server as usize].work.as_mut();
                let waited = work.map(|work| std::mem::take(&mut work.waits));
                promise!(
                    waited == Some(true),
                    "server {server} is answered, and does not wait"
                );
            }
        }
        Ok(())
    }

    fn server_done(&mut self, number: usize, journal: &mut Journal) -> Held {
        let Some(done) = self.servers[number].work.take() else {
            return Err(Broken(format!("server {number} is done for nobody")));
        };
        let requester = self.table.entries[done.entry].requester;
        let actions = self.arbiter.completed(number);
        journal.step(format_args!("server {number} is done: {actions:?}"));
        let answers = actions.iter().filter(|action| match action {
            Action::Answer { entry } => *entry == done.entry,
            Action::Lend { then, .. } => *then == Then::Answer { entry: done.entry },
            _ => false,
        });
        let reads = !matches!(requester, ByServer(server) if self.servers[server as usize].has_ended);
        promise!(
            answers.count() == usize::from(reads),
            "{requester:?} is to be answered once, if it reads that, by one of {actions:?}"
        );
        self.perform(actions, journal)?;
        if let (ByServer(server), false) = (requester, reads) {
            self.check_told(server as usize)?;
        }
        self.check()
    }

    fn job_done(&mut self, number: usize, journal: &mut Journal) {
        let client = &mut self.clients[number];
        if let Some(job) = client.job.take() {
            journal.note(format_args!("at {}: client {number} is done: {job:?}", self.now));
            if job.blocked > 0 {
                journal.saw(BLOCKED);
            }
            if !job.is_spoilt {
                journal.saw(DONE);
            }
        }
    }

    fn remind(&mut self, journal: &mut Journal) -> Held {
        self.reminder = None;
        let actions = self.arbiter.reminded();
        journal.saw(REMINDED);
        journal.step(format_args!("reminded: {actions:?}"));
        self.perform(actions, journal)?;
        self.check()
    }

    fn server_runs(&self, server: &Server) -> bool {
        let can = |work: &Work| work.has_begun && !work.waits;
        let works = server.work.as_ref().is_some_and(can);
        let pays = server.context.is_some_and(|client| self.clients[client].has_budget);
        works && pays && !server.is_faulted && !server.has_ended
    }

    fn client_runs(&self, number: usize) -> bool {
        let client = &self.clients[number];
        let wants = match client.is_honest {
            true => client.job.is_some(),
            false => !client.sleeps,
        };
        let can = client.has_budget && !client.waits && client.context == Place::Home;
        wants && can
    }

    /// Who runs: of the highest priority; a server before its equals, which wait for it.
    fn highest(&self) -> Option<(u8, Runner)> {
        let servers = self.servers.iter().enumerate();
        let servers = servers
            .filter(|(_, server)| self.server_runs(server))
            .map(|(number, server)| (server.priority, 1, Runner::Server(number)));
        let clients = (0..self.clients.len())
            .filter(|&number| self.client_runs(number))
            .map(|number| (self.clients[number].priority, 0, Runner::Client(number)));
        servers
            .chain(clients)
            .max_by_key(|&(priority, kind, _)| (priority, kind))
            .map(|(priority, _, runner)| (priority, runner))
    }

    /// One tick. Whoever is blocked by it counts it.
    fn work(&mut self, journal: &mut Journal) -> Held {
        self.look_for_stalled(journal);
        let runner = self.highest().map(|(_, runner)| runner);
        let for_client = match runner {
            Some(Runner::Client(number)) => Some(number),
            Some(Runner::Server(number)) => self.servers[number].work.as_ref().map(|work| work.client),
            None => None,
        };
        let now = self.now;
        for number in 0..self.clients.len() {
            let client = &mut self.clients[number];
            let Some(job) = client.job.as_mut().filter(|job| !job.is_spoilt) else {
                continue;
            };
            let Some(for_client) = for_client else {
                return Err(Broken(format!(
                    "at {now}, nobody runs, and the job of client {number} is not done"
                )));
            };
            if for_client >= number {
                continue;
            }
            promise!(
                matches!(runner, Some(Runner::Server(_))),
                "at {now}, client {for_client} runs, and the job of client {number} is not done"
            );
            job.blocked += 1;
            let times = match job.has_further {
                true => job.requests + 1,
                false => 1,
            };
            promise!(
                job.blocked <= client.bound * times,
                "at {now}, the job of client {number} was blocked for {} ticks: {} may block it {times} times",
                job.blocked,
                client.bound
            );
        }
        let steps = match runner {
            Some(Runner::Client(number)) => Some(&mut self.clients[number].steps),
            Some(Runner::Server(number)) => {
                self.servers[number].work.as_mut().map(|work| &mut work.steps)
            }
            None => None,
        };
        if let Some(Step::Work(left)) = steps.and_then(|steps| steps.last_mut()) {
            *left = left.saturating_sub(1);
        }
        Ok(())
    }

    /// Under the strict protocols, a server that waits for its client's budget delays whoever waits for it: jobs have no
    /// bound then. Under bandwidth inheritance it must not be waited for by anybody who has budget.
    fn look_for_stalled(&mut self, journal: &mut Journal) {
        let is_stalled = |server: &&Server| {
            let works = server.work.as_ref().is_some_and(|work| !work.waits);
            works && !self.server_runs(server)
        };
        if !self.servers.iter().any(|server| is_stalled(&server)) {
            return;
        }
        journal.saw(STALLED);
        if self.is_strict() {
            let jobs = self.clients.iter_mut().filter_map(|client| client.job.as_mut());
            jobs.for_each(|job| job.is_spoilt = true);
        }
    }

    /// What is true after each event.
    fn check(&self) -> Held {
        self.check_priorities()?;
        if self.table.protocol == Protocol::OriginalCeiling {
            return Ok(());
        }
        for (entry, section) in &self.waiting {
            promise!(
                self.servers[section.resource].work.is_some(),
                "entry {entry} waits for resource {}, which is free",
                section.resource
            );
        }
        Ok(())
    }

    /// A server has the highest priority of those that wait for it. Under the original ceiling one that waits raises the
    /// server with the highest ceiling instead; so there it is at least that of its own client, and at most that of
    /// all who wait.
    fn check_priorities(&self) -> Held {
        let mut highest = vec![0; self.servers.len()];
        let mut of_all = 0;
        for (number, client) in self.clients.iter().enumerate() {
            let Some(entry) = self.in_progress(ByClient(number as u32)) else {
                continue;
            };
            of_all = client.priority.max(of_all);
            for resource in self.chain(self.table.entries[entry].resource as usize) {
                highest[resource] = client.priority.max(highest[resource]);
            }
        }
        for (number, server) in self.servers.iter().enumerate() {
            let Some(work) = server.work.as_ref() else {
                continue;
            };
            let right = match self.table.protocol {
                Protocol::OriginalCeiling => self.clients[work.client].priority..=of_all,
                _ => highest[number]..=highest[number],
            };
            promise!(
                right.contains(&server.priority),
                "server {number} has priority {}, which is to be {right:?}",
                server.priority
            );
        }
        Ok(())
    }

    /// The rogues stop, and budgets come back: everybody is done soon, and nothing is held.
    fn finish(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        journal.note(format_args!("the rogues stop"));
        for client in &mut self.clients {
            client.sleeps = true;
        }
        let was_elsewhere = self.was_elsewhere;
        for _ in 0..ENOUGH {
            self.release(source, journal);
            // A client whose context was elsewhere may wait until the next one comes.
            let is_done = |client: &Client| client.job.is_none() && (was_elsewhere || !client.waits);
            let is_idle = self.arbiter.is_idle() && self.reminder.is_none();
            if (is_idle || was_elsewhere) && self.clients.iter().all(is_done) {
                return Ok(());
            }
            self.tick(source, journal)?;
        }
        Err(Broken(format!(
            "the rogues have stopped for {ENOUGH} ticks, and somebody still waits: {:?}",
            self.arbiter
        )))
    }
}

const fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::Busy => BUSY,
        Refusal::Deadlock => DEADLOCK,
        Refusal::NoClient => NO_CLIENT,
        Refusal::Gone => GONE,
    }
}
