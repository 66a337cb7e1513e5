//! What a gate did, and what its clients saw.

use std::cell::RefCell;
use std::rc::Rc;

use sandglass_mc_ipc::driver::Mark;
use sandglass_mc_ipc::ClientId;
use sandglass_parallel::{Doing, Record, Task};

/// A request as its client saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    pub client: ClientId,
    /// In ticks.
    pub called: u64,
    pub answered: u64,
    pub label: u64,
    pub words: Vec<u64>,
}

/// What the gate did, and when, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    pub at: u64,
    pub mark: Mark,
}

/// All that happened.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order of their answers.
    pub requests: Vec<Served>,
    pub events: Vec<Event>,
    pub record: Record,
    /// Of each client.
    pub tasks: Vec<Task>,
}

/// What a client's context paid for in some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Paid {
    /// Ticks of user code.
    pub ticks: u64,
    /// How often the context was selected anew, after another one had been on its core.
    pub stretches: u64,
}

impl History {
    /// What a client's context paid for from `start` to `end`, whoever ran on it, and wherever: user code of the gate's own
    /// thread between does not count as another context.
    pub fn paid(&self, client: ClientId, start: u64, end: u64) -> Paid {
        let mut paid = Paid::default();
        for intervals in &self.record.intervals {
            let mut is_selected = false;
            let first = intervals.partition_point(|interval| interval.end <= start);
            let within = intervals[first..].iter();
            for interval in within.take_while(|interval| interval.start < end) {
                match interval.doing {
                    Doing::User { payer, .. } if payer == self.tasks[client.0] => {
                        paid.ticks += interval.end.min(end) - interval.start.max(start);
                        paid.stretches += u64::from(!is_selected);
                        is_selected = true;
                    }
                    Doing::User { payer, .. } if self.tasks.contains(&payer) => is_selected = false,
                    _ => {}
                }
            }
        }
        paid
    }
}

/// What programs write into.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Rc<RefCell<History>>);

impl Log {
    pub fn served(&self, served: Served) {
        self.0.borrow_mut().requests.push(served);
    }

    pub fn mark(&self, at: u64, mark: Mark) {
        self.0.borrow_mut().events.push(Event { at, mark });
    }

    /// The history, whose machine did this.
    pub fn take(&self, record: Record, tasks: Vec<Task>) -> History {
        History {
            record,
            tasks,
            ..self.0.take()
        }
    }
}
