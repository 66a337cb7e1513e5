//! What a kernel with traces records: every kind of record where it belongs, times that add up, and
//! nothing without memory for it.

use sandglass_abi::boot::slot;
use sandglass_abi::fault;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::trace::{
    Blocked, Call, Gift, Kind, MarkKind, Source, Tag, RECORD_BYTES, STOP_WHEN_FULL,
};
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::mem::user::{Buffer, BUFFER_BYTES};
use sandglass_kernel::{CoreId, CORES};
use sandglass_testkit::isa::{self, SYSCALL_INSTRUCTION_BYTES};
use sandglass_testkit::service::service;
use sandglass_testkit::world::{Thread, World, KERNEL_PATH, US};

const LOG_BYTES: u64 = 1 << isa::types::LARGE_PAGE_BITS;
const PLACES: u64 = LOG_BYTES / RECORD_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    sequence: u32,
    kind: Kind,
    core: u8,
    detail: u16,
    time: u64,
    subject: u64,
    first: u64,
    second: u64,
}

/// Records with which a log begins: the start, who runs, and who pays.
const FIRST: u64 = 3;
/// Rights to a frame.
const WRITE: u64 = 1;
const READ: u64 = 2;
/// Answer to a call that is not obeyed.
const REFUSED: u64 = 3;

/// A call of whoever runs; its capability register after it.
fn trace_call(w: &mut World, call: Call, cap: u64, info: u64, words: [u64; 2]) -> u64 {
    let thread = w.running().expect("a thread runs");
    let context = thread.at(&w.k).context();
    context.set(&*w.k, isa::NUMBER, call.raw());
    context.set(&*w.k, isa::CAP, cap);
    context.set(&*w.k, isa::INFO, info);
    context.set(&*w.k, isa::MESSAGE[0], words[0]);
    context.set(&*w.k, isa::MESSAGE[1], words[1]);
    let ip = context.get(Register::NextIp);
    context.set(&*w.k, Register::FaultIp, ip);
    context.set(&*w.k, Register::NextIp, ip + SYSCALL_INSTRUCTION_BYTES);
    w.event(Event::Syscall);
    assert_eq!(w.running(), Some(thread), "no trace call switches");
    thread.at(&w.k).context().get(isa::CAP)
}

/// Scheduling control of `core`: the authority over its log.
const fn control(core: u64) -> u64 {
    isa::SCHED_CONTROL + core
}

/// Gives `core` the frame in `frame` for its log.
fn give(w: &mut World, frame: u64, core: u64, flags: u64) -> u64 {
    let words = [control(core), 0];
    trace_call(w, Call::SetLogBuffer, frame, flags, words)
}

fn reset(w: &mut World, core: u64) -> u64 {
    trace_call(w, Call::ResetLog, control(core), 0, [0; 2])
}

fn finalize(w: &mut World, core: u64) -> u64 {
    trace_call(w, Call::FinalizeLog, control(core), 0, [0; 2])
}

/// Gives the core that boots a log; returns the frame.
fn start_log(w: &mut World) -> u64 {
    let frame = w.make(isa::types::LARGE_PAGE, 0);
    assert_eq!(give(w, frame, 0, 0), 0);
    frame
}

/// Word `i` of the frame in `slot`.
fn word(w: &World, slot: u64, i: u64) -> u64 {
    let (offset, within) = (i * 8 / BUFFER_BYTES * BUFFER_BYTES, i * 8 % BUFFER_BYTES);
    let part = Buffer::in_frame(w.cap(slot).word(), offset).expect("a frame");
    part.read(&w.k, (within / 8) as usize)
}

