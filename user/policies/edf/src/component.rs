//! The scheduler as a component of a described system: what its `[[edf]]` says.

use alloc::format;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::slice;

use sandglass::cap::{SchedParams, Tcb};
use sandglass::fault::Fault;
use sandglass::hpet::{HpetError, Timer};
use sandglass::time::Tsc;
use sandglass::{println, Environment};
use sandglass_description::policy::edf::{self as described, names, Edf};
use sandglass_description::policy::Table;

use crate::driver::{Client, Driver, Observer, Overrun, Parts};
use crate::scheduler::{Late, Parameters, TaskId};

/// Schedules the tasks of the component's table, for good.
///
/// # Errors
/// The kernel refuses something, or there is no HPET.
///
/// # Panics
/// The component has no table, or lacks what an `[[edf]]` gives.
pub fn run(env: &'static Environment) -> Result<Infallible, HpetError> {
    let table = table(env);
    let timer = Timer::described(env, names::REGISTERS, names::TIMER, names::PIT)?;
    let own: Tcb = env.capability(&format!("{}.tcb", env.name()));
    own.bind_notification(timer.notification())?;
    let parts = parts(env, &table, timer);
    env.ready().signal();
    let mut driver = Driver::new(parts);
    let mut reporter = Reporter { table: &table };
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

fn parts(env: &Environment, table: &Edf, timer: Timer) -> Parts {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let clients = table.tasks.iter().map(|task| client(env, tsc, task));
    let replies = (0..=table.tasks.len()).map(|index| env.capability(&names::reply(index)));
    Parts {
        endpoint: env.capability(env.name()),
        timer,
        tsc,
        clients: clients.collect(),
        replies: replies.collect::<Vec<_>>(),
        control: Some(env.capability(&format!("sched-control.{}", table.core))),
        late: match table.late {
            described::Late::CatchUp => Late::CatchUp,
            described::Late::Skip => Late::Skip,
        },
        overrun: match table.overrun {
            described::Overrun::Suspend => Overrun::Suspend,
            described::Overrun::Stop => Overrun::Stop,
        },
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

/// Says on the console which tasks are stopped.
struct Reporter<'t> {
    table: &'t Edf,
}

impl Observer for Reporter<'_> {
    fn removed(&mut self, task: TaskId, fault: Fault) {
        let name = self.table.tasks.get(task.0).map_or("?", |task| &task.name);
        println!("edf: `{name}` is stopped: {fault:?}");
    }
}
