//! A driver of 16550 serial ports without interrupts: those of PCs, behind I/O ports, and one whose registers are mapped.

use crate::cap::IoPort;
use crate::error::Result;

/// First I/O ports of the PC's serial ports; each has [`PORTS`].
pub const COM1_FIRST: u16 = 0x3f8;
pub const COM2_FIRST: u16 = 0x2f8;
/// I/O ports of a serial port.
pub const PORTS: u16 = 8;

/// Looks at the device until it is not waited for any longer. Each is a system call; a full queue at the usual rate is
/// sent in 1.4 ms, which is some thousands of them.
const PATIENCE: u32 = 1 << 16;
/// Bytes that the device takes once its transmitter is empty.
const FIFO_BYTES: usize = 16;

/// Registers, as offsets from the first port, and their bits.
mod register {
    pub const DATA: u16 = 0;
    pub const INTERRUPT_ENABLE: u16 = 1;
    pub const FIFO_CONTROL: u16 = 2;
    pub const LINE_CONTROL: u16 = 3;
    pub const MODEM_CONTROL: u16 = 4;
    pub const LINE_STATUS: u16 = 5;

    pub const FIFO_ENABLE_AND_CLEAR: u8 = 0x07;
    pub const DIVISOR_LATCH: u8 = 0x80;
    pub const EIGHT_BITS_NO_PARITY: u8 = 0x03;
    pub const DTR_AND_RTS: u8 = 0x03;
    pub const DATA_READY: u8 = 0x01;
    pub const TRANSMITTER_EMPTY: u8 = 0x20;
}

/// A serial port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialPort {
    port: IoPort,
    first: u16,
}

impl SerialPort {
    /// A port that is set up already; `port` must cover [`PORTS`] ports from `first` on.
    pub const fn at(port: IoPort, first: u16) -> Self {
        Self { port, first }
    }

    /// Sets a port up (115200 baud, 8N1, no interrupts).
    ///
    /// # Errors
    /// Those of the port's invocations.
    pub fn open(port: IoPort, first: u16) -> Result<Self> {
        let serial = Self::at(port, first);
        serial.write_register(register::INTERRUPT_ENABLE, 0)?;
        serial.write_register(register::LINE_CONTROL, register::DIVISOR_LATCH)?;
        serial.write_register(register::DATA, 1)?;
        serial.write_register(register::INTERRUPT_ENABLE, 0)?;
        serial.write_register(register::LINE_CONTROL, register::EIGHT_BITS_NO_PARITY)?;
        serial.write_register(register::FIFO_CONTROL, register::FIFO_ENABLE_AND_CLEAR)?;
        serial.write_register(register::MODEM_CONTROL, register::DTR_AND_RTS)?;
        Ok(serial)
    }

    /// Sends one byte when the transmitter is empty.
    ///
    /// # Errors
    /// Those of the port's invocations.
    pub fn put(&self, byte: u8) -> Result<()> {
        self.write(&[byte])
    }

    /// Sends bytes as they are. Of several programs that send at once, each must keep to
    /// [`Self::put`], lest the device drops what its queue cannot hold.
    ///
    /// # Errors
    /// Those of the port's invocations.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        for burst in bytes.chunks(FIFO_BYTES) {
            self.wait_until_empty()?;
            for &byte in burst {
                self.write_register(register::DATA, byte)?;
            }
        }
        Ok(())
    }

    /// The next byte that has arrived, if any has. Of several programs that read at once, each gets some.
    ///
    /// # Errors
    /// Those of the port's invocations.
    pub fn get(&self) -> Result<Option<u8>> {
        let status = self.port.in8(self.first + register::LINE_STATUS)?;
        if status & register::DATA_READY == 0 {
            return Ok(None);
        }
        self.port.in8(self.first + register::DATA).map(Some)
    }

    /// Waits until the device's queue is empty, for a bounded time: whoever else has the port may have set it to a
    /// rate of some bits a second. Then bytes may be dropped.
    fn wait_until_empty(&self) -> Result<()> {
        for _ in 0..PATIENCE {
            let status = self.port.in8(self.first + register::LINE_STATUS)?;
            if status & register::TRANSMITTER_EMPTY != 0 {
                break;
            }
            core::hint::spin_loop();
        }
        Ok(())
    }

    fn write_register(&self, register: u16, value: u8) -> Result<()> {
        self.port.out8(self.first + register, value)
    }
}

/// A serial port whose registers are mapped, a byte each; it only sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedPort {
    address: u64,
}

impl MappedPort {
    /// Sets the port up, as [`SerialPort::open`] does.
    ///
    /// # Safety
    /// Its registers are mapped at `address`, for good.
    pub unsafe fn open(address: u64) -> Self {
        let port = Self { address };
        port.write_register(register::INTERRUPT_ENABLE, 0);
        port.write_register(register::LINE_CONTROL, register::DIVISOR_LATCH);
        port.write_register(register::DATA, 1);
        port.write_register(register::INTERRUPT_ENABLE, 0);
        port.write_register(register::LINE_CONTROL, register::EIGHT_BITS_NO_PARITY);
        port.write_register(register::FIFO_CONTROL, register::FIFO_ENABLE_AND_CLEAR);
        port.write_register(register::MODEM_CONTROL, register::DTR_AND_RTS);
        port
    }

    /// Sends bytes as they are; what the device does not take for long is dropped.
    pub fn write(&self, bytes: &[u8]) {
        for burst in bytes.chunks(FIFO_BYTES) {
            for _ in 0..PATIENCE {
                if self.read_register(register::LINE_STATUS) & register::TRANSMITTER_EMPTY != 0 {
                    break;
                }
                core::hint::spin_loop();
            }
            for &byte in burst {
                self.write_register(register::DATA, byte);
            }
        }
    }

    fn read_register(self, register: u16) -> u8 {
        let register = (self.address + u64::from(register)) as *const u8;
        // SAFETY: as `open` was promised.
        unsafe { register.read_volatile() }
    }

    fn write_register(self, register: u16, value: u8) {
        let register = (self.address + u64::from(register)) as *mut u8;
        // SAFETY: as `open` was promised.
        unsafe { register.write_volatile(value) }
    }
}
