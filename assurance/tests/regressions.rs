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
