//! A trace for tests, made by hand: a client that calls a passive server, a thread of higher priority
//! that is released in between, and marks. Times are ticks of a machine of 1 GHz, as everywhere here.

pub mod gates;
pub mod turns;
pub mod windows;

use std::collections::BTreeMap;

use sandglass_abi::trace::{Blocked, Gift, Parameter};

use super::history::History;
use super::record::{Event, Mark, Object, Record};

pub const CLIENT: Object = 0x1000;
pub const SERVER: Object = 0x2000;
pub const URGENT: Object = 0x3000;
pub const CLIENT_TIME: Object = 0x1100;
pub const URGENT_TIME: Object = 0x3100;
const US: u64 = 1000;

/// Records, and which thread runs on whose time until now.
pub struct Script {
    pub records: Vec<Record>,
    time: u64,
    paid: u64,
    payer: Object,
    /// Of each context, its period and its refills: when they come, and how much.
    refills: BTreeMap<Object, (u64, Vec<(u64, u64)>)>,
}

impl Script {
    fn add(&mut self, event: Event) {
        let sequence = self.records.len() as u32 + 1;
        self.records.push(Record {
            sequence,
            core: 0,
            by: 0,
            time: self.time,
            event,
        });
    }

    fn pass(&mut self, us: u64) {
        self.time += us * US;
    }

    fn mark(&mut self, subject: Object, mark: Mark) {
        self.add(Event::Mark { subject, mark });
    }

    fn name(&mut self, object: Object, name: &str) {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        self.mark(object, Mark::Name { part: 0, bytes });
    }

    /// `thread` runs next, on `context`.
    fn switch(&mut self, thread: Object, context: Object, priority: u8) {
        self.add(Event::Switch {
            thread,
            context,
            priority,
        });
        self.pays(context);
    }

    fn pays(&mut self, context: Object) {
        if context == self.payer {
            return;
        }
        let consumed = self.time - self.paid;
        if self.payer != 0 && consumed > 0 {
            self.add(Event::Charge {
                context: self.payer,
                consumed,
                charged: consumed,
            });
            if let Some((period, refills)) = self.refills.get_mut(&self.payer) {
                refills[0].1 -= consumed;
                refills.push((self.paid + *period, consumed));
            }
        }
        let amount = self.head(context);
        self.add(Event::Pays { context, amount });
        (self.payer, self.paid) = (context, self.time);
    }

    /// What `context` has now, as one refill.
    fn head(&mut self, context: Object) -> u64 {
        let now = self.time;
        let Some((_, refills)) = self.refills.get_mut(&context) else {
            return 0;
        };
        let come = refills.iter().filter(|&&(time, _)| time <= now);
        let amount = come.map(|&(_, amount)| amount).sum();
        refills.retain(|&(time, _)| time > now);
        refills.insert(0, (now, amount));
        amount
    }

    fn thread(&mut self, thread: Object, name: &str, context: Object, budget: u64, period: u64) {
        self.name(thread, name);
        self.name(context, name);
        self.add(Event::Configure {
            context,
            budget: budget * US,
            period: period * US,
            fresh: true,
            sporadic: false,
        });
        let refills = vec![(self.time, budget * US)];
        self.refills.insert(context, (period * US, refills));
        self.add(Event::Donate {
            context,
            from: 0,
            to: thread,
            gift: Gift::Bind,
        });
    }

    fn wake(&mut self, thread: Object, context: Object, priority: u8) {
        self.add(Event::Wake {
            thread,
            context,
            priority,
        });
    }

    fn block(&mut self, thread: Object, why: Blocked) {
        self.add(Event::Block { thread, why });
    }

    fn call(&mut self) {
        self.block(CLIENT, Blocked::Reply);
        self.add(Event::Donate {
            context: CLIENT_TIME,
            from: CLIENT,
            to: SERVER,
            gift: Gift::Call,
        });
        self.wake(SERVER, CLIENT_TIME, 200);
        self.switch(SERVER, CLIENT_TIME, 200);
    }

    fn reply(&mut self) {
        self.add(Event::Return {
            context: CLIENT_TIME,
            from: SERVER,
            to: CLIENT,
        });
        self.wake(CLIENT, CLIENT_TIME, 100);
        self.block(SERVER, Blocked::Receive);
        self.switch(CLIENT, CLIENT_TIME, 100);
    }
}

fn script() -> Script {
    Script {
        records: Vec::new(),
        time: 5 * US,
        paid: 5 * US,
        payer: 0,
        refills: BTreeMap::new(),
    }
}

/// The records: five periods of 10 ms, in each of which the client has a job of 1.5 ms, with a call
/// in the middle and the urgent thread during it.
pub fn records() -> Vec<Record> {
    let mut s = script();
    s.add(Event::Start {
        per_us: US,
        least_budget: 20 * US,
    });
    s.thread(CLIENT, "client", CLIENT_TIME, 2_000, 10_000);
    s.thread(URGENT, "urgent", URGENT_TIME, 1_000, 10_000);
    s.name(SERVER, "server");
    s.mark(
        CLIENT,
        Mark::Parameter {
            parameter: Parameter::Deadline,
            value: 10_000,
        },
    );
    for job in 0..5 {
        let released = s.time;
        s.wake(CLIENT, CLIENT_TIME, 100);
        s.switch(CLIENT, CLIENT_TIME, 100);
        s.pass(1);
        s.mark(CLIENT, Mark::Release { job, at: released });
        s.pass(499);
        s.call();
        s.pass(250);
        // The urgent thread preempts the server.
        s.wake(URGENT, URGENT_TIME, 250);
        s.switch(URGENT, URGENT_TIME, 250);
        s.pass(800);
        s.block(URGENT, Blocked::Notification);
        s.switch(SERVER, CLIENT_TIME, 200);
        s.pass(250);
        s.reply();
        s.pass(500);
        s.mark(CLIENT, Mark::End { job });
        s.block(CLIENT, Blocked::Notification);
        s.switch(0, 0, 0);
        s.pass(7_700);
    }
    s.records
}

pub fn history() -> History {
    History::of_records(records(), 0).expect("a trace")
}
