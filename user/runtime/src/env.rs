//! What a component finds when it starts: a table that names everything it was given.
//!
//! The loader builds the table with [`EnvironmentBuilder`], maps it into the component and passes
//! its address to `main`. A component asks for things by name and knows no slot numbers.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::cap::{CPtr, Capability};
use crate::console::Output;
use crate::screen::MappedScreen;
use crate::time::Tsc;

/// Bytes of the table: whole pages.
pub const ENVIRONMENT_BYTES: usize = 4 * 4096;
/// Longest name, bytes of UTF-8; longer ones are refused.
pub const MAX_NAME: usize = 40;
/// Most named things.
pub const MAX_ENTRIES: usize = 254;

const MAGIC: u64 = u64::from_le_bytes(*b"sandglas");

/// What an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// A capability: pointer.
    Capability = 1,
    /// Memory: address, length in bytes.
    Memory = 2,
    /// A number.
    Parameter = 3,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Entry {
    kind: u64,
    value: u64,
    length: u64,
    name: [u8; MAX_NAME],
}

/// The table.
#[derive(Clone, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Environment {
    magic: u64,
    ipc_buffer: u64,
    console: u64,
    /// Ticks of the counter in `tsc_us` µs; 0 if the loader does not know.
    tsc_ticks: u32,
    entry_count: u32,
    name: [u8; 32],
    screen: MappedScreen,
    traced: u64,
    tsc_us: u64,
    _unused: [u64; 2],
    entries: [Entry; MAX_ENTRIES],
}
const _: () = assert!(core::mem::size_of::<Environment>() == ENVIRONMENT_BYTES);

/// Memory that was mapped for the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// Virtual address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
}

impl MemoryRegion {
    /// The region as a pointer to its first byte. What may be done with it, and how it is shared
    /// with others, is the system's design.
    pub const fn as_mut_ptr(self) -> *mut u8 {
        self.address as *mut u8
    }

    /// The region's bytes.
    ///
    /// # Safety
    /// It must have been found in the environment, and must never be written to: so it is with
    /// files and with the tables of policies.
    pub const unsafe fn as_bytes(self) -> &'static [u8] {
        // SAFETY: the loader mapped it for good; the caller's promise.
        unsafe { core::slice::from_raw_parts(self.address as *const u8, self.len as usize) }
    }
}

impl Environment {
    /// The component's name.
    pub fn name(&self) -> &str {
        text(&self.name)
    }

    /// The capability named `name`; the caller says its type.
    ///
    /// # Panics
    /// If there is none: the component and the description of its system disagree.
    pub fn capability<C: Capability>(&self, name: &str) -> C {
        self.find_capability(name)
            .unwrap_or_else(|| self.missing("capability", name))
    }

    /// As [`Self::capability`], where the thing is optional.
    pub fn find_capability<C: Capability>(&self, name: &str) -> Option<C> {
        self.find(Kind::Capability, name)
            .map(|entry| C::from_cptr(CPtr::new(entry.value)))
    }

    /// The memory named `name`.
    ///
    /// # Panics
    /// If there is none.
    pub fn memory(&self, name: &str) -> MemoryRegion {
        self.find_memory(name)
            .unwrap_or_else(|| self.missing("memory", name))
    }

    /// As [`Self::memory`], where the thing is optional.
    pub fn find_memory(&self, name: &str) -> Option<MemoryRegion> {
        let entry = self.find(Kind::Memory, name)?;
        Some(MemoryRegion {
            address: entry.value,
            len: entry.length,
        })
    }

    /// The number named `name`.
    ///
    /// # Panics
    /// If there is none.
    pub fn parameter(&self, name: &str) -> u64 {
        self.find_parameter(name)
            .unwrap_or_else(|| self.missing("parameter", name))
    }

    /// As [`Self::parameter`], where the thing is optional.
    pub fn find_parameter(&self, name: &str) -> Option<u64> {
        self.find(Kind::Parameter, name).map(|entry| entry.value)
    }

    /// All parameters, with their names.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, u64)> {
        let entries = self.of_kind(Kind::Parameter);
        entries.map(|entry| (text(&entry.name), entry.value))
    }

    /// The frequency of the counter that [`ticks`](crate::time::ticks) reads, if the loader knew it.
    pub const fn tsc(&self) -> Option<Tsc> {
        Tsc::of(self.tsc_ticks, self.tsc_us as u32)
    }

    /// Address of the IPC buffer of the first thread; it must not be used for anything else.
    pub(crate) const fn ipc_buffer_address(&self) -> u64 {
        self.ipc_buffer
    }

    pub(crate) const fn console(&self) -> Output {
        if self.magic == MAGIC {
            Output::from_word(self.console)
        } else {
            Output::Silent
        }
    }

    /// Whether the system is traced: see [`crate::trace`].
    pub(crate) const fn is_traced(&self) -> bool {
        self.traced != 0
    }

    /// The screen on which the component draws what it prints; nothing if it has none.
    pub(crate) const fn screen(&self) -> MappedScreen {
        self.screen
    }

    fn find(&self, kind: Kind, name: &str) -> Option<&Entry> {
        self.of_kind(kind).find(|entry| text(&entry.name) == name)
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        let used = self.entries.iter().take(self.entry_count as usize);
        used.filter(move |entry| entry.kind == kind as u64)
    }

    #[cold]
    fn missing(&self, what: &str, name: &str) -> ! {
        panic!(
            "component {}: no {what} is named {name} in its environment",
            self.name()
        )
    }
}

/// The text in a field that is padded with zeros.
fn text(field: &[u8]) -> &str {
    let len = field
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(field.len());
    core::str::from_utf8(&field[..len]).unwrap_or("")
}

