//! The time manager as a component of a described system.

use alloc::format;
use core::convert::Infallible;
use core::slice;

use sandglass::cap::{Endpoint, Reply, Tcb};
use sandglass::time::Tsc;
use sandglass::timer::TimerError;
use sandglass::{Environment, Message};
use sandglass_allocations::{Kind, Task};
use sandglass_description::policy::allocations::{names, Allocations, Asker};
use sandglass_description::policy::Table;
use sandglass_timers::clock::Clock;

use crate::admission::{Admission, Scheduling, WORDS};
use crate::protocol;
use crate::scheduler::{command, Client, Parts, Scheduler};

/// Admits and schedules, for good.
///
/// # Errors
/// The kernel refuses something, or the timer fails.
///
/// # Panics
/// The component has no table, or lacks what a `[time-manager]` gives.
pub fn run(env: &'static Environment) -> Result<Infallible, TimerError> {
    let table = table(env);
    let timer = sandglass_timers::Timer::described(env, names::TIMER);
    let own: Tcb = env.capability(&format!("{}.tcb", env.name()));
    own.bind_notification(timer.signal())?;
    let below: Tcb = env.capability(&format!("{}/{}.tcb", env.name(), names::ADMISSION));
    below.bind_notification(env.capability(names::WAKE))?;
    let parts = parts(env, &table, own, Clock::Served(timer));
    // All memory is allocated before the threads run side by side.
    let admission = Admission::new(&table).expect("the builder has admitted it");
    let asked = Asked {
        endpoint: env.capability(&names::requests(env.name())),
        reply: env.capability(&format!("{}.reply", names::requests(env.name()))),
        idle: env.capability(names::IDLE),
        told: Told {
            commands: env.capability(names::COMMANDS),
            tsc: parts.tsc,
        },
        admission,
    };
    env.thread(names::ADMISSION).prepare(move || asked.serve());
    env.ready().signal();
    Scheduler::new(parts).run()
}

fn table(env: &Environment) -> Allocations {
    let memory = env.memory(Allocations::NAME);
    // SAFETY: the launcher maps it read-only, and nobody writes to it.
    let bytes = unsafe { slice::from_raw_parts(memory.as_mut_ptr(), memory.len as usize) };
    Allocations::decode(bytes).expect("the builder made the table")
}

fn parts(env: &Environment, table: &Allocations, own: Tcb, clock: Clock) -> Parts {
    let clients = table.clients.iter().enumerate();
    let clients = clients.map(|(index, client)| Client {
        context: env.context_of(&client.name),
        thread: env.capability(&format!("{}.tcb", client.name)),
        timeout_badge: client.timeout_badge,
        best_effort_priority: client.best_effort_priority,
        hint: client.lends.then(|| env.capability(&names::hint(index))),
    });
    let replies = (0..=table.clients.len()).map(|index| env.capability(&names::reply(index)));
    Parts {
        endpoint: env.capability(env.name()),
        clock,
        tsc: env.tsc().expect("the kernel reports the clock's frequency"),
        clients: clients.collect(),
        replies: replies.collect(),
        control: env.capability(&format!("sched-control.{}", table.core)),
        own,
        turn_priority: table.turn_priority,
        wake: env.capability(names::WAKES),
    }
}

/// The scheduler, as the admission tells it what to do.
struct Told {
    commands: Endpoint,
    tsc: Tsc,
}

impl Scheduling for Told {
    fn serve(&mut self, client: usize, task: Task, kind: Kind) {
        let hard = match kind {
            Kind::Hard => command::HARD,
            Kind::Soft => 0,
        };
        let words = [
            client as u64,
            task.budget(),
            task.period(),
            task.deadline() | hard,
        ];
        let _done = self.commands.call(Message::new(command::SERVE, words));
    }

    fn dismiss(&mut self, client: usize) -> Option<u64> {
        let answer = self
            .commands
            .call(Message::new(command::DISMISS, [client as u64]));
        (answer.word(0) == 1).then(|| self.tsc.ticks_to_us(answer.word(1)) + 1)
    }

    fn times(&mut self) -> (u64, u64) {
        let answer = self.commands.call(Message::new(command::TIMES, []));
        let us = |index| self.tsc.ticks_to_us(answer.word(index));
        (us(0), us(1))
    }
}

/// What the admission works with.
struct Asked {
    endpoint: Endpoint,
    reply: Reply,
    /// Where it says that no turn can run.
    idle: Endpoint,
    told: Told,
    admission: Admission,
}

impl Asked {
    /// Answers, for good. It runs below all turns: when it does, none can.
    fn serve(mut self) -> ! {
        let mut received = self.endpoint.recv(self.reply);
        loop {
            received = match Asker::of(received.badge) {
                Asker::Signal(flags) => {
                    self.signalled(flags);
                    self.endpoint.recv(self.reply)
                }
                Asker::Client(client) => {
                    let mut words = [0; WORDS];
                    let count = received.message.copy_words(&mut words);
                    let label = received.message.label();
                    let outcome =
                        self.admission
                            .decide(client, label, &words[..count], &mut self.told);
                    self.reply
                        .reply_recv(self.endpoint, protocol::answer(outcome))
                }
            };
        }
    }

    fn signalled(&mut self, flags: u64) {
        if flags & Asker::NO_TURN != 0 {
            // The scheduler waits whenever another thread runs.
            self.idle.nb_send(Message::EMPTY);
        }
        for client in
            (0..self.admission.clients()).filter(|&client| flags & Asker::ended(client) != 0)
        {
            self.admission.end(client, &mut self.told);
        }
    }
}
