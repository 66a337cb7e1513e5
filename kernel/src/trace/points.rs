//! The trace points. Each writes one record, or none if the core has no log.

use sandglass_abi::fault as label;
use sandglass_abi::trace::{Blocked, Gift, Kind, Source, Tag};

use crate::arch::abi::Irq;
use crate::cores::CoreId;
use crate::mem::{Log, PhysAddr, Ref};
use crate::object::{Core, Fault, Parameters, Refill, SchedContext, State, Tcb};
use crate::Kernel;

/// Address of an object; 0 for none.
#[inline(always)]
fn address<T>(object: Option<Ref<T>>) -> u64 {
    object.map_or(0, |object| object.address().get())
}

/// Writes a record about the core `about`, whose time is `time`, into `log`.
#[inline(always)]
fn write_to(
    k: &Kernel,
    log: &Log,
    about: CoreId,
    time: u64,
    (kind, detail): (Kind, u16),
    words: [u64; 3],
) {
    let tag = Tag::about(kind, about.index() as u8, detail);
    log.write(k, &k.trace, tag, time, words);
}

/// Writes a record about the core `about`, whose time is `time`.
#[inline(always)]
fn write_about(k: &Kernel, about: CoreId, time: u64, kind: Kind, detail: u16, words: [u64; 3]) {
    write_to(k, &k.core().trace, about, time, (kind, detail), words);
}

/// Writes a record about the core that executes.
#[inline(always)]
fn write(k: &Kernel, kind: Kind, detail: u16, words: [u64; 3]) {
    write_about(k, k.core_id(), k.core().now(), kind, detail, words);
}

/// The log of `core` begins.
pub fn start_of(k: &Kernel, core: CoreId) {
    let words = [0, k.constants.ticks(1), k.constants.min_budget()];
    let log = &k.core_of(core).trace;
    write_to(k, log, core, k.core().now(), (Kind::Start, 0), words);
}

/// Who runs now, and on whose time: a log begins with it.
pub fn runs(k: &Kernel) {
    let context = k.core().context();
    switch(k, None, k.core().thread());
    pays(
        k,
        context,
        context.map_or(0, |context| context.at(k).head().amount),
    );
}

/// `next` is going to run instead of `before`, if they differ.
#[inline(always)]
pub fn switch(k: &Kernel, before: Option<Ref<Tcb>>, next: Option<Ref<Tcb>>) {
    if before != next {
        let (context, priority) = match next {
            Some(next) => (next.at(k).sched_context(), next.at(k).priority()),
            None => (None, 0),
        };
        let words = [address(next), address(context), 0];
        write(k, Kind::Switch, priority.into(), words);
    }
}

/// The thread that ran on `core`, another one, was stopped there.
#[inline(always)]
pub fn stopped_there(k: &Kernel, core: CoreId) {
    let now = k.core_of(core).now();
    write_about(k, core, now, Kind::Switch, 0, [0; 3]);
    write_about(k, core, now, Kind::Pays, 0, [0; 3]);
}

/// `context` pays from now on, whose head refill has `amount` ticks.
#[inline(always)]
pub fn pays(k: &Kernel, context: Option<Ref<SchedContext>>, amount: u64) {
    write(k, Kind::Pays, 0, [address(context), amount, 0]);
}

/// `context`, which pays on `core`, pays for what was consumed there; `charged` ticks are taken from
/// its refills. Nothing is no charge.
#[inline(always)]
pub fn charge(k: &Kernel, core: &Core, context: Ref<SchedContext>, consumed: u64, charged: u64) {
    if consumed == 0 && charged == 0 {
        return;
    }
    let on = context.at(k).core();
    let is_round_robin = context.at(k).period() == 0;
    let charged = if is_round_robin { 0 } else { charged };
    let words = [context.address().get(), consumed, charged];
    let detail = u16::from(is_round_robin);
    write_about(k, on, core.now(), Kind::Charge, detail, words);
}

