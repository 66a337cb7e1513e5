//! Schedules task sets by their deadlines, one after the other, and records every decision (thesis
//! 8.4.2, Figure 8.8). The main thread is the scheduler, with the library's driver; its further
//! threads are the tasks.

#![no_std]
#![no_main]

extern crate alloc;

mod jobs;
mod recorder;

use alloc::format;
use alloc::vec::Vec;
use core::slice;

use edf_record::{Outcome, Plan, Set, MAX_TASKS};
use sandglass::arch::OutputPort;
use sandglass::cap::{Endpoint, Notification, SchedParams, Tcb};
use sandglass::time::Tsc;
use sandglass::timer::{Timer, TimerError};
use sandglass::Environment;
use sandglass_edf::clock::Clock;
use sandglass_edf::driver::{Client, Driver, Overrun, Parts};
use sandglass_edf::{Late, Parameters, Task};

use recorder::Recorder;

sandglass::entry!(main, stack = 0x1_0000, heap = 0x20_0000);

/// Longer than the longest period of the PIT.
const PIT_PERIOD_US: u64 = 60_000;

fn main(env: &'static Environment) -> Result<(), TimerError> {
    let plan = plan(env);
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let timer = Timer::described(env, "hpet", "timer", "pit")?;
    // The emulator's PIT interrupts once more after it was silenced.
    timer.sleep_us(PIT_PERIOD_US)?;
    env.capability::<Tcb>("bench.tcb")
        .bind_notification(timer.notification())?;
    for index in 0..MAX_TASKS {
        prepare_task(env, &plan, index)?;
    }
    let chunk_ticks = jobs::calibrate();
    env.capability::<Notification>("ready").signal();

    let port = OutputPort::described(env, "record")?;
    let mut driver = Driver::new(parts(env, timer, tsc));
    for (index, set) in plan.sets.iter().enumerate() {
        driver.gather(&mut ())?;
        driver.schedule(clients(env, tsc, &plan, set));
        for (index, task) in set.tasks.iter().enumerate() {
            let ticks = if plan.preemptive {
                u64::MAX
            } else {
                tsc.us_to_ticks(task.budget_us)
            };
            jobs::set_length(index, ticks / chunk_ticks);
        }
        let mut recorder = Recorder::new(plan.decisions as usize);
        driver.run(&mut recorder)?;
        jobs::abandon();
        send(&port, &recorder.outcome(index as u32))?;
    }
    Ok(())
}

fn plan(env: &Environment) -> Plan {
    let memory = env.memory("plan");
    // SAFETY: the launcher maps the file read-only, and nobody writes to it.
    let bytes = unsafe { slice::from_raw_parts(memory.as_mut_ptr(), memory.len as usize) };
    edf_record::decode_plan(bytes).expect("the tools made the plan")
}

fn send(port: &OutputPort, outcome: &Outcome) -> Result<(), TimerError> {
    let bytes = edf_record::encode(outcome).expect("outcomes can be encoded");
    Ok(port.write(&bytes)?)
}

/// Tells a further thread of this component that it is a task.
fn prepare_task(env: &'static Environment, plan: &Plan, index: usize) -> Result<(), TimerError> {
    if plan.preemptive {
        let faults: Endpoint = env.capability(&format!("fault{index}"));
        env.capability::<Tcb>(&format!("bench/t{index}.tcb"))
            .set_timeout_endpoint(Some(faults))?;
    }
    let scheduler: Endpoint = env.capability(&format!("call{index}"));
    env.thread(&format!("t{index}")).prepare(move || {
        Task::of(scheduler).run(|_| jobs::execute(index));
    });
    Ok(())
}

fn parts(env: &Environment, timer: Timer, tsc: Tsc) -> Parts {
    let reply = |index| env.capability(&format!("job{index}.reply"));
    Parts {
        endpoint: env.capability("tasks"),
        clock: Clock::own(timer, tsc),
        clients: Vec::new(),
        replies: (0..=MAX_TASKS).map(reply).collect(),
        control: Some(env.capability("sched-control.0")),
        late: Late::CatchUp,
        overrun: Overrun::Suspend,
        // Its tasks only compute.
        below: None,
    }
}

/// A job of a preemptive set has its budget; else nothing ends it.
fn clients(env: &Environment, tsc: Tsc, plan: &Plan, set: &Set) -> Vec<Client> {
    let tasks = set.tasks.iter().enumerate();
    let client = |(index, task): (usize, &edf_record::Task)| Client {
        parameters: Parameters {
            period: tsc.us_to_ticks(task.period_us),
            deadline: tsc.us_to_ticks(task.deadline_us),
            offset: 0,
        },
        context: env.context_of(&format!("bench/t{index}")),
        thread: None,
        budget: plan
            .preemptive
            .then(|| SchedParams::new(task.budget_us, task.period_us)),
    };
    tasks.map(client).collect()
}
