//! The measurement of several cores: what each executes in a window between two marks, and how
//! much of that is of servers that serve one client at a time.

use std::fmt::Write;

use crate::meter::Place;

/// Instructions that a core has executed.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Executed {
    user: u64,
    kernel: u64,
    /// In the kernel, in blocks that pause: waiting for another core.
    waiting: u64,
}

impl Executed {
    fn sum(&self) -> u64 {
        self.user + self.kernel + self.waiting
    }
}

/// What is executed between a server's two marks, on whatever core.
#[derive(Clone, Copy, Default, Debug)]
struct Server {
    sum: u64,
    /// The core on which it is busy, and what that had executed when it began.
    since: Option<(usize, u64)>,
}

/// Measures windows.
#[derive(Default, Debug)]
pub struct CoreMeter {
    cores: Vec<Executed>,
    servers: Vec<Server>,
}

impl CoreMeter {
    /// For so many servers.
    pub fn new(servers: usize) -> Self {
        Self {
            cores: Vec::new(),
            servers: vec![Server::default(); servers],
        }
    }

    fn core(&mut self, core: usize) -> &mut Executed {
        if core >= self.cores.len() {
            self.cores.resize(core + 1, Executed::default());
        }
        &mut self.cores[core]
    }

    /// `core` executes so many instructions at `place`; `pauses` if one of them is PAUSE.
    #[inline]
    pub fn run(&mut self, core: usize, place: Place, pauses: bool, instructions: u32) {
        let executed = self.core(core);
        let counter = match place {
            Place::User => &mut executed.user,
            _ if pauses => &mut executed.waiting,
            _ => &mut executed.kernel,
        };
        *counter += u64::from(instructions);
    }

    /// A window begins.
    pub fn begin(&mut self) {
        self.cores.fill(Executed::default());
        self.servers.fill(Server::default());
    }

    /// Server `server` is busy from now on, on `core`.
    pub fn busy(&mut self, core: usize, server: usize) {
        let executed = self.core(core).sum();
        self.servers[server].since = Some((core, executed));
    }

    /// Server `server` is busy no more.
    pub fn free(&mut self, server: usize) {
        if let Some((core, before)) = self.servers[server].since.take() {
            let executed = self.core(core).sum();
            self.servers[server].sum += executed.saturating_sub(before);
        }
    }

    /// The window ends: a line `window`, a line `core USER KERNEL WAITING` for each core, and a
    /// line `server INSTRUCTIONS` for each server that was busy.
    pub fn end(&self) -> String {
        let mut text = String::from("window\n");
        for core in &self.cores {
            // Writing to a string does not fail.
            let _ = writeln!(text, "core {} {} {}", core.user, core.kernel, core.waiting);
        }
        for server in self.servers.iter().filter(|server| server.sum > 0) {
            let _ = writeln!(text, "server {}", server.sum);
        }
        text
    }
}
