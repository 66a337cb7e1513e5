//! Random systems, as descriptions: with honest partitions, and with one of them attacked by.

use std::fmt::Write;

use fastrand::Rng;

/// Attacks of `systems/experiments/partitions/member`, by number.
pub const ATTACKS: [&str; 12] = [
    "spins",
    "asks for what never ends",
    "asks at the end of the window",
    "floods with sends",
    "yields",
    "executes what is no instruction",
    "floods with arrivals",
    "floods with jobs that are done",
    "floods its timer",
    "acts at random",
    "reads where nothing is",
    "mixes them",
];
/// Those with requests that never end.
const REQUESTS: [usize; 3] = [1, 2, 11];
/// For how long honest threads work, and windows are compared, µs.
const LENGTH_US: u64 = 60_000;
/// Steps of a thread's loop in a µs, fewer than there are.
const STEPS_PER_US: u64 = 100;
/// Share of the processor of all partitions together, percent.
const SHARE: u64 = 60;
const MOST_THREADS: usize = 3;
/// Jobs of a thread whose results nobody looks at: more than it does.
const UNSEEN: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Periodic,
    Sporadic,
    BestEffort,
}

#[derive(Clone, Debug)]
struct Thread {
    kind: Kind,
    priority: u64,
    /// Of a periodic thread, its period, of a sporadic one its interval, µs.
    period_us: u64,
    /// Steps of a job.
    work: u64,
    asks: bool,
}

#[derive(Clone, Debug)]
struct Partition {
    period_us: u64,
    budget_us: u64,
    threads: Vec<Thread>,
}

/// A system with partitions that share a server, and which of them attacks when it is not honest.
#[derive(Clone, Debug)]
pub struct System {
    pub seed: u64,
    /// deadlines, priorities or frames.
    pub order: &'static str,
    partitions: Vec<Partition>,
    /// Partition, beginning and length, µs; and the length of the frame.
    windows: Vec<(usize, u64, u64)>,
    frame_us: u64,
    pub finish_us: u64,
    pub attacker: usize,
    /// Of each of its threads: what it does, and µs before the end of a window.
    attacks: Vec<(usize, u64)>,
}

