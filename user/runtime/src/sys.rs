//! The system calls themselves: one inline stub per shape, registers as in ABI 01, section 4.1.
//!
//! The kernel returns from SYSCALL with rsp = 0 and with rcx and r11 holding the return address
//! and RFLAGS; every other register is preserved unless it carries a result. The stubs keep rsp
//! in r14, which LLVM, unlike rbx, lets inline assembly name. An interrupt between the return and
//! the restoration of rsp is harmless: the kernel never uses a user stack.
//!
//! The stubs neither read nor write the IPC buffer; they are compiled as if they did (no
//! `nomem`), so accesses to it are not moved across them.

use core::arch::asm;

use sandglass_abi::context::x86_64;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_abi::trace;

use crate::context::UserContext;

/// Message registers 0 to 3.
pub type Registers = [u64; 4];

/// What a receiving system call leaves in the registers.
#[derive(Clone, Copy, Debug)]
pub struct RawReceived {
    pub badge: u64,
    pub info: MessageInfo,
    pub registers: Registers,
}

/// A system call that sends and does not receive: Send, NBSend.
#[inline(always)]
pub fn send(call: Syscall, cap: u64, info: MessageInfo, registers: Registers) {
    // SAFETY: the registers are those of the ABI; rsp is restored before the block ends.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            in("rdi") cap,
            in("rsi") info.raw(),
            in("r10") registers[0],
            in("r8") registers[1],
            in("r9") registers[2],
            in("r15") registers[3],
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
        );
    }
}

/// A system call that sends and then receives: Call, ReplyRecv, NBSendRecv, NBSendWait; and the
/// receiving ones Recv, NBRecv, Wait, NBWait, which ignore the message and `destination`.
///
/// `cap` is the capability invoked by Call, received from by the others. `reply` is the reply
/// object, or for NBSendWait the capability sent to. `destination` is what NBSendRecv sends to.
/// After a signal only the badge is meaningful: info and registers are then those passed in
/// (ABI 01, section 5.5).
#[inline(always)]
pub fn send_receive(
    call: Syscall,
    cap: u64,
    info: MessageInfo,
    registers: Registers,
    reply: u64,
    destination: u64,
) -> RawReceived {
    let (badge, info_out): (u64, u64);
    let mut out = registers;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            inlateout("rdi") cap => badge,
            inlateout("rsi") info.raw() => info_out,
            inlateout("r10") out[0],
            inlateout("r8") out[1],
            inlateout("r9") out[2],
            inlateout("r15") out[3],
            in("r12") reply,
            in("r13") destination,
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
        );
    }
    RawReceived {
        badge,
        info: MessageInfo::from_raw(info_out),
        registers: out,
    }
}

/// Call: sends on `cap` and waits for the answer. A plain call needs neither a reply object nor
/// a destination, which leaves their registers to the compiler.
///
/// Its own address stands in rax meanwhile, so that others can see where the thread is: see
/// [`is_answered`].
#[inline(always)]
pub fn call(cap: u64, info: MessageInfo, registers: Registers) -> RawReceived {
    let (badge, info_out): (u64, u64);
    let mut out = registers;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "mov r14, rsp",
            "lea rax, [rip]",
            "syscall",
            "mov rsp, r14",
            in("rdx") Syscall::Call.raw(),
            inlateout("rdi") cap => badge,
            inlateout("rsi") info.raw() => info_out,
            inlateout("r10") out[0],
            inlateout("r8") out[1],
            inlateout("r9") out[2],
            inlateout("r15") out[3],
            out("rax") _,
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
        );
    }
    RawReceived {
        badge,
        info: MessageInfo::from_raw(info_out),
        registers: out,
    }
}

/// Bytes of the instruction SYSCALL.
pub(crate) const INSTRUCTION: u64 = 2;

/// Whether the thread with these registers, which does not run, stands at a [`call`] that has been
/// answered: an answer comes without a badge, in the register that named a capability.
///
/// Null is no capability that a program calls; one that does, and has a timeout fault there, is
/// taken for answered.
pub(crate) fn is_answered(context: &UserContext) -> bool {
    context.get(x86_64::RAX) == context.ip()
        && context.get(x86_64::RDX) == Syscall::Call.raw()
        && context.get(x86_64::RDI) == 0
}

/// A system call with one argument in the capability register and one result there: Yield, the
/// debug calls, SetTLSBase. Returns the capability register.
#[inline(always)]
pub fn simple(call: Syscall, argument: u64) -> u64 {
    let result;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            inlateout("rdi") argument => result,
            in("rsi") 0,
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
        );
    }
    result
}

/// A system call of a kernel that is built for traces; elsewhere it is a fault. Returns the
/// capability register.
#[inline(always)]
pub fn trace(call: trace::Call, cap: u64, info: u64, words: [u64; 2]) -> u64 {
    let result;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            inlateout("rdi") cap => result,
            in("rsi") info,
            in("r10") words[0],
            in("r8") words[1],
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
        );
    }
    result
}

/// Gives up the remaining budget of the current replenishment (ABI 04, section 9.1).
#[inline(always)]
pub fn yield_now() {
    simple(Syscall::Yield, 0);
}

/// Prints one byte on the kernel's console. Debug kernels only: elsewhere it is a fault.
#[inline(always)]
pub fn debug_put_char(byte: u8) {
    simple(Syscall::DebugPutChar, u64::from(byte));
}

/// Stops the machine. Debug kernels only: elsewhere it is a fault.
#[inline(always)]
pub fn debug_halt() {
    simple(Syscall::DebugHalt, 0);
}

/// The kind of a capability as a number of [`sandglass_abi::cap_identify`]. Debug kernels only.
#[inline(always)]
pub fn debug_cap_identify(cap: u64) -> u64 {
    simple(Syscall::DebugCapIdentify, cap)
}

/// Sets the caller's FS base; a non-canonical address is ignored by the kernel.
///
/// # Safety
/// FS must address a [`crate::thread_block::ThreadBlock`] whenever the thread uses its IPC
/// buffer or thread-local storage.
#[inline(always)]
pub unsafe fn set_tls_base(address: u64) {
    simple(Syscall::SetTLSBase, address);
}
