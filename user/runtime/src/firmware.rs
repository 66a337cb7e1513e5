//! Files of QEMU's firmware configuration device: what the host tells a root task, with
//! `-fw_cfg name=opt/sandglass/NAME,string=VALUE`.

use crate::arch::FirmwarePort;
use crate::error::Result;
use crate::process::Process;
use crate::resources::SetupError;

/// What the selector chooses: the signature, and the directory of files.
const SIGNATURE_KEY: u16 = 0;
const DIRECTORY_KEY: u16 = 0x19;
const SIGNATURE: &[u8; 4] = b"QEMU";
/// Bytes of a file's name in the directory, filled with zeros.
const NAME_BYTES: usize = 56;

/// The files of the device; none on a machine without it.
pub struct Files(FirmwarePort);

impl Files {
    /// Takes the device. Root task only.
    pub fn open(process: &mut Process) -> core::result::Result<Self, SetupError> {
        FirmwarePort::open(process).map(Self)
    }

    /// The file `name` as a decimal number; `None` if it is not there or none.
    pub fn number(&self, name: &str) -> Result<Option<u64>> {
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
        self.0.select(key)
    }

    fn byte(&self) -> Result<u8> {
        self.0.byte()
    }

    fn bytes<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }
}