impl System {
    /// That of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let order = ["deadlines", "priorities", "frames"][seed as usize % 3];
        let count = rng.usize(2..=6);
        let frame_us = 1_000 * [10, 20][rng.usize(..2)];
        let windows = match order {
            "frames" => windows(&mut rng, count, frame_us),
            _ => Vec::new(),
        };
        let partitions = (0..count).map(|index| {
            let (period_us, budget_us) = match order {
                "frames" => {
                    let own = windows.iter().filter(|window| window.0 == index);
                    (frame_us, own.map(|window| window.2).sum())
                }
                _ => {
                    let period_us = 1_000 * [4, 5, 8, 10, 20][rng.usize(..5)];
                    let most = period_us * SHARE / 100 / count as u64;
                    (period_us, rng.u64(most / 2..=most) / 10 * 10)
                }
            };
            Partition {
                period_us,
                budget_us,
                threads: threads(&mut rng, period_us, budget_us),
            }
        });
        let partitions: Vec<_> = partitions.collect();
        let attacker = rng.usize(..count);
        let attacks = partitions[attacker].threads.iter();
        let attacks = attacks.map(|_| (attack(&mut rng), rng.u64(1..=60)));
        let attacks = attacks.collect();
        Self {
            seed,
            order,
            finish_us: 10 * rng.u64(3..=20),
            attacker,
            attacks,
            partitions,
            windows,
            frame_us,
        }
    }

    /// The names of the partitions that do not attack.
    pub fn others(&self) -> impl Iterator<Item = String> + '_ {
        let all = 0..self.partitions.len();
        all.filter(|&index| index != self.attacker)
            .map(partition_name)
    }

    /// How long requests of others than the attacker may take, µs, one of each partition that makes any.
    pub fn honest_requests_us(&self) -> u64 {
        self.other_callers() * self.finish_us / 2
    }

    fn other_callers(&self) -> u64 {
        let partitions = self.partitions.iter().enumerate();
        let calls = |&(index, partition): &(usize, &Partition)| {
            index != self.attacker && partition.threads.iter().any(|thread| thread.asks)
        };
        partitions.filter(calls).count() as u64
    }

    /// What the attackers do.
    pub fn attacks(&self) -> String {
        let names = self.attacks.iter().map(|&(attack, _)| ATTACKS[attack]);
        names.collect::<Vec<_>>().join(", ")
    }

    /// The description; `is_attacked` says whether one partition is hostile.
    pub fn text(&self, is_attacked: bool) -> String {
        let mut text = self.scheduler();
        for (index, partition) in self.partitions.iter().enumerate() {
            self.partition(&mut text, index, partition);
        }
        for &(partition, at, length) in &self.windows {
            let end = if (partition, at) == self.last_window() {
                "]"
            } else {
                ""
            };
            if (partition, at) == self.first_window() {
                let _ = write!(
                    text,
                    "\n[[frame]]\nname = \"frame\"\nlength = \"{}us\"\nwindows = [\n",
                    self.frame_us
                );
            }
            let name = partition_name(partition);
            let _ = writeln!(
                text,
                "  {{ partition = \"{name}\", at = \"{at}us\", length = \"{length}us\" }},\n{end}"
            );
        }
        let mut row = 0;
        for (index, partition) in self.partitions.iter().enumerate() {
            for (number, thread) in partition.threads.iter().enumerate() {
                let is_hostile = is_attacked && index == self.attacker;
                let parameters = match (is_hostile, reports(partition, number)) {
                    (true, _) => self.attack(index, number),
                    (false, true) => format!("report = 1, partition = {index}"),
                    // Nobody looks at its results.
                    (false, false) if index == self.attacker => {
                        format!(
                            "jobs = {UNSEEN}, work = {}, request = {}",
                            work(thread),
                            self.request()
                        )
                    }
                    (false, false) => {
                        row += 1;
                        honest(thread, row - 1, self.request())
                    }
                };
                let _ = write!(
                    text,
                    "\n[[component]]\nname = \"{}\"\nexecutable = \"partitions-member\"\npriority = 100\n\
                     parameters = {{ {parameters} }}\n",
                    thread_name(index, number)
                );
            }
        }
        self.others_of_the_system(&mut text, row);
        text
    }

    /// Steps of an honest request: it is over within half of `finish`, so that it is never ended.
    fn request(&self) -> u64 {
        self.finish_us * STEPS_PER_US / 2
    }

    fn scheduler(&self) -> String {
        format!(
            "name = \"attacked\"\nmachine = {{ memory = 64 }}\n# Faults are reported when no window has anything to do.\n\
             launcher-priority = 60\n\n[partitions]\nname = \"windows\"\norder = \"{}\"\npriority = 150\nfinish = \"{}us\"\n",
            self.order, self.finish_us
        )
    }

    fn first_window(&self) -> (usize, u64) {
        self.windows.first().map_or((0, 0), |&(of, at, _)| (of, at))
    }

    fn last_window(&self) -> (usize, u64) {
        self.windows.last().map_or((0, 0), |&(of, at, _)| (of, at))
    }

    fn partition(&self, text: &mut String, index: usize, partition: &Partition) {
        let _ = write!(
            text,
            "\n[[partition]]\nname = \"{}\"\n",
            partition_name(index)
        );
        if self.order != "frames" {
            let _ = write!(
                text,
                "period = \"{}us\"\nbudget = \"{}us\"\n",
                partition.period_us, partition.budget_us
            );
        }
        if self.order == "priorities" {
            let priority = self.priority(index);
            let _ = writeln!(text, "priority = {priority}");
        }
        text.push_str("threads = [\n");
        for (number, thread) in partition.threads.iter().enumerate() {
            let name = thread_name(index, number);
            let Thread {
                priority,
                period_us,
                ..
            } = thread;
            let rest = match thread.kind {
                Kind::Periodic => {
                    format!(
                        "kind = \"periodic\", priority = {priority}, period = \"{period_us}us\""
                    )
                }
                Kind::Sporadic => {
                    let reporter = thread_name(index, partition.threads.len() - 1);
                    format!(
                        "kind = \"sporadic\", priority = {priority}, interval = \"{period_us}us\", arrivals = [\"{reporter}\"]"
                    )
                }
                Kind::BestEffort => "kind = \"best-effort\"".to_owned(),
            };
            let _ = writeln!(text, "  {{ component = \"{name}\", {rest} }},");
        }
        text.push_str("]\n");
    }

    /// The shorter the period, the higher; of equal periods, of the first one.
    fn priority(&self, index: usize) -> usize {
        let key = |index: usize| (self.partitions[index].period_us, index);
        let others = 0..self.partitions.len();
        1 + others.filter(|&other| key(other) > key(index)).count()
    }

    fn attack(&self, index: usize, number: usize) -> String {
        let (attack, lead) = self.attacks[number];
        let own = self.windows.iter().find(|window| window.0 == index);
        let window = own.map_or(self.partitions[index].budget_us, |window| window.2);
        format!(
            "attack = {attack}, partition = {index}, seed = {}, window = {window}, lead = {lead}",
            self.seed * 16 + number as u64
        )
    }

    /// The server, the judge, and what connects them.
    fn others_of_the_system(&self, text: &mut String, rows: u64) {
        let mut signallers = String::new();
        let mut maps = String::new();
        let mut clients = String::new();
        let (mut row, mut badge) = (0, 0);
        for (index, partition) in self.partitions.iter().enumerate() {
            for (number, thread) in partition.threads.iter().enumerate() {
                let name = thread_name(index, number);
                badge += 1;
                // Who attacks has it all, whether it is honest or not.
                if thread.asks || index == self.attacker {
                    let _ = writeln!(clients, "  {{ component = \"{name}\", badge = {badge} }},");
                }
                if index == self.attacker || reports(partition, number) {
                    continue;
                }
                let bit = 1_u64 << row;
                row += 1;
                let rights = "read-write";
                let _ = writeln!(
                    maps,
                    "  {{ component = \"{name}\", rights = \"{rights}\" }},"
                );
                let _ = writeln!(signallers, "  {{ component = \"{name}\", badge = {bit} }},");
            }
        }
        let teaser = thread_name(self.attacker, 0);
        let _ = write!(
            text,
            r#"
[[component]]
name = "server"
executable = "partitions-member"
priority = 120
passive = true
timeout-handler = "server"
parameters = {{ serve = 1 }}

[[component.thread]]
name = "handler"
priority = 130
budget = "10ms"
period = "10ms"
ready = true

[[timeout-policy]]
server = "server"
handler = "server/handler"
default = "reset"

[[endpoint]]
name = "server"
server = "server"
clients = [
{clients}]

[[timer]]
name = "timers"
component = "{teaser}"
every = "500us"
notification = "event"
badge = 2

[[notification]]
name = "event"
waiter = "{teaser}"

[[component]]
name = "judge"
executable = "partitions-member"
priority = 50
budget = "5ms"
period = "5ms"
console = true
exit = true
parameters = {{ rows = {rows}, least = {LENGTH_US} }}

[[notification]]
name = "done"
waiter = "judge"
signallers = [
{signallers}]

[[memory]]
name = "board"
size = "4KiB"
maps = [
  {{ component = "judge", rights = "read-write" }},
{maps}]
"#
        );
    }
}

