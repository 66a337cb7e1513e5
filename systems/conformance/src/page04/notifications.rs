//! 04, section 7.6: the context of a notification goes to whom it wakes, and comes back.

use super::kit::{active, ensure_near, passive, Clock};
use crate::prelude::*;
use sandglass::cap::nb_send_wait;

pub const CHECKS: &[Check] = &[
    check(
        "04/7.6/a-passive-waiter-gets-the-context-and-gives-it-back",
        waiter,
    ),
    check(
        "04/7.6/a-bound-thread-in-recv-gets-it-and-gives-it-back",
        bound_receiver,
    ),
    check("04/7.6/who-takes-a-pending-signal-gets-it", pending_signal),
    check(
        "04/7.6/a-bound-receiver-that-takes-a-pending-signal-gets-it",
        pending_signal_bound,
    ),
    check("04/7.6/a-context-in-use-is-not-lent", context_in_use),
    check("04/7.6/without-a-context-nobody-runs", no_context),
    check("04/7.6/an-active-waiter-keeps-its-own", active_waiter),
    check(
        "04/7.6/an-exhausted-context-lets-the-recipient-wait",
        exhausted,
    ),
    check("04/7.6/polling-gives-nothing-back", polling),
    check(
        "04/7.6/a-non-blocking-receive-gives-nothing-back",
        non_blocking_receive,
    ),
    check(
        "04/7.6/waiting-elsewhere-gives-nothing-back",
        waiting_elsewhere,
    ),
    check(
        "04/7.6/a-receive-gives-it-back-though-a-call-is-queued",
        receive_with_call,
    ),
    check(
        "04/7.6/a-receive-gives-it-back-though-a-send-is-queued",
        receive_with_send,
    ),
    check(
        "04/7.6/a-pending-signal-lets-a-receiver-keep-it",
        receive_with_signal,
    ),
    check("04/7.6/another-waiter-gets-it-after-the-first", next_waiter),
    check("04/7.6/an-unbound-context-is-not-lent", unbound_context),
    check(
        "04/7.6/a-recipient-on-a-context-given-away-stays-passive",
        recipient_of_bound_tcb_blocked,
    ),
];

/// A passive thread of priority 120, and a notification with a context.
struct Lender {
    trace: &'static Trace,
    clock: Clock,
    tcb: Tcb,
    /// The thread's, not bound to anything.
    spare: SchedContext,
    signal: Notification,
    /// The notification's.
    context: SchedContext,
}

/// `body` must reach its first wait at once; the thread is bound to the notification if `bound`.
fn lender<B: FnOnce() + Send + 'static>(
    f: &mut Fixture,
    bound: bool,
    body: impl FnOnce(&'static Trace, Clock, Notification) -> B,
) -> Result<Lender, Failure> {
    let (trace, clock, signal) = (Trace::leak(), Clock::new(f)?, f.notification()?);
    let context = f.context(FULL)?;
    context.bind_notification(signal)?;
    let (tcb, spare) = passive(f, 120, body(trace, clock, signal))?;
    if bound {
        // Only a thread that does not wait for the notification can be.
        tcb.bind_notification(signal)?;
    }
    spare.consumed_us()?;
    Ok(Lender {
        trace,
        clock,
        tcb,
        spare,
        signal,
        context,
    })
}

impl Lender {
    /// Signals; fails unless these were noted by then.
    fn signal(&self, f: &mut Fixture, events: &[u64]) -> TestResult {
        self.signal.signal();
        self.expect(f, events)
    }

    fn expect(&self, f: &mut Fixture, events: &[u64]) -> TestResult {
        f.settle()?;
        ensure_eq!(self.trace.events(), events);
        Ok(())
    }

    /// Fails unless the notification's context has no thread: only then can it be bound.
    fn ensure_free(&self) -> TestResult {
        let bound = self.context.bind(self.tcb);
        ensure!(bound.is_ok(), "the context is not free: {bound:?}");
        self.context.unbind_tcb(self.tcb)?;
        Ok(())
    }

    fn ensure_kept(&self) -> TestResult {
        ensure!(runs_on(self.tcb, 120, self.context), "it was given back");
        Ok(())
    }
}

fn waiter(f: &mut Fixture) -> TestResult {
    let lender = lender(f, false, |trace, clock, signal| {
        move || loop {
            trace.note(signal.wait());
            clock.burn(200);
        }
    })?;
    lender.ensure_free()?;
    lender.signal(f, &[0])?;
    ensure_near("the context's time", lender.context.consumed_us()?, 200)?;
    ensure_eq!(lender.spare.consumed_us()?, 0);
    lender.ensure_free()?;
    lender.signal(f, &[0, 0])
}

