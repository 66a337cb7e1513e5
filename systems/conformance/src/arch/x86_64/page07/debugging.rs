//! 07, section 5: the hardware-debug API, in profiles that have it (09, section 3; 05, section 2.6).

use conformance_kit::arch::order::{RAX, RBP, RBX, RDI, RDX, RFLAGS, RIP, RSP};
use conformance_kit::arch::WRITE_LOOP;

use crate::fixture::raw::RAW_PRIORITY;
// By another name: the book's table is of the checks that the base profile has.
use crate::harness::check as of_profile;
use crate::prelude::*;

/// Those of profiles that have the API; others have none of it to look at.
pub const CHECKS: &[Check] = match PROFILE.hardware_debug {
    true => ALL,
    false => &[],
};

const ALL: &[Check] = &[
    of_profile(
        "07/5/a-breakpoint-is-read-back-until-it-is-unset",
        read_back,
    ),
    of_profile("07/5/set-breakpoint-refuses-in-order", refusals),
    of_profile("07/5/numbers-have-sixteen-bits-and-four-values", numbers),
    of_profile("07/5/the-length-of-messages-is-not-checked", lengths),
    of_profile(
        "07/5/a-data-breakpoint-is-told-behind-the-access",
        data_breakpoints,
    ),
    of_profile(
        "07/5/an-instruction-breakpoint-is-told-each-time",
        instruction_breakpoints,
    ),
    of_profile("07/5/a-software-break-is-told-behind-it", software_break),
    of_profile("07/5/steps-are-told-after-the-last-of-them", steps),
    of_profile("07/5/the-answer-to-a-step-says-how-many-more", answers),
    of_profile("07/5/a-system-call-is-one-step", system_call_step),
    of_profile("07/5/the-trap-flag-shows-while-stepping", trap_flag),
    of_profile("07/5/a-trap-flag-of-ones-own-is-a-step", own_trap_flag),
    of_profile("07/5/breakpoints-come-before-steps-by-number", order),
    of_profile("07/5/without-a-number-in-use-nothing-fires", silenced),
    of_profile("07/5/what-is-watched-is-one-threads", one_threads),
    of_profile("07/5/threads-that-alternate-keep-theirs", alternating),
    of_profile("07/5/a-thread-on-another-core-is-watched", another_core),
];

/// Labels, from 09, section 2.2, by hand: where there is the API.
const SET: u64 = 16;
const GET: u64 = 17;
const UNSET: u64 = 18;
const STEP: u64 = 19;

const DATA: u64 = 0;
const INSTRUCTION: u64 = 1;
const READ: u64 = 0;
const WRITE: u64 = 1;
const READ_WRITE: u64 = 2;

/// What was watched, in a message: 05, section 2.6.
const DEBUG_EXCEPTION: u64 = 4;
const STEPPED: u64 = 2;
const BROKE: u64 = 3;

const TRAP_FLAG: u64 = 0x100;

const NOP: u8 = 0x90;
const UD2: [u8; 2] = [0x0f, 0x0b];
/// `mov rax, [rdi]; mov [rdi], rax; ud2`
const LOAD_AND_STORE: [u8; 8] = [0x48, 0x8b, 0x07, 0x48, 0x89, 0x07, 0x0f, 0x0b];

fn invocation(tcb: Tcb, label: u64, words: &[u64]) -> Invocation {
    Invocation::new(tcb, label, words, &[])
}

fn set(tcb: Tcb, number: u64, address: u64, kind: u64, size: u64, access: u64) -> TestResult {
    invocation(tcb, SET, &[number, address, kind, size, access]).expect_ok(&[])
}

fn step(tcb: Tcb, number: u64, count: u64) -> TestResult {
    invocation(tcb, STEP, &[number, count]).expect_ok(&[0])
}