/// The records in the frame in `slot`, in their order.
fn records(w: &World, slot: u64) -> Vec<Record> {
    let mut records: Vec<Record> = (0..PLACES)
        .map(|place| place * RECORD_BYTES / 8)
        .filter(|&at| word(w, slot, at) != 0)
        .map(|at| {
            let tag = Tag::from_word(word(w, slot, at));
            Record {
                sequence: tag.sequence,
                kind: Kind::from_raw(tag.kind).expect("a kind"),
                core: tag.core,
                detail: tag.detail,
                time: word(w, slot, at + 1),
                subject: word(w, slot, at + 2),
                first: word(w, slot, at + 3),
                second: word(w, slot, at + 4),
            }
        })
        .collect();
    records.sort_by_key(|record| record.sequence);
    records
}

/// The records of what `act` does.
fn records_of(w: &mut World, log: u64, act: impl FnOnce(&mut World)) -> Vec<Record> {
    let before = records(w, log).len();
    act(w);
    records(w, log).split_off(before)
}

fn of_kind(records: &[Record], kind: Kind) -> Vec<Record> {
    let is_kind = |record: &&Record| record.kind == kind;
    records.iter().filter(is_kind).copied().collect()
}

/// The only record of its kind.
fn only(records: &[Record], kind: Kind) -> Record {
    match of_kind(records, kind)[..] {
        [record] => record,
        ref others => panic!("{kind:?}: {others:?} among {records:?}"),
    }
}

fn tcb_of(thread: Thread) -> u64 {
    thread.handle.address().get()
}

fn context_of(w: &World, thread: Thread) -> u64 {
    w.context(thread.context).address().get()
}

#[test]
fn nothing_is_recorded_without_memory() {
    let mut w = World::new();
    assert_eq!(reset(&mut w, 0), REFUSED);
    assert_eq!(finalize(&mut w, 0), control(0));
    trace_call(&mut w, Call::Mark, 0, MarkKind::Note as u64, [1, 2]);
    let s = service(&mut w);
    w.call(s.endpoint, &[]);
    w.pass(20_000 * US);
    assert_eq!(w.k.trace.get(), 0);
}

#[test]
fn a_log_is_2_mib_of_ram_of_a_core_that_exists() {
    let mut w = World::new();
    let small = w.make(isa::types::PAGE, 0);
    assert_eq!(give(&mut w, small, 0, 0), REFUSED);
    assert_eq!(give(&mut w, slot::CNODE, 0, 0), REFUSED);
    assert_eq!(give(&mut w, 0x1234_5678, 0, 0), REFUSED);
    let frame = w.make(isa::types::LARGE_PAGE, 0);
    assert_eq!(give(&mut w, frame, CORES as u64, 0), REFUSED);
    assert_eq!(w.k.trace.get(), 0);
    assert_eq!(give(&mut w, frame, CORES as u64 - 1, 0), 0);
    let start = only(&records(&w, frame), Kind::Start);
    assert_eq!(start.core, CORES as u8 - 1);
    assert_eq!((start.first, start.second), (US, 20 * US));
}

/// The kernel does not write for a caller what the caller could not write.
#[test]
fn a_log_needs_a_frame_that_can_be_written() {
    let mut w = World::new();
    let frame = w.make(isa::types::LARGE_PAGE, 0);
    for (rights, answer) in [(READ, REFUSED), (WRITE, REFUSED), (READ | WRITE, 0)] {
        let copy = w.copy(frame, rights).expect("a copy");
        assert_eq!(give(&mut w, copy, 0, 0), answer, "rights {rights:#b}");
    }
}

