//! The FPU: every thread has its own registers, and one that does without has none (07, section 4).

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::tcb_flags::FPU_DISABLED;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_testkit::isa::{self, FPU_WORDS};
use sandglass_testkit::world::{Thread, World};

/// A slice that does not end by itself here.
const LONG: u64 = 1_000_000;

/// `count` threads of one priority that take turns; the first runs.
fn equals(w: &mut World, count: usize) -> Vec<Thread> {
    let mut threads: Vec<_> = (0..count).map(|_| w.start_thread(50, LONG, LONG)).collect();
    threads.reverse();
    w.sleep();
    assert_eq!(w.running(), Some(threads[0].handle));
    threads
}

fn yield_now(w: &mut World) {
    w.syscall(Syscall::Yield, 0, 0, MessageInfo::default(), &[]);
}

/// Whoever runs sets and clears flags of `thread`; returns the new ones.
fn set_flags(w: &mut World, thread: Thread, clear: u64, set: u64) -> u64 {
    let flags = w.invoke(thread.tcb, label::TCB_SET_FLAGS, &[clear, set], &[]);
    flags.expect("flags")[0]
}

#[test]
fn every_thread_has_registers_of_its_own() {
    let mut w = World::new();
    let threads = equals(&mut w, 3);
    for round in 0..3 {
        for (i, thread) in threads.iter().enumerate() {
            assert_eq!(w.running(), Some(thread.handle));
            if round > 0 {
                let registers = w.k.machine.fpu_registers();
                assert_eq!(registers, [100 * round + i as u64; FPU_WORDS]);
            }
            w.k.machine
                .set_fpu_registers([100 * (round + 1) + i as u64; FPU_WORDS]);
            assert!(w.k.machine.fpu_enabled());
            yield_now(&mut w);
        }
    }
}

#[test]
fn a_thread_without_the_fpu_leaves_the_registers_of_the_others_alone() {
    let mut w = World::new();
    let threads = equals(&mut w, 2);
    w.k.machine.set_fpu_registers([7; FPU_WORDS]);
    assert_eq!(set_flags(&mut w, threads[1], 0, FPU_DISABLED), FPU_DISABLED);
    yield_now(&mut w);
    assert!(!w.k.machine.fpu_enabled());
    yield_now(&mut w);
    assert!(w.k.machine.fpu_enabled());
    assert_eq!(w.k.machine.fpu_registers(), [7; FPU_WORDS]);
}

/// The flag takes effect at once, and keeps what the registers held.
#[test]
fn who_gives_up_the_fpu_finds_its_registers_again() {
    let mut w = World::new();
    let threads = equals(&mut w, 2);
    w.k.machine.set_fpu_registers([7; FPU_WORDS]);
    assert_eq!(set_flags(&mut w, threads[0], 0, FPU_DISABLED), FPU_DISABLED);
    assert!(!w.k.machine.fpu_enabled());
    assert_eq!(set_flags(&mut w, threads[0], 0, 0), FPU_DISABLED);
    yield_now(&mut w);
    assert!(w.k.machine.fpu_enabled());
    w.k.machine.set_fpu_registers([8; FPU_WORDS]);
    yield_now(&mut w);
    assert_eq!(set_flags(&mut w, threads[0], FPU_DISABLED, 0), 0);
    assert!(w.k.machine.fpu_enabled());
    assert_eq!(w.k.machine.fpu_registers(), [7; FPU_WORDS]);
    yield_now(&mut w);
    assert_eq!(w.k.machine.fpu_registers(), [8; FPU_WORDS]);
}

/// Flags that do not exist are neither set nor reported; those in both words are set.
#[test]
fn only_flags_that_exist_are_set() {
    let mut w = World::new();
    let thread = w.make_thread(50, 8);
    assert_eq!(set_flags(&mut w, thread, 0, !FPU_DISABLED), 0);
    for _ in 0..2 {
        assert_eq!(set_flags(&mut w, thread, 0, !0), FPU_DISABLED);
    }
    assert_eq!(set_flags(&mut w, thread, !FPU_DISABLED, 0), FPU_DISABLED);
    assert_eq!(
        set_flags(&mut w, thread, FPU_DISABLED, FPU_DISABLED),
        FPU_DISABLED
    );
    assert_eq!(set_flags(&mut w, thread, !0, 0), 0);
}

/// Registers are not saved into the memory of a thread that is gone.
#[test]
fn a_deleted_thread_owns_no_registers() {
    let mut w = World::new();
    let memory = w.make(types::UNTYPED, types::TCB_BITS.into());
    let tcb = w.fresh_slot();
    w.retype(memory, types::TCB, 0, tcb, 1).expect("a thread");
    let context = w.make(types::SCHED_CONTEXT, 8);
    let frame = w.make(isa::types::PAGE, 0);
    let caps = [slot::CNODE, slot::VSPACE, frame];
    w.invoke(tcb, label::TCB_CONFIGURE, &[0, 0, 0x7000_0000], &caps)
        .expect("the spaces");
    let words = [50];
    w.invoke(tcb, label::TCB_SET_PRIORITY, &words, &[slot::TCB])
        .expect("a priority");
    let handle = w.cap(tcb).word().get().expect("a thread");
    let thread = Thread {
        tcb,
        context,
        handle,
    };
    w.configure(context, LONG, LONG, 0, 0);
    w.bind(thread);
    w.resume(thread);
    let root = w.running().expect("the root task");
    let wakes = w.sleep();
    assert_eq!(w.running(), Some(handle));
    w.k.machine.set_fpu_registers([9; FPU_WORDS]);
    // The root task does without, so that the thread's registers stay where they are.
    root.at(&w.k).set_fpu_disabled(&w.k, true);
    w.wake(wakes);
    assert_eq!(w.k.core().fpu_owner(), Some(handle));
    let start = w.cap(memory).untyped().expect("memory").start().get();
    w.revoke(memory).expect("revoked");
    assert_eq!(w.k.core().fpu_owner(), None);
    let again = w.fresh_slot();
    w.retype(memory, types::UNTYPED, types::TCB_BITS.into(), again, 1)
        .expect("free memory");
    w.start_thread(50, LONG, LONG);
    w.sleep();
    assert!(w.k.machine.fpu_enabled());
    let bytes = w.k.machine.read_memory(start, 1 << types::TCB_BITS);
    assert!(bytes.expect("in memory").iter().all(|&byte| byte == 0));
}