fn partition_name(index: usize) -> String {
    format!("p{index}")
}

fn thread_name(partition: usize, thread: usize) -> String {
    format!("p{partition}t{thread}")
}

/// One of the attacks; every other one is with requests, which move windows most.
fn attack(rng: &mut Rng) -> usize {
    match rng.bool() {
        true => REQUESTS[rng.usize(..REQUESTS.len())],
        false => rng.usize(..ATTACKS.len()),
    }
}

/// Windows of a table: each partition has one, and some have more.
fn windows(rng: &mut Rng, partitions: usize, frame_us: u64) -> Vec<(usize, u64, u64)> {
    let count = rng.usize(partitions..=2 * partitions);
    let mut owners: Vec<usize> = (0..count).map(|index| index % partitions).collect();
    rng.shuffle(&mut owners);
    let slot = frame_us / count as u64 / 10 * 10;
    let gap = rng.usize(..count);
    let owners = owners.into_iter().enumerate();
    let windows = owners.map(|(index, owner)| {
        let at = slot * index as u64;
        // Many end where the next one begins; but the frame has a gap, for the judge.
        match rng.bool() && index != gap {
            true => (owner, at, slot),
            false => (owner, at + slot / 10 / 10 * 10, slot / 2 / 10 * 10),
        }
    });
    windows.collect()
}

