//! A thread is made ready on another core: it runs there at once if that core is idle or runs a
//! thread of lower priority, and waits there otherwise.
//!
//! No thread of these checks uses up its budget, and so no timer reschedules a core that was not
//! told to.

use alloc::boxed::Box;

use super::kit::{prepared, prepared_with, runner, Cores, Runner, ENDLESS};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/15/woken-elsewhere-by-a-signal", |f| {
        woken(f, Wake::Signal)
    }),
    check("04/15/woken-elsewhere-by-a-bound-signal", |f| {
        woken(f, Wake::BoundSignal)
    }),
    check("04/15/woken-elsewhere-by-send", |f| woken(f, Wake::Send)),
    check("04/15/woken-elsewhere-by-nbsend", |f| {
        woken(f, Wake::NbSend)
    }),
    check("04/15/woken-elsewhere-by-being-received-from", |f| {
        woken(f, Wake::Received)
    }),
    check("04/15/woken-elsewhere-by-a-reply", |f| {
        woken(f, Wake::Reply)
    }),
    check("04/15/woken-elsewhere-by-a-fault-reply", |f| {
        woken(f, Wake::FaultReply)
    }),
    check("04/15/woken-elsewhere-by-resume", |f| {
        woken(f, Wake::Resume)
    }),
    check("04/15/woken-elsewhere-by-write-registers", |f| {
        woken(f, Wake::WriteRegisters)
    }),
    check("04/15/woken-elsewhere-by-set-priority", |f| {
        woken(f, Wake::Priority)
    }),
    check("04/15/woken-elsewhere-by-binding-a-context", |f| {
        woken(f, Wake::Bind)
    }),
    check("04/15/woken-elsewhere-by-set-sched-params", |f| {
        woken(f, Wake::SchedParams)
    }),
    check("04/15/woken-elsewhere-by-configuring-a-context", |f| {
        woken(f, Wake::Configure)
    }),
    check("04/15/woken-elsewhere-by-a-notification's-context", |f| {
        woken(f, Wake::Lent)
    }),
];

/// Priority of the thread that is woken.
const PRIORITY: u8 = 100;

/// How a thread is made ready.
#[derive(Clone, Copy)]
enum Wake {
    Signal,
    BoundSignal,
    Send,
    NbSend,
    Received,
    Reply,
    FaultReply,
    Resume,
    WriteRegisters,
    Priority,
    Bind,
    SchedParams,
    Configure,
    Lent,
}

/// What makes it ready.
type Waker = Box<dyn FnOnce() -> TestResult>;

fn woken(f: &mut Fixture, wake: Wake) -> TestResult {
    let cores = Cores::new(f, 2)?;
    for core in cores.others() {
        for busy in [None, Some(PRIORITY - 1), Some(PRIORITY), Some(PRIORITY + 1)] {
            woken_beside(f, &cores, core, wake, busy)?;
        }
    }
    Ok(())
}

/// Wakes a thread on core `core`, which runs a thread of priority `busy`, or none.
fn woken_beside(
    f: &mut Fixture,
    cores: &Cores,
    core: u64,
    wake: Wake,
    busy: Option<u8>,
) -> TestResult {
    let (sleeper, waker) = sleeper(f, cores, core, wake)?;
    let Some(priority) = busy else {
        waker()?;
        sleeper.ensure_runs_at(f, cores.place(core))?;
        return Ok(sleeper.tcb.suspend()?);
    };
    let busy = runner(f, core, priority)?;
    busy.ensure_runs(f)?;
    waker()?;
    if priority < PRIORITY {
        sleeper.ensure_runs_at(f, cores.place(core))?;
        busy.ensure_rests()?;
        busy.tcb.suspend()?;
    } else {
        busy.ensure_runs(f)?;
        sleeper.ensure_rests()?;
        busy.tcb.suspend()?;
        sleeper.ensure_runs_at(f, cores.place(core))?;
    }
    Ok(sleeper.tcb.suspend()?)
}

