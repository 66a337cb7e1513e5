//! Raw threads that make one system call and then stop by a fault.

use conformance_kit::arch::order::{MESSAGE_REGISTERS, RDI, RDX, RIP, RSI};
use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;

use crate::prelude::*;

pub use conformance_kit::arch::SYSCALL_THEN_STOP as CODE;
/// Bytes of each of the two instructions.
pub const INSTRUCTION_BYTES: u64 = CODE.len() as u64 / 2;
/// Priority of the threads: below the check's.
pub const PRIORITY: u8 = 100;

/// A raw thread with a fault handler of its own.
#[derive(Clone, Copy)]
pub struct Raw {
    pub tcb: Tcb,
    pub endpoint: Endpoint,
    pub reply: Reply,
    /// Address of its code.
    pub code: u64,
}

impl Raw {
    /// Makes a thread with these registers at this code, which does not run yet.
    pub fn new(f: &mut Fixture, code: &[u8], registers: &UserContext) -> Result<Self, Failure> {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let params = ThreadParams {
            fault_handler: Some(endpoint),
            ..f.active(PRIORITY)?
        };
        let code = f.code(code)?;
        let mut registers = *registers;
        registers.set(RIP, code);
        let tcb = f.raw_thread(params, &registers)?;
        Ok(Self {
            tcb,
            endpoint,
            reply,
            code,
        })
    }

    /// A thread that makes a system call without caps, of up to four words, and stops.
    pub fn calling(
        f: &mut Fixture,
        call: Syscall,
        cap: impl Capability,
        label: u64,
        words: &[u64],
    ) -> Result<Self, Failure> {
        Self::new(f, &CODE, &call_registers(call, cap, label, words))
    }

    /// Lets it run until it stops by a fault.
    pub fn run(&self, f: &Fixture) -> Result<Stopped, Failure> {
        self.tcb.resume()?;
        self.stopped(f)
    }

    /// Waits for its fault.
    pub fn stopped(&self, f: &Fixture) -> Result<Stopped, Failure> {
        f.stopped(self.tcb, self.endpoint, self.reply)
    }

    /// Whether it has stopped by now.
    pub fn has_stopped(&self) -> bool {
        self.endpoint.nb_recv(self.reply).message.label() != 0
    }

    /// Fails unless it stopped at the UD2 behind the system call.
    pub fn ensure_after_call(&self, stopped: &Stopped) -> TestResult {
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(stopped.words[0], self.code + INSTRUCTION_BYTES);
        Ok(())
    }
}

/// Registers of a system call.
pub fn call_registers(
    call: Syscall,
    cap: impl Capability,
    label: u64,
    words: &[u64],
) -> UserContext {
    let mut registers = UserContext::default();
    registers.set(RDX, call.raw());
    registers.set(RDI, cap.cptr().raw());
    registers.set(RSI, MessageInfo::new(label, 0, 0, words.len()).raw());
    for (register, &word) in MESSAGE_REGISTERS.into_iter().zip(words) {
        registers.set(register, word);
    }
    registers
}

/// A thread that has signalled the check, and whose turn it is not: it is Running, NextIP being
/// behind the system call and FaultIP at it.
pub fn signalled(f: &mut Fixture) -> Result<(Raw, Notification), Failure> {
    let notification = f.notification()?;
    let raw = Raw::calling(f, Syscall::Send, notification, 0, &[])?;
    raw.tcb.resume()?;
    notification.wait();
    Ok((raw, notification))
}

/// A thread that waits on a notification.
pub fn waiting(f: &mut Fixture) -> Result<(Raw, Notification), Failure> {
    let notification = f.notification()?;
    let raw = Raw::calling(f, Syscall::Wait, notification, 0, &[])?;
    raw.tcb.resume()?;
    f.settle()?;
    Ok((raw, notification))
}