/// An empty table, made where it stays: it is larger than a stack's pages.
fn new_table() -> alloc::boxed::Box<Environment> {
    match Environment::new_box_zeroed() {
        Ok(table) => table,
        Err(_) => alloc::alloc::handle_alloc_error(core::alloc::Layout::new::<Environment>()),
    }
}

/// Why an environment could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentError {
    /// More than [`MAX_ENTRIES`] things.
    TooManyEntries,
    /// Longer than [`MAX_NAME`] bytes.
    NameTooLong,
    /// Two things of one kind have the same name.
    DuplicateName,
}

impl core::error::Error for EnvironmentError {}

impl core::fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooManyEntries => write!(f, "more than {MAX_ENTRIES} named things"),
            Self::NameTooLong => write!(f, "a name is longer than {MAX_NAME} bytes"),
            Self::DuplicateName => write!(f, "two entries of one kind have the same name"),
        }
    }
}

/// Builds the table, on the loader's side.
#[derive(Clone)]
pub struct EnvironmentBuilder {
    table: alloc::boxed::Box<Environment>,
}

impl EnvironmentBuilder {
    /// An empty environment of the component `name` (cut to 32 bytes) whose first thread's IPC
    /// buffer is at `ipc_buffer`.
    pub fn new(name: &str, ipc_buffer: u64) -> Self {
        let mut table = new_table();
        table.magic = MAGIC;
        table.ipc_buffer = ipc_buffer;
        table.console = Output::Silent.to_word();
        let len = name.len().min(table.name.len());
        table.name[..len].copy_from_slice(&name.as_bytes()[..len]);
        Self { table }
    }

    /// Where the component prints; nowhere by default.
    pub fn set_console(&mut self, output: Output) {
        self.table.console = output.to_word();
    }

    /// On which screen the component draws what it prints on the serial port; none by default.
    pub(crate) fn set_screen(&mut self, screen: MappedScreen) {
        self.table.screen = screen;
    }

    /// The component makes marks in the trace; it does not by default.
    pub fn set_traced(&mut self) {
        self.table.traced = 1;
    }

    pub fn set_tsc(&mut self, tsc: Tsc) {
        let (ticks, us) = tsc.ratio();
        self.table.tsc_ticks = ticks;
        self.table.tsc_us = us.into();
    }

    /// Names a capability by its pointer in the component's CSpace.
    pub fn add_capability(&mut self, name: &str, pointer: CPtr) -> Result<(), EnvironmentError> {
        self.add(Kind::Capability, name, pointer.raw(), 0)
    }

    /// Names memory by its place in the component's address space.
    pub fn add_memory(&mut self, name: &str, region: MemoryRegion) -> Result<(), EnvironmentError> {
        self.add(Kind::Memory, name, region.address, region.len)
    }

    pub fn add_parameter(&mut self, name: &str, value: u64) -> Result<(), EnvironmentError> {
        self.add(Kind::Parameter, name, value, 0)
    }

    /// The table's content.
    pub fn as_bytes(&self) -> &[u8] {
        self.table.as_bytes()
    }

    fn add(
        &mut self,
        kind: Kind,
        name: &str,
        value: u64,
        length: u64,
    ) -> Result<(), EnvironmentError> {
        if self.table.find(kind, name).is_some() {
            return Err(EnvironmentError::DuplicateName);
        }
        let index = self.table.entry_count as usize;
        let entry = self
            .table
            .entries
            .get_mut(index)
            .ok_or(EnvironmentError::TooManyEntries)?;
        let field = entry
            .name
            .get_mut(..name.len())
            .ok_or(EnvironmentError::NameTooLong)?;
        field.copy_from_slice(name.as_bytes());
        entry.kind = kind as u64;
        entry.value = value;
        entry.length = length;
        self.table.entry_count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cap::Endpoint;

    #[test]
    fn what_the_loader_names_the_component_finds() {
        let mut builder = EnvironmentBuilder::new("cipher", 0x5000);
        builder.add_capability("requests", CPtr::new(9)).unwrap();
        builder
            .add_memory(
                "requests",
                MemoryRegion {
                    address: 0x7000,
                    len: 4096,
                },
            )
            .unwrap();
        builder.add_parameter("blocks", 12).unwrap();
        builder.set_tsc(Tsc::from_hz(62_500_000).unwrap());
        let page = Environment::read_from_bytes(builder.as_bytes()).unwrap();
        assert_eq!(page.name(), "cipher");
        assert_eq!(page.capability::<Endpoint>("requests"), Endpoint::at(9));
        assert_eq!(page.memory("requests").address, 0x7000);
        assert_eq!(page.parameter("blocks"), 12);
        assert_eq!(page.tsc(), Tsc::of(125, 2));
        assert_eq!(page.find_parameter("requests"), None);
        assert_eq!(page.console(), Output::Silent);
    }

    #[test]
    fn wrong_names_are_refused() {
        let mut builder = EnvironmentBuilder::new("x", 0);
        builder.add_parameter("a", 1).unwrap();
        assert_eq!(
            builder.add_parameter("a", 2),
            Err(EnvironmentError::DuplicateName)
        );
        let long = "b".repeat(MAX_NAME + 1);
        assert_eq!(
            builder.add_parameter(&long, 2),
            Err(EnvironmentError::NameTooLong)
        );
        for i in 1..MAX_ENTRIES as u64 {
            builder.add_parameter(&std::format!("p{i}"), i).unwrap();
        }
        assert_eq!(
            builder.add_parameter("q", 2),
            Err(EnvironmentError::TooManyEntries)
        );
    }
}
