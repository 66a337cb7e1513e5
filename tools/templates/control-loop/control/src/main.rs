//! Controls an oven: a job at each release of a timer. It ends the system after `jobs` jobs, with status
//! 0 if none ended after its deadline.

#![no_std]
#![no_main]

use law::{Controller, Oven};
use sandglass::trace::{mark, Mark};
use sandglass::{println, time, Environment};
use sandglass_tasks::releases::Missed;
use sandglass_tasks::TimeTriggered;
use sandglass_timers::Refusal;

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// Thousandths of a degree.
const WANTED: i64 = 180_000;

fn main(env: &'static Environment) -> Result<u8, Refusal> {
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let (jobs, deadline) = (env.parameter("jobs"), env.parameter("deadline"));
    let period = env.parameter("period");
    let mut task = TimeTriggered::described(env, "tick", period, Missed::Skip)?;
    let (mut controller, mut oven) = (Controller::default(), Oven::cold());
    let mut late = 0;
    for job in 0..jobs {
        let at = task.wait().at;
        mark(Mark::Release { job, at });
        oven.heat(controller.step(oven.temperature, WANTED));
        mark(Mark::End { job });
        late += u64::from(time::ticks() - at > tsc.us_to_ticks(deadline));
    }
    let degrees = (oven.temperature + 500) / 1000;
    println!("control: {jobs} jobs, {late} late; the oven has {degrees} degrees");
    Ok(u8::from(late > 0))
}
