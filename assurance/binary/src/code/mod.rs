//! Machine code, as the analysis sees it: the same for every instruction set.

mod memory;
pub mod x86_64;

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

/// What a processor reads and writes at once, at most, in bytes; what is larger is read and written in words.
const ONCE: u16 = 16;
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
        self.bytes <= ONCE
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

/// An instruction set.
pub trait Decoder {
    /// All instructions of `code`, which stands at `address`.
    fn decode(&self, code: &[u8], address: u64) -> Vec<Instruction>;

    /// The instruction at `address`, as an assembler would write it.
    fn text(&self, code: &[u8], address: u64) -> String;
}