fn bound_receiver(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let lender = lender(f, true, |trace, clock, _| {
        move || {
            let mut received = endpoint.recv(reply);
            loop {
                trace.note(received.message.label());
                clock.burn(200);
                received = reply.reply_recv(endpoint, Message::EMPTY);
            }
        }
    })?;
    lender.signal(f, &[0])?;
    ensure_near("the context's time", lender.context.consumed_us()?, 200)?;
    lender.ensure_free()?;
    // A caller's context serves as well.
    let trace = lender.trace;
    let (_, caller) = active(f, 100, move || {
        endpoint.call(Message::new(7, []));
        trace.note(1);
    })?;
    lender.expect(f, &[0, 7, 1])?;
    ensure_near("the caller's time", caller.consumed_us()?, 200)?;
    ensure_eq!(lender.context.consumed_us()?, 0);
    lender.signal(f, &[0, 7, 1, 0])
}

/// A thread gives its context away and, in the same system call, waits where a signal is pending.
fn pending_signal(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (elsewhere, signal, context) = (f.endpoint()?, f.notification()?, f.context(FULL)?);
    context.bind_notification(signal)?;
    passive(f, 110, move || {
        elsewhere.wait();
    })?;
    signal.signal();
    let (tcb, _) = active(f, 120, move || {
        nb_send_wait(elsewhere, Message::EMPTY, signal);
        trace.note(1);
        clock.burn(200);
    })?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    ensure_near("the context's time", context.consumed_us()?, 200)?;
    ensure!(runs_on(tcb, 120, context), "the thread has not got it");
    Ok(())
}

fn pending_signal_bound(f: &mut Fixture) -> TestResult {
    let (clock, trace) = (Clock::new(f)?, Trace::leak());
    let (elsewhere, signal, context) = (f.endpoint()?, f.notification()?, f.context(FULL)?);
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    context.bind_notification(signal)?;
    passive(f, 110, move || {
        elsewhere.wait();
    })?;
    signal.signal();
    let params = f.active(120)?;
    let tcb = f.prepare(params, move || {
        sandglass::cap::nb_send_recv(elsewhere, Message::EMPTY, endpoint, reply);
        trace.note(1);
        clock.burn(200);
    })?;
    tcb.bind_notification(signal)?;
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [1]);
    ensure_near("the context's time", context.consumed_us()?, 200)?;
    ensure!(runs_on(tcb, 120, context), "the thread has not got it");
    Ok(())
}

/// It belongs to a thread too: the recipient has the signal, but no time.
fn context_in_use(f: &mut Fixture) -> TestResult {
    let lender = lender(f, false, |trace, _, signal| {
        move || trace.note(signal.wait())
    })?;
    let other = f.tcb()?;
    lender.context.bind(other)?;
    lender.signal(f, &[])?;
    ensure_eq!(lender.signal.poll(), 0);
    // That the context becomes free does not help.
    lender.context.unbind_tcb(other)?;
    lender.expect(f, &[])?;
    lender.spare.bind(lender.tcb)?;
    lender.expect(f, &[0])
}

fn no_context(f: &mut Fixture) -> TestResult {
    let lender = lender(f, false, |trace, _, signal| {
        move || trace.note(signal.wait())
    })?;
    lender.context.unbind_notification(lender.signal)?;
    lender.signal(f, &[])?;
    lender.spare.bind(lender.tcb)?;
    lender.expect(f, &[0])
}

fn active_waiter(f: &mut Fixture) -> TestResult {
    let lender = lender(f, false, |trace, clock, signal| {
        move || {
            trace.note(signal.wait());
            clock.burn(200);
            signal.wait();
        }
    })?;
    lender.spare.bind(lender.tcb)?;
    lender.signal(f, &[0])?;
    ensure_near("its own time", lender.spare.consumed_us()?, 200)?;
    ensure_eq!(lender.context.consumed_us()?, 0);
    // Nor does it give its own away.
    ensure!(runs_on(lender.tcb, 120, lender.spare), "its own is gone");
    Ok(())
}

/// The signal comes while the context waits for its refill.
fn exhausted(f: &mut Fixture) -> TestResult {
    let lender = lender(f, false, |trace, clock, signal| {
        move || {
            signal.wait();
            clock.burn(200);
            signal.wait();
            trace.note(clock.now());
        }
    })?;
    f.control
        .configure(lender.context, SchedParams::new(210, 3_000))?;
    lender.clock.start();
    lender.signal(f, &[])?;
    lender.signal.signal();
    lender.clock.sleep_until(4_000)?;
    let events = lender.trace.events();
    ensure!(events.len() == 1, "it went on {events:?}");
    // Of 210 µs it used 200; the rest is less than the least budget.
    let at = events[0];
    ensure!((2_900..=3_020).contains(&at), "it went on at {at} µs");
    Ok(())
}

fn polling(f: &mut Fixture) -> TestResult {
    let never = f.endpoint()?;
    let lender = lender(f, false, |trace, _, signal| {
        move || {
            signal.wait();
            signal.poll();
            trace.note(1);
            never.wait();
        }
    })?;
    lender.signal(f, &[1])?;
    lender.ensure_kept()
}

