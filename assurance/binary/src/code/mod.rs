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

/// A general register, by the number that instructions have for it.
pub type Register = u8;

/// How many general registers there are, at most.
pub const REGISTERS: usize = 32;

/// A sum modulo 2^64 of registers, as they are before the instruction, and a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub base: Option<Register>,
    /// Another one, shifted left by so many bits.
    pub index: Option<(Register, u8)>,
    /// Of that one, only the lower 32 bits count.
    pub is_half: bool,
    pub plus: u64,
}

impl Sum {
    pub const fn number(plus: u64) -> Self {
        Self {
            base: None,
            index: None,
            is_half: false,
            plus,
        }
    }

    pub const fn register(register: Register) -> Self {
        Self::from(register, 0)
    }

    /// So many bytes from what the register points to.
    pub const fn from(register: Register, plus: i64) -> Self {
        Self {
            base: Some(register),
            index: None,
            is_half: false,
            plus: plus as u64,
        }
    }
}

/// What an instruction makes of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    Unknown,
    Sum(Sum),
    /// The bits of a register that a mask has.
    Masked(Register, u64),
    /// A register, shifted right by so many bits; zeros come.
    ShiftedRight(Register, u8),
    /// The word with that number of the first access.
    Loaded(u8),
    /// Anything that has no more than so many bits.
    Narrow(u8),
    /// A register, and bits that are set besides.
    Set(Register, u64),
    /// A register, but for the bits of a mask, which are these.
    Inserted(Register, u64, u64),
    /// The first register, but for the bits of a mask, which are those of the second.
    Combined(Register, Register, u64),
    /// Some of the bits of a register.
    Part(Register),
    /// One of two registers.
    Either(Register, Register),
}

/// What becomes of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    pub register: Register,
    pub value: Value,
    /// Of the lower 32 bits alone: those of the registers that it is made of, and the others become zero.
    pub is_half: bool,
}

/// What a processor reads and writes at once, at most, in bytes: what is larger is read and written word by word, as the emulator
/// does.
const WORD: u16 = 8;

/// An instruction reads memory, writes it, or reads and then writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Its address; `None` if nobody knows.
    pub place: Option<Sum>,
    pub bytes: u16,
    /// So many at once, at most, one after the other: of a pair, those of one register.
    pub at_once: u16,
    /// So many of them are accessed for sure, from the first on.
    pub sure: u16,
    pub reads: bool,
    pub writes: bool,
    /// What is written, word by word, if it is a whole word and anything is known of it.
    pub stored: [Option<Sum>; 2],
}

impl Access {
    /// Whether the processor has all of it at once.
    pub fn is_at_once(&self) -> bool {
        self.bytes <= self.at_once
    }

    /// How often memory is asked.
    pub fn times(&self) -> u64 {
        let each = match self.is_at_once() {
            true => 1,
            false => self.bytes.div_ceil(self.at_once).into(),
        };
        each * (u64::from(self.reads) + u64::from(self.writes))
    }
}

/// What an instruction makes of the registers: what it does not name stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    pub known: [Option<Made>; 3],
    /// A bit for each register of which nothing is known then.
    pub lost: u32,
}

impl Changes {
    /// By how much a register is moved, as a pointer; `None` if it becomes something else.
    pub fn moved(&self, register: Register) -> Option<i64> {
        if self.lost >> register & 1 == 1 {
            return None;
        }
        let mut known = self.known.iter().flatten();
        match known.find(|made| made.register == register) {
            None => Some(0),
            Some(Made {
                value:
                    Value::Sum(Sum {
                        base: Some(base),
                        index: None,
                        plus,
                        ..
                    }),
                is_half: false,
                ..
            }) if *base == register => Some(*plus as i64),
            Some(_) => None,
        }
    }

    /// Adds what becomes of one.
    pub fn add(&mut self, register: Register, value: Value) {
        self.add_half(register, value, false);
    }

    /// The same, of its lower half alone if `is_half`.
    pub fn add_half(&mut self, register: Register, value: Value, is_half: bool) {
        let made = Made {
            register,
            value,
            is_half,
        };
        match self.known.iter_mut().find(|each| each.is_none()) {
            Some(free) if value != Value::Unknown => *free = Some(made),
            _ => self.lost |= 1 << register,
        }
    }
}

/// What a register is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    Number(u64),
    Register(Register),
}

/// How something compares with another, as numbers without a sign, if a branch is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Equal,
    NotEqual,
    Above,
    NotAbove,
    Below,
    NotBelow,
}

/// What a branch behind a comparison says of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtMost {
    pub register: Register,
    pub compared: Compared,
    /// Whether it is less than that, and not only no more.
    pub is_less: bool,
    /// If the branch is taken, or else if it is not.
    pub if_taken: bool,
}

impl AtMost {
    /// Of a branch that is taken if a register compares so.
    pub const fn of(register: Register, compared: Compared, taken: Taken) -> Self {
        let (is_less, if_taken) = match taken {
            Taken::Equal | Taken::NotAbove => (false, true),
            Taken::NotEqual | Taken::Above => (false, false),
            Taken::Below => (true, true),
            Taken::NotBelow => (true, false),
        };
        Self {
            register,
            compared,
            is_less,
            if_taken,
        }
    }
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
    pub changes: Changes,
    /// Of a branch behind the instruction before it.
    pub at_most: Option<AtMost>,
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

    /// A register by the number that debugging information has for it.
    pub fn register_of_debugger(self, number: u16) -> Option<Register> {
        let order = match self {
            Self::X86_64 => x86_64::DEBUGGER_ORDER,
            Self::Aarch64 => aarch64::DEBUGGER_ORDER,
        };
        order.get(usize::from(number)).copied()
    }

    /// The stack pointer.
    pub fn stack_pointer(self) -> Register {
        match self {
            Self::X86_64 => x86_64::STACK_POINTER,
            Self::Aarch64 => aarch64::STACK_POINTER,
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