/// The last thread is of best effort; a sporadic one, of which there is at most one, has its arrivals reported by that.
fn threads(rng: &mut Rng, period_us: u64, budget_us: u64) -> Vec<Thread> {
    let count = rng.usize(1..=MOST_THREADS);
    let mut threads = Vec::new();
    for number in 0..count {
        let has_sporadic = threads
            .iter()
            .any(|thread: &Thread| thread.kind == Kind::Sporadic);
        let kind = match number + 1 == count {
            true => Kind::BestEffort,
            false if !has_sporadic && rng.bool() => Kind::Sporadic,
            false => Kind::Periodic,
        };
        threads.push(Thread {
            kind,
            priority: number as u64 + 1,
            period_us: period_us * rng.u64(1..=2),
            work: budget_us * STEPS_PER_US / 8,
            asks: rng.bool(),
        });
    }
    threads
}

/// Whether a thread reports the arrivals of another one of its partition.
fn reports(partition: &Partition, number: usize) -> bool {
    let has_sporadic = partition
        .threads
        .iter()
        .any(|thread| thread.kind == Kind::Sporadic);
    has_sporadic && number + 1 == partition.threads.len()
}

/// Jobs that a thread is to do: one of best effort has one after the other only if it gets arrivals.
fn jobs(thread: &Thread) -> u64 {
    match thread.kind {
        Kind::BestEffort => 1,
        Kind::Periodic | Kind::Sporadic => (LENGTH_US / thread.period_us).max(2),
    }
}

fn honest(thread: &Thread, row: u64, request: u64) -> String {
    format!(
        "row = {row}, jobs = {}, work = {}, request = {request}",
        jobs(thread),
        work(thread)
    )
}

/// Steps of a job.
fn work(thread: &Thread) -> u64 {
    match thread.kind {
        Kind::BestEffort => thread.work * 10,
        Kind::Periodic | Kind::Sporadic => thread.work,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{self, Source};

    #[test]
    fn systems_are_described_rightly_and_only_the_attacker_s_parameters_differ() {
        let source = |text: String| Source {
            arch: None,
            name: "attacked".to_owned(),
            text,
            folder: crate::workspace::root().to_owned(),
        };
        for seed in 0..9 {
            let of_seed = System::of(seed);
            let texts = [false, true].map(|is_attacked| of_seed.text(is_attacked));
            for text in &texts {
                if let Err(report) = system::check(&source(text.clone())) {
                    panic!("seed {seed}: {report}\n{text}");
                }
            }
            let lines = texts[0].lines().zip(texts[1].lines());
            let differing = lines.filter(|(honest, attacked)| honest != attacked);
            let threads = of_seed.attacks.len();
            assert_eq!(differing.count(), threads, "{}", texts[1]);
        }
    }
}
