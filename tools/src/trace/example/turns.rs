//! A time manager's client with a hard reservation: four turns.

use super::{script, CLIENT, CLIENT_TIME, US};
use crate::trace::history::History;
use crate::trace::record::{Event, Mark};

pub fn history() -> History {
    let mut s = script();
    s.add(Event::Start {
        per_us: US,
        least_budget: 20 * US,
    });
    s.thread(CLIENT, "client", CLIENT_TIME, 1_000, 10_000);
    s.mark(
        CLIENT_TIME,
        Mark::Reservation {
            budget_us: 1_000,
            period_us: 10_000,
            deadline_us: 5_000,
            hard: true,
        },
    );
    for job in 0..4 {
        let released = s.time;
        s.mark(CLIENT_TIME, Mark::Release { job, at: released });
        let at = released + 5_000 * US;
        s.mark(CLIENT_TIME, Mark::Deadline { job, at });
        s.wake(CLIENT, CLIENT_TIME, 100);
        s.switch(CLIENT, CLIENT_TIME, 100);
        s.pass(900);
        s.block(CLIENT, sandglass_abi::trace::Blocked::Reply);
        s.switch(0, 0, 0);
        s.mark(CLIENT_TIME, Mark::End { job });
        s.pass(9_100);
    }
    History::of_records(s.records, 0).expect("a trace")
}
