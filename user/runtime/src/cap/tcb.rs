//! Threads (ABI 03, section 4).

use sandglass_abi::invocation::{self, registers_flags};
use sandglass_abi::message::{ipc_buffer, MessageInfo, REGISTER_MRS};
use sandglass_abi::syscall::Syscall;

use super::{
    capability, invoke, invoke_unit, or_null, CNode, CPtr, Capability, Endpoint, Frame, GuardData,
    Notification, Pml4, SchedContext,
};
use crate::arch::order::COUNT;
use crate::context::UserContext;
use crate::error::{Error, Result};
use crate::message::Message;
use crate::{sys, thread_block};

capability! {
    /// A thread control block.
    Tcb
}

/// What [`Tcb::copy_registers`] does besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyRegisters {
    pub suspend_source: bool,
    pub resume_target: bool,
    /// All registers but the FS and GS bases.
    pub frame: bool,
    /// The FS and GS bases.
    pub integer: bool,
}

/// Arguments of [`Tcb::set_sched_params`].
#[derive(Clone, Copy, Debug)]
pub struct SchedArguments {
    /// Maximum controlled priority.
    pub mcp: u8,
    pub priority: u8,
    /// `None` unbinds.
    pub sched_context: Option<SchedContext>,
    /// `None` removes.
    pub fault_handler: Option<Endpoint>,
}

impl Tcb {
    /// Sets CSpace (with its guard), VSpace and IPC buffer; without a buffer, removes it.
    #[inline]
    pub fn configure(
        self,
        cspace: CNode,
        guard: GuardData,
        vspace: Pml4,
        buffer: Option<(u64, Frame)>,
    ) -> Result<()> {
        let (address, frame) = buffer.map_or((0, CPtr::NULL), |(a, frame)| (a, frame.cptr()));
        let words = [guard.raw(), 0, address];
        let caps = [cspace.cptr(), vspace.cptr(), frame];
        invoke_unit(self.cptr(), invocation::TCB_CONFIGURE, words, caps)
    }

    /// Sets fault handler, CSpace (with its guard) and VSpace.
    #[inline]
    pub fn set_space(
        self,
        fault_handler: Option<Endpoint>,
        cspace: CNode,
        guard: GuardData,
        vspace: Pml4,
    ) -> Result<()> {
        let caps = [or_null(fault_handler), cspace.cptr(), vspace.cptr()];
        invoke_unit(
            self.cptr(),
            invocation::TCB_SET_SPACE,
            [guard.raw(), 0],
            caps,
        )
    }

    #[inline]
    pub fn set_ipc_buffer(self, address: u64, frame: Frame) -> Result<()> {
        invoke_unit(
            self.cptr(),
            invocation::TCB_SET_IPC_BUFFER,
            [address],
            [frame.cptr()],
        )
    }

    /// `authority`'s maximum controlled priority bounds the new priority.
    #[inline]
    pub fn set_priority(self, authority: Tcb, priority: u8) -> Result<()> {
        let words = [u64::from(priority)];
        invoke_unit(
            self.cptr(),
            invocation::TCB_SET_PRIORITY,
            words,
            [authority.cptr()],
        )
    }

    /// Sets the maximum controlled priority.
    #[inline]
    pub fn set_mc_priority(self, authority: Tcb, mcp: u8) -> Result<()> {
        let words = [u64::from(mcp)];
        invoke_unit(
            self.cptr(),
            invocation::TCB_SET_MC_PRIORITY,
            words,
            [authority.cptr()],
        )
    }

    /// Sets priorities, scheduling context and fault handler in one step.
    #[inline]
    pub fn set_sched_params(self, authority: Tcb, arguments: SchedArguments) -> Result<()> {
        let words = [u64::from(arguments.mcp), u64::from(arguments.priority)];
        let caps = [
            authority.cptr(),
            or_null(arguments.sched_context),
            or_null(arguments.fault_handler),
        ];
        invoke_unit(self.cptr(), invocation::TCB_SET_SCHED_PARAMS, words, caps)
    }

    /// Sets the handler that is told when the thread's budget runs out; `None` removes it.
    #[inline]
    pub fn set_timeout_endpoint(self, handler: Option<Endpoint>) -> Result<()> {
        invoke_unit(
            self.cptr(),
            invocation::TCB_SET_TIMEOUT_ENDPOINT,
            [],
            [or_null(handler)],
        )
    }

    /// Stops the thread, aborting what it waits for.
    #[inline]
    pub fn suspend(self) -> Result<()> {
        invoke_unit(self.cptr(), invocation::TCB_SUSPEND, [], [])
    }

