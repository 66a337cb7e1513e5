//! Reading, writing and copying the registers of threads (03, sections 4.1 to 4.3; 07, section 1).

use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::registers_flags as flags;
use sandglass_kernel::arch::{Register, Transfer, FRAME_REGISTERS};
use sandglass_kernel::object::tcb::State;
use sandglass_testkit::world::{Thread, World};

const ORDER: Transfer = Transfer::UserContext;

/// All registers of `thread`, in the order in which they are transferred.
fn registers(w: &World, thread: Thread) -> Vec<u64> {
    let context = thread.handle.at(&w.k).context();
    (0..ORDER.len())
        .map(|i| context.transfer_get(ORDER, i).expect("a register"))
        .collect()
}

/// A stopped thread whose registers hold `first` and what follows, as far as they can.
fn stopped(w: &mut World, first: u64) -> Thread {
    let thread = w.make_thread(50, 8);
    let count = ORDER.len() as u64;
    let mut words = vec![0, count];
    words.extend(first..first + count);
    w.invoke(thread.tcb, label::TCB_WRITE_REGISTERS, &words, &[])
        .expect("written");
    thread
}

#[test]
fn as_many_registers_are_written_and_read_as_asked() {
    for count in [1, 3, 5, ORDER.len() as u64] {
        let mut w = World::new();
        let thread = stopped(&mut w, 0x1000);
        let before = registers(&w, thread);
        let mut words = vec![0, count];
        words.extend(0x2000..0x2000 + count);
        w.invoke(thread.tcb, label::TCB_WRITE_REGISTERS, &words, &[])
            .expect("written");
        let after = registers(&w, thread);
        assert_ne!(after[0], before[0]);
        assert_eq!(after[count as usize..], before[count as usize..]);
        let read = w.invoke(thread.tcb, label::TCB_READ_REGISTERS, &[0, count], &[]);
        assert_eq!(read.expect("read"), after[..count as usize]);
    }
}

/// 03, section 4.2: the thread goes on at its restart address, however many registers are written.
#[test]
fn to_write_no_register_restarts_the_thread_all_the_same() {
    let mut w = World::new();
    let thread = w.start_thread(50, 1_000, 10_000);
    let sleep = w.sleep();
    assert_eq!(w.running(), Some(thread.handle));
    let context = thread.handle.at(&w.k).context();
    context.set(&*w.k, Register::FaultIp, 0x1000);
    context.set(&*w.k, Register::NextIp, 0x1002);
    w.wake(sleep);
    w.invoke(thread.tcb, label::TCB_WRITE_REGISTERS, &[0, 0], &[])
        .expect("written");
    let context = thread.handle.at(&w.k).context();
    assert_eq!(context.get(Register::NextIp), 0x1000);
}

#[test]
fn counts_have_ranges() {
    let mut w = World::new();
    let thread = stopped(&mut w, 0x1000);
    let total = ORDER.len() as u64;
    for wrong in [0, total + 1] {
        let read = w.invoke(thread.tcb, label::TCB_READ_REGISTERS, &[0, wrong], &[]);
        let refused = read.unwrap_err();
        assert_eq!(refused.error, ErrorNumber::RangeError);
        assert_eq!(refused.details, [1, total]);
    }
    let write = label::TCB_WRITE_REGISTERS;
    let short = w.invoke(thread.tcb, write, &[0, 3, 1, 2], &[]);
    assert_eq!(short.unwrap_err().error, ErrorNumber::TruncatedMessage);
    w.invoke(thread.tcb, write, &[0, 3, 1, 2, 3], &[])
        .expect("exactly as many");
    w.invoke(thread.tcb, write, &[0, 0], &[]).expect("none");
}

/// Each flag of CopyRegisters does what it says, and nothing else.
#[test]
fn each_part_is_copied_by_its_flag() {
    for wanted in 0..16 {
        let mut w = World::new();
        let source = stopped(&mut w, 0x1000);
        let target = stopped(&mut w, 0x2000);
        w.invoke(source.tcb, label::TCB_RESUME, &[], &[])
            .expect("started");
        let (from, to) = (registers(&w, source), registers(&w, target));
        let copy = label::TCB_COPY_REGISTERS;
        w.invoke(target.tcb, copy, &[wanted], &[source.tcb])
            .expect("copied");
        let has = |flag| wanted & flag != 0;
        let state = |thread: Thread| thread.handle.at(&w.k).state();
        let suspends = has(flags::COPY_SUSPEND_SOURCE);
        assert_eq!(state(source) == State::Inactive, suspends, "{wanted:b}");
        let resumes = has(flags::COPY_RESUME_TARGET);
        assert_eq!(state(target) == State::Restart, resumes, "{wanted:b}");
        let now = registers(&w, target);
        let part = |taken: bool| if taken { &from } else { &to };
        let frame = part(has(flags::COPY_TRANSFER_FRAME));
        assert_eq!(
            now[..FRAME_REGISTERS],
            frame[..FRAME_REGISTERS],
            "{wanted:b}"
        );
        let integer = part(has(flags::COPY_TRANSFER_INTEGER));
        assert_eq!(
            now[FRAME_REGISTERS..],
            integer[FRAME_REGISTERS..],
            "{wanted:b}"
        );
    }
}

#[test]
fn threads_are_stopped_and_started_only_if_asked() {
    let mut w = World::new();
    let thread = stopped(&mut w, 0x1000);
    let state = |w: &World| thread.handle.at(&w.k).state();
    let write = label::TCB_WRITE_REGISTERS;
    w.invoke(thread.tcb, write, &[0, 0], &[]).expect("written");
    assert_eq!(state(&w), State::Inactive);
    w.invoke(thread.tcb, write, &[flags::WRITE_RESUME_TARGET, 0], &[])
        .expect("written");
    assert_eq!(state(&w), State::Restart);
    let read = label::TCB_READ_REGISTERS;
    w.invoke(thread.tcb, read, &[0, 1], &[]).expect("read");
    assert_eq!(state(&w), State::Restart);
    w.invoke(thread.tcb, read, &[flags::READ_SUSPEND_SOURCE, 1], &[])
        .expect("read");
    assert_eq!(state(&w), State::Inactive);
}
