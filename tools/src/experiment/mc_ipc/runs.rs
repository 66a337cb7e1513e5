//! Runs of the study, and what they consist of.

/// Cores of the paper's machine.
pub const PAPER_CORES: u32 = 4;
/// Phases of a run.
pub const PHASES: usize = 8;

/// What is compared with the paper: MC-IPC, and the other orders with a server that has time of its own.
pub const PAPER: [(Protocol, Time); 3] = [
    (Protocol::McIpc, Time::Clients),
    (Protocol::Fifo, Time::Server),
    (Protocol::Priority, Time::Server),
];

/// The order in which requests are served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    McIpc,
    Fifo,
    Priority,
}

impl Protocol {
    /// As the paper has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::McIpc => "MC-IPC",
            Self::Fifo => "FIFO-IPC",
            Self::Priority => "PRIO-IPC",
        }
    }

    /// As an argument, and in data.
    pub const fn argument(self) -> &'static str {
        match self {
            Self::McIpc => "mc-ipc",
            Self::Fifo => "fifo",
            Self::Priority => "prio",
        }
    }
}

/// On whose time the server works.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Time {
    /// That of clients that wait.
    Clients,
    /// Its own.
    Server,
}

impl Time {
    pub const fn argument(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Server => "server",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Clients => "on the time of its clients",
            Self::Server => "on time of its own",
        }
    }
}

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Run {
    pub cores: u32,
    pub protocol: Protocol,
    pub time: Time,
    pub seed: u64,
}

/// A request of T1, the client that is observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// From 1.
    pub phase: usize,
    /// Since the beginning of the run, ns.
    pub at_ns: u64,
    pub delay_ns: u64,
}

/// What a run had for a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub run: Run,
    /// The longest delay that was to be expected.
    pub bound_ns: u64,
    /// In the order in which they were made.
    pub requests: Vec<Request>,
}

/// The requests of all runs that differ in their seeds alone.
#[derive(Clone, Copy, Debug)]
pub struct Series<'o> {
    outcomes: &'o [Outcome],
    pub cores: u32,
    pub protocol: Protocol,
    pub time: Time,
}

impl<'o> Series<'o> {
    pub const fn of(outcomes: &'o [Outcome], cores: u32, of: (Protocol, Time)) -> Self {
        Self {
            outcomes,
            cores,
            protocol: of.0,
            time: of.1,
        }
    }

    /// Its runs.
    pub fn runs(&self) -> impl Iterator<Item = &'o Outcome> {
        let key = (self.cores, self.protocol, self.time);
        let is_own = move |of: &&Outcome| (of.run.cores, of.run.protocol, of.run.time) == key;
        self.outcomes.iter().filter(is_own)
    }

    pub fn requests(&self) -> impl Iterator<Item = Request> + 'o {
        self.runs().flat_map(|of| of.requests.iter().copied())
    }

    pub fn bound_ns(&self) -> u64 {
        self.runs().map(|of| of.bound_ns).max().unwrap_or(0)
    }

    /// What was seen of a phase, from 1.
    pub fn phase(&self, phase: usize) -> Seen {
        let bound = self.bound_ns();
        let requests = self.requests().filter(|request| request.phase == phase);
        requests.fold(Seen::default(), |seen, request| Seen {
            requests: seen.requests + 1,
            total_ns: seen.total_ns + u128::from(request.delay_ns),
            longest_ns: seen.longest_ns.max(request.delay_ns),
            above: seen.above + u64::from(request.delay_ns > bound),
        })
    }
}

/// What was seen of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    pub requests: u64,
    total_ns: u128,
    pub longest_ns: u64,
    /// Requests that waited longer than the bound.
    pub above: u64,
}

impl Seen {
    pub fn mean_ms(&self) -> f64 {
        self.total_ns as f64 / self.requests.max(1) as f64 / 1e6
    }

    pub fn longest_ms(&self) -> f64 {
        ms(self.longest_ns)
    }
}

pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
