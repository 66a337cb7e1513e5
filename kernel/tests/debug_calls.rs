//! The debug kernel: its calls for debugging, what it prints, and how it checks itself (01,
//! section 7).

use sandglass_abi::boot::slot;
use sandglass_abi::cap_identify as kinds;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::cap::{derivation, Capability};
use sandglass_kernel::debug::check;
use sandglass_kernel::event::{self, Event, Trap};
use sandglass_kernel::mem::objects::tcb_slot;
use sandglass_kernel::mem::{Ref, Slot};
use sandglass_kernel::object::fault::Fault;
use sandglass_kernel::object::sched_context::Refill;
use sandglass_kernel::object::tcb::{Place, State, TcbSlot};
use sandglass_kernel::time::refills::Refills;
use sandglass_testkit::call::Call;
use sandglass_testkit::isa;
use sandglass_testkit::world::{Thread, World, US};

/// Status of a kernel that found itself inconsistent.
const INCONSISTENT: u8 = 3;

fn call(w: &mut World, call: Syscall, argument: u64, words: &[u64]) {
    w.syscall(call, argument, 0, MessageInfo::default(), words);
}

fn console(w: &World) -> String {
    String::from_utf8(w.k.machine.take_console()).expect("text")
}

/// The words of a message that holds `name`, of which the first four are not looked at.
fn words_of(name: &[u8]) -> Vec<u64> {
    let mut words = Vec::new();
    for chunk in name.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(bytes));
    }
    words
}

/// Gives the thread in `slot` a name: it stands in the buffer, from its first message word on.
fn name(w: &mut World, slot: u64, name: &[u8]) {
    use sandglass_abi::message::ipc_buffer;
    let thread = w.running().expect("a thread runs");
    let buffer = sandglass_kernel::ipc::message::buffer(&w.k, thread, true).expect("a buffer");
    let mut words = words_of(name);
    words.push(0);
    for (i, &word) in words.iter().enumerate() {
        buffer.write(&*w.k, ipc_buffer::MESSAGE + i, word);
    }
    call(w, Syscall::DebugNameThread, slot, &[]);
}

#[test]
fn a_line_ends_with_a_carriage_return_too() {
    let mut w = World::new();
    let _ = console(&w);
    for byte in b"a\n" {
        call(&mut w, Syscall::DebugPutChar, u64::from(*byte), &[]);
    }
    assert_eq!(console(&w), "a\r\n");
}

#[test]
fn a_capability_is_identified_by_its_kind_and_nothing_is_null() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let empty = w.fresh_slot();
    let root = w.running().expect("the root task");
    for (slot, kind) in [
        (endpoint, kinds::ENDPOINT),
        (slot::TCB, kinds::TCB),
        (empty, kinds::NULL),
    ] {
        call(&mut w, Syscall::DebugCapIdentify, slot, &[]);
        assert_eq!(root.at(&w.k).context().get(isa::CAP), kind);
    }
}

#[test]
fn the_dump_names_who_is_ready_who_waits_and_who_is_released() {
    let mut w = World::new();
    let ready = w.start_thread(100, 5_000, 5_000);
    let waits = w.start_thread(101, 1_000, 100_000);
    let released = w.start_thread(102, 1_000, 10_000);
    name(&mut w, ready.tcb, b"ready one");
    name(&mut w, waits.tcb, b"a name of more than eight bytes\x07");
    name(&mut w, released.tcb, b"third");
    let wakes = w.sleep();
    // The two use up their budgets; the second time has come back when the root task wakes.
    w.pass(4_000 * US);
    w.pass(2_000 * US);
    w.wake(wakes);
    w.pass(5_000 * US);
    let _ = console(&w);
    call(&mut w, Syscall::DebugDumpScheduler, 0, &[]);
    let text = console(&w);
    assert!(text.contains("100  ready one (ready)"), "{text}");
    assert!(
        text.contains("101  a name of more than eight bytes? (waits)"),
        "{text}"
    );
    assert!(text.contains("102  third (released)"), "{text}");
}

#[test]
fn a_thread_is_named_only_by_a_thread_capability() {
    let mut w = World::new();
    let _ = console(&w);
    call(&mut w, Syscall::DebugNameThread, slot::CNODE, &[]);
    assert!(console(&w).contains("DebugNameThread needs"), "a message");
    assert_eq!(w.k.machine.halted(), None);
}

#[test]
fn the_snapshot_lists_what_the_cspace_holds() {
    let mut w = World::new();
    let reply = w.make(types::REPLY, 0);
    let _ = console(&w);
    call(&mut w, Syscall::DebugSnapshot, 0, &[]);
    let text = console(&w);
    assert!(text.contains(&format!("{reply:>6}  Reply at ")), "{text}");
    assert!(!text.contains("Null"), "{text}");
}

#[test]
fn halt_stops_the_machine_with_success_and_says_who() {
    let mut w = World::new();
    name(&mut w, slot::TCB, b"root");
    let _ = console(&w);
    call(&mut w, Syscall::DebugHalt, 0, &[]);
    assert_eq!(w.k.machine.halted(), Some(0));
    assert_eq!(console(&w), "Debug halt called by root\r\n");
}

#[test]
fn a_fault_that_nobody_handles_is_told() {
    let mut w = World::new();
    let _ = console(&w);
    w.event(Event::Trap(Trap::Exception(isa::data_fault(0x1234))));
    let text = console(&w);
    assert!(text.contains("no handler for Vm"), "{text}");
    assert!(text.contains("1234"), "{text}");
}

/// What the debug kernel finds wrong with the thread that caused an event and the one that runs.
fn finding(w: &World, before: Thread) -> Option<String> {
    let _ = console(w);
    check::touched(&w.k, Some(before.handle));
    let said = console(w);
    assert_eq!(
        w.k.machine.halted(),
        (!said.is_empty()).then_some(INCONSISTENT)
    );
    (!said.is_empty()).then_some(said)
}

