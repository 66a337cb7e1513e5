//! Two partitions: `flight` with 2 ms in every 5, and `cabin` with 4 in every 10, of which a request is in service at the
//! end of each window, for 50 µs more. The scheduler is woken a microsecond late, and decides another one later.

use sandglass_abi::trace::{Blocked, Gift};
use sandglass_description::policy::partitions::{Form, Kind, Partition, Partitions, Thread};

use super::{script, Script, SERVER, US};
use crate::trace::check::{Plan, Promises};
use crate::trace::history::History;
use crate::trace::record::{Event, Mark, Object};

const SCHEDULER: Object = 0x4000;
const SCHEDULER_TIME: Object = 0x4100;
const PILOT: Object = 0x5000;
pub const FLIGHT: Object = 0x5100;
const PLAYER: Object = 0x6000;
pub const CABIN: Object = 0x6100;
/// A µs until the scheduler runs, and another one until it decides.
const LATE: u64 = 2;
/// What a request takes at the end of the cabin's window, µs.
const SERVED: u64 = 50;

pub fn promises() -> Promises {
    let partition = |name: &str, period_us, budget_us, thread: &str| Partition {
        name: name.to_owned(),
        period_us,
        deadline_us: period_us,
        offset_us: 0,
        budget_us,
        priority: 0,
        threads: vec![Thread {
            name: thread.to_owned(),
            kind: Kind::BestEffort,
        }],
        calls_servers: name == "cabin",
        badge: 0,
    };
    let partitions = Partitions {
        core: 0,
        form: Form::Deadlines,
        partitions: vec![
            partition("flight", 5_000, 2_000, "pilot"),
            partition("cabin", 10_000, 4_000, "player"),
        ],
        slice_us: 1_000,
        bound_us: Some(100),
        manager: None,
    };
    Promises {
        windows: Some(Plan {
            scheduler: "windows".to_owned(),
            partitions,
        }),
        ..Promises::default()
    }
}

/// What is made up, and what flight and cabin owe, µs.
struct Scene {
    script: Script,
    owed: [u64; 2],
    numbers: [u64; 2],
}

impl Scene {
    /// The scheduler runs, and says by how much the window before was overrun, µs.
    fn decide(&mut self, before: Option<(Object, u64)>) -> u64 {
        let s = &mut self.script;
        s.switch(SCHEDULER, SCHEDULER_TIME, 150);
        s.pass(1);
        let at = s.time;
        if let Some((context, over)) = before {
            let ticks = over * US;
            s.mark(context, Mark::Overrun { at, ticks });
            let from = if context == FLIGHT { PILOT } else { PLAYER };
            s.add(Event::Unbind { context, from });
        }
        at
    }

    fn block_scheduler(&mut self) {
        self.script.block(SCHEDULER, Blocked::Receive);
    }

    /// A window of a partition, until the scheduler runs again; who overran then, and by how much.
    fn window(&mut self, before: Option<(Object, u64)>, which: usize) -> (Object, u64) {
        let at = self.decide(before);
        let (context, thread, budget) = [(FLIGHT, PILOT, 2_000), (CABIN, PLAYER, 4_000)][which];
        let left = budget - std::mem::take(&mut self.owed[which]);
        let number = self.numbers[which] as u8;
        self.numbers[which] += 1;
        let until = at + left * US;
        let s = &mut self.script;
        s.mark(context, Mark::Window { number, at, until });
        s.add(Event::Donate {
            context,
            from: 0,
            to: thread,
            gift: Gift::Bind,
        });
        s.wake(thread, context, 100);
        self.block_scheduler();
        let s = &mut self.script;
        s.switch(thread, context, 100);
        let served = if which == 1 { SERVED } else { 0 };
        if which == 1 {
            s.pass(left - SERVED);
            self.request(thread, context, 2 * SERVED + LATE - 1);
        } else {
            s.pass(left + LATE - 1);
        }
        self.script.wake(SCHEDULER, SCHEDULER_TIME, 150);
        let over = served + LATE;
        self.owed[which] = over;
        (context, over)
    }

    /// A request that takes so long, µs.
    fn request(&mut self, thread: Object, context: Object, us: u64) {
        let s = &mut self.script;
        s.block(thread, Blocked::Reply);
        s.add(Event::Donate {
            context,
            from: thread,
            to: SERVER,
            gift: Gift::Call,
        });
        s.wake(SERVER, context, 120);
        s.switch(SERVER, context, 120);
        s.pass(us);
        s.block(SERVER, Blocked::Receive);
        s.add(Event::Return {
            context,
            from: SERVER,
            to: thread,
        });
        s.wake(thread, context, 100);
    }

    fn nobody(&mut self, before: (Object, u64), until: u64) {
        let at = self.decide(Some(before));
        let s = &mut self.script;
        s.mark(before.0, Mark::WindowEnd { at });
        self.block_scheduler();
        let s = &mut self.script;
        s.switch(0, 0, 0);
        s.pass((until - s.time) / US);
        s.wake(SCHEDULER, SCHEDULER_TIME, 150);
    }
}

pub fn history() -> History {
    let mut s = script();
    s.add(Event::Start {
        per_us: US,
        least_budget: 20 * US,
    });
    let whole = 3_600_000_000;
    s.thread(SCHEDULER, "windows", SCHEDULER_TIME, whole, whole);
    for (thread, thread_name, context, name) in [
        (PILOT, "pilot", FLIGHT, "flight"),
        (PLAYER, "player", CABIN, "cabin"),
    ] {
        s.thread(thread, thread_name, context, whole, whole);
        s.name(context, name);
        s.add(Event::Unbind {
            context,
            from: thread,
        });
    }
    s.name(SERVER, "server");
    s.wake(SCHEDULER, SCHEDULER_TIME, 150);
    s.switch(SCHEDULER, SCHEDULER_TIME, 150);
    let start = s.time + 1_000 * US;
    s.mark(SCHEDULER, Mark::Origin { at: start });
    s.block(SCHEDULER, Blocked::Receive);
    s.switch(0, 0, 0);
    s.pass(1_001);
    s.wake(SCHEDULER, SCHEDULER_TIME, 150);
    let mut scene = Scene {
        script: s,
        owed: [0; 2],
        numbers: [0; 2],
    };
    for frame in 1..4 {
        // Released together, `flight` is due first; in the middle, it is due with `cabin`, which was released before.
        let flight = scene.window(None, 0);
        let cabin = scene.window(Some(flight), 1);
        let flight = scene.window(Some(cabin), 0);
        scene.nobody(flight, start + (10_000 * frame + 1) * US);
    }
    History::of_records(scene.script.records, 0).expect("a trace")
}