/// Nobody else gives a core memory for records, or takes its log away.
#[test]
fn a_log_is_for_who_controls_the_time_of_its_core() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let begun = records(&w, log);
    let frame = w.make(isa::types::LARGE_PAGE, 0);
    for other in [0, 1, slot::TCB, slot::CNODE, frame, control(CORES as u64)] {
        let give = trace_call(&mut w, Call::SetLogBuffer, frame, 0, [other, 0]);
        assert_eq!(give, REFUSED, "by {other}");
        let reset = trace_call(&mut w, Call::ResetLog, other, 0, [0; 2]);
        assert_eq!(reset, REFUSED, "by {other}");
        let end = trace_call(&mut w, Call::FinalizeLog, other, 0, [0; 2]);
        assert_eq!(end, other, "nothing was ended");
    }
    assert_eq!(records(&w, log), begun);
    trace_call(&mut w, Call::Mark, 0, MarkKind::Note as u64, [1, 2]);
    assert_eq!(records(&w, log).len(), begun.len() + 1);
    assert_eq!(finalize(&mut w, 0), begun.len() as u64 + 1);
}

#[test]
fn marks_name_their_subject_or_the_caller() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let thread = w.make_thread(10, 8);
    let detail = u64::from(MarkKind::Name as u8) | 1 << 8;
    let marks = records_of(&mut w, log, |w| {
        for cap in [thread.tcb, thread.context, 0, slot::CNODE, 0xffff_ffff] {
            trace_call(w, Call::Mark, cap, detail, [7, 8]);
        }
    });
    let root = w.running().expect("the root task").address().get();
    let subjects = of_kind(&marks, Kind::Mark);
    let subjects: Vec<_> = subjects.iter().map(|mark| mark.subject).collect();
    let context = context_of(&w, thread);
    assert_eq!(subjects, [tcb_of(thread), context, root, root, root]);
    assert_eq!(marks.len(), 5, "a mark is all that it records");
    assert!(marks.iter().all(|mark| mark.detail == detail as u16));
    assert!(marks.iter().all(|mark| (mark.first, mark.second) == (7, 8)));
}

#[test]
fn a_call_lends_and_its_reply_returns() {
    let mut w = World::new();
    let s = service(&mut w);
    w.wake(s.root_wakes_by);
    let log = start_log(&mut w);
    w.wait(s.root_wakes_by);
    let call = records_of(&mut w, log, |w| w.call(s.endpoint, &[]));
    let (client, server) = (tcb_of(s.client), tcb_of(s.server));
    let context = context_of(&w, s.client);
    let kinds: Vec<_> = call.iter().map(|record| record.kind).collect();
    assert_eq!(
        kinds,
        [Kind::Block, Kind::Donate, Kind::Wake, Kind::Switch],
        "nothing is charged where the payer stays"
    );
    let lent = only(&call, Kind::Donate);
    assert_eq!(
        (lent.subject, lent.first, lent.second),
        (context, client, server)
    );
    assert_eq!(lent.detail, Gift::Call as u16);
    assert_eq!(only(&call, Kind::Block).detail, Blocked::Reply as u16);
    assert_eq!(only(&call, Kind::Block).subject, client);
    assert_eq!(only(&call, Kind::Wake).subject, server);
    let switch = only(&call, Kind::Switch);
    assert_eq!(
        (switch.subject, switch.first, switch.detail),
        (server, context, 200)
    );

    let reply = records_of(&mut w, log, |w| w.reply_recv(s.endpoint, s.reply, &[]));
    let back = only(&reply, Kind::Return);
    assert_eq!(
        (back.subject, back.first, back.second),
        (context, server, client)
    );
    assert_eq!(only(&reply, Kind::Block).subject, server);
    assert_eq!(only(&reply, Kind::Block).detail, Blocked::Receive as u16);
    assert_eq!(only(&reply, Kind::Switch).subject, client);
}

#[test]
fn a_call_that_is_cancelled_abandons_what_it_lent() {
    let mut w = World::new();
    let s = service(&mut w);
    w.wake(s.root_wakes_by);
    let log = start_log(&mut w);
    w.wait(s.root_wakes_by);
    w.call(s.endpoint, &[]);
    w.wake(s.root_wakes_by);
    let (client, context) = (s.client, context_of(&w, s.client));
    let suspended = records_of(&mut w, log, |w| {
        w.invoke(client.tcb, label::TCB_SUSPEND, &[], &[])
            .expect("suspended");
    });
    assert_eq!(only(&suspended, Kind::Abandon).subject, context);
    assert_eq!(of_kind(&suspended, Kind::Return), []);
}