/// A world in which a thread with two refills is stopped and the root task runs.
fn checked_world() -> (World, Thread) {
    let mut w = World::new();
    let thread = w.start_thread(50, 100, 1_000);
    let wakes = w.sleep();
    assert_eq!(w.running(), Some(thread.handle));
    w.pass(40 * US);
    w.wake(wakes);
    w.invoke(thread.tcb, label::TCB_SUSPEND, &[], &[])
        .expect("stopped");
    let context = w.context(thread.context);
    assert_eq!(Refills::of(&w.k, context).count(), 2);
    assert_eq!(finding(&w, thread), None, "nothing is wrong yet");
    (w, thread)
}

#[test]
fn every_inconsistency_is_found() {
    type Break = fn(&mut World, Thread);
    let breaks: &[(&str, Break)] = &[
        ("a thread", |w, thread| {
            w.context(thread.context).at(&w.k).set_thread(&w.k, None);
        }),
        ("a thread", |w, thread| {
            relink(w, thread, |slot| slot.inspect().prev)
        }),
        ("a thread", |w, thread| {
            relink(w, thread, |slot| slot.inspect().next)
        }),
        ("a thread", |w, thread| {
            // Nothing is derived from it: it is followed by what is put here only.
            let root = w.running().expect("the root task");
            let node = sandglass_kernel::cap::lookup::cspace(&w.k, root)
                .cnode()
                .expect("a CNode");
            let slots = node.slots().expect("its slots");
            let source = slots.slot(slot::DOMAIN).expect("a slot");
            let empty = tcb_slot(thread.handle, TcbSlot::FaultHandler);
            derivation::insert_copy(&w.k, source, empty, Capability::NULL);
        }),
        ("the number of refills", |w, thread| {
            let context = w.context(thread.context).at(&w.k);
            context.set_queued(&w.k, context.max_refills());
        }),
        ("the order of refills", |w, thread| {
            let context = w.context(thread.context).at(&w.k);
            let amount = context.head().amount;
            let time = context.head().time + 10_000 * US;
            context.set_head(&w.k, Refill { time, amount });
        }),
        ("the end of the budget", |w, _| {
            let context = w.k.core().context().expect("somebody pays");
            let head = context.at(&w.k).head();
            let amount = head.amount + 1;
            context.at(&w.k).set_head(&w.k, Refill { amount, ..head });
        }),
        ("a reply stack", |w, thread| {
            let reply = w.make(types::REPLY, 0);
            let reply = w.cap(reply).reply().expect("a reply object").object;
            w.context(thread.context)
                .at(&w.k)
                .set_reply(&w.k, Some(reply));
        }),
        ("the next thread's fault", |w, _| {
            let running = w.running().expect("the root task");
            running
                .at(&w.k)
                .set_fault(&w.k, Some(Fault::Timeout { badge: 0 }));
        }),
        ("the next thread's state", |w, _| {
            let running = w.running().expect("the root task");
            running.at(&w.k).set_state(&w.k, State::Inactive);
        }),
        ("the next thread's place", |w, _| {
            let running = w.running().expect("the root task");
            running.at(&w.k).set_place(&w.k, Place::Ready);
        }),
        ("who pays", |w, thread| {
            let context = w.context(thread.context);
            let amount = context.at(&w.k).head().amount;
            w.k.core().set_context(&w.k, Some((context, amount)));
        }),
    ];
    for (i, (what, break_it)) in breaks.iter().enumerate() {
        let (mut w, thread) = checked_world();
        break_it(&mut w, thread);
        let said = finding(&w, thread).unwrap_or_default();
        let first = said.lines().next().unwrap_or_default();
        let expected = format!("sandglass: {what} is inconsistent");
        assert_eq!(first, expected, "break {i}");
    }
}

/// Puts a neighbour of the address space of `thread` in the derivation list somewhere else, without
/// taking it out where it was.
fn relink(w: &mut World, thread: Thread, neighbour: fn(&Slot) -> Option<Ref<Slot>>) {
    // A copy behind it, so that there is a neighbour on either side.
    w.copy(slot::VSPACE, 0b1111).expect("copied");
    let elsewhere = tcb_slot(w.running().expect("the root task"), TcbSlot::CSpace);
    let space = tcb_slot(thread.handle, TcbSlot::VSpace);
    let moved = neighbour(space.at(&w.k)).expect("a neighbour");
    derivation::insert_copy(&w.k, elsewhere, moved, moved.at(&w.k).cap());
}

/// Whole slices are not in order of time, and need not be.
#[test]
fn round_robin_contexts_are_consistent() {
    let mut w = World::new();
    let thread = w.start_thread(50, 1_000, 1_000);
    assert_eq!(finding(&w, thread), None);
    let head = w.context(thread.context).at(&w.k).head();
    let time = head.time + 10_000 * US;
    let context = w.context(thread.context).at(&w.k);
    context.set_head(&w.k, Refill { time, ..head });
    assert_eq!(finding(&w, thread), None);
}

#[test]
fn a_kernel_that_finds_itself_inconsistent_stops() {
    let mut w = World::new();
    let root = w.running().expect("the root task");
    root.at(&w.k).set_place(&w.k, Place::Ready);
    let _ = console(&w);
    Call::new(Syscall::NBSend, slot::TCB, 0, &[], &[]).issue(&w.k, root);
    let _ = event::handle(&mut w.k, Event::Syscall);
    assert_eq!(w.k.machine.halted(), Some(INCONSISTENT));
    assert!(console(&w).contains("inconsistent"));
}
