//! Scripts in which the kernel and its specification once went different ways, or an invariant once
//! broke: what lock step prints is pasted here.

use sandglass_assurance::pair::Checks;
use sandglass_assurance::script::Action::{self, *};
use sandglass_assurance::{script, shrink};

fn run(script: &[Action]) {
    if let Err(failure) = shrink::run(script, Checks::All) {
        panic!("{failure}");
    }
}

/// Found by seed 4: of a fault that nobody handles, the kernel keeps a note that nobody ever reads.
#[test]
fn a_fault_that_nobody_handles() {
    run(&[
        PageFault(140737488355327, 59),
        Call(script::Call {
            number: -9,
            cap: 0x1480,
            info: 0x80,
            ..script::Call::default()
        }),
    ]);
}

/// Found by seed 62: a thread without the least budget does not begin a system call, so it does not
/// repeat it either.
#[test]
fn a_call_that_was_not_begun_is_not_preempted() {
    run(&[
        Call(script::Call {
            number: -1,
            cap: 0x10,
            info: 0x21485,
            words: vec![20, 40, 0, 0, 1],
            caps: vec![195],
            ..script::Call::default()
        }),
        Pass(2170725),
        Preempted(
            0,
            script::Call {
                number: -1,
                cap: 0xc5,
                info: 0x26800,
                ..script::Call::default()
            },
        ),
    ]);
}

/// Found by seed 637 on four cores: who runs elsewhere is stopped before anything is deleted, so an event that
/// ends there for want of time has deleted nothing.
#[test]
fn a_deletion_that_ends_when_its_thread_is_stopped_elsewhere() {
    run(&[
        Pass(298599),
        On(1),
        Look,
        On(0),
        Delays(vec![0, 684463]),
        Call(script::Call {
            number: -1,
            cap: 0x2,
            info: 0x13602,
            words: vec![193, 64],
            ..script::Call::default()
        }),
    ]);
}

/// Found by seed 1052: a deletion wakes a thread with a sporadic context, and then goes on for long on its
/// caller's time. The oracle thought the thread ready only from the end of that, and so too often.
#[test]
fn a_thread_is_ready_from_when_a_long_event_wakes_it() {
    run(&[
        Call(script::Call {
            number: -2,
            cap: 0x90,
            info: 0xd600,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -7,
            cap: 0x13f,
            info: 0x0,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x2,
            info: 0x13002,
            words: vec![193, 64],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xc2,
            info: 0x22a80,
            caps: vec![202],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -7,
            cap: 0x82,
            info: 0x100,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x49,
            info: 0x1486,
            words: vec![2, 0, 0, 0, 299, 1],
            caps: vec![2],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xa4,
            info: 0x1886,
            words: vec![4, 4, 0, 0, 294],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -7,
            cap: 0x12b,
            info: 0x0,
            reply: 0x89,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -7,
            cap: 0x12b,
            info: 0x0,
            reply: 0x8a,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x126,
            info: 0x15685,
            words: vec![15, 4, 170, 64],
            caps: vec![2],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x126,
            info: 0x15085,
            words: vec![8],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x126,
            info: 0x15c85,
            words: vec![14, 4, 161],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xca,
            info: 0xd600,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -7,
            cap: 0x12b,
            info: 0x0,
            reply: 0x88,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x126,
            info: 0x17c84,
            words: vec![0, 4, 299],
            ..script::Call::default()
        }),
        Delays(vec![0, 0, 0, 976297]),
        Call(script::Call {
            number: -1,
            cap: 0x2,
            info: 0x13002,
            words: vec![294, 64],
            ..script::Call::default()
        }),
        Pass(431770),
        Delays(vec![203112]),
        Call(script::Call {
            number: -1,
            cap: 0x2,
            info: 0x12602,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xcb,
            info: 0xb782,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -11,
            cap: 0xffffffffffffffff,
            info: 0x0,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xe,
            info: 0x24680,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xa1,
            info: 0x1686,
            words: vec![2, 0, 0, 0, 0, 1],
            caps: vec![2],
            ..script::Call::default()
        }),
    ]);
}

