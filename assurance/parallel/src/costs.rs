//! How long what the kernel does takes: parameters of a simulation.
//!
//! The kernel runs for real; the time that it takes on its way is not measured but given, so that a
//! simulation is exact and the same on every host. The defaults are the counts of instructions of
//! the release kernel by `./sandglass bench`, at one instruction per tick.

use serde::{Deserialize, Serialize};

/// What a way through the kernel is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    Call,
    ReplyRecv,
    Send,
    /// Signal a notification, and who waits for it runs.
    Signal,
    /// Signal a notification, and nobody runs because of it.
    SignalOnly,
    Recv,
    /// Wait for a notification.
    Wait,
    /// Signal one notification, and wait for another.
    SignalWait,
    Yield,
    /// A call to a kernel object, of those that have no row of their own.
    Invocation,
    /// A context is given to a thread, or taken away from one.
    Bind,
    Unbind,
    SetPriority,
    ReadRegisters,
    Timer,
    /// Another core asked for a look, or the thread that wanted something was taken away.
    Look,
}

/// A way through the kernel, as it was gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub struct Way {
    pub path: Path,
    /// By a [straight line](sandglass_kernel::fast).
    pub is_straight: bool,
}

/// Ticks that what has a [straight line](sandglass_kernel::fast) takes when it takes that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Straight {
    pub call: u64,
    pub reply_recv: u64,
    pub send: u64,
    pub signal: u64,
    pub signal_only: u64,
    pub recv: u64,
    pub wait: u64,
    pub yield_: u64,
    pub timer: u64,
    /// As of [`Costs::look`]: a device's interrupt.
    pub look: u64,
}

/// Ticks that everything takes which is not user code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Costs {
    pub straight: Straight,
    /// These and the following: in general.
    pub call: u64,
    pub reply_recv: u64,
    pub send: u64,
    pub signal: u64,
    pub signal_only: u64,
    pub recv: u64,
    pub wait: u64,
    /// What a way in and out is without anything between: two ways in one system call have it once.
    pub entry: u64,
    pub yield_: u64,
    pub invocation: u64,
    pub bind: u64,
    pub unbind: u64,
    pub set_priority: u64,
    pub read_registers: u64,
    pub timer: u64,
    pub look: u64,
    /// What a kernel for several cores does more at every entry, taking the lock when it is free and
    /// giving it back included.
    pub lock: u64,
    /// From the request for a look until the other core leaves what it does.
    pub interrupt: u64,
    /// From a remote call (a stall, a flush) until the other cores have done it; the caller waits
    /// that long with the lock.
    pub remote_call: u64,
    /// From one preemption point of a long operation at which the kernel looks for interrupts and waiting
    /// cores to the next, at most.
    pub stretch: u64,
    /// What a core in user code loses when it serves a remote call and goes on.
    pub serve: u64,
}

impl Default for Costs {
    /// Instructions of the single-core release kernel, by `./sandglass bench`; in general, of one that takes no line. `lock`
    /// is by how much more the kernel executes for a call and its answer in `./sandglass experiment multicore`, 1,132
    /// instead of 960, half of it for each. No figure is about one way between cores alone: `look`
    /// is a device interrupt's, `stretch` the most that `./sandglass bounds` has found between two preemption
    /// points, rounded up, and the last three are assumptions.
    fn default() -> Self {
        Costs {
            straight: Straight {
                call: 183,
                reply_recv: 216,
                send: 275,
                signal: 265,
                signal_only: 133,
                recv: 294,
                wait: 274,
                yield_: 174,
                timer: 351,
                look: 343,
            },
            call: 412,
            reply_recv: 558,
            send: 457,
            signal: 401,
            signal_only: 207,
            recv: 437,
            wait: 372,
            entry: 120,
            yield_: 277,
            invocation: 438,
            bind: 491,
            unbind: 417,
            set_priority: 307,
            read_registers: 555,
            timer: 485,
            look: 418,
            lock: 86,
            interrupt: 500,
            remote_call: 700,
            stretch: 4_000,
            serve: 200,
        }
    }
}

impl Costs {
    /// Ticks from entry to exit, with the lock, without remote calls: of a straight line, or in general.
    pub fn of(&self, way: Way) -> u64 {
        let straight = self.of_line(way.path).filter(|_| way.is_straight);
        straight.unwrap_or_else(|| self.in_general(way.path)) + self.lock
    }

    /// Those of the line for it, if there is one.
    fn of_line(&self, path: Path) -> Option<u64> {
        let line = &self.straight;
        Some(match path {
            Path::Call => line.call,
            Path::ReplyRecv => line.reply_recv,
            Path::Send => line.send,
            Path::Signal => line.signal,
            Path::SignalOnly => line.signal_only,
            Path::Recv => line.recv,
            Path::Wait => line.wait,
            Path::Yield => line.yield_,
            Path::Timer => line.timer,
            Path::Look => line.look,
            _ => return None,
        })
    }

    fn in_general(&self, path: Path) -> u64 {
        match path {
            Path::Call => self.call,
            Path::ReplyRecv => self.reply_recv,
            Path::Send => self.send,
            Path::Signal => self.signal,
            Path::SignalOnly => self.signal_only,
            Path::Recv => self.recv,
            Path::Wait => self.wait,
            Path::SignalWait => self.signal + self.wait - self.entry,
            Path::Yield => self.yield_,
            Path::Invocation => self.invocation,
            Path::Bind => self.bind,
            Path::Unbind => self.unbind,
            Path::SetPriority => self.set_priority,
            Path::ReadRegisters => self.read_registers,
            Path::Timer => self.timer,
            Path::Look => self.look,
        }
    }
}