/// Fails unless the thread stopped by a debug exception with these words, the first an offset of its code.
fn expect_event(thread: &RawThread, stopped: &Stopped, offset: u64, words: &[u64]) -> TestResult {
    let expected: Vec<u64> = [thread.code + offset]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    ensure!(
        stopped.label == DEBUG_EXCEPTION && stopped.words == expected,
        "expected a debug exception {expected:#x?}, saw fault {} {:#x?}",
        stopped.label,
        stopped.words
    );
    ensure_eq!(stopped.registers.get(RIP), thread.code + offset);
    Ok(())
}

/// Fails unless the thread stopped by the undefined instruction at this offset.
fn expect_end(thread: &RawThread, stopped: &Stopped, offset: u64) -> TestResult {
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(stopped.words[0], thread.code + offset);
    ensure_eq!(stopped.words[3], 6);
    Ok(())
}

/// Answers the thread's fault, and waits for the next one.
fn go_on(f: &Fixture, thread: &RawThread, words: &[u64]) -> Result<Stopped, Failure> {
    thread.reply.send(Message::long(0, words));
    thread.stopped(f)
}

fn read_back(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let unset = [0, INSTRUCTION, 0, 0, 0];
    for number in 0..4 {
        let get = invocation(tcb, GET, &[number]);
        get.expect_ok(&unset)?;
        for size in [1, 2, 4] {
            // Reading alone is watched as reading and writing.
            for (access, seen) in [(READ, READ_WRITE), (WRITE, WRITE), (READ_WRITE, READ_WRITE)] {
                set(tcb, number, 0x7ff0, DATA, size, access)?;
                get.expect_ok(&[0x7ff0, DATA, size, seen, 1])?;
            }
        }
        set(tcb, number, 0x7fff_ffff_fffe, INSTRUCTION, 0, 0)?;
        get.expect_ok(&[0x7fff_ffff_fffe, INSTRUCTION, 0, 0, 1])?;
    }
    for number in 0..4 {
        invocation(tcb, UNSET, &[number]).expect_ok(&[])?;
        invocation(tcb, GET, &[number]).expect_ok(&unset)?;
        // Again, and of one that is not set.
        invocation(tcb, UNSET, &[number]).expect_ok(&[])?;
    }
    Ok(())
}

fn refusals(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    // Each is wrong in what is refused, and in all that is looked at later.
    let top = 0x7fff_ffff_ffff;
    let wrong: &[([u64; 5], ErrorNumber, &[u64])] = &[
        ([9, top, 2, 3, 3], InvalidArgument, &[1]),
        ([9, u64::MAX, 2, 3, 3], InvalidArgument, &[1]),
        ([9, 1, 2, 3, 3], InvalidArgument, &[2]),
        ([9, 1, INSTRUCTION, 3, 3], InvalidArgument, &[3]),
        ([9, 1, INSTRUCTION, 0, 3], InvalidArgument, &[4]),
        ([9, 1, DATA, 0, 3], InvalidArgument, &[3]),
        ([9, 1, DATA, 2, 3], InvalidArgument, &[3]),
        ([9, 1, DATA, 3, 2], InvalidArgument, &[3]),
        ([9, 1, DATA, 16, 2], InvalidArgument, &[3]),
        ([9, 1, DATA, 2, 2], AlignmentError, &[]),
        ([9, 4, DATA, 8, 2], AlignmentError, &[]),
        ([4, 4, DATA, 4, 2], RangeError, &[0, 3]),
        ([9, 8, DATA, 8, 2], RangeError, &[0, 3]),
        // Whether this processor watches eight bytes, page 09 says: that of the stock command line does not.
        ([3, 8, DATA, 8, 2], InvalidArgument, &[3]),
    ];
    for &(words, error, details) in wrong {
        let set = invocation(tcb, SET, &words);
        set.expect_error(error, details)?;
        invocation(tcb, GET, &[3]).expect_ok(&[0, INSTRUCTION, 0, 0, 0])?;
    }
    Ok(())
}

fn numbers(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for label in [GET, UNSET] {
        for number in [4, 0xffff] {
            invocation(tcb, label, &[number]).expect_error(RangeError, &[0, 3])?;
        }
    }
    set(tcb, 0x1_0002, 0x1000, INSTRUCTION, 0, 0)?;
    invocation(tcb, GET, &[0xffff_0002]).expect_ok(&[0x1000, INSTRUCTION, 0, 0, 1])?;
    invocation(tcb, UNSET, &[1 << 63 | 2]).expect_ok(&[])?;
    invocation(tcb, GET, &[2]).expect_ok(&[0, INSTRUCTION, 0, 0, 0])
}

