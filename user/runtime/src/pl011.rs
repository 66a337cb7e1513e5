//! A driver of ARM's PL011 serial ports without interrupts, whose registers are mapped: one that the kernel or firmware has
//! set up.

/// Physical address of the one of QEMU's machine `virt`.
pub const VIRT: u64 = 0x0900_0000;

/// Looks at the device until it is not waited for any longer.
const PATIENCE: u32 = 1 << 16;

/// Registers, as offsets, and their bits.
mod register {
    pub const DATA: u64 = 0x00;
    pub const FLAGS: u64 = 0x18;
    pub const EMPTY: u32 = 1 << 4;
    pub const FULL: u32 = 1 << 5;
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pl011 {
    address: u64,
}

impl Pl011 {
    /// # Safety
    /// Its registers are mapped at `address`, for good.
    pub const unsafe fn at(address: u64) -> Self {
        Self { address }
    }

    /// Where the registers are.
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Sends one byte when there is room for it; drops it when there is none for long.
    pub fn put(self, byte: u8) {
        for _ in 0..PATIENCE {
            if self.read(register::FLAGS) & register::FULL == 0 {
                let data = (self.address + register::DATA) as *mut u32;
                // SAFETY: as `at` was promised.
                unsafe { data.write_volatile(byte.into()) };
                return;
            }
            core::hint::spin_loop();
        }
    }

    /// The next byte that has arrived, if any has.
    pub fn get(self) -> Option<u8> {
        let is_empty = self.read(register::FLAGS) & register::EMPTY != 0;
        (!is_empty).then(|| self.read(register::DATA) as u8)
    }

    fn read(self, register: u64) -> u32 {
        // SAFETY: as `at` was promised.
        unsafe { ((self.address + register) as *const u32).read_volatile() }
    }
}