#[test]
fn charges_add_up_to_the_time_that_passed() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let a = w.start_thread(100, 2_000, 10_000);
    let b = w.start_thread(90, 5_000, 20_000);
    let round_robin = w.start_thread(80, 5_000, 5_000);
    let begun = w.now();
    w.sleep();
    w.pass(100_000 * US);
    let ended = w.now() - KERNEL_PATH;
    let all = records(&w, log);
    // The last charge of before belongs to the root task and ends when it sleeps.
    let charges: Vec<_> = of_kind(&all, Kind::Charge)
        .into_iter()
        .filter(|charge| charge.time > begun)
        .collect();
    let mut until = charges[0].time;
    for charge in &charges[1..] {
        assert_eq!(charge.time - charge.first, until, "{charge:?}");
        until = charge.time;
    }
    let last_payer = of_kind(&all, Kind::Pays).last().expect("a payer").time;
    assert_eq!(until, last_payer, "whoever pays now has not been charged");
    assert!(ended - until <= 5_000 * US);
    let of = |thread| {
        let context = context_of(&w, thread);
        let own = charges
            .iter()
            .filter(move |charge| charge.subject == context);
        own.map(|charge| charge.first).sum::<u64>()
    };
    assert!(of(a).abs_diff(20_000 * US) <= 2_100 * US, "{}", of(a));
    assert!(of(b).abs_diff(25_000 * US) <= 5_100 * US, "{}", of(b));
    let mine = context_of(&w, round_robin);
    for charge in &charges[1..] {
        let is_slice = charge.subject == mine;
        let taken = if is_slice { 0 } else { charge.first };
        assert_eq!(
            (charge.detail, charge.second),
            (is_slice.into(), taken),
            "{charge:?}"
        );
    }
}

#[test]
fn what_is_used_comes_back_and_its_thread_waits() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let thread = w.start_thread(100, 2_000, 10_000);
    let (tcb, context) = (tcb_of(thread), context_of(&w, thread));
    let configured = only(&records(&w, log), Kind::Configure);
    let words = (configured.subject, configured.first, configured.second);
    assert_eq!(words, (context, 2_000 * US, 10_000 * US));
    assert_eq!(configured.detail, 1, "it starts full");
    let bound = only(&records(&w, log), Kind::Donate);
    assert_eq!(
        (bound.subject, bound.first, bound.second),
        (context, 0, tcb)
    );
    assert_eq!(bound.detail, Gift::Bind as u16);

    let exhausted = records_of(&mut w, log, |w| {
        w.sleep();
        w.pass(5_000 * US);
    });
    let refills = of_kind(&exhausted, Kind::Refill);
    let waits = only(&exhausted, Kind::Wait);
    let charged = of_kind(&exhausted, Kind::Charge);
    let charged = charged.iter().filter(|charge| charge.subject == context);
    assert_eq!(
        refills.iter().map(|refill| refill.first).sum::<u64>(),
        charged.map(|charge| charge.second).sum::<u64>(),
        "all of it comes back"
    );
    assert_eq!(
        (waits.subject, waits.second, waits.detail),
        (tcb, context, 100)
    );
    // What was left is too little to be used, and comes back together with the rest, before it.
    let left = 2_000 * US - refills.iter().map(|refill| refill.first).sum::<u64>();
    assert_eq!(waits.first + left, refills[0].second);
    let timer = of_kind(&exhausted, Kind::Interrupt);
    assert!(timer
        .iter()
        .any(|interrupt| interrupt.detail == Source::Timer as u16));

    let released = records_of(&mut w, log, |w| w.pass(6_000 * US));
    let release = only(&released, Kind::Release);
    assert_eq!((release.subject, release.first), (tcb, waits.first));
    let switch = of_kind(&released, Kind::Switch)[0];
    assert_eq!(switch.subject, tcb);
    assert!(switch.time >= waits.first && switch.time <= waits.first + US);
}