fn lengths(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    // The registers of a message without words are 0.
    let none = invocation(tcb, SET, &[]);
    none.expect_error(InvalidArgument, &[3])?;
    none.with_label(GET).expect_ok(&[0, INSTRUCTION, 0, 0, 0])?;
    none.with_label(UNSET).expect_ok(&[])?;
    none.with_label(STEP).expect_ok(&[0])
}

fn data_breakpoints(f: &mut Fixture) -> TestResult {
    let place = f.buffer()?.address;
    let before = registers(&[(RDI, place)]);
    for number in 0..4 {
        for size in [1, 2, 4] {
            for access in [READ, WRITE, READ_WRITE] {
                // Of the eight bytes that are accessed, some are watched.
                let watched = place + 4;
                let thread = f.raw(&LOAD_AND_STORE, &before)?;
                set(thread.tcb, number, watched, DATA, size, access)?;
                let mut stopped = thread.run(f)?;
                if access != WRITE {
                    expect_event(&thread, &stopped, 3, &[DATA, watched, number])?;
                    stopped = go_on(f, &thread, &[])?;
                }
                expect_event(&thread, &stopped, 6, &[DATA, watched, number])?;
                let end = go_on(f, &thread, &[])?;
                expect_end(&thread, &end, 6)?;
            }
        }
    }
    // What is not accessed is not told; nor is what is not watched any more.
    let thread = f.raw(&LOAD_AND_STORE, &before)?;
    set(thread.tcb, 0, place + 8, DATA, 4, READ_WRITE)?;
    set(thread.tcb, 1, place, DATA, 4, READ_WRITE)?;
    invocation(thread.tcb, UNSET, &[1]).expect_ok(&[])?;
    let end = thread.run(f)?;
    expect_end(&thread, &end, 6)
}

fn instruction_breakpoints(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&[NOP, NOP, 0x0f, 0x0b], &distinct())?;
    let watched = thread.code + 1;
    set(thread.tcb, 3, watched, INSTRUCTION, 0, 0)?;
    let mut stopped = thread.run(f)?;
    for _ in 0..3 {
        // Nothing makes it pass: the instruction was not executed.
        expect_event(&thread, &stopped, 1, &[INSTRUCTION, watched, 3])?;
        stopped = go_on(f, &thread, &[])?;
    }
    // With another label it does not go on; nothing is written.
    thread.reply.send(Message::long(1, &[0x1234]));
    ensure!(thread.goes_on_or_waits(f)?, "the thread was resumed");
    ensure_eq!(thread.registers()?, stopped.registers);
    invocation(thread.tcb, UNSET, &[3]).expect_ok(&[])?;
    let end = thread.run(f)?;
    expect_end(&thread, &end, 2)
}

fn software_break(f: &mut Fixture) -> TestResult {
    for code in [&[NOP, 0xcc, 0x0f, 0x0b][..], &[0xcd, 3, 0x0f, 0x0b]] {
        let thread = f.raw(code, &distinct())?;
        let stopped = thread.run(f)?;
        expect_event(&thread, &stopped, 2, &[BROKE])?;
        let end = go_on(f, &thread, &[0, 7])?;
        expect_end(&thread, &end, 2)?;
    }
    Ok(())
}

fn steps(f: &mut Fixture) -> TestResult {
    let code = [&[NOP; 8][..], &UD2].concat();
    for count in [1, 2, 7] {
        let thread = f.raw(&code, &distinct())?;
        step(thread.tcb, 0, count)?;
        let stopped = thread.run(f)?;
        expect_event(&thread, &stopped, count, &[STEPPED])?;
        // Nobody is stepped any more, and the answer to a step would say otherwise.
        thread.reply.send(Message::long(1, &[0]));
        f.settle()?;
        let end = thread.run(f)?;
        expect_end(&thread, &end, 8)?;
    }
    Ok(())
}

