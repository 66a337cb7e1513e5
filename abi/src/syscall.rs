//! System call numbers (ABI 01, sections 1 and 7).
//!
//! Numbers are negative and are compared as full 64-bit register values: `0x0000_0000_ffff_ffff`
//! is not −1. A number of a feature that is not compiled in is a hole and is never reused.

/// The system calls of the default profile, debug calls included (ABI 01, section 1).
#[repr(i64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syscall {
    Call = -1,
    ReplyRecv = -2,
    NBSendRecv = -3,
    NBSendWait = -4,
    Send = -5,
    NBSend = -6,
    Recv = -7,
    NBRecv = -8,
    Wait = -9,
    NBWait = -10,
    Yield = -11,
    /// Debug kernel only, like every call down to `DebugNameThread`.
    DebugPutChar = -12,
    DebugDumpScheduler = -13,
    DebugHalt = -14,
    DebugCapIdentify = -15,
    DebugSnapshot = -16,
    DebugNameThread = -17,
    /// Debug kernel with several cores only.
    DebugSendIPI = -18,
    /// Debug kernel with several cores only.
    DebugGetThreadAffinity = -19,
    /// x86_64 only, as [`HAS_SET_TLS_BASE`](x86_64::HAS_SET_TLS_BASE) says: unknown on aarch64.
    SetTLSBase = -33,
}

pub mod x86_64 {
    pub const HAS_SET_TLS_BASE: bool = crate::profile::THIS.set_tls_base_call;
}

pub mod aarch64 {
    /// User code writes TPIDR_EL0 itself (ABI 01, section 9).
    pub const HAS_SET_TLS_BASE: bool = false;
}

impl Syscall {
    /// The system call whose register value is `raw`, or `None` for a number that is an unknown
    /// system call in every configuration of the profile, whatever the architecture. Whether a debug call exists in
    /// this kernel is the kernel's decision.
    #[inline]
    pub const fn from_raw(raw: u64) -> Option<Self> {
        Some(match raw as i64 {
            -1 => Self::Call,
            -2 => Self::ReplyRecv,
            -3 => Self::NBSendRecv,
            -4 => Self::NBSendWait,
            -5 => Self::Send,
            -6 => Self::NBSend,
            -7 => Self::Recv,
            -8 => Self::NBRecv,
            -9 => Self::Wait,
            -10 => Self::NBWait,
            -11 => Self::Yield,
            -12 => Self::DebugPutChar,
            -13 => Self::DebugDumpScheduler,
            -14 => Self::DebugHalt,
            -15 => Self::DebugCapIdentify,
            -16 => Self::DebugSnapshot,
            -17 => Self::DebugNameThread,
            -18 => Self::DebugSendIPI,
            -19 => Self::DebugGetThreadAffinity,
            -33 => Self::SetTLSBase,
            _ => return None,
        })
    }

    /// The register value of this system call.
    #[inline]
    pub const fn raw(self) -> u64 {
        self as i64 as u64
    }

    /// Whether the call exists in debug kernels only (ABI README: release profile).
    #[inline]
    pub const fn is_debug(self) -> bool {
        let number = self as i64;
        number <= Self::DebugPutChar as i64 && number >= Self::DebugGetThreadAffinity as i64
    }
}

#[cfg(test)]
mod tests {
    use super::Syscall;

    #[test]
    fn numbers_round_trip_and_only_full_words_match() {
        let mut known = 0;
        for n in 1..=64i64 {
            if let Some(call) = Syscall::from_raw((-n) as u64) {
                assert_eq!(call.raw(), (-n) as u64);
                known += 1;
            }
        }
        assert_eq!(known, 20);
        assert_eq!(Syscall::from_raw(0xffff_ffff), None);
        assert_eq!(Syscall::from_raw(0), None);
        assert!(!Syscall::Yield.is_debug() && !Syscall::SetTLSBase.is_debug());
        assert!(Syscall::DebugPutChar.is_debug() && Syscall::DebugNameThread.is_debug());
    }
}