fn non_blocking_receive(f: &mut Fixture) -> TestResult {
    let (endpoint, reply, park) = (f.endpoint()?, f.reply()?, f.notification()?);
    let lender = lender(f, true, |trace, _, _| {
        move || {
            endpoint.recv(reply);
            endpoint.nb_recv(reply);
            endpoint.nb_wait();
            trace.note(1);
            park.wait();
        }
    })?;
    lender.signal(f, &[1])?;
    lender.ensure_kept()
}

/// For another notification, or in a call or a send.
fn waiting_elsewhere(f: &mut Fixture) -> TestResult {
    let (other, endpoint) = (f.notification()?, f.endpoint()?);
    for blocked_in in 0..3 {
        let lender = lender(f, false, |trace, _, signal| {
            move || {
                signal.wait();
                trace.note(1);
                match blocked_in {
                    0 => {
                        other.wait();
                    }
                    1 => {
                        endpoint.call(Message::EMPTY);
                    }
                    _ => endpoint.send(Message::EMPTY),
                }
            }
        })?;
        lender.signal(f, &[1])?;
        lender.ensure_kept()?;
    }
    Ok(())
}

/// A receiver bound to the notification, woken by it, notes 1 and receives again. While it still
/// burns its time, a thread of higher priority does `queued`.
fn receiving_again(
    f: &mut Fixture,
    endpoint: Endpoint,
    queued: impl FnOnce() + Send + 'static,
) -> Result<Lender, Failure> {
    let reply = f.reply()?;
    let lender = lender(f, true, |trace, clock, _| {
        move || {
            endpoint.recv(reply);
            clock.burn(300);
            trace.note(1);
            trace.note(endpoint.recv(reply).message.label());
            clock.burn(200);
            reply.send(Message::EMPTY);
            trace.note(2);
        }
    })?;
    let params = f.active(130)?;
    let sender = f.prepare(params, queued)?;
    lender.clock.start();
    lender.signal.signal();
    lender.clock.sleep_until(150)?;
    sender.resume()?;
    Ok(lender)
}

/// It runs on the caller's then.
fn receive_with_call(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let lender = receiving_again(f, endpoint, move || {
        endpoint.call(Message::new(7, []));
    })?;
    // The answer takes the caller's context away, so 2 is not noted.
    lender.expect(f, &[1, 7])?;
    ensure_near("the context's time", lender.context.consumed_us()?, 300)?;
    lender.ensure_free()
}

/// It has the message, and no time.
fn receive_with_send(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let lender = receiving_again(f, endpoint, move || endpoint.send(Message::new(7, [])))?;
    lender.expect(f, &[1])?;
    lender.spare.bind(lender.tcb)?;
    lender.expect(f, &[1, 7, 2])
}

fn receive_with_signal(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let lender = receiving_again(f, endpoint, move || endpoint.send(Message::new(7, [])))?;
    // While the receiver still burns its time.
    lender.signal.signal();
    lender.expect(f, &[1, 0, 2])?;
    ensure_near("the context's time", lender.context.consumed_us()?, 500)?;
    lender.ensure_kept()
}

/// While one runs on it, another that is signalled gets none, and stays without.
fn next_waiter(f: &mut Fixture) -> TestResult {
    let hold = f.notification()?;
    let lender = lender(f, false, |trace, _, signal| {
        move || {
            signal.wait();
            trace.note(1);
            hold.wait();
            signal.wait();
        }
    })?;
    let (trace, signal) = (lender.trace, lender.signal);
    let second = move || {
        signal.wait();
        trace.note(2);
    };
    lender.signal(f, &[1])?;
    passive(f, 120, second)?;
    // Woken in vain.
    lender.signal(f, &[1])?;
    hold.signal();
    lender.expect(f, &[1])?;
    // One more, before the first in the queue, gets what that has given back.
    passive(f, 130, second)?;
    lender.signal(f, &[1, 2])
}

fn unbound_context(f: &mut Fixture) -> TestResult {
    let lender = lender(f, false, |trace, _, signal| {
        move || {
            trace.note(signal.wait());
            trace.note(signal.wait());
        }
    })?;
    lender.signal(f, &[0])?;
    lender.context.unbind()?;
    lender.signal(f, &[0])?;
    lender.context.bind_notification(lender.signal)?;
    lender.expect(f, &[0])?;
    lender.context.bind(lender.tcb)?;
    lender.expect(f, &[0, 0])
}

/// A bound thread that does not receive is not woken: the signal stays pending, and nobody gets
/// the context.
fn recipient_of_bound_tcb_blocked(f: &mut Fixture) -> TestResult {
    let other = f.notification()?;
    let lender = lender(f, true, |trace, _, _| {
        move || {
            other.wait();
            trace.note(1);
        }
    })?;
    lender.signal(f, &[])?;
    lender.ensure_free()?;
    other.signal();
    lender.expect(f, &[])?;
    lender.spare.bind(lender.tcb)?;
    lender.expect(f, &[1])
}
