//! Notifications.

use alloc::vec;

use sandglass::SetupError;

use crate::lab::{Home, Lab, Role, LONG};
use crate::results::report;
use crate::script::{Step, RUNS};

const PRIORITY: u8 = 100;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    ping_pong(lab)?;
    nobody_waits(lab)
}

/// Three threads, so that the middle one waits whenever the high one signals it:
///
/// | high | middle | low |
/// | --- | --- | --- |
/// | signals the middle one: no switch | | |
/// | waits: switches | goes on | |
/// | goes on | signals the high one: switches | |
/// | waits | goes on and waits | |
/// | | | signals the high one |
fn ping_pong(lab: &mut Lab) -> Result<(), SetupError> {
    let resources = &mut lab.process.resources;
    let ping = resources.notification()?;
    let (pong, again) = (resources.notification()?, resources.notification()?);
    let contexts = [lab.context(LONG)?, lab.context(LONG)?, lab.context(LONG)?];
    let (high, high_steps) = lab.start_script(
        Role::new(PRIORITY + 1, Home::Here),
        contexts[0],
        vec![],
        vec![Step::signal(ping), Step::wait(pong), Step::wait(again)],
    )?;
    let (middle, middle_steps) = lab.start_script(
        Role::new(PRIORITY, Home::Twin),
        contexts[1],
        vec![],
        vec![Step::wait(ping), Step::signal(pong)],
    )?;
    let (low, _) = lab.start_script(
        Role::new(PRIORITY - 1, Home::Here),
        contexts[2],
        vec![],
        vec![Step::signal(again)],
    )?;
    lab.done.wait();
    for tcb in [high, middle, low] {
        tcb.suspend()?;
    }
    let (signal, wait) = (high_steps[0].times(), high_steps[1].times());
    let (woken, waking) = (middle_steps[0].times(), middle_steps[1].times());
    let overhead = lab.overhead.around_syscall;
    report("signal", overhead, |run| {
        (signal.before[run], signal.after[run])
    });
    report("wait-block", overhead, |run| {
        (wait.before[run], woken.after[run])
    });
    // The middle thread's last signal has not returned.
    report("signal-wake-higher", overhead, |run| {
        (waking.before[run - 1], wait.after[run - 1])
    });
    Ok(())
}

fn nobody_waits(lab: &mut Lab) -> Result<(), SetupError> {
    let step = Step::signal(lab.process.resources.notification()?);
    for run in 0..RUNS {
        step.perform(run);
    }
    let times = step.times();
    report("signal-no-waiter", lab.overhead.around_syscall, |run| {
        (times.before[run], times.after[run])
    });
    Ok(())
}
