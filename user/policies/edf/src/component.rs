//! The scheduler as a component of a described system: what its `[[edf]]` says.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::convert::Infallible;
use core::slice;
use core::sync::atomic::{AtomicU8, Ordering};

use sandglass::cap::{Notification, SchedParams, Tcb};
use sandglass::fault::Fault;
use sandglass::time::Tsc;
use sandglass::timer::TimerError;
use sandglass::{println, Environment};
use sandglass_description::policy::edf::{self as described, names, Edf};
use sandglass_description::policy::Table;

use crate::clock::{Clock, Names};
use crate::driver::{below, Client, Driver, Observer, Overrun, Parts};
use crate::scheduler::{Late, Parameters, TaskId};

/// Schedules the tasks of the component's table, for good.
///
/// # Errors
/// The kernel refuses something, or there is no HPET.
///
/// # Panics
/// The component has no table, or lacks what an `[[edf]]` gives.
pub fn run(env: &'static Environment) -> Result<Infallible, TimerError> {
    let table = table(env);
    let clock = Clock::described(
        env,
        Names {
            registers: names::REGISTERS,
            timer: names::TIMER,
            pit: names::PIT,
        },
    )?;
    let own: Tcb = env.capability(&format!("{}.tcb", env.name()));
    own.bind_notification(clock.notification())?;
    let parts = parts(env, &table, clock);
    let news = News::leak(table.tasks.len());
    let (wake, idle) = (env.capability(names::WAKE), env.capability(names::IDLE));
    // Made here: the thread below must not allocate, since this one would wait for it if it did so meanwhile.
    let names: Vec<String> = table.tasks.iter().map(|task| task.name.clone()).collect();
    let tell = move || {
        news.take_all(|task, fault| match fault.is_end() {
            true => println!("edf: `{}` has ended", names[task.0]),
            false => println!("edf: `{}` is stopped: {fault:?}", names[task.0]),
        });
    };
    env.thread(names::BELOW)
        .prepare(move || below(wake, idle, tell));
    env.ready().signal();
    let mut driver = Driver::new(parts);
    let mut reporter = Reporter {
        news,
        below: env.capability(names::WAKES),
    };
    loop {
        // The reporter never ends it.
        driver.run(&mut reporter)?;
    }
}

fn table(env: &Environment) -> Edf {
    let memory = env.memory(Edf::NAME);
    // SAFETY: the launcher maps it read-only, and nobody writes to it.
    let bytes = unsafe { slice::from_raw_parts(memory.as_mut_ptr(), memory.len as usize) };
    Edf::decode(bytes).expect("the builder made the table")
}

fn parts(env: &Environment, table: &Edf, clock: Clock) -> Parts {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let clients = table.tasks.iter().map(|task| client(env, tsc, task));
    let replies = (0..=table.tasks.len()).map(|index| env.capability(&names::reply(index)));
    Parts {
        endpoint: env.capability(env.name()),
        clock,
        clients: clients.collect(),
        replies: replies.collect(),
        control: Some(env.capability(&format!("sched-control.{}", table.core))),
        late: match table.late {
            described::Late::CatchUp => Late::CatchUp,
            described::Late::Skip => Late::Skip,
        },
        overrun: match table.overrun {
            described::Overrun::Suspend => Overrun::Suspend,
            described::Overrun::Stop => Overrun::Stop,
        },
        below: Some(env.capability(names::WAKES)),
    }
}

fn client(env: &Environment, tsc: Tsc, task: &described::Task) -> Client {
    Client {
        parameters: Parameters {
            period: tsc.us_to_ticks(task.period_us),
            deadline: tsc.us_to_ticks(task.deadline_us),
            offset: tsc.us_to_ticks(task.offset_us),
        },
        context: env.context_of(&task.name),
        thread: task
            .calls_servers
            .then(|| env.capability(&format!("{}.tcb", task.name))),
        budget: task.budget_us.map(|budget_us| SchedParams {
            badge: task.timeout_badge,
            ..SchedParams::new(budget_us, task.period_us)
        }),
    }
}

/// Leaves word of which tasks are stopped to the thread below: a line on a serial port takes longer than a
/// deadline.
struct Reporter {
    news: &'static News,
    below: Notification,
}

impl Observer for Reporter {
    fn removed(&mut self, task: TaskId, fault: Fault) {
        self.news.put(task, fault);
        self.below.signal();
    }
}

/// The fault with which each task was stopped: written once, and told once.
struct News(Vec<Entry>);

struct Entry {
    state: AtomicU8,
    fault: UnsafeCell<Option<Fault>>,
}

const EMPTY: u8 = 0;
const WRITTEN: u8 = 1;
const TOLD: u8 = 2;

// SAFETY: a fault is written by the scheduler's thread only, before its entry is `WRITTEN` (`put`), and read
// behind that only (`take_all`); nobody writes it again.
unsafe impl Sync for News {}

impl News {
    fn leak(tasks: usize) -> &'static Self {
        let entry = || Entry {
            state: AtomicU8::new(EMPTY),
            fault: UnsafeCell::new(None),
        };
        Box::leak(Box::new(Self((0..tasks).map(|_| entry()).collect())))
    }

    /// Only the first fault of a task counts.
    fn put(&self, task: TaskId, fault: Fault) {
        let Some(entry) = self.0.get(task.0) else {
            return;
        };
        if entry.state.load(Ordering::Relaxed) == EMPTY {
            // SAFETY: nobody reads it before it is `WRITTEN`.
            unsafe { *entry.fault.get() = Some(fault) };
            entry.state.store(WRITTEN, Ordering::Release);
        }
    }

    /// Tells `say` what it was not told before.
    fn take_all(&self, mut say: impl FnMut(TaskId, Fault)) {
        for (index, entry) in self.0.iter().enumerate() {
            if entry.state.load(Ordering::Acquire) == WRITTEN {
                entry.state.store(TOLD, Ordering::Relaxed);
                // SAFETY: it is `WRITTEN`, and nobody writes it again.
                if let Some(fault) = unsafe { *entry.fault.get() } {
                    say(TaskId(index), fault);
                }
            }
        }
    }
}
