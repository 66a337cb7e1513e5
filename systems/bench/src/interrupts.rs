//! Interrupts, from the interrupted instruction of a spinning thread to the thread that is told.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{SchedContext, SchedParams, Tcb};
use sandglass::timer::{Timer, TimerError};
use sandglass::SetupError;

use crate::isa::spinner_progress;
use crate::lab::{Home, Lab, Role, LONG};
use crate::results::report;
use crate::script::{Program, Step, Times, RUNS};

const PRIORITY: u8 = 100;

/// The spinner's last reading.
static READING: AtomicU64 = AtomicU64::new(0);

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    timeout_fault(lab)?;
    match device(lab) {
        Err(TimerError::Setup(error)) => Err(error),
        Err(error) => panic!("{error}"),
        Ok(()) => Ok(()),
    }
}

/// Makes a thread that writes the counter to [`READING`] for ever.
fn spinner(lab: &mut Lab, role: Role, context: SchedContext) -> Result<Tcb, SetupError> {
    lab.thread(role, context, Program::Spinner, READING.as_ptr() as u64)
}

/// When `spinner`, which does not run now, was interrupted: the instructions before that are in
/// its last reading or after it.
fn interrupted_at(spinner: Tcb) -> Result<u64, SetupError> {
    let ip = spinner.read_registers(false)?.ip();
    let progress = spinner_progress(ip).expect("the spinner spins");
    Ok(READING.load(Relaxed) + progress)
}

/// Reports what was measured, where the first readings were taken by [`interrupted_at`].
fn report_interrupts(lab: &Lab, name: &str, interrupted: &[u64; RUNS], told: &Times) {
    report(name, lab.overhead.after, |run| {
        (interrupted[run], told.after[run])
    });
}

/// The end of a budget, told to the timeout handler, which is the root task.
fn timeout_fault(lab: &mut Lab) -> Result<(), SetupError> {
    let handler = lab.process.resources.endpoint()?;
    let reply = lab.process.resources.reply()?;
    let context = lab.context(SchedParams::new(200, 1_000))?;
    let role = Role {
        timeout_handler: Some(handler),
        ..Role::new(PRIORITY, Home::Twin)
    };
    let tcb = spinner(lab, role, context)?;
    tcb.resume()?;
    let step = Step::recv(handler, reply);
    let mut interrupted = [0; RUNS];
    for (run, at) in interrupted.iter_mut().enumerate() {
        step.perform(run);
        *at = interrupted_at(tcb)?;
        reply.send(sandglass::Message::EMPTY);
    }
    tcb.suspend()?;
    report_interrupts(lab, "timer-to-timeout-fault", &interrupted, &step.times());
    Ok(())
}

/// A timer's interrupt through the interrupt controller, told to its driver, which is the root task.
fn device(lab: &mut Lab) -> Result<(), TimerError> {
    const SOON_US: u64 = 50;
    let timer = Timer::new(&mut lab.process, 0)?;
    let context = lab.context(LONG)?;
    let tcb = spinner(lab, Role::new(PRIORITY, Home::Twin), context)?;
    tcb.resume().map_err(SetupError::from)?;
    let step = Step::wait(timer.notification());
    let mut interrupted = [0; RUNS];
    for (run, at) in interrupted.iter_mut().enumerate() {
        // An interrupt of another cause is not counted.
        loop {
            let deadline = timer.clock().now() + timer.clock().us_to_ticks(SOON_US);
            assert!(!timer.arm(deadline), "the deadline passed at once");
            step.perform(run);
            *at = interrupted_at(tcb)?;
            if timer.expired(deadline)? {
                break;
            }
        }
    }
    tcb.suspend().map_err(SetupError::from)?;
    report_interrupts(lab, "interrupt-to-driver", &interrupted, &step.times());
    Ok(())
}
