//! Registers of devices, which are in memory that is mapped as a device's.

/// Registers from a virtual address on.
#[derive(Clone, Copy)]
pub struct Registers(u64);

impl Registers {
    /// Of a device that is not there.
    pub const NONE: Registers = Registers(0);

    /// # Safety
    /// A device's registers are mapped at `address` for good, as many as are asked for afterwards, and what is
    /// written to them breaks no promise that others rely on.
    pub const unsafe fn at(address: u64) -> Self {
        Registers(address)
    }

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The address of the register at `offset`.
    pub const fn address(self, offset: u64) -> u64 {
        self.0.wrapping_add(offset)
    }

    /// As other registers, `offset` bytes further.
    pub const fn behind(self, offset: u64) -> Registers {
        Registers(self.0.wrapping_add(offset))
    }

    /// The 32 bits at `offset`; 0 of a device that is not there. In program order with other accesses to the same device
    /// (nGnRnE), and in no order with those to memory.
    #[inline(always)]
    pub fn read(self, offset: u64) -> u32 {
        if self.is_none() {
            return 0;
        }
        // SAFETY: whoever made this.
        unsafe { (self.address(offset) as *const u32).read_volatile() }
    }

    /// The 64 bits at `offset`.
    pub fn read_long(self, offset: u64) -> u64 {
        if self.is_none() {
            return 0;
        }
        // SAFETY: whoever made this.
        unsafe { (self.address(offset) as *const u64).read_volatile() }
    }

    /// As [`Self::read`].
    #[inline(always)]
    pub fn write(self, offset: u64, value: u32) {
        if !self.is_none() {
            // SAFETY: whoever made this.
            unsafe { (self.address(offset) as *mut u32).write_volatile(value) }
        }
    }

    /// As [`Self::write`], 64 bits.
    pub fn write_long(self, offset: u64, value: u64) {
        if !self.is_none() {
            // SAFETY: whoever made this.
            unsafe { (self.address(offset) as *mut u64).write_volatile(value) }
        }
    }

    /// As [`Self::write`], 8 bits.
    pub fn write_byte(self, offset: u64, value: u8) {
        if !self.is_none() {
            // SAFETY: whoever made this.
            unsafe { (self.address(offset) as *mut u8).write_volatile(value) }
        }
    }
}