/// What was used of `context` comes back.
#[inline(always)]
pub fn refill(k: &Kernel, context: Ref<SchedContext>, again: Refill) {
    let words = [context.address().get(), again.amount, again.time];
    write(k, Kind::Refill, 0, words);
}

/// `thread` waits until `time`.
#[inline(always)]
pub fn wait(k: &Kernel, thread: Ref<Tcb>, time: u64) {
    let tcb = thread.at(k);
    let words = [thread.address().get(), time, address(tcb.sched_context())];
    write(k, Kind::Wait, tcb.priority().into(), words);
}

/// `thread` does not wait for its refill any more.
#[inline(always)]
pub fn release(k: &Kernel, thread: Ref<Tcb>) {
    let time = thread.at(k).links().key().time();
    write(k, Kind::Release, 0, [thread.address().get(), time, 0]);
}

/// `context` is about to be bound to `to`.
#[inline(always)]
pub fn bind(k: &Kernel, context: Ref<SchedContext>, to: Ref<Tcb>) {
    donate(k, context, to, Gift::Bind);
}

/// `context` is about to be lent to `to` with a call.
#[inline(always)]
pub fn lend(k: &Kernel, context: Ref<SchedContext>, to: Ref<Tcb>) {
    donate(k, context, to, Gift::Call);
}

/// `context` is about to be given to `to` with a send.
#[inline(always)]
pub fn give(k: &Kernel, context: Ref<SchedContext>, to: Ref<Tcb>) {
    donate(k, context, to, Gift::Send);
}

/// `context`, that of a notification, is about to be given to `to` with a signal.
#[inline(always)]
pub fn give_of_notification(k: &Kernel, context: Ref<SchedContext>, to: Ref<Tcb>) {
    donate(k, context, to, Gift::Signal);
}

#[inline(always)]
fn donate(k: &Kernel, context: Ref<SchedContext>, to: Ref<Tcb>, gift: Gift) {
    let from = address(context.at(k).thread());
    let words = [context.address().get(), from, to.address().get()];
    write(k, Kind::Donate, gift as u16, words);
}

/// `context` is about to go back to `to`.
#[inline(always)]
pub fn give_back(k: &Kernel, context: Ref<SchedContext>, to: Ref<Tcb>) {
    let from = address(context.at(k).thread());
    let words = [context.address().get(), from, to.address().get()];
    write(k, Kind::Return, 0, words);
}

/// `context` is about to be taken from `from`.
#[inline(always)]
pub fn unbind(k: &Kernel, context: Ref<SchedContext>, from: Ref<Tcb>) {
    let words = [context.address().get(), from.address().get(), 0];
    write(k, Kind::Unbind, 0, words);
}

/// `lender` will not get `context` back; without a lender, nobody who lent it will. Without a
/// context, it is one that was lent on since.
#[inline(always)]
pub fn abandon(k: &Kernel, context: Option<Ref<SchedContext>>, lender: Option<Ref<Tcb>>) {
    write(k, Kind::Abandon, 0, [address(context), address(lender), 0]);
}

/// `context`, if it was to go back to `lender`, does not, since that has another one.
#[inline(always)]
pub fn keep_back(k: &Kernel, context: Option<Ref<SchedContext>>, lender: Ref<Tcb>) {
    if context.is_some() {
        abandon(k, context, Some(lender));
    }
}

/// `context` has new parameters.
#[inline(always)]
pub fn configure(k: &Kernel, context: Ref<SchedContext>, new: Parameters, keeps_history: bool) {
    let period = if new.budget == new.period {
        0
    } else {
        new.period
    };
    let words = [context.address().get(), new.budget, period];
    let fresh = u16::from(!keeps_history || period == 0);
    let detail = fresh | u16::from(new.sporadic) << 1;
    write(k, Kind::Configure, detail, words);
}

/// `thread` could run, if it has time.
#[inline(always)]
pub fn wake(k: &Kernel, thread: Ref<Tcb>) {
    let tcb = thread.at(k);
    let words = [thread.address().get(), address(tcb.sched_context()), 0];
    write(k, Kind::Wake, tcb.priority().into(), words);
}