    /// Starts the thread at its program counter if it is inactive or blocked.
    #[inline]
    pub fn resume(self) -> Result<()> {
        invoke_unit(self.cptr(), invocation::TCB_RESUME, [], [])
    }

    #[inline]
    pub fn bind_notification(self, notification: Notification) -> Result<()> {
        let caps = [notification.cptr()];
        invoke_unit(self.cptr(), invocation::TCB_BIND_NOTIFICATION, [], caps)
    }

    #[inline]
    pub fn unbind_notification(self) -> Result<()> {
        invoke_unit(self.cptr(), invocation::TCB_UNBIND_NOTIFICATION, [], [])
    }

    /// Sets the FS base.
    #[inline]
    pub fn set_tls_base(self, address: u64) -> Result<()> {
        invoke_unit(self.cptr(), invocation::TCB_SET_TLS_BASE, [address], [])
    }

    /// Clears, then sets flags ([`invocation::tcb_flags`]); returns the new flags.
    #[inline]
    pub fn set_flags(self, clear: u64, set: u64) -> Result<u64> {
        invoke(self.cptr(), invocation::TCB_SET_FLAGS, [clear, set], []).map(|m| m.word(0))
    }

    /// Reads all registers, stopping the thread first if asked. Not for the current thread.
    #[inline]
    pub fn read_registers(self, suspend: bool) -> Result<UserContext> {
        let flags = if suspend {
            registers_flags::READ_SUSPEND_SOURCE
        } else {
            0
        };
        let words = [flags, COUNT as u64];
        let answer = invoke(self.cptr(), invocation::TCB_READ_REGISTERS, words, [])?;
        let mut context = UserContext::default();
        answer.copy_words(context.words_mut());
        Ok(context)
    }

    /// Writes all registers and, if asked, resumes the thread. Not for the current thread.
    ///
    /// The thread continues at the new RIP when it next runs; what it waits for is aborted only
    /// by resuming it.
    #[inline]
    pub fn write_registers(self, context: &UserContext, resume: bool) -> Result<()> {
        self.write_first_registers(context.words(), resume)
    }

    /// Writes the first registers in the order of the user context (ABI 07, section 1.1). Two of them,
    /// RIP and RSP, need no IPC buffer.
    pub fn write_first_registers(self, registers: &[u64], resume: bool) -> Result<()> {
        let count = registers.len().min(COUNT);
        let flags = if resume {
            registers_flags::WRITE_RESUME_TARGET
        } else {
            0
        };
        let mut first = [flags, count as u64, 0, 0];
        for (i, &word) in registers.iter().take(count).enumerate() {
            match first.get_mut(2 + i) {
                Some(register) => *register = word,
                None => thread_block::write_word(ipc_buffer::MESSAGE + 2 + i, word),
            }
        }
        const { assert!(REGISTER_MRS == 4) };
        let label = invocation::TCB_WRITE_REGISTERS;
        let info = MessageInfo::new(label, 0, 0, 2 + count);
        let answer = sys::call(self.cptr().raw(), info, first);
        Error::check(label, Message::from_parts(answer.info, answer.registers)).map(|_| ())
    }

    /// Copies registers from `source`.
    #[inline]
    pub fn copy_registers(self, source: Tcb, what: CopyRegisters) -> Result<()> {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        let flags = flag(what.suspend_source, registers_flags::COPY_SUSPEND_SOURCE)
            | flag(what.resume_target, registers_flags::COPY_RESUME_TARGET)
            | flag(what.frame, registers_flags::COPY_TRANSFER_FRAME)
            | flag(what.integer, registers_flags::COPY_TRANSFER_INTEGER);
        invoke_unit(
            self.cptr(),
            invocation::TCB_COPY_REGISTERS,
            [flags],
            [source.cptr()],
        )
    }

    /// Names the thread in the kernel's diagnostics. Debug kernels only: elsewhere it is a fault.
    /// At most 255 bytes; an embedded zero ends the name.
    pub fn debug_set_name(self, name: &str) {
        let bytes = &name.as_bytes()[..name.len().min(255)];
        for index in 0..=bytes.len() / 8 {
            let mut word = [0; 8];
            let part = &bytes[index * 8..bytes.len().min(index * 8 + 8)];
            word[..part.len()].copy_from_slice(part);
            thread_block::write_word(ipc_buffer::MESSAGE + index, u64::from_le_bytes(word));
        }
        sys::simple(Syscall::DebugNameThread, self.cptr().raw());
    }
}