/// Found by seed 53 in a kernel that gave a thread which waits a context only if that could *not* be used yet.
#[test]
fn a_thread_that_waits_is_given_time_that_it_can_use() {
    run(&[
        Call(script::Call {
            number: -2,
            cap: 0x1464,
            info: 0x3,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xcb,
            info: 0xe080,
            ..script::Call::default()
        }),
        Pass(497901),
        Call(script::Call {
            number: -11,
            cap: 0xff,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -6,
            cap: 0xc2,
            info: 0x24a80,
            caps: vec![193],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xc2,
            info: 0x22e80,
            ..script::Call::default()
        }),
    ]);
}

/// Found by seed 4294967628 on four cores: while a core waits with a system call, another one counts a thread as released for
/// which the timer of the first was to fire; then the call stops that thread. The timer fires nonetheless, at once: nobody had
/// decided anew yet. The specification had forgotten it.
#[test]
fn a_release_that_comes_while_its_core_waits() {
    run(&[
        Late(script::Call {
            number: -7,
            cap: 0x90,
            info: 0x7002,
            reply: 0x89,
            ..script::Call::default()
        }),
        On(3),
        Look,
        Call(script::Call {
            number: -7,
            cap: 0x90,
            info: 0xfff002,
            reply: 0x8a,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -5,
            cap: 0x90,
            info: 0x7000,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -3,
            cap: 0x8e,
            info: 0x1000000,
            reply: 0x89,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x8d,
            info: 0x7fffffffffff00b,
            words: vec![0, 0, 0, 0, 0],
            ..script::Call::default()
        }),
        On(0),
        Call(script::Call {
            number: -1,
            cap: 0x90,
            info: 0x7f001,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -2,
            cap: 0x80,
            info: 0x5,
            reply: 0x89,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x2,
            info: 0x13202,
            words: vec![199, 64],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x8f,
            info: 0x8002,
            ..script::Call::default()
        }),
        Pass(1466524),
        On(3),
        Call(script::Call {
            number: -8,
            cap: 0x94,
            info: 0x5,
            reply: 0x87,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xc3,
            info: 0xc000,
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -2,
            cap: 0x80,
            info: 0x7,
            reply: 0xa0,
            words: vec![0, 0, 0, 0, 0, 7],
            ..script::Call::default()
        }),
        On(1),
        Pass(35089491),
        Pass(27555),
        Look,
        Call(script::Call {
            number: -8,
            cap: 0x8000000000000000,
            info: 0x3,
            ..script::Call::default()
        }),
        Interrupt(56),
        Interrupt(46),
        Pass(28037),
        Interrupt(56),
        Pass(3374593),
        Pass(2371),
        On(0),
        Call(script::Call {
            number: -1,
            cap: 0xc6,
            info: 0x23000,
            ..script::Call::default()
        }),
        PageFault(4294967296, 52),
        Call(script::Call {
            number: -6,
            cap: 0xa0,
            info: 0x0,
            ..script::Call::default()
        }),
        Delays(vec![0, 471003]),
        Call(script::Call {
            number: -1,
            cap: 0xc8,
            info: 0x22880,
            caps: vec![201],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0x60,
            info: 0x1a86,
            words: vec![12, 0, 0, 0, 0, 1],
            caps: vec![2],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xc6,
            info: 0x22e80,
            caps: vec![197],
            ..script::Call::default()
        }),
        Delays(vec![0, 853437]),
        Call(script::Call {
            number: -1,
            cap: 0x4f,
            info: 0x1486,
            words: vec![6, 0, 0, 0, 0, 1],
            caps: vec![2],
            ..script::Call::default()
        }),
        Late(script::Call {
            number: -1,
            cap: 0xbf,
            info: 0x2602,
            words: vec![1, 6],
            ..script::Call::default()
        }),
        On(3),
        Interrupt(56),
        Call(script::Call {
            number: -1,
            cap: 0x23,
            info: 0x1486,
            words: vec![10, 0, 0, 0, 313],
            caps: vec![2],
            ..script::Call::default()
        }),
        Call(script::Call {
            number: -1,
            cap: 0xcb,
            info: 0xdc00,
            ..script::Call::default()
        }),
        Pass(1432),
    ]);
}
