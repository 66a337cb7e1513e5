//! Turns are scheduled so that no admitted one is late, whatever clients do.

use allocation_reference::{exact, tasks};
use fastrand::Rng;
use sandglass_allocations::{Kind, Server, Task};
use sandglass_edf::TaskId;
use sandglass_time_manager::turns::{Event, Turns};

const CLIENTS: usize = 5;
const TICKS: u64 = 2_000;

/// What a client does with its turn.
#[derive(Clone, Copy, PartialEq)]
enum Behaviour {
    /// It works for part of the budget, and asks for the next turn.
    Works,
    Overruns,
    /// It waits for something else.
    Blocks,
}

/// A client of which the turn is not over: what is left of the budget, and what it does at the end of its work.
#[derive(Clone, Copy)]
struct Working {
    deadline: u64,
    budget: u64,
    work: u64,
    behaviour: Behaviour,
}

struct Machine {
    now: u64,
    turns: Turns,
    rng: Rng,
    tasks: Vec<Task>,
    working: Vec<Option<Working>>,
    /// Clients that are best effort until they ask for a turn, at this time.
    lost: Vec<Option<u64>>,
}

impl Machine {
    fn new(seed: u64) -> Option<Self> {
        let mut rng = Rng::with_seed(seed);
        let tasks: Vec<_> = (0..rng.usize(1..=CLIENTS))
            .map(|_| tasks::small(&mut rng))
            .collect();
        exact::is_schedulable(&tasks).then_some(())?;
        let mut turns = Turns::new(tasks.len());
        for (index, &task) in tasks.iter().enumerate() {
            let kind = if rng.bool() { Kind::Hard } else { Kind::Soft };
            turns.serve(TaskId(index), Server::new(task, kind));
        }
        Some(Self {
            now: 0,
            working: vec![None; tasks.len()],
            lost: vec![Some(0); tasks.len()],
            turns,
            rng,
            tasks,
        })
    }

    /// The first deadline that is missed.
    fn run(&mut self) -> Option<(u64, Task)> {
        let mut event = Event::Timer;
        while self.now < TICKS {
            let decision = self.turns.step(self.now, event);
            event = Event::Timer;
            let back = (0..self.lost.len())
                .find(|&client| self.lost[client].is_some_and(|at| at <= self.now));
            if let Some(client) = back {
                self.lost[client] = None;
                event = Event::Done(TaskId(client));
                continue;
            }
            let next = self
                .lost
                .iter()
                .flatten()
                .copied()
                .chain(decision.wake_at)
                .min();
            let next = next.unwrap_or(TICKS).min(TICKS);
            let Some(chosen) = decision.run else {
                self.now = next;
                continue;
            };
            let index = chosen.client.0;
            let task = self.tasks[index];
            let working =
                self.working[index].filter(|working| working.deadline == chosen.turn.deadline);
            let mut working = working.unwrap_or_else(|| self.begin(task, chosen.turn.deadline));
            let until = next
                .min(self.now + working.budget.min(working.work))
                .max(self.now);
            working.budget -= until - self.now;
            working.work -= until - self.now;
            self.now = until;
            self.working[index] = Some(working);
            if working.work == 0 || working.budget == 0 {
                if self.now > working.deadline {
                    return Some((self.now, task));
                }
                event = self.end(index, working);
            }
        }
        None
    }

    fn begin(&mut self, task: Task, deadline: u64) -> Working {
        let behaviour = match self.rng.u32(0..6) {
            0 => Behaviour::Blocks,
            1..=2 => Behaviour::Overruns,
            _ => Behaviour::Works,
        };
        let budget = task.budget();
        let work = match behaviour {
            Behaviour::Works => self.rng.u64(1..=budget),
            Behaviour::Overruns => u64::MAX / 2,
            Behaviour::Blocks => self.rng.u64(1..=budget),
        };
        Working {
            deadline,
            budget,
            work,
            behaviour,
        }
    }

    fn end(&mut self, index: usize, working: Working) -> Event {
        self.working[index] = None;
        let client = TaskId(index);
        match working.behaviour {
            Behaviour::Overruns => Event::Overran(client),
            Behaviour::Works => Event::Done(client),
            Behaviour::Blocks => {
                self.lost[index] = Some(self.now + self.rng.u64(0..20));
                Event::Blocked(client)
            }
        }
    }
}

#[test]
fn no_turn_is_late_that_was_admitted() {
    let mut run = 0;
    for seed in 0..1_500 {
        let Some(mut machine) = Machine::new(seed) else {
            continue;
        };
        assert_eq!(machine.run(), None, "seed {seed}");
        run += 1;
    }
    assert!(run > 300, "{run} sets are schedulable");
}

#[test]
fn a_client_without_a_server_has_no_turn() {
    let mut turns = Turns::new(2);
    let decision = turns.step(0, Event::Done(TaskId(1)));
    assert_eq!((decision.run, decision.wake_at), (None, None));
    turns.serve(
        TaskId(1),
        Server::new(Task::new(2, 10, 5).unwrap(), Kind::Hard),
    );
    let decision = turns.step(3, Event::Done(TaskId(1)));
    assert_eq!(decision.run.map(|chosen| chosen.turn.deadline), Some(8));
    assert_eq!(turns.dismiss(TaskId(1)), Some(8));
    assert_eq!(turns.step(4, Event::Timer).run, None);
    // Turns have different numbers, whichever server they are of.
    turns.serve(
        TaskId(1),
        Server::new(Task::new(2, 10, 5).unwrap(), Kind::Hard),
    );
    let decision = turns.step(5, Event::Done(TaskId(1)));
    assert_eq!(decision.run.map(|chosen| chosen.number), Some(1));
}

#[test]
fn the_processor_is_idle_when_nothing_is_unfinished_that_was_released() {
    let mut turns = Turns::new(1);
    turns.serve(
        TaskId(0),
        Server::new(Task::new(2, 10, 10).unwrap(), Kind::Soft),
    );
    let _ = turns.step(5, Event::Done(TaskId(0)));
    assert_eq!(turns.idle_at(), 5, "it is released just now");
    let _ = turns.step(6, Event::Timer);
    assert_eq!(turns.idle_at(), 5, "its turn is not over");
    // It goes on before its next release, which counts for nobody.
    let decision = turns.step(7, Event::Overran(TaskId(0)));
    assert_eq!(decision.run.map(|chosen| chosen.turn.release), Some(15));
    assert_eq!(turns.idle_at(), 7);
}
