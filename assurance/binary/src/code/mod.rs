//! Machine code, as the analysis sees it: the same for every instruction set.

mod aarch64;
mod x86_64;

use anyhow::{bail, Result};

/// Where execution goes on after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// At the next.
    Next,
    Jump(u64),
    /// At the target, or at the next.
    Branch(u64),
    /// At the target, and later at the next.
    Call(u64),
    Return,
    /// At user level.
    Leave,
    /// Nowhere, until there is an interrupt.
    Wait,
    /// Nowhere: it is never executed.
    Trap,
    /// Nobody knows.
    Indirect,
    /// The bytes are no instruction.
    Invalid,
}

/// What an instruction does to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    None,
    /// It becomes this number.
    Number(u64),
    Unknown,
}

/// Where an instruction reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At an address.
    Fixed(u64),
    /// So many bytes from where the stack pointer points before the instruction.
    Stack(i64),
    Unknown,
}

/// What a processor reads and writes at once, at most, in bytes: what is larger, as a pair of registers, is read and written word
/// by word, as the emulator does.
const WORD: u16 = 8;

/// An instruction reads memory, writes it, or reads and then writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub place: Place,
    pub bytes: u16,
    pub reads: bool,
    pub writes: bool,
}

impl Access {
    /// Whether the processor has all of it at once, not word by word.
    pub fn is_at_once(&self) -> bool {
        self.bytes <= WORD
    }

    /// How often memory is asked.
    pub fn times(&self) -> u64 {
        let each = match self.is_at_once() {
            true => 1,
            false => self.bytes.div_ceil(WORD).into(),
        };
        each * (u64::from(self.reads) + u64::from(self.writes))
    }
}

/// What an instruction does to the stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackChange {
    /// It points so many bytes further; a call counts what it pushes.
    By(i64),
    To(u64),
    Unknown,
}

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    pub address: u64,
    /// In bytes.
    pub length: u8,
    pub flow: Flow,
    /// The same behind the instruction before it, if that leaves no choice: it makes a number of what a branch tests.
    pub flow_behind: Option<Flow>,
    /// It does its work several times, and each time counts.
    pub repeats: bool,
    /// Bytes that it handles each time.
    pub bytes_each: u8,
    /// What it does to the register with the third argument of a function.
    pub third_argument: Change,
    /// What it does to the register that says how often the next instruction repeats itself.
    pub count: Change,
    pub accesses: [Option<Access>; 2],
    /// How often it reads or writes besides, anywhere.
    pub more_accesses: u8,
    pub stack: StackChange,
}

impl Instruction {
    /// Address of the next one.
    pub fn end(&self) -> u64 {
        self.address + u64::from(self.length)
    }

    /// How often it reads or writes memory; if it repeats itself, each time.
    pub fn times(&self) -> u64 {
        let known = self.accesses.iter().flatten().map(Access::times);
        known.sum::<u64>() + u64::from(self.more_accesses)
    }
}

/// What is known of an instruction set.
trait Decoder {
    /// All instructions of `code`, which stands at `address`.
    fn decode(&self, code: &[u8], address: u64) -> Vec<Instruction>;

    /// The instruction at `address`, as an assembler would write it.
    fn text(&self, code: &[u8], address: u64) -> String;

    /// Whether `code` is only what fills the space between functions.
    fn is_padding(&self, code: &[u8]) -> bool;
}

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    X86_64,
    Aarch64,
}

impl InstructionSet {
    /// That of a file.
    ///
    /// # Errors
    /// It is for another architecture.
    pub fn of(file: &object::File) -> Result<Self> {
        match object::Object::architecture(file) {
            object::Architecture::X86_64 => Ok(Self::X86_64),
            object::Architecture::Aarch64 => Ok(Self::Aarch64),
            other => bail!("no decoder for {other:?}: there are those for x86_64 and aarch64"),
        }
    }

    fn decoder(self) -> &'static dyn Decoder {
        match self {
            Self::X86_64 => &x86_64::X86_64,
            Self::Aarch64 => &aarch64::Aarch64,
        }
    }

    /// All instructions of `code`, which stands at `address`.
    pub fn decode(self, code: &[u8], address: u64) -> Vec<Instruction> {
        self.decoder().decode(code, address)
    }

    /// The instruction at `address`, as an assembler would write it.
    pub fn text(self, code: &[u8], address: u64) -> String {
        self.decoder().text(code, address)
    }

    /// Whether `code` is only what fills the space between functions.
    pub fn is_padding(self, code: &[u8]) -> bool {
        self.decoder().is_padding(code)
    }
}
