//! What is measured in one window: the scenario that ran, and what each core executed.

use anyhow::{Context, Result};

/// What runs in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// One passive cipher server for the clients of all cores.
    Single,
    /// A passive cipher server for the client of each core.
    Multiple,
    /// A client that calls and a server that replies on each core, with at most `spin`
    /// instructions between two calls.
    Pairs { spin: u64 },
}

impl Scenario {
    /// Reads its name and the bound of instructions between calls.
    pub fn parse(name: &str, spin: u64) -> Option<Self> {
        match name {
            "single" => Some(Self::Single),
            "multiple" => Some(Self::Multiple),
            "pairs" => Some(Self::Pairs { spin }),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Multiple => "multiple",
            Self::Pairs { .. } => "pairs",
        }
    }

    /// At most so many instructions between calls; 0 where there are none.
    pub const fn spin(self) -> u64 {
        match self {
            Self::Single | Self::Multiple => 0,
            Self::Pairs { spin } => spin,
        }
    }
}

/// What the system says of a window: `KIND SPIN CORES WORK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    pub scenario: Scenario,
    pub cores: u32,
    /// Bytes encrypted, or calls.
    pub amount: u64,
}

/// What a line of the console about a window begins with.
const WORK: &str = "multicore ";

/// All windows that the console tells of, in their order.
pub fn read_work(console: &str) -> Vec<Work> {
    let work = |line: &str| {
        let mut words = line.trim_end().strip_prefix(WORK)?.split(' ');
        let name = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (spin, cores, amount) = (number()?, number()?, number()?);
        Some(Work {
            scenario: Scenario::parse(name, spin)?,
            cores: u32::try_from(cores).ok()?,
            amount,
        })
    };
    console.lines().filter_map(work).collect()
}

/// Instructions that a core executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Executed {
    pub user: u64,
    pub kernel: u64,
    /// Waiting for another core's turn in the kernel: how long is the emulator's choice.
    pub waiting: u64,
}

/// What bounds the time of a window from below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A core executes one instruction at a time.
    Core,
    /// A server serves one client at a time, on whatever core.
    Server,
    /// The kernel runs on one core at a time: it has one lock.
    Kernel,
}

impl Limit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Server => "server",
            Self::Kernel => "kernel lock",
        }
    }
}

/// What the plugin says of a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub cores: Vec<Executed>,
    /// Of each server, what was executed from the beginnings of its services to their ends.
    pub servers: Vec<u64>,
}

impl Counts {
    /// Reads all windows, in their order.
    ///
    /// # Errors
    /// A line is not as the plugin writes it.
    pub fn read_all(text: &str) -> Result<Vec<Self>> {
        let mut windows: Vec<Self> = Vec::new();
        for line in text.lines() {
            if line == "window" {
                windows.push(Self::default());
                continue;
            }
            let window = windows.last_mut();
            window
                .and_then(|window| window.take(line))
                .with_context(|| format!("the plugin wrote `{line}`"))?;
        }
        Ok(windows)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.split_once(' ')?;
        let numbers: Option<Vec<u64>> = rest.split(' ').map(|word| word.parse().ok()).collect();
        match (name, &numbers?[..]) {
            ("core", &[user, kernel, waiting]) => self.cores.push(Executed {
                user,
                kernel,
                waiting,
            }),
            ("server", &[sum]) => self.servers.push(sum),
            _ => return None,
        }
        Some(())
    }

    /// The least time that the window takes, in instructions of one core, and what bounds it: the
    /// busiest of all that does one thing at a time. As long as that is never idle, it is the
    /// time.
    pub fn time(&self) -> (u64, Limit) {
        let core = self.cores.iter().map(|core| core.user + core.kernel).max();
        let kernel = self.cores.iter().map(|core| core.kernel).sum();
        let server = self.servers.iter().copied().max();
        let bounds = [
            (core.unwrap_or(0), Limit::Core),
            (server.unwrap_or(0), Limit::Server),
            (kernel, Limit::Kernel),
        ];
        // The first of equals: a core that does nothing but serve is a busy core.
        let longer = |a: (u64, Limit), b: (u64, Limit)| if b.0 > a.0 { b } else { a };
        bounds.into_iter().fold((0, Limit::Core), longer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_in_their_order() {
        let text = "window\ncore 5 6 7\ncore 1 2 3\nserver 9\nwindow\ncore 0 0 0\n";
        let windows = Counts::read_all(text).unwrap();
        assert_eq!(windows.len(), 2);
        let second = Executed {
            user: 1,
            kernel: 2,
            waiting: 3,
        };
        assert_eq!(windows[0].cores[1], second);
        assert_eq!(windows[0].servers, [9]);
        for wrong in ["core 1 2 3", "window\ncore 1 2", "window\nserver x"] {
            assert!(Counts::read_all(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_busiest_of_what_does_one_thing_at_a_time_bounds_the_time() {
        let window = |text: &str| Counts::read_all(text).unwrap()[0].time();
        let cores = "window\ncore 100 10 999\ncore 90 30 0\n";
        assert_eq!(window(cores), (120, Limit::Core));
        assert_eq!(
            window(&format!("{cores}server 150\nserver 20\n")),
            (150, Limit::Server)
        );
        let kernel = "window\ncore 1 60 0\ncore 2 70 0\n";
        assert_eq!(window(kernel), (130, Limit::Kernel));
    }

    #[test]
    fn work_is_read_between_other_lines() {
        let console = "noise\r\nmulticore pairs 500 4 800\r\ntest x ... ok\r\n\
                       multicore: 3 passed\r\nmulticore single 0 2 64\r\n";
        let work = read_work(console);
        assert_eq!(work.len(), 2);
        assert_eq!(work[0].scenario, Scenario::Pairs { spin: 500 });
        assert_eq!((work[1].cores, work[1].amount), (2, 64));
    }
}