fn answers(f: &mut Fixture) -> TestResult {
    let code = [&[NOP; 16][..], &UD2].concat();
    let thread = f.raw(&code, &distinct())?;
    step(thread.tcb, 2, 1)?;
    let stopped = thread.run(f)?;
    expect_event(&thread, &stopped, 1, &[STEPPED])?;
    // One more where nothing is said; else as many as are said.
    let stopped = go_on(f, &thread, &[])?;
    expect_event(&thread, &stopped, 2, &[STEPPED])?;
    let stopped = go_on(f, &thread, &[3])?;
    expect_event(&thread, &stopped, 5, &[STEPPED])?;
    // Whatever the label: it does not go on, and makes so many steps when it does.
    thread.reply.send(Message::long(5, &[4]));
    ensure!(thread.goes_on_or_waits(f)?, "the thread was resumed");
    let stopped = thread.run(f)?;
    expect_event(&thread, &stopped, 9, &[STEPPED])?;
    let end = go_on(f, &thread, &[0])?;
    expect_end(&thread, &end, 16)
}

fn system_call_step(f: &mut Fixture) -> TestResult {
    // nop; syscall; nop; ud2
    let code = [NOP, 0x0f, 0x05, NOP, 0x0f, 0x0b];
    let thread = f.raw(&code, &registers(&[(RDX, Syscall::Yield.raw())]))?;
    step(thread.tcb, 0, 1)?;
    let stopped = thread.run(f)?;
    expect_event(&thread, &stopped, 1, &[STEPPED])?;
    let stopped = go_on(f, &thread, &[])?;
    expect_event(&thread, &stopped, 3, &[STEPPED])?;
    let stopped = go_on(f, &thread, &[])?;
    expect_event(&thread, &stopped, 4, &[STEPPED])
}

fn trap_flag(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&[NOP, NOP, NOP, 0x0f, 0x0b], &distinct())?;
    step(thread.tcb, 0, 1)?;
    let stopped = thread.run(f)?;
    ensure!(stopped.registers.get(RFLAGS) & TRAP_FLAG != 0);
    step(thread.tcb, 0, 0)?;
    ensure!(thread.registers()?.get(RFLAGS) & TRAP_FLAG == 0);
    Ok(())
}

fn own_trap_flag(f: &mut Fixture) -> TestResult {
    // push 0x302; popf; nop; nop; ud2: the flag takes effect after one instruction.
    let stack = f.buffer()?;
    let before = registers(&[(RSP, stack.address + 64)]);
    let code = [0x68, 2, 3, 0, 0, 0x9d, NOP, NOP, 0x0f, 0x0b];
    let thread = f.raw(&code, &before)?;
    let stopped = thread.run(f)?;
    expect_event(&thread, &stopped, 7, &[STEPPED])
}

fn order(f: &mut Fixture) -> TestResult {
    let place = f.buffer()?.address;
    let thread = f.raw(&LOAD_AND_STORE, &registers(&[(RDI, place)]))?;
    for number in [3, 1, 2] {
        set(thread.tcb, number, place, DATA, 4, WRITE)?;
    }
    step(thread.tcb, 0, 2)?;
    let stopped = thread.run(f)?;
    expect_event(&thread, &stopped, 6, &[DATA, place, 1])
}

fn silenced(f: &mut Fixture) -> TestResult {
    let place = f.buffer()?.address;
    let thread = f.raw(&LOAD_AND_STORE, &registers(&[(RDI, place)]))?;
    set(thread.tcb, 1, place, DATA, 4, WRITE)?;
    step(thread.tcb, 1, 0)?;
    invocation(thread.tcb, GET, &[1]).expect_ok(&[place, DATA, 4, WRITE, 1])?;
    let end = thread.run(f)?;
    expect_end(&thread, &end, 6)?;
    // Another number in use, and it fires.
    let thread = f.raw(&LOAD_AND_STORE, &registers(&[(RDI, place)]))?;
    set(thread.tcb, 1, place, DATA, 4, WRITE)?;
    set(thread.tcb, 2, place + 64, DATA, 4, WRITE)?;
    step(thread.tcb, 1, 0)?;
    let stopped = thread.run(f)?;
    expect_event(&thread, &stopped, 6, &[DATA, place, 1])
}