/// `thread` cannot run.
#[inline(always)]
pub fn block(k: &Kernel, thread: Ref<Tcb>) {
    let (why, object) = match thread.at(k).state() {
        State::Inactive | State::Running | State::Restart => (Blocked::Inactive, 0),
        State::BlockedOnSend { endpoint, .. } => (Blocked::Send, endpoint.address().get()),
        State::BlockedOnReceive { endpoint, .. } => (Blocked::Receive, endpoint.address().get()),
        State::BlockedOnReply { reply } => (Blocked::Reply, reply.address().get()),
        State::BlockedOnNotification { notification } => {
            (Blocked::Notification, notification.address().get())
        }
    };
    let words = [thread.address().get(), object, 0];
    write(k, Kind::Block, why as u16, words);
}

/// The budget of `thread` is used up, and its handler is told.
#[inline(always)]
pub fn timeout(k: &Kernel, thread: Ref<Tcb>, badge: u64) {
    let context = address(thread.at(k).sched_context());
    let words = [thread.address().get(), badge, context];
    write(k, Kind::Timeout, 0, words);
}

/// `thread` faults.
#[inline(always)]
pub fn fault(k: &Kernel, thread: Ref<Tcb>, fault: Fault) {
    let (kind, value) = match fault {
        Fault::Cap { cptr, .. } => (label::CAP_FAULT, cptr),
        Fault::UnknownSyscall { number } => (label::UNKNOWN_SYSCALL, number),
        Fault::UserException { number, .. } => (label::USER_EXCEPTION, number.into()),
        Fault::Timeout { badge } => (label::TIMEOUT, badge),
        Fault::Vm { address, .. } => (label::VM_FAULT, address),
        Fault::Debug(event) => (label::DEBUG_EXCEPTION, event.reason()),
    };
    write(
        k,
        Kind::Fault,
        kind as u16,
        [thread.address().get(), value, 0],
    );
}

/// The interrupt `irq` of a device arrived.
#[inline(always)]
pub fn device_interrupt(k: &Kernel, irq: Irq) {
    interrupt(k, Source::Device, irq);
}

/// The timer fired.
#[inline(always)]
pub fn timer_interrupt(k: &Kernel) {
    interrupt(k, Source::Timer, 0);
}

/// Another core asked this one to look.
#[inline(always)]
pub fn look(k: &Kernel) {
    interrupt(k, Source::Core, 0);
}

#[inline(always)]
fn interrupt(k: &Kernel, source: Source, number: Irq) {
    write(k, Kind::Interrupt, source as u16, [0, number.into(), 0]);
}

/// `thread` has another priority from now on.
#[inline(always)]
pub fn priority(k: &Kernel, thread: Ref<Tcb>, priority: u8) {
    write(
        k,
        Kind::Priority,
        priority.into(),
        [thread.address().get(), 0, 0],
    );
}

/// `thread` belongs to `core` from now on.
#[inline(always)]
pub fn migrate(k: &Kernel, thread: Ref<Tcb>, core: CoreId) {
    let detail = core.index() as u16;
    write(k, Kind::Migrate, detail, [thread.address().get(), 0, 0]);
}

/// `thread` belongs to `domain`; or, without one, it is that domain's turn.
#[inline(always)]
pub fn domain(k: &Kernel, thread: Option<Ref<Tcb>>, domain: u8) {
    write(k, Kind::Domain, domain.into(), [address(thread), 0, 0]);
}

/// User level says something about `subject`.
#[inline(always)]
pub fn mark(k: &Kernel, subject: PhysAddr, detail: u16, first: u64, second: u64) {
    write(k, Kind::Mark, detail, [subject.get(), first, second]);
}

/// Memory from `start` on is taken back: no log is there any more.
#[inline(always)]
pub fn forget(k: &Kernel, start: PhysAddr, bytes: u64) {
    for core in CoreId::all() {
        k.core_of(core).trace.forget(start, bytes);
    }
}