#[test]
fn yielding_gives_up_more_than_was_consumed() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let thread = w.start_thread(100, 2_000, 10_000);
    let context = context_of(&w, thread);
    w.sleep();
    w.pass(500 * US);
    let yielded = records_of(&mut w, log, |w| {
        w.syscall(
            sandglass_abi::syscall::Syscall::Yield,
            0,
            0,
            MessageInfo::default(),
            &[],
        );
    });
    let charge = only(&yielded, Kind::Charge);
    assert_eq!(charge.subject, context);
    assert!(
        charge.first < 600 * US && charge.second == 2_000 * US,
        "{charge:?}"
    );
}

#[test]
fn timeouts_and_faults_tell_why() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let endpoint = w.make(types::ENDPOINT, 0);
    let thread = w.make_thread(100, 8);
    let words = [2_000, 10_000, 0, 77, 0];
    let (control, configure) = (isa::SCHED_CONTROL, label::SCHED_CONTROL_CONFIGURE_FLAGS);
    w.invoke(control, configure, &words, &[thread.context])
        .expect("configured");
    w.bind(thread);
    w.invoke(
        thread.tcb,
        label::TCB_SET_TIMEOUT_ENDPOINT,
        &[],
        &[endpoint],
    )
    .expect("a handler");
    w.resume(thread);
    let faulting = w.start_thread(90, 1_000, 10_000);
    let ran = records_of(&mut w, log, |w| {
        w.sleep();
        w.pass(3_000 * US);
    });
    let timeout = only(&ran, Kind::Timeout);
    let context = context_of(&w, thread);
    let words = (timeout.subject, timeout.first, timeout.second);
    assert_eq!(words, (tcb_of(thread), 77, context));
    let blocked = of_kind(&ran, Kind::Block);
    let blocked = blocked.iter().find(|block| block.subject == tcb_of(thread));
    assert_eq!(
        blocked.map(|block| block.detail),
        Some(Blocked::Send as u16)
    );

    while w.running().is_none() {
        w.pass(100 * US);
    }
    let faults = records_of(&mut w, log, |w| {
        assert_eq!(w.running(), Some(faulting.handle));
        w.event(Event::Trap(Trap::Exception(isa::data_fault(0xdead_0000))));
    });
    let found = only(&faults, Kind::Fault);
    let words = (found.subject, found.detail, found.first);
    assert_eq!(
        words,
        (tcb_of(faulting), fault::VM_FAULT as u16, 0xdead_0000)
    );
    assert_eq!(only(&faults, Kind::Block).detail, Blocked::Inactive as u16);
}

#[test]
fn a_device_interrupt_is_recorded_by_its_number() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let interrupted = records_of(&mut w, log, |w| {
        w.event(Event::Trap(Trap::Interrupt { irq: 72 }));
    });
    let interrupt = only(&interrupted, Kind::Interrupt);
    assert_eq!(
        (interrupt.detail, interrupt.first),
        (Source::Device as u16, 72)
    );
}

