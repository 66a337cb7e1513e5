//! What a run is asked for: files of QEMU's firmware configuration device, which the host sets
//! with `-fw_cfg name=opt/sandglass/NAME,string=VALUE`.

use sandglass::cap::IoPort;
use sandglass::error::Result;
use sandglass::{Process, SetupError};

/// Ports of the device: the selector (16 bits), then the data (8 bits).
const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;
/// What the selector chooses: the signature, and the directory of files.
const SIGNATURE_KEY: u16 = 0;
const DIRECTORY_KEY: u16 = 0x19;
const SIGNATURE: &[u8; 4] = b"QEMU";
/// Bytes of a file's name in the directory, filled with zeros.
const NAME_BYTES: usize = 56;

/// What a run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// System calls to make.
    pub calls: u64,
    /// Seed of the first arena; each arena has the next one.
    pub seed: u64,
}

impl Options {
    const DEFAULT: Self = Self {
        calls: 200_000,
        seed: 1,
    };

    /// Reads the options; those that are not given, or no number, have their defaults.
    pub fn read(process: &mut Process) -> core::result::Result<Self, SetupError> {
        let device = Device(process.resources.io_ports(SELECTOR, DATA)?);
        let number = |name: &str, default| device.number(name).map(|n| n.unwrap_or(default));
        Ok(Self {
            calls: number("opt/sandglass/calls", Self::DEFAULT.calls)?,
            seed: number("opt/sandglass/seed", Self::DEFAULT.seed)?,
        })
    }
}

/// The firmware configuration device.
struct Device(IoPort);

impl Device {
    /// The file `name` as a decimal number; `None` if it is not there or none.
    fn number(&self, name: &str) -> Result<Option<u64>> {
        let Some((key, size)) = self.file(name)? else {
            return Ok(None);
        };
        self.select(key)?;
        let mut value = Some(0u64);
        for _ in 0..size {
            let digit = char::from(self.byte()?).to_digit(10);
            value = value
                .zip(digit)
                .and_then(|(value, digit)| value.checked_mul(10)?.checked_add(digit.into()));
        }
        Ok(value.filter(|_| size > 0))
    }

    /// Key and size of the file `name`.
    fn file(&self, name: &str) -> Result<Option<(u16, u32)>> {
        self.select(SIGNATURE_KEY)?;
        if &self.bytes::<4>()? != SIGNATURE {
            return Ok(None);
        }
        self.select(DIRECTORY_KEY)?;
        let count = u32::from_be_bytes(self.bytes()?);
        let mut found = None;
        for _ in 0..count {
            let size = u32::from_be_bytes(self.bytes()?);
            let key = u16::from_be_bytes(self.bytes()?);
            self.bytes::<2>()?;
            let entry = self.bytes::<NAME_BYTES>()?;
            let length = entry.iter().position(|&b| b == 0).unwrap_or(NAME_BYTES);
            if &entry[..length] == name.as_bytes() {
                found = Some((key, size));
            }
        }
        Ok(found)
    }

    fn select(&self, key: u16) -> Result<()> {
        self.0.out16(SELECTOR, key)
    }

    fn byte(&self) -> Result<u8> {
        self.0.in8(DATA)
    }

    fn bytes<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }
}