/// A thread that waits in the manner that `wake` ends, and what ends it.
fn sleeper(
    f: &mut Fixture,
    cores: &Cores,
    core: u64,
    wake: Wake,
) -> Result<(Runner, Waker), Failure> {
    let (signal, endpoint, reply) = (f.notification()?, f.endpoint()?, f.reply()?);
    // Starts it and waits until it waits.
    let start = |f: &mut Fixture, sleeper: Runner| -> Result<Runner, Failure> {
        sleeper.tcb.resume()?;
        cores.settle(f, core)?;
        Ok(sleeper)
    };
    Ok(match wake {
        Wake::Signal => {
            let sleeper = prepared(f, core, PRIORITY, move || {
                signal.wait();
            })?;
            let waker: Waker = Box::new(move || {
                signal.signal();
                Ok(())
            });
            (start(f, sleeper)?, waker)
        }
        Wake::BoundSignal => {
            let sleeper = prepared(f, core, PRIORITY, move || {
                endpoint.recv(reply);
            })?;
            sleeper.tcb.bind_notification(signal)?;
            let waker: Waker = Box::new(move || {
                signal.signal();
                Ok(())
            });
            (start(f, sleeper)?, waker)
        }
        Wake::Send | Wake::NbSend => {
            let sleeper = prepared(f, core, PRIORITY, move || {
                endpoint.wait();
            })?;
            let waker: Waker = Box::new(move || {
                match wake {
                    Wake::Send => endpoint.send(Message::EMPTY),
                    _ => endpoint.nb_send(Message::EMPTY),
                }
                Ok(())
            });
            (start(f, sleeper)?, waker)
        }
        Wake::Received => {
            let sleeper = prepared(f, core, PRIORITY, move || endpoint.send(Message::EMPTY))?;
            let waker: Waker = Box::new(move || {
                endpoint.recv(reply);
                Ok(())
            });
            (start(f, sleeper)?, waker)
        }
        Wake::Reply => {
            let sleeper = prepared(f, core, PRIORITY, move || {
                endpoint.call(Message::EMPTY);
            })?;
            sleeper.tcb.resume()?;
            endpoint.recv(reply);
            (sleeper, answer(reply))
        }
        Wake::FaultReply => {
            let params = ThreadParams {
                fault_handler: Some(endpoint),
                ..f.active_at(core, PRIORITY, ENDLESS)?
            };
            // The handler lets it go on behind the instruction.
            let sleeper = prepared_with(f, params, conformance_kit::arch::breakpoint)?;
            sleeper.tcb.resume()?;
            let fault = endpoint.recv(reply).message;
            let behind = conformance_kit::arch::behind_breakpoint(fault.word(0));
            let waker: Waker = Box::new(move || {
                reply.send(Message::new(0, [behind]));
                Ok(())
            });
            (sleeper, waker)
        }
        Wake::Resume => {
            let sleeper = prepared(f, core, PRIORITY, || ())?;
            (sleeper, Box::new(move || Ok(sleeper.tcb.resume()?)))
        }
        Wake::WriteRegisters => {
            let sleeper = prepared(f, core, PRIORITY, || ())?;
            let registers = sleeper.tcb.read_registers(false)?;
            let waker: Waker =
                Box::new(move || Ok(sleeper.tcb.write_registers(&registers, true)?));
            (sleeper, waker)
        }
        Wake::Priority => {
            let sleeper = prepared(f, core, PRIORITY / 2, || ())?;
            let me = f.me;
            let waker: Waker = Box::new(move || {
                // Beside a thread of higher priority, this alone changes nothing.
                sleeper.tcb.resume()?;
                Ok(sleeper.tcb.set_priority(me, PRIORITY)?)
            });
            (sleeper, waker)
        }
        Wake::Bind => {
            let (sleeper, context) = unbound(f, core)?;
            (sleeper, Box::new(move || Ok(context.bind(sleeper.tcb)?)))
        }
        Wake::SchedParams => {
            let (sleeper, context) = unbound(f, core)?;
            let (me, fault_handler) = (f.me, Some(f.unexpected_faults));
            let waker: Waker = Box::new(move || {
                let arguments = sandglass::cap::SchedArguments {
                    mcp: 0,
                    priority: PRIORITY,
                    sched_context: Some(context),
                    fault_handler,
                };
                Ok(sleeper.tcb.set_sched_params(me, arguments)?)
            });
            (sleeper, waker)
        }
        Wake::Configure => {
            let context = f.unconfigured_context(7)?;
            let params = ThreadParams {
                sched_context: Some(context),
                ..f.passive(PRIORITY)
            };
            let sleeper = prepared_with(f, params, || ())?;
            sleeper.tcb.resume()?;
            let control = f.control_of(core)?;
            let waker: Waker = Box::new(move || Ok(control.configure(context, ENDLESS)?));
            (sleeper, waker)
        }
        Wake::Lent => {
            let sleeper = prepared(f, core, PRIORITY, move || {
                signal.wait();
            })?;
            let sleeper = start(f, sleeper)?;
            sleeper.context.unbind_tcb(sleeper.tcb)?;
            sleeper.context.bind_notification(signal)?;
            let waker: Waker = Box::new(move || {
                signal.signal();
                Ok(())
            });
            (sleeper, waker)
        }
    })
}

/// An empty reply.
fn answer(reply: Reply) -> Waker {
    Box::new(move || {
        reply.send(Message::EMPTY);
        Ok(())
    })
}

/// A thread that lacks nothing but a context, and a context of core `core`.
fn unbound(f: &mut Fixture, core: u64) -> Result<(Runner, SchedContext), Failure> {
    let context = f.context_on(core, ENDLESS)?;
    let params = f.passive(PRIORITY);
    let sleeper = prepared_with(f, params, || ())?;
    sleeper.tcb.resume()?;
    Ok((sleeper, context))
}
