//! The variants of the workload, and what is known of each before it runs.

use anyhow::Result;

use super::super::Size;
use crate::system::Source;
use crate::workspace;

/// Priorities of the tasks in the system.
const HIGHEST_CLIENT: u8 = 120;

/// The workload under a protocol.
pub struct Variant {
    /// As in the results.
    pub name: &'static str,
    /// As in the description.
    pub protocol: &'static str,
    pub work: Work,
    pub bound: Bound,
    /// What the bound is, in words, with its source.
    pub textbook: &'static str,
}

/// What is worked on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// All tasks; the middle one works for this long, µs.
    All { middle: u64 },
    /// The high and the lowest task, whose budget runs out in the middle of its request.
    Starved,
    /// The high and the lowest task, whose request waits for a device as long as it else works.
    Device,
}

/// How long the high task can be blocked, by the requests of tasks below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// By the longest request of any.
    Longest,
    /// By one request of each.
    Sum,
    /// By none: while a request waits for its device, others are served.
    Free,
    /// Not by these alone.
    None,
}

/// The device of the store. It waits by using up its budget; its first 40 µs are like the setting up of a
/// transfer.
const DRIVE: &str = r#"
[[component]]
name = "drive"
executable = "sharing-lab"
priority = 150
budget = 40
period = 300
console = true

[[notification]]
name = "drive.start"
waiter = "drive"
signallers = [{ component = "store" }]
"#;

/// All variants, in the order of the report.
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "none",
        protocol: "none",
        work: Work::All { middle: 1000 },
        bound: Bound::None,
        textbook: "unbounded (2.3: “blocked for an unbounded period”)",
    },
    Variant {
        name: "none, longer",
        protocol: "none",
        work: Work::All { middle: 2000 },
        bound: Bound::None,
        textbook: "unbounded: grows with what the middle task does",
    },
    Variant {
        name: "inheritance",
        protocol: "inheritance",
        work: Work::All { middle: 1000 },
        bound: Bound::Sum,
        textbook: "one section of each lower task (Sha et al., Theorem 6)",
    },
    Variant {
        name: "bandwidth inheritance",
        protocol: "bandwidth-inheritance",
        work: Work::All { middle: 1000 },
        bound: Bound::Sum,
        textbook: "as inheritance, where budgets suffice",
    },
    Variant {
        name: "original ceiling",
        protocol: "original-ceiling",
        work: Work::All { middle: 1000 },
        bound: Bound::Longest,
        textbook: "one section (2.3.4; Sha et al., Theorem 12)",
    },
    Variant {
        name: "immediate ceiling",
        protocol: "ceiling",
        work: Work::All { middle: 1000 },
        bound: Bound::Longest,
        textbook: "one section (2.3.3), before the task begins",
    },
    Variant {
        name: "best effort",
        protocol: "best-effort",
        work: Work::All { middle: 1000 },
        bound: Bound::Longest,
        textbook: "as the ceiling, where the server's budget suffices (6.4.2)",
    },
    Variant {
        name: "worker pool",
        protocol: "workers",
        work: Work::All { middle: 1000 },
        bound: Bound::Longest,
        textbook: "one section, of a worker that is not interrupted; less at the client's own \
                   priority, as here, where who wakes goes first (6.4.2)",
    },
    Variant {
        name: "stack spawning",
        protocol: "stack-spawning",
        work: Work::All { middle: 1000 },
        bound: Bound::Longest,
        textbook: "one section: spawned threads are above the ceiling, not interrupted (6.4.2)",
    },
    Variant {
        name: "blocking server",
        protocol: "blocking",
        work: Work::All { middle: 1000 },
        bound: Bound::Longest,
        textbook: "as the ceiling, as long as nothing waits for a device (6.4.2)",
    },
    Variant {
        name: "ceiling, starved",
        protocol: "ceiling",
        work: Work::Starved,
        bound: Bound::None,
        textbook: "until the holder's budget is replenished (6.2.4)",
    },
    Variant {
        name: "inheritance, starved",
        protocol: "inheritance",
        work: Work::Starved,
        bound: Bound::None,
        textbook: "until the holder's budget is replenished (6.2.4)",
    },
    Variant {
        name: "bandwidth inh., starved",
        protocol: "bandwidth-inheritance",
        work: Work::Starved,
        bound: Bound::Longest,
        textbook: "one section, on the budget of the waiting client (6.4.2)",
    },
    Variant {
        name: "best effort, starved",
        protocol: "best-effort",
        work: Work::Starved,
        bound: Bound::Longest,
        textbook: "one section, on the server's budget: no isolation (6.4.2)",
    },
    Variant {
        name: "worker pool, starved",
        protocol: "workers",
        work: Work::Starved,
        bound: Bound::Longest,
        textbook:
            "one section, at most as long as the holder's budget lasts: then another stack is free (6.4.2)",
    },
    Variant {
        name: "stack spawning, starved",
        protocol: "stack-spawning",
        work: Work::Starved,
        bound: Bound::Longest,
        textbook: "the same, and making a stack once (6.4.2)",
    },
    Variant {
        name: "blocking, starved",
        protocol: "blocking",
        work: Work::Starved,
        bound: Bound::None,
        textbook: "until the holder's budget is replenished: the server is one thread",
    },
    Variant {
        name: "ceiling, device",
        protocol: "ceiling",
        work: Work::Device,
        bound: Bound::Longest,
        textbook: "one section, in which the server waits for its device",
    },
    Variant {
        name: "worker pool, device",
        protocol: "workers",
        work: Work::Device,
        bound: Bound::Free,
        textbook: "nothing: another worker is free (6.4.2)",
    },
    Variant {
        name: "stack spawning, device",
        protocol: "stack-spawning",
        work: Work::Device,
        bound: Bound::Free,
        textbook: "nothing, except for making a stack once (6.4.2)",
    },
    Variant {
        name: "blocking, device",
        protocol: "blocking",
        work: Work::Device,
        bound: Bound::Free,
        textbook: "nothing: the server waits for interrupt and further requests (6.4.2)",
    },
];

