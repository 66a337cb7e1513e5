//! 03, sections 4.5 to 4.7: priorities, SetSchedParams, SetTimeoutEndpoint.

use crate::prelude::*;

use super::common::truncated;
use super::raw::{waiting, Raw, CODE};
use super::tcb_space::{bad_handlers, good_handlers};

pub const CHECKS: &[Check] = &[
    check("03/4.5/refusals", priority_refusals),
    check("03/4.5/mcp-bounds-both", priority_bounds),
    check("03/4.5/priority-and-mcp-are-apart", priority_apart),
    check("03/4.6/1-truncated", params_truncated),
    check("03/4.6/2-authority", params_authority),
    check("03/4.6/3-and-4-above-the-authority's-mcp", params_range),
    check("03/4.6/5-contexts-refused", params_contexts),
    check("03/4.6/5-bound-contexts", params_bound_contexts),
    check("03/4.6/5-blocked-threads", params_blocked),
    check("03/4.6/5-blocked-on-its-own-context", params_blocked_equal),
    check("03/4.6/5-null-for-the-current-thread", params_current),
    check("03/4.6/6-fault-handlers", params_handlers),
    check("03/4.6/order-of-the-checks", params_order),
    check("03/4.6/a-refusal-changes-nothing", params_refusal),
    check("03/4.6/sets-all-four", params_effect),
    check("03/4.6/null-unbinds-and-removes", params_null),
    check("03/4.7/refusals", timeout_refusals),
    check("03/4.7/installs-and-removes", timeout_effect),
];

const LABELS: [u64; 2] = [label::TCB_SET_PRIORITY, label::TCB_SET_MC_PRIORITY];

/// A thread with this MCP.
fn authority(f: &mut Fixture, mcp: u8) -> Result<Tcb, Failure> {
    let tcb = f.tcb()?;
    tcb.set_mc_priority(boot::TCB, mcp)?;
    Ok(tcb)
}

/// Fails unless this is its MCP.
fn ensure_mcp(f: &mut Fixture, tcb: Tcb, mcp: u64) -> TestResult {
    let set = Invocation::new(f.tcb()?, LABELS[0], &[256], &[tcb.cptr()]);
    set.expect_error(RangeError, &[0, mcp])
}

fn priority_refusals(f: &mut Fixture) -> TestResult {
    let (tcb, low) = (f.tcb()?, authority(f, 7)?);
    for label in LABELS {
        let set = Invocation::new(tcb, label, &[5], &[low.cptr()]);
        truncated(&set)?;
        let wrong = [f.null()?, f.endpoint()?.cptr(), f.my_context.cptr()];
        for cap in wrong {
            let wrong = set.with_cap(0, cap);
            truncated(&wrong)?;
            wrong.expect_error(InvalidCapability, &[1])?;
            // Before the value.
            wrong
                .with_word(0, 256)
                .expect_error(InvalidCapability, &[1])?;
        }
        set.expect_ok(&[])?;
    }
    Ok(())
}

fn priority_bounds(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for mcp in [0, 1, 100, 254, 255] {
        let authority = authority(f, mcp)?;
        let mcp = u64::from(mcp);
        for label in LABELS {
            let set = Invocation::new(tcb, label, &[mcp], &[authority.cptr()]);
            set.expect_ok(&[])?;
            for above in [mcp + 1, 256, 1 << 8 | mcp, 1 << 32, u64::MAX] {
                set.with_word(0, above)
                    .expect_error(RangeError, &[0, mcp])?;
            }
        }
        // A thread may raise itself no further.
        let own = Invocation::new(authority, LABELS[1], &[mcp + 1], &[authority.cptr()]);
        own.expect_error(RangeError, &[0, mcp])?;
    }
    Ok(())
}

fn priority_apart(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let first = f.active(50)?;
    let first = f.prepare(first, move || trace.note(1))?;
    let second = f.active(60)?;
    let second = f.prepare(second, move || trace.note(2))?;
    first.set_mc_priority(boot::TCB, 200)?;
    second.set_mc_priority(boot::TCB, 0)?;
    first.resume()?;
    second.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [2, 1]);
    for priority in [0, 255] {
        first.set_priority(boot::TCB, priority)?;
        ensure_mcp(f, first, 200)?;
    }
    Ok(())
}

