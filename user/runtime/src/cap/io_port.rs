//! I/O ports (ABI 03, sections 8.6 and 8.7), of x86_64 only: elsewhere nobody has a capability to any.

use super::{capability, invoke, invoke_unit, Capability, Slot};
use crate::arch::label;
use crate::error::Result;

capability! {
    /// Authority over all I/O ports that are not given out yet.
    IoPortControl
}
capability! {
    /// A range of I/O ports.
    IoPort
}

impl IoPortControl {
    /// Makes a capability for the ports `first..=last` and puts it into `destination`.
    ///
    /// # Errors
    /// RevokeFirst if a port of the range is given out.
    #[inline]
    pub fn issue(self, first: u16, last: u16, destination: Slot) -> Result<()> {
        let words = [
            u64::from(first),
            u64::from(last),
            destination.index(),
            u64::from(destination.depth()),
        ];
        let caps = [destination.root().cptr()];
        invoke_unit(self.cptr(), label::IO_PORT_CONTROL_ISSUE, words, caps)
    }
}

impl IoPort {
    #[inline]
    pub fn in8(self, port: u16) -> Result<u8> {
        self.input(label::IO_PORT_IN8, port)
            .map(|value| value as u8)
    }

    #[inline]
    pub fn in16(self, port: u16) -> Result<u16> {
        self.input(label::IO_PORT_IN16, port)
            .map(|value| value as u16)
    }

    #[inline]
    pub fn in32(self, port: u16) -> Result<u32> {
        self.input(label::IO_PORT_IN32, port)
            .map(|value| value as u32)
    }

    #[inline]
    pub fn out8(self, port: u16, value: u8) -> Result<()> {
        self.output(label::IO_PORT_OUT8, port, u64::from(value))
    }

    #[inline]
    pub fn out16(self, port: u16, value: u16) -> Result<()> {
        self.output(label::IO_PORT_OUT16, port, u64::from(value))
    }

    #[inline]
    pub fn out32(self, port: u16, value: u32) -> Result<()> {
        self.output(label::IO_PORT_OUT32, port, u64::from(value))
    }

    #[inline(always)]
    fn input(self, operation: u64, port: u16) -> Result<u64> {
        invoke(self.cptr(), operation, [u64::from(port)], []).map(|m| m.word(0))
    }

    #[inline(always)]
    fn output(self, operation: u64, port: u16, value: u64) -> Result<()> {
        invoke_unit(self.cptr(), operation, [u64::from(port), value], [])
    }
}
