//! Programs of system calls, and the clock readings around each.
//!
//! A script is run by a thread of its own, in assembly: it uses neither a stack nor the FPU. Each
//! of its steps is a system call, or an instruction that faults. Around a step the counter is read
//! as follows; the instructions between the two readings, save the step itself, are the overhead
//! that is subtracted.
//!
//! ```text
//! rdtsc; shl; or; mov     the reading, and the number of the system call
//! syscall                 the step
//! mov; rdtsc              the reading, in whichever thread runs then
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::{offset_of, size_of};

use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;
use sandglass::cap::{CPtr, Capability, Endpoint, Notification, Reply};

/// Runs that are not counted.
pub const WARM_UP: usize = 16;
/// Runs that are.
pub const SAMPLES: usize = 16;
pub const RUNS: usize = WARM_UP + SAMPLES;
/// Readings of a step: the faulter faults once more, so that its handler's last answer ends.
const READINGS: usize = RUNS + 1;

/// A system call with its arguments, and what the counter read around it in each run.
#[repr(C)]
pub struct Step {
    number: u64,
    cap: u64,
    info: u64,
    registers: [u64; 4],
    reply: u64,
    destination: u64,
    times: UnsafeCell<Times>,
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
    first: *const Step,
    repeated: *const Step,
    end: *const Step,
    done: u64,
    park: u64,
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

/// What a thread runs, as the address of its first instruction; the argument is in rdi.
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

/// Instructions that the spinner has executed from its last reading that is in memory, that
/// reading included, when it is interrupted before the instruction at `ip`; `None` outside of it.
pub fn spinner_progress(ip: u64) -> Option<u64> {
    let labels = [
        (&raw const bench_spinner as u64, 5),
        (&raw const bench_spinner_shift as u64, 6),
        (&raw const bench_spinner_merge as u64, 7),
        (&raw const bench_spinner_store as u64, 8),
        (&raw const bench_spinner_jump as u64, 4),
    ];
    labels
        .into_iter()
        .find_map(|(label, count)| (label == ip).then_some(count))
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
    /// Measures it. Between the readings stand five instructions, the first reading among them;
    /// the counter must agree, that is count instructions.
    ///
    /// # Panics
    /// If it does not.
    pub fn measure() -> Self {
        // SAFETY: reads the counter twice.
        let between = unsafe { bench_between() };
        assert!(
            between == 5,
            "the time-stamp counter advances by {between} over 5 instructions: it does not count \
             instructions here (QEMU needs -icount shift=0)"
        );
        Self {
            around_syscall: between + 1,
            around_fault: between + 1,
            after: 1,
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
    static bench_spinner_shift: u8;
    static bench_spinner_merge: u8;
    static bench_spinner_store: u8;
    static bench_spinner_jump: u8;
}

global_asm!(
    // Reads the counter into rax; clobbers rdx.
    ".macro bench_read",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    ".endm",
    // The step at rbx as run r14, with the readings around \instruction. Clobbers all registers
    // of the system call's convention, rax, rcx and r11, and rsp if it is a system call.
    ".macro bench_step instruction:vararg",
    "mov rdi, [rbx + {cap}]",
    "mov rsi, [rbx + {info}]",
    "mov r10, [rbx + {registers}]",
    "mov r8, [rbx + {registers} + 8]",
    "mov r9, [rbx + {registers} + 16]",
    "mov r15, [rbx + {registers} + 24]",
    "mov r12, [rbx + {reply}]",
    "mov r13, [rbx + {destination}]",
    "bench_read",
    "mov rdx, [rbx + {number}]",
    "\\instruction",
    "mov r11, rax",
    "bench_read",
    "mov [rbx + r14 * 8 + {before}], r11",
    "mov [rbx + r14 * 8 + {after}], rax",
    ".endm",
    // Script in rdi.
    "bench_script:",
    "mov rbp, rdi",
    "mov rbx, [rbp + {first}]",
    "xor r14d, r14d",
    "2: bench_step syscall",
    "add rbx, {step_bytes}",
    "cmp rbx, [rbp + {end}]",
    "jb 2b",
    "mov rbx, [rbp + {repeated}]",
    "inc r14",
    "cmp r14, {runs}",
    "jb 2b",
    "mov rdi, [rbp + {done}]",
    "mov rdx, {send}",
    "xor esi, esi",
    "syscall",
    "3: mov rdi, [rbp + {park}]",
    "mov rdx, {wait}",
    "syscall",
    "jmp 3b",
    // Step in rdi, run in rsi. Keeps rsp in rbp.
    ".globl bench_perform",
    "bench_perform:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov rbx, rdi",
    "mov r14, rsi",
    "mov rbp, rsp",
    "bench_step syscall",
    "mov rsp, rbp",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    // The difference of two readings with nothing in between.
    ".globl bench_between",
    "bench_between:",
    "bench_read",
    "mov rdx, [rsp]",
    "mov r11, rax",
    "bench_read",
    "sub rax, r11",
    "ret",
    // Step in rdi.
    "bench_faulter:",
    "mov rbx, rdi",
    "xor r14d, r14d",
    "2: bench_read",
    "mov rdx, [rbx + {number}]",
    "ud2",
    "bench_faulter_resume:",
    "mov r11, rax",
    "bench_read",
    "mov [rbx + r14 * 8 + {before}], r11",
    "mov [rbx + r14 * 8 + {after}], rax",
    "inc r14",
    "cmp r14, {readings}",
    "jb 2b",
    "3: jmp 3b",
    // Word in rdi.
    "bench_spinner:",
    "rdtsc",
    "bench_spinner_shift:",
    "shl rdx, 32",
    "bench_spinner_merge:",
    "or rax, rdx",
    "bench_spinner_store:",
    "mov [rdi], rax",
    "bench_spinner_jump:",
    "jmp bench_spinner",
    number = const offset_of!(Step, number),
    cap = const offset_of!(Step, cap),
    info = const offset_of!(Step, info),
    registers = const offset_of!(Step, registers),
    reply = const offset_of!(Step, reply),
    destination = const offset_of!(Step, destination),
    before = const offset_of!(Step, times) + offset_of!(Times, before),
    after = const offset_of!(Step, times) + offset_of!(Times, after),
    step_bytes = const size_of::<Step>(),
    first = const offset_of!(Script, first),
    repeated = const offset_of!(Script, repeated),
    end = const offset_of!(Script, end),
    done = const offset_of!(Script, done),
    park = const offset_of!(Script, park),
    runs = const RUNS,
    readings = const READINGS,
    send = const Syscall::Send.raw() as i64,
    wait = const Syscall::Wait.raw() as i64,
);
