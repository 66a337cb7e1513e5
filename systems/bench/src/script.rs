//! Programs of system calls, and the clock readings around each.
//!
//! A script is run by a thread of its own, in assembly: it uses neither a stack nor the FPU. Each
//! of its steps is a system call, or an instruction that faults. Around a step the counter is read
//! as [`isa`] says; the instructions between the two readings, save the step itself, are the overhead
//! that is subtracted.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;
use sandglass::cap::{CPtr, Capability, Endpoint, Notification, Reply};

use crate::isa;

/// Runs that are not counted.
pub const WARM_UP: usize = 16;
/// Runs that are.
pub const SAMPLES: usize = 16;
pub const RUNS: usize = WARM_UP + SAMPLES;
/// Readings of a step: the faulter faults once more, so that its handler's last answer ends.
pub const READINGS: usize = RUNS + 1;

/// A system call with its arguments, and what the counter read around it in each run.
#[repr(C)]
pub struct Step {
    pub(crate) number: u64,
    pub(crate) cap: u64,
    pub(crate) info: u64,
    pub(crate) registers: [u64; 4],
    pub(crate) reply: u64,
    pub(crate) destination: u64,
    pub(crate) times: UnsafeCell<Times>,
}

/// Counter readings, by run.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Times {
    pub before: [u64; READINGS],
    pub after: [u64; READINGS],
}

// SAFETY: one thread writes the times, by its script; they are read when that is over.
unsafe impl Sync for Step {}

impl Step {
    /// No system call: readings alone.
    pub const fn readings() -> Self {
        Self {
            number: 0,
            cap: 0,
            info: 0,
            registers: [0; 4],
            reply: 0,
            destination: 0,
            times: UnsafeCell::new(Times {
                before: [0; READINGS],
                after: [0; READINGS],
            }),
        }
    }

    pub fn new(call: Syscall, cap: CPtr) -> Self {
        Self {
            number: call.raw(),
            cap: cap.raw(),
            ..Self::readings()
        }
    }

    /// A message of `length` words, of which the first four are `registers`.
    pub fn message(mut self, info: MessageInfo, registers: [u64; 4]) -> Self {
        self.info = info.raw();
        self.registers = registers;
        self
    }

    fn words(self, length: usize) -> Self {
        self.message(MessageInfo::new(0, 0, 0, length), [0; 4])
    }

    pub fn call(endpoint: Endpoint, length: usize) -> Self {
        Self::new(Syscall::Call, endpoint.cptr()).words(length)
    }

    pub fn send(endpoint: Endpoint) -> Self {
        Self::new(Syscall::Send, endpoint.cptr())
    }

    pub fn recv(endpoint: Endpoint, reply: Reply) -> Self {
        Self {
            reply: reply.address(),
            ..Self::new(Syscall::Recv, endpoint.cptr())
        }
    }

    pub fn reply_recv(reply: Reply, endpoint: Endpoint, length: usize) -> Self {
        Self {
            reply: reply.address(),
            ..Self::new(Syscall::ReplyRecv, endpoint.cptr()).words(length)
        }
    }

    /// Signals `ready` and waits for a request: how a server becomes passive.
    pub fn ready_recv(ready: Notification, endpoint: Endpoint, reply: Reply) -> Self {
        Self {
            reply: reply.address(),
            destination: ready.address(),
            ..Self::new(Syscall::NBSendRecv, endpoint.cptr())
        }
    }

    pub fn signal(notification: Notification) -> Self {
        Self::new(Syscall::Send, notification.cptr())
    }

    pub fn wait(notification: Notification) -> Self {
        Self::new(Syscall::Wait, notification.cptr())
    }

    /// What the counter read. To be asked when the script is over.
    pub fn times(&self) -> Times {
        // SAFETY: nobody writes any more.
        unsafe { *self.times.get() }
    }

    /// Makes the system call on the current thread, as run `run`.
    pub fn perform(&self, run: usize) {
        assert!(run < RUNS);
        // SAFETY: a step as the assembly expects it, and a run that its arrays have.
        unsafe { bench_perform(self, run as u64) }
    }
}

/// A program: steps once, then steps [`RUNS`] times; then it signals and waits for good.
#[repr(C)]
pub struct Script {
    pub(crate) first: *const Step,
    pub(crate) repeated: *const Step,
    pub(crate) end: *const Step,
    pub(crate) done: u64,
    pub(crate) park: u64,
}

// SAFETY: read by one thread; what it points to is `Sync`.
unsafe impl Sync for Script {}

impl Script {
    /// For good. `once` may be empty, `repeated` may not.
    pub fn leak(
        once: Vec<Step>,
        repeated: Vec<Step>,
        done: Notification,
        park: Notification,
    ) -> (&'static Self, &'static [Step]) {
        assert!(!repeated.is_empty());
        let start = once.len();
        let steps: Vec<Step> = once.into_iter().chain(repeated).collect();
        let steps = Box::leak(steps.into_boxed_slice());
        let range = steps.as_ptr_range();
        let script = Self {
            first: range.start,
            repeated: steps[start..].as_ptr(),
            end: range.end,
            done: done.address(),
            park: park.address(),
        };
        (Box::leak(Box::new(script)), &steps[start..])
    }
}

/// What a thread runs, as the address of its first instruction; the argument is a function's first.
#[derive(Clone, Copy)]
pub enum Program {
    /// The argument is a [`Script`].
    Script,
    /// The argument is a [`Step`] that gets the readings: an undefined instruction, once more than
    /// [`RUNS`] times.
    Faulter,
    /// The argument is a word: the counter is written there, for ever.
    Spinner,
}

impl Program {
    pub fn entry(self) -> u64 {
        match self {
            Self::Script => &raw const bench_script as u64,
            Self::Faulter => &raw const bench_faulter as u64,
            Self::Spinner => &raw const bench_spinner as u64,
        }
    }
}

/// Where the faulter goes on, behind its undefined instruction.
pub fn faulter_resume() -> u64 {
    &raw const bench_faulter_resume as u64
}

/// What measuring adds to what is measured, in instructions.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// Between the two readings around a system call, that instruction included.
    pub around_syscall: u64,
    /// The same around a faulting instruction, which is not executed, but counted by QEMU.
    pub around_fault: u64,
    /// From the kernel's return to the second reading.
    pub after: u64,
}

impl Overhead {
    /// Measures it. The counter must agree with the number of instructions that stand between two readings, that is count
    /// instructions.
    ///
    /// # Panics
    /// If it does not.
    pub fn measure() -> Self {
        // SAFETY: reads the counter twice.
        let between = unsafe { bench_between() };
        assert!(
            between == isa::BETWEEN,
            "the counter advances by {between} over {} instructions: it does not count instructions here (QEMU needs \
             -icount shift={})",
            isa::BETWEEN,
            isa::SHIFT
        );
        Self {
            around_syscall: between + 1,
            around_fault: between + 1,
            after: isa::AFTER,
        }
    }
}

unsafe extern "C" {
    fn bench_perform(step: *const Step, run: u64);
    fn bench_between() -> u64;
    // Code, of which only the addresses are used.
    static bench_script: u8;
    static bench_faulter: u8;
    static bench_faulter_resume: u8;
    static bench_spinner: u8;
}