/// A thread, and SetSchedParams of it with arguments that are right.
fn scene(f: &mut Fixture) -> Result<(Tcb, Invocation), Failure> {
    let tcb = f.tcb()?;
    let caps = [
        authority(f, 200)?.cptr(),
        f.context(FULL)?.cptr(),
        f.endpoint()?.cptr(),
    ];
    let params = Invocation::new(tcb, label::TCB_SET_SCHED_PARAMS, &[150, 100], &caps);
    Ok((tcb, params))
}

/// Positions in the arguments.
mod word {
    pub const MCP: usize = 0;
    pub const PRIORITY: usize = 1;
}
mod cap {
    pub const AUTHORITY: usize = 0;
    pub const CONTEXT: usize = 1;
    pub const HANDLER: usize = 2;
}

fn params_truncated(f: &mut Fixture) -> TestResult {
    let (tcb, params) = scene(f)?;
    truncated(&params)?;
    truncated(&params.with_cap(cap::AUTHORITY, f.null::<Tcb>()?))?;
    params.expect_ok(&[])?;
    ensure_mcp(f, tcb, 150)
}

fn params_authority(f: &mut Fixture) -> TestResult {
    let (_, params) = scene(f)?;
    let wrong = [f.null()?, f.endpoint()?.cptr(), boot::CNODE.cptr()];
    for wrong in wrong {
        let params = params.with_cap(cap::AUTHORITY, wrong);
        params.expect_error(InvalidCapability, &[1])?;
        params
            .with_word(word::MCP, 201)
            .expect_error(InvalidCapability, &[1])?;
    }
    Ok(())
}

fn params_range(f: &mut Fixture) -> TestResult {
    let (_, params) = scene(f)?;
    for which in [word::MCP, word::PRIORITY] {
        for value in [201, 255, 256, 1 << 32, u64::MAX] {
            let above = params.with_word(which, value);
            above.expect_error(RangeError, &[0, 200])?;
            // Before the context.
            above
                .with_cap(cap::CONTEXT, f.me)
                .expect_error(RangeError, &[0, 200])?;
        }
    }
    // The priority may be above the thread's own MCP.
    params
        .with_word(word::MCP, 0)
        .with_word(word::PRIORITY, 200)
        .expect_ok(&[])
}

fn params_contexts(f: &mut Fixture) -> TestResult {
    let (_, params) = scene(f)?;
    let wrong = [
        f.endpoint()?.cptr(),
        f.notification()?.cptr(),
        f.me.cptr(),
        f.control.cptr(),
        boot::CNODE.cptr(),
    ];
    for wrong in wrong {
        params
            .with_cap(cap::CONTEXT, wrong)
            .expect_error(InvalidCapability, &[2])?;
    }
    // One that is not configured is no obstacle.
    let unconfigured = f.unconfigured_context(7)?;
    params.with_cap(cap::CONTEXT, unconfigured).expect_ok(&[])
}

fn params_bound_contexts(f: &mut Fixture) -> TestResult {
    let (_, params) = scene(f)?;
    params.expect_ok(&[])?;
    // The same again.
    params.expect_ok(&[])?;
    let another = f.context(FULL)?;
    params
        .with_cap(cap::CONTEXT, another)
        .expect_error(IllegalOperation, &[])?;
    // One that another thread has.
    params.on(f.tcb()?).expect_error(IllegalOperation, &[])?;
    // One that a notification has is free for a thread.
    another.bind_notification(f.notification()?)?;
    params
        .on(f.tcb()?)
        .with_cap(cap::CONTEXT, another)
        .expect_ok(&[])
}

/// A context whose budget is used up for the next second, and without a thread.
fn depleted(f: &mut Fixture) -> Result<SchedContext, Failure> {
    let context = f.context(SchedParams::new(50, 1_000_000))?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let tcb = f.spawn(params, || spin())?;
    f.settle()?;
    context.unbind_tcb(tcb)?;
    Ok(context)
}

/// A thread that has blocked, and then lost its context.
fn blocked(f: &mut Fixture, block: impl FnOnce() + Send + 'static) -> Result<Tcb, Failure> {
    let context = f.context(FULL)?;
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    let tcb = f.spawn(params, block)?;
    f.settle()?;
    context.unbind_tcb(tcb)?;
    Ok(tcb)
}