#[test]
fn priorities_domains_and_signals_leave_their_records() {
    let mut w = World::new();
    let log = start_log(&mut w);
    let thread = w.make_thread(10, 8);
    let changed = records_of(&mut w, log, |w| {
        w.invoke(thread.tcb, label::TCB_SET_PRIORITY, &[20], &[slot::TCB])
            .expect("a priority");
        w.invoke(slot::DOMAIN, label::DOMAIN_SET, &[0], &[thread.tcb])
            .expect("a domain");
    });
    let priority = only(&changed, Kind::Priority);
    assert_eq!((priority.subject, priority.detail), (tcb_of(thread), 20));
    let domain = only(&changed, Kind::Domain);
    assert_eq!((domain.subject, domain.detail), (tcb_of(thread), 0));

    // A passive thread that waits gets the notification's context with the signal, and gives it back
    // by waiting again.
    let notification = w.make(types::NOTIFICATION, 0);
    let passive = w.start_thread(100, 1_000, 10_000);
    let root = w.sleep();
    w.wait(notification);
    w.wake(root);
    w.invoke(passive.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("unbound");
    w.invoke(
        passive.context,
        label::SCHED_CONTEXT_BIND,
        &[],
        &[notification],
    )
    .expect("bound");
    let signalled = records_of(&mut w, log, |w| {
        w.wait(root);
        w.wake(notification);
    });
    let context = context_of(&w, passive);
    let gift = only(&signalled, Kind::Donate);
    assert_eq!(
        (gift.subject, gift.first, gift.second),
        (context, 0, tcb_of(passive))
    );
    assert_eq!(gift.detail, Gift::Signal as u16);
    let waits = records_of(&mut w, log, |w| w.wait(notification));
    let unbound = only(&waits, Kind::Unbind);
    assert_eq!((unbound.subject, unbound.first), (context, tcb_of(passive)));
    assert_eq!(
        only(&waits, Kind::Block).detail,
        Blocked::Notification as u16
    );
}

/// Fills the log with marks that count from `from`.
fn count_marks(w: &mut World, from: u64, count: u64) {
    w.path = 0;
    for i in from..from + count {
        trace_call(w, Call::Mark, 0, MarkKind::Note as u64, [i, 0]);
    }
}

#[test]
fn the_oldest_records_are_overwritten() {
    let mut w = World::new();
    let log = start_log(&mut w);
    count_marks(&mut w, 0, PLACES + 99);
    let kept = records(&w, log);
    assert_eq!(kept.len() as u64, PLACES);
    // The first records and marks are gone, and counted by the numbers.
    assert_eq!(u64::from(kept[0].sequence), FIRST + 100);
    let marks: Vec<_> = kept.iter().map(|mark| mark.first).collect();
    assert!(marks.windows(2).all(|two| two[0] + 1 == two[1]));
    assert_eq!(marks.last(), Some(&(PLACES + 98)));
}

#[test]
fn a_log_that_stops_keeps_the_oldest_and_counts() {
    let mut w = World::new();
    let log = w.make(isa::types::LARGE_PAGE, 0);
    assert_eq!(give(&mut w, log, 0, STOP_WHEN_FULL), 0);
    count_marks(&mut w, 0, PLACES + 99);
    let kept = records(&w, log);
    assert_eq!(kept.len() as u64, PLACES);
    assert_eq!(kept[0].kind, Kind::Start);
    assert_eq!(kept[PLACES as usize - 2].first, PLACES - 2 - FIRST);
    assert_eq!(kept[PLACES as usize - 1].first, PLACES + 98);
    let last = kept[PLACES as usize - 1].sequence;
    assert_eq!(u64::from(last), PLACES + 99 + FIRST, "so many came");
}

#[test]
fn a_frame_that_follows_makes_the_log_longer() {
    let mut w = World::new();
    let frames = [(); 3].map(|()| w.make(isa::types::LARGE_PAGE, 0));
    for &frame in &frames {
        assert_eq!(give(&mut w, frame, 0, STOP_WHEN_FULL), 0);
    }
    let starts: Vec<_> = frames.iter().map(|&frame| w.cap(frame).word()).collect();
    assert_eq!(
        starts[0].address().offset(2 * LOG_BYTES),
        starts[2].address()
    );
    let places = 3 * LOG_BYTES / RECORD_BYTES;
    count_marks(&mut w, 0, places);
    // The last record of the last frame is the mark that came last.
    let end = (places - 1) * RECORD_BYTES - 2 * LOG_BYTES;
    let last = Tag::from_word(word(&w, frames[2], end / 8));
    assert_eq!(
        u64::from(last.sequence),
        places + FIRST,
        "the first ones and all marks"
    );
}

#[test]
fn a_log_ends_and_starts_again() {
    let mut w = World::new();
    let log = start_log(&mut w);
    count_marks(&mut w, 0, 9);
    let end = finalize(&mut w, 0);
    assert_eq!(end, FIRST + 9);
    count_marks(&mut w, 100, 5);
    assert_eq!(u64::from(w.k.trace.get()), FIRST + 9, "nothing is recorded");
    assert_eq!(reset(&mut w, 0), 0);
    count_marks(&mut w, 200, 1);
    let all = records(&w, log);
    let new = all.iter().rposition(|record| record.kind == Kind::Start);
    let new = &all[new.expect("a start")..];
    assert_eq!(
        new.iter().map(|record| record.sequence).collect::<Vec<_>>(),
        [13, 14, 15, 16]
    );
    assert_eq!(new[3].first, 200);
}

/// No record is written into memory that was taken back: it may hold anything by now.
#[test]
fn memory_that_is_taken_back_is_no_log() {
    let mut w = World::new();
    let memory = w.make(types::UNTYPED, 22);
    let log = w.fresh_slot();
    w.retype(memory, isa::types::LARGE_PAGE, 0, log, 1)
        .expect("a frame");
    assert_eq!(give(&mut w, log, 0, 0), 0);
    w.revoke(memory).expect("revoked");
    let number = w.k.trace.get();
    let node = w.fresh_slot();
    w.retype(memory, types::CNODE, 8, node, 1).expect("a CNode");
    trace_call(&mut w, Call::Mark, 0, MarkKind::Note as u64, [1, 2]);
    assert_eq!(reset(&mut w, 0), REFUSED);
    let recorded = w.k.trace.get() - number;
    assert!(
        recorded < 30,
        "the revocation alone was recorded: {recorded}"
    );
    let slots = w
        .cap(node)
        .cnode()
        .expect("a CNode")
        .slots()
        .expect("its slots");
    let empty =
        (0..slots.length()).all(|i| slots.slot(i).expect("a slot").at(&w.k).cap().is_null());
    assert!(empty, "the memory is the CNode's");
}

/// All cores number their records from one counter, and a log is one core's.
#[test]
fn each_core_has_its_log() {
    if CORES == 1 {
        return;
    }
    let mut w = World::new();
    let logs = [(); 2].map(|()| w.make(isa::types::LARGE_PAGE, 0));
    for (core, &log) in logs.iter().enumerate() {
        assert_eq!(give(&mut w, log, core as u64, 0), 0);
    }
    let other = CoreId::new(1).expect("a core");
    let thread = w.make_thread(100, 8);
    w.configure_on(other, thread.context, 2_000, 10_000);
    w.bind(thread);
    w.resume(thread);
    w.take_looks();
    let (here, there) = (records(&w, logs[0]), records(&w, logs[1]));
    let moved = only(&here, Kind::Migrate);
    assert_eq!((moved.subject, moved.detail), (tcb_of(thread), 1));
    let switch = only(&there, Kind::Switch);
    assert_eq!((switch.subject, switch.core), (tcb_of(thread), 1));
    let mut all: Vec<_> = here
        .iter()
        .chain(&there)
        .map(|record| record.sequence)
        .collect();
    all.sort_unstable();
    assert!(
        all.iter().zip(1..).all(|(&number, i)| number == i),
        "{all:?}"
    );
    // What a core does for another one stands in its own log.
    let suspended = records_of(&mut w, logs[0], |w| {
        w.invoke(thread.tcb, label::TCB_SUSPEND, &[], &[])
            .expect("suspended");
    });
    let stopped = of_kind(&suspended, Kind::Switch)[0];
    assert_eq!((stopped.subject, stopped.core), (0, 1));
}
