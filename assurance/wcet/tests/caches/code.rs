//! Programs in a structured language.

/// A program in a structured language.
#[derive(Debug, Clone)]
pub enum Code {
    /// Instructions that do nothing, of so many bytes each.
    Straight(Vec<u8>),
    /// Of a variable, the stack, or an array of so many words, where the first register points.
    Variable(u8),
    Stack(u8),
    Fill(u8),
    /// A register points somewhere; to a multiple of 64, if it says so.
    Point(usize, bool),
    /// So many words from where one points: it is read, or written.
    Through(usize, u8, bool),
    /// One becomes another; moves by so many words; or is kept in a variable, and found there.
    Copy(usize, usize),
    Move(usize, u8),
    Keep(usize, u8),
    Find(usize, u8),
    Sequence(Vec<Code>),
    If(Box<Code>, Box<Code>),
    /// Once or more, up to so often.
    Repeat(u64, Box<Code>),
    /// The body is executed up to once less than so often.
    While(u64, Box<Code>),
    /// Of a function with a higher number than whoever calls it, by how much higher.
    Call(usize),
    Op(Op),
    /// A record: a register is a multiple of so many bits, from the next instruction on.
    Aligned(u8, u8),
    /// The header is executed once more than the body, which has the mark: up to so often.
    Late(u64, Box<Code>, Box<Code>),
    /// A mark of turns that are counted together.
    Together(u64),
    /// Up to so many turns, each of which is one of two, and the last the second: both go back to the beginning by themselves.
    Fork(u64, Box<Code>, Box<Code>),
    /// A turn has a mark of its own, so often at most, or one that is counted together: the latter so often.
    Split(u64, u64, Box<Code>),
    /// One of two, by a test.
    Below(Test, Box<Code>, Box<Code>),
}

/// Whether a register is less than a number, or than another register; or no more. Of halves, if it says so.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    pub register: u8,
    /// A number or a register.
    pub with: Result<i32, u8>,
    pub or_equal: bool,
    pub is_half: bool,
}

/// `[base + index << shift + plus]`.
#[derive(Debug, Clone, Copy)]
pub struct Mem {
    pub base: u8,
    pub index: Option<(u8, u8)>,
    pub plus: i32,
}

/// An instruction on general registers, by their numbers.
#[derive(Debug, Clone)]
pub enum Op {
    Load(u8, Mem),
    Store(u8, Mem),
    Number(u8, i32),
    Move(u8, u8),
    Add(u8, i32),
    AddRegister(u8, u8),
    And(u8, i32),
    Or(u8, i32),
    Shl(u8, u8),
    Shr(u8, u8),
    /// Nobody knows what: one of these after the other, each time that this is executed.
    Unknown(u8, Vec<u64>),
    /// Any bytes, and what they access: where, and whether it is written.
    Raw(Vec<u8>, Vec<(u64, bool)>),
    /// It points to an object; or to the stack or a variable, too, unless it says so.
    Any(u8, bool),
    /// Of lower halves.
    MoveHalf(u8, u8),
    AddHalf(u8, i32),
    LoadHalf(u8, Mem),
    StoreHalf(u8, Mem),
    /// If something holds.
    Choose(u8, u8),
    Push(u8),
    Pop(u8),
    Lea(u8, Mem),
}