fn params_blocked(f: &mut Fixture) -> TestResult {
    let (inactive, params) = scene(f)?;
    let (endpoint, called, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let (notification, receiving) = (f.notification()?, f.endpoint()?);
    let waiting = blocked(f, move || {
        notification.wait();
    })?;
    let sending = blocked(f, move || endpoint.send(Message::EMPTY))?;
    let receiving = blocked(f, move || {
        receiving.wait();
    })?;
    let replying = blocked(f, move || {
        called.call(Message::EMPTY);
    })?;
    called.recv(reply);
    let (depleted, unconfigured) = (depleted(f)?, f.unconfigured_context(7)?);
    for tcb in [waiting, sending, receiving, replying] {
        for context in [depleted, unconfigured] {
            let params = params.on(tcb).with_cap(cap::CONTEXT, context);
            params.expect_error(IllegalOperation, &[])?;
            // Before the fault handler.
            params
                .with_cap(cap::HANDLER, f.me)
                .expect_error(IllegalOperation, &[])?;
        }
        let null = f.null::<SchedContext>()?;
        params.on(tcb).with_cap(cap::CONTEXT, null).expect_ok(&[])?;
        let ready = f.context(SchedParams::new(50, 1_000_000))?;
        params
            .on(tcb)
            .with_cap(cap::CONTEXT, ready)
            .expect_ok(&[])?;
    }
    // A thread that is not blocked may have them.
    params
        .on(inactive)
        .with_cap(cap::CONTEXT, depleted)
        .expect_ok(&[])
}

/// A thread that waits for its timeout handler has a context that is not released.
fn params_blocked_equal(f: &mut Fixture) -> TestResult {
    let (_, params) = scene(f)?;
    let (handler, reply) = (f.endpoint()?, f.reply()?);
    let slice = SchedParams::new(50, 1_000_000);
    let context = f.context(slice)?;
    let timed = ThreadParams {
        sched_context: Some(context),
        timeout_handler: Some(handler),
        ..f.passive(100)
    };
    let tcb = f.spawn(timed, || spin())?;
    ensure_eq!(handler.recv(reply).message.label(), fault::TIMEOUT);
    let same = params.on(tcb).with_cap(cap::CONTEXT, context);
    same.expect_error(IllegalOperation, &[])?;
    f.control.configure(context, slice)?;
    same.expect_ok(&[])
}

fn params_current(f: &mut Fixture) -> TestResult {
    let me = f.me;
    let caps = [me.cptr(), f.null()?, f.unexpected_faults.cptr()];
    let params = Invocation::new(me, label::TCB_SET_SCHED_PARAMS, &[255, 254], &caps);
    params.expect_error(IllegalOperation, &[])?;
    // Before the fault handler.
    params
        .with_cap(cap::HANDLER, me)
        .expect_error(IllegalOperation, &[])?;
    let context = f.my_context;
    params.with_cap(cap::CONTEXT, context).expect_ok(&[])
}

fn params_handlers(f: &mut Fixture) -> TestResult {
    let (_, params) = scene(f)?;
    for handler in bad_handlers(f)? {
        params
            .with_cap(cap::HANDLER, handler)
            .expect_error(InvalidCapability, &[3])?;
    }
    for handler in good_handlers(f)? {
        params.with_cap(cap::HANDLER, handler).expect_ok(&[])?;
    }
    Ok(())
}

fn params_order(f: &mut Fixture) -> TestResult {
    let (_, params) = scene(f)?;
    let no_handler = params.with_cap(cap::HANDLER, f.me);
    no_handler.expect_error(InvalidCapability, &[3])?;
    let no_context = no_handler.with_cap(cap::CONTEXT, f.me);
    no_context.expect_error(InvalidCapability, &[2])?;
    let high = no_context.with_word(word::PRIORITY, 201);
    high.expect_error(RangeError, &[0, 200])?;
    no_context
        .with_word(word::MCP, 201)
        .expect_error(RangeError, &[0, 200])?;
    high.with_cap(cap::AUTHORITY, f.my_context)
        .expect_error(InvalidCapability, &[1])
}

fn params_refusal(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let params = f.active(50)?;
    let tcb = f.prepare(params, move || trace.note(1))?;
    f.helper(60, move || trace.note(2))?;
    tcb.set_mc_priority(boot::TCB, 33)?;
    let caps = [boot::TCB.cptr(), f.null()?, boot::CNODE.cptr()];
    let refused = Invocation::new(tcb, label::TCB_SET_SCHED_PARAMS, &[44, 70], &caps);
    refused.expect_error(InvalidCapability, &[3])?;
    ensure_mcp(f, tcb, 33)?;
    // It keeps its context and its priority.
    tcb.resume()?;
    f.settle()?;
    ensure_eq!(trace.events(), [2, 1]);
    Ok(())
}

fn params_effect(f: &mut Fixture) -> TestResult {
    let (endpoint, reply, context) = (f.endpoint()?, f.reply()?, f.context(FULL)?);
    let handler = f.badged(endpoint, 0x99)?;
    let trace = Trace::leak();
    let tcb = f.prepare(f.passive(10), move || {
        trace.note(1);
        conformance_kit::arch::stop();
    })?;
    f.helper(60, move || trace.note(2))?;
    tcb.resume()?;
    let caps = [boot::TCB.cptr(), context.cptr(), handler.cptr()];
    Invocation::new(tcb, label::TCB_SET_SCHED_PARAMS, &[44, 70], &caps).expect_ok(&[])?;
    ensure_mcp(f, tcb, 44)?;
    let received = endpoint.recv(reply);
    ensure_eq!(received.badge, 0x99);
    ensure_eq!(trace.events(), [1]);
    f.settle()?;
    ensure_eq!(trace.events(), [1, 2]);
    // The context is the one that was given.
    let bind = Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[f.tcb()?.cptr()]);
    bind.expect_error(IllegalOperation, &[])?;
    context.unbind_tcb(tcb)?;
    Ok(())
}