fn one_threads(f: &mut Fixture) -> TestResult {
    let place = f.buffer()?.address;
    let before = registers(&[(RDI, place)]);
    let watched = f.raw(&LOAD_AND_STORE, &before)?;
    let other = f.raw(&LOAD_AND_STORE, &before)?;
    set(watched.tcb, 0, place, DATA, 4, READ_WRITE)?;
    let stopped = watched.run(f)?;
    expect_event(&watched, &stopped, 3, &[DATA, place, 0])?;
    // Right after it; and the check's own thread.
    let end = other.run(f)?;
    expect_end(&other, &end, 6)?;
    // SAFETY: the page is mapped, and nothing else is there.
    unsafe { (place as *mut u64).write_volatile(5) };
    let stopped = go_on(f, &watched, &[])?;
    expect_event(&watched, &stopped, 6, &[DATA, place, 0])?;
    invocation(other.tcb, GET, &[0]).expect_ok(&[0, INSTRUCTION, 0, 0, 0])
}

fn alternating(f: &mut Fixture) -> TestResult {
    // mov [rbx], rcx; syscall (Yield); mov [rbp], rcx; jmp to the beginning: both go through the same code in turns, and each
    // has the other's place as the one that it writes first.
    let code = [
        0x48, 0x89, 0x0b, 0x0f, 0x05, 0x48, 0x89, 0x4d, 0x00, 0xeb, 0xf5,
    ];
    let places = [f.buffer()?.address, f.buffer()?.address];
    let mut threads = Vec::new();
    for (own, other) in [(0, 1), (1, 0)] {
        let before = registers(&[
            (RDX, Syscall::Yield.raw()),
            (RBX, places[other]),
            (RBP, places[own]),
        ]);
        let thread = f.raw(&code, &before)?;
        set(thread.tcb, own as u64, places[own], DATA, 4, WRITE)?;
        thread.start()?;
        threads.push(thread);
    }
    for _ in 0..20 {
        for (own, thread) in threads.iter().enumerate() {
            let stopped = thread.stopped(f)?;
            expect_event(thread, &stopped, 9, &[DATA, places[own], own as u64])?;
        }
        for thread in &threads {
            thread.reply.send(Message::long(0, &[]));
        }
    }
    Ok(())
}

fn another_core(f: &mut Fixture) -> TestResult {
    let cores = f.needs_cores(2)?;
    let place = f.buffer()?.address;
    let before = registers(&[(RDI, place), (RAX, 0)]);
    for core in 1..cores {
        let params = f.active_at(core, RAW_PRIORITY, SchedParams::new(5_000, 5_000))?;
        let thread = f.raw_with(params, &WRITE_LOOP, &before)?;
        thread.start()?;
        // SAFETY: the page is mapped as long as the check runs.
        let value = || unsafe { (place as *const u64).read_volatile() };
        let first = value();
        f.eventually("the thread writes", || value() != first)?;
        // While it runs there.
        set(thread.tcb, 2, place, DATA, 4, WRITE)?;
        for _ in 0..3 {
            let stopped = thread.stopped(f)?;
            expect_event(&thread, &stopped, 3, &[DATA, place, 2])?;
            thread.reply.send(Message::long(0, &[]));
        }
        let stopped = thread.stopped(f)?;
        expect_event(&thread, &stopped, 3, &[DATA, place, 2])?;
        invocation(thread.tcb, UNSET, &[2]).expect_ok(&[])?;
        step(thread.tcb, 0, 1)?;
        thread.reply.send(Message::long(0, &[]));
        // inc rax; QEMU's TCG counts no pause.
        let stopped = thread.stopped(f)?;
        expect_event(&thread, &stopped, 6, &[STEPPED])?;
    }
    Ok(())
}
