//! A thread's registers (ABI 07, section 1.1).

use crate::arch::{order, CALLED};

/// All user registers of a thread, in the order of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserContext([u64; order::COUNT]);

impl Default for UserContext {
    fn default() -> Self {
        let mut words = [0; order::COUNT];
        words[order::FLAGS] = order::INITIAL_FLAGS;
        Self(words)
    }
}

impl UserContext {
    /// Registers of a thread that starts in the function at `ip` as if called with `argument`.
    ///
    /// `stack_top` is the end of its stack, aligned to 16 bytes, or 0 for a thread that needs no
    /// stack; what a called function expects there is left free (on x86_64 a return address).
    /// `thread_pointer` is its thread block, or 0.
    pub fn start(ip: u64, stack_top: u64, argument: u64, thread_pointer: u64) -> Self {
        let mut context = Self::default();
        context.0[order::IP] = ip;
        context.0[order::SP] = stack_top.saturating_sub(CALLED);
        context.0[order::ARGUMENT] = argument;
        context.0[order::THREAD_POINTER] = thread_pointer;
        context
    }

    #[inline]
    pub fn words(&self) -> &[u64; order::COUNT] {
        &self.0
    }

    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64; order::COUNT] {
        &mut self.0
    }

    /// Register `index` of the architecture in [`sandglass_abi::context`], 0 if there is none.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Sets register `index`, if there is one.
    #[inline]
    pub fn set(&mut self, index: usize, value: u64) {
        if let Some(register) = self.0.get_mut(index) {
            *register = value;
        }
    }

    /// Program counter.
    #[inline]
    pub fn ip(&self) -> u64 {
        self.0[order::IP]
    }
}