impl Variant {
    /// Whether the server's priority is the ceiling.
    fn has_ceiling(&self) -> bool {
        matches!(
            self.protocol,
            "ceiling" | "best-effort" | "workers" | "stack-spawning" | "blocking"
        )
    }

    /// Keys and tables of a server that serves several requests at a time.
    fn server_threads(&self) -> String {
        let worker = |name: &str| {
            format!(
                "[[component.thread]]\nname = \"{name}\"\npriority = {HIGHEST_CLIENT}\n\
                 passive = true\nstack = \"8KiB\"\n"
            )
        };
        match self.protocol {
            "workers" => worker("second") + &worker("third"),
            "stack-spawning" => "spawns = { threads = 2, stack = \"8KiB\" }".to_owned(),
            _ => String::new(),
        }
    }

    /// Whether all tasks are released, and not only the high and the lowest one.
    pub const fn has_all_tasks(&self) -> bool {
        matches!(self.work, Work::All { .. })
    }

    /// The device of the store, if there is one, and what interrupts of devices signal: a blocking
    /// server has that in any case.
    fn device(&self) -> String {
        let mut text = String::new();
        let mut interrupt = |server: &str, signallers: &str| {
            text += &format!(
                "[[notification]]\nname = \"device.{server}\"\nwaiter = \"{server}\"\n\
                 signallers = [{signallers}]\n"
            );
        };
        let is_blocking = self.protocol == "blocking";
        if is_blocking {
            interrupt("bus", "");
        }
        if self.work != Work::Device {
            if is_blocking {
                interrupt("store", "");
            }
            return text;
        }
        interrupt("store", "{ component = \"drive\", badge = 1 }");
        text + DRIVE
    }

    /// The system, with the steps of the phases that the size asks for.
    ///
    /// # Errors
    /// The description cannot be read.
    pub fn source(&self, size: Size) -> Result<Source> {
        let path = workspace::root().join("systems/experiments/sharing/SYSTEM.toml");
        let mut source = Source::read(&path)?;
        source.name = self.name.replace([',', '.', ' '], "-");
        // Without a ceiling, a server has the priority of its lowest client: it works as if for it.
        let (bus, store) = if self.has_ceiling() {
            (HIGHEST_CLIENT, HIGHEST_CLIENT)
        } else {
            (90, 80)
        };
        let step = match size {
            Size::Smoke => 100,
            Size::Quick => 40,
            Size::Full => 10,
        };
        let middle = match self.work {
            Work::All { middle } => middle,
            Work::Starved | Work::Device => 1000,
        };
        let (budget, period) = match self.work {
            Work::All { .. } | Work::Device => ("5ms", "5ms"),
            Work::Starved => ("100us", "10ms"),
        };
        // Until budgets are full again.
        let pause = match self.work {
            Work::All { .. } => "200us",
            Work::Starved => "50ms",
            Work::Device => "1ms",
        };
        let device = u8::from(self.work == Work::Device);
        let time = if self.protocol == "best-effort" {
            "budget = \"5ms\"\nperiod = \"5ms\""
        } else {
            "passive = true"
        };
        for (word, value) in [
            ("sharing-NAME", "sharing".to_owned()),
            ("BUS_PRIORITY", bus.to_string()),
            ("STORE_PRIORITY", store.to_string()),
            ("SERVER_TIME", time.to_owned()),
            ("SERVER_THREADS", self.server_threads()),
            ("MORE", self.device()),
            ("= STEP", format!("= {step}")),
            ("= PAUSE", format!("= \"{pause}\"")),
            ("= PAIR", format!("= {}", u8::from(!self.has_all_tasks()))),
            ("= DEVICE", format!("= {device}")),
            ("= MIDDLE", format!("= {middle}")),
            ("LOWEST_BUDGET", budget.to_owned()),
            ("LOWEST_PERIOD", period.to_owned()),
            ("\"PROTOCOL\"", format!("\"{}\"", self.protocol)),
        ] {
            source.text = source.text.replace(word, &value);
        }
        Ok(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;

    #[test]
    fn every_variant_is_a_right_description() {
        for variant in VARIANTS {
            let source = variant.source(Size::Smoke).unwrap();
            if let Err(report) = system::check(&source) {
                panic!("{}: {report}", variant.name);
            }
        }
    }
}