fn params_null(f: &mut Fixture) -> TestResult {
    let raw = Raw::new(f, &CODE[2..], &UserContext::default())?;
    let null: CPtr = f.null()?;
    let caps = [boot::TCB.cptr(), null, null];
    let params = Invocation::new(raw.tcb, label::TCB_SET_SCHED_PARAMS, &[0, 100], &caps);
    params.expect_ok(&[])?;
    // Again, without a context to unbind.
    params.expect_ok(&[])?;
    raw.tcb.resume()?;
    f.settle()?;
    ensure_eq!(raw.tcb.read_registers(false)?.ip(), raw.code);
    let context = f.context(FULL)?;
    params.with_cap(cap::CONTEXT, context).expect_ok(&[])?;
    f.settle()?;
    ensure!(!raw.has_stopped(), "the removed handler got a fault");
    Ok(())
}

fn timeout_refusals(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let set = Invocation::new(
        tcb,
        label::TCB_SET_TIMEOUT_ENDPOINT,
        &[],
        &[f.endpoint()?.cptr()],
    );
    truncated(&set)?;
    for handler in bad_handlers(f)? {
        set.with_cap(0, handler)
            .expect_error(InvalidCapability, &[1])?;
    }
    for handler in good_handlers(f)? {
        set.with_cap(0, handler).expect_ok(&[])?;
    }
    Ok(())
}

fn timeout_effect(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let handler = f.badged(endpoint, 0x42)?;
    let slice = SchedParams::new(50, 1_000_000).badge(7);
    for set in [true, false] {
        let params = f.active_on(100, slice)?;
        let tcb = f.prepare(params, || spin())?;
        tcb.set_timeout_endpoint(Some(handler))?;
        if !set {
            tcb.set_timeout_endpoint(None)?;
        }
        tcb.resume()?;
        f.settle()?;
        let received = endpoint.nb_recv(reply);
        if set {
            ensure_eq!(received.badge, 0x42);
            ensure_eq!(received.message.label(), fault::TIMEOUT);
            ensure_eq!(received.message.word(0), 7);
        } else {
            ensure_eq!(received.badge, 0);
        }
    }
    // It is not the handler of other faults.
    let (raw, _) = waiting(f)?;
    raw.tcb.set_timeout_endpoint(Some(handler))?;
    raw.tcb
        .write_first_registers(&[raw.code + super::raw::INSTRUCTION_BYTES], true)?;
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)
}