impl Op {
    /// Its machine code.
    pub fn bytes(&self) -> Vec<u8> {
        let rex = |reg: u8, index: u8, base: u8| 0x48 | reg >> 3 << 2 | index >> 3 << 1 | base >> 3;
        let memory = |opcode: u8, reg: u8, at: &Mem| {
            let (index, shift) = at.index.unwrap_or((4, 0));
            let mut bytes = vec![rex(reg, index, at.base), opcode, 0x84 | (reg & 7) << 3];
            bytes.push(shift << 6 | (index & 7) << 3 | at.base & 7);
            bytes.extend(at.plus.to_le_bytes());
            bytes
        };
        let number = |opcode: &[u8], reg: u8, extension: u8, number: i32| {
            let mut bytes = vec![rex(0, 0, reg)];
            bytes.extend(opcode);
            bytes.push(0xc0 | extension << 3 | reg & 7);
            bytes.extend(number.to_le_bytes());
            bytes
        };
        match self {
            Op::Load(to, at) => memory(0x8b, *to, at),
            Op::Store(from, at) => memory(0x89, *from, at),
            Op::Number(to, value) => number(&[0xc7], *to, 0, *value),
            Op::Add(to, value) => number(&[0x81], *to, 0, *value),
            Op::And(to, value) => number(&[0x81], *to, 4, *value),
            Op::Or(to, value) => number(&[0x81], *to, 1, *value),
            Op::Move(to, from) => vec![rex(*from, 0, *to), 0x89, 0xc0 | (from & 7) << 3 | to & 7],
            Op::AddRegister(to, from) => {
                vec![rex(*from, 0, *to), 0x01, 0xc0 | (from & 7) << 3 | to & 7]
            }
            Op::Shl(to, by) => vec![rex(0, 0, *to), 0xc1, 0xe0 | to & 7, *by],
            Op::Shr(to, by) => vec![rex(0, 0, *to), 0xc1, 0xe8 | to & 7, *by],
            Op::Unknown(to, _) => vec![0x40 | to >> 3, 0x0f, 0x20, 0xd8 | to & 7],
            Op::Any(to, _) => vec![0x40 | to >> 3, 0x0f, 0x20, 0xd8 | to & 7],
            Op::Lea(to, at) => memory(0x8d, *to, at),
            Op::LoadHalf(to, at) => {
                let mut bytes = memory(0x8b, *to, at);
                bytes[0] &= !8;
                bytes
            }
            Op::StoreHalf(from, at) => {
                let mut bytes = memory(0x89, *from, at);
                bytes[0] &= !8;
                bytes
            }
            Op::MoveHalf(to, from) => {
                vec![
                    rex(*from, 0, *to) & !8,
                    0x89,
                    0xc0 | (from & 7) << 3 | to & 7,
                ]
            }
            Op::AddHalf(to, value) => {
                let mut bytes = number(&[0x81], *to, 0, *value);
                bytes[0] &= !8;
                bytes
            }
            Op::Choose(to, from) => {
                vec![
                    rex(*to, 0, *from),
                    0x0f,
                    0x44,
                    0xc0 | (to & 7) << 3 | from & 7,
                ]
            }
            Op::Push(from) => vec![0x40 | from >> 3, 0x50 | from & 7],
            Op::Pop(to) => vec![0x40 | to >> 3, 0x58 | to & 7],
            Op::Raw(bytes, _) => bytes.clone(),
        }
    }
}
pub const RAX: u8 = 0;
pub const RCX: u8 = 1;
pub const RDX: u8 = 2;
pub const RBX: u8 = 3;
pub const RSP: u8 = 4;
pub const RSI: u8 = 6;
pub const RDI: u8 = 7;
pub const R8: u8 = 8;

pub const fn at(base: u8, plus: i32) -> Mem {
    Mem {
        base,
        index: None,
        plus,
    }
}

pub const fn indexed(base: u8, index: u8, shift: u8, plus: i32) -> Mem {
    Mem {
        base,
        index: Some((index, shift)),
        plus,
    }
}

pub fn all(parts: Vec<Code>) -> Code {
    Code::Sequence(parts)
}

pub fn either(first: Vec<Code>, second: Vec<Code>) -> Code {
    Code::If(Box::new(all(first)), Box::new(all(second)))
}

pub fn repeat(most: u64, body: Vec<Code>) -> Code {
    Code::Repeat(most, Box::new(all(body)))
}

pub fn load(to: u8, mem: Mem) -> Code {
    Code::Op(Op::Load(to, mem))
}

pub fn store(from: u8, mem: Mem) -> Code {
    Code::Op(Op::Store(from, mem))
}

pub fn set(to: u8, number: i32) -> Code {
    Code::Op(Op::Number(to, number))
}

pub fn add(to: u8, number: i32) -> Code {
    Code::Op(Op::Add(to, number))
}

pub fn unknown(to: u8, value: u64) -> Code {
    Code::Op(Op::Unknown(to, vec![value]))
}
