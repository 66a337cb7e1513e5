//! Machine code of programs, and what it does.

use sandglass_wcet::annotations::{Kind, Record};
use sandglass_wcet::code::InstructionSet;
use sandglass_wcet::image::Image;

use super::code::*;
use crate::random::{Assembler, BASE, DISTANCE, JE, JMP};

/// Functions besides the one where the program begins; the last checks for interrupts.
pub const FUNCTIONS: usize = 3;
/// Where the stack begins, and variables are.
pub const STACK: u32 = 0x10_0100;
pub const VARIABLES: u32 = 0x10_0000;
pub const STRIDE: u32 = 24;

/// An instruction: where, how long, and what it accesses, so many times.
#[derive(Debug, Clone)]
pub struct Placed {
    pub address: u64,
    pub bytes: u64,
    pub access: Where,
}

#[derive(Debug, Clone)]
pub enum Where {
    Op(Op),
    Nowhere,
    Variable(u64),
    /// From the stack pointer before it; and what it adds to it.
    Stack(i64, i64),
    /// So many words from where the first register points, which follows.
    Fill(u64),
    Point(u8, bool),
    Through(u8, u64, bool),
    Keep(u8, u64),
    Find(u8, u64),
}

/// RDI, RSI and RBX.
pub const REGISTERS: [u8; 3] = [7, 6, 3];

/// A program with its addresses.
#[derive(Debug)]
pub enum Laid {
    One(Placed),
    Sequence(Vec<Laid>),
    /// One of these.
    Either(Box<[Laid; 2]>),
    /// From so often to so often.
    Loop(u64, u64, Box<Laid>),
    /// One of these, as the test says.
    Tested(Test, Box<[Laid; 2]>),
    /// What turns begin with, and one of two.
    Fork(u64, Box<[Laid; 3]>),
    /// Header and body.
    Late(u64, Box<[Laid; 2]>),
    Call(usize),
}

struct Layout {
    assembler: Assembler,
}

impl Layout {
    fn one(&mut self, bytes: &[u8], access: Where) -> Laid {
        let address = self.assembler.here();
        self.assembler.bytes.extend(bytes);
        Laid::One(Placed {
            address,
            bytes: bytes.len() as u64,
            access,
        })
    }

    /// The instruction that was just emitted.
    fn last(&self, bytes: u64) -> Laid {
        Laid::One(Placed {
            address: self.assembler.here() - bytes,
            bytes,
            access: Where::Nowhere,
        })
    }

    fn jump(&mut self, opcode: &[u8], target: u64) -> (usize, Laid) {
        let end = self.assembler.relative(opcode, target);
        (end, self.last(opcode.len() as u64 + 4))
    }

    fn turns(&mut self, most: u64) -> Laid {
        self.assembler.turns(most);
        self.last(1)
    }

    /// A branch, and where it leads if it is not taken and if it is, which meet.
    fn branch(
        &mut self,
        function: usize,
        opcode: &[u8],
        [then, otherwise]: [&Code; 2],
    ) -> (Laid, Box<[Laid; 2]>) {
        let (branch, first) = self.jump(opcode, 0);
        let then = self.code(function, then);
        let (jump, last) = self.jump(JMP, 0);
        self.assembler.land(branch);
        let otherwise = self.code(function, otherwise);
        self.assembler.land(jump);
        (
            first,
            Box::new([Laid::Sequence(vec![then, last]), otherwise]),
        )
    }

    fn code(&mut self, function: usize, code: &Code) -> Laid {
        let number = |opcode: &[u8], number: u32| [opcode, &number.to_le_bytes()].concat();
        match code {
            Code::Straight(lengths) => {
                let parts = lengths.iter().map(|&length| match length {
                    1 => self.one(&[0x90], Where::Nowhere),
                    // mov eax, eax behind as many prefixes.
                    length => {
                        let prefixes = vec![0x3e; usize::from(length) - 2];
                        self.one(&[&prefixes[..], &[0x89, 0xc0]].concat(), Where::Nowhere)
                    }
                });
                Laid::Sequence(parts.collect())
            }
            Code::Variable(which) => {
                let address = VARIABLES + u32::from(*which) * STRIDE;
                let access = Where::Variable(address.into());
                self.one(&number(&[0x48, 0x8b, 0x04, 0x25], address), access)
            }
            Code::Stack(words) => {
                let pushes = (0..*words).map(|_| self.one(&[0x50], Where::Stack(-8, -8)));
                let mut parts: Vec<Laid> = pushes.collect();
                let read = Where::Stack(8, 0);
                parts.push(self.one(&[0x48, 0x8b, 0x44, 0x24, 8], read));
                let pops = (0..*words).map(|_| self.one(&[0x58], Where::Stack(0, 8)));
                parts.extend(pops);
                Laid::Sequence(parts)
            }
            Code::Point(register, aligned) => {
                // From a register of which nothing is known.
                let code = [0x0f, 0x20, 0xd8 | REGISTERS[*register]];
                let point = self.one(&code, Where::Point(REGISTERS[*register], *aligned));
                if *aligned {
                    self.assembler.records.push(Record {
                        address: self.assembler.here(),
                        kind: Kind::Pointer { alignment: 6 },
                        value: 0,
                        detail: REGISTERS[*register].into(),
                    });
                }
                // So that there is an instruction of which that is said.
                Laid::Sequence(vec![point, self.one(&[0x90], Where::Nowhere)])
            }
            Code::Through(register, words, writes) => {
                let opcode = if *writes { 0x89 } else { 0x8b };
                let offset = u32::from(*words) * 8;
                let code = number(&[0x48, opcode, 0x80 | REGISTERS[*register]], offset);
                self.one(
                    &code,
                    Where::Through(REGISTERS[*register], offset.into(), *writes),
                )
            }
            Code::Copy(from, to) => {
                let [from, to] = [from, to].map(|it| REGISTERS[*it]);
                self.code(function, &Code::Op(Op::Move(to, from)))
            }
            Code::Move(register, words) => {
                let by = i32::from(*words) * 8;
                self.code(function, &Code::Op(Op::Add(REGISTERS[*register], by)))
            }
            Code::Keep(register, which) | Code::Find(register, which) => {
                let address = VARIABLES + u32::from(*which) * STRIDE;
                let registers = 0x04 | REGISTERS[*register] << 3;
                let (opcode, access) = match code {
                    Code::Keep(..) => (0x89, Where::Keep(REGISTERS[*register], address.into())),
                    _ => (0x8b, Where::Find(REGISTERS[*register], address.into())),
                };
                self.one(&number(&[0x48, opcode, registers, 0x25], address), access)
            }
            Code::Fill(words) => {
                let count = self.one(&number(&[0xb9], (*words).into()), Where::Nowhere);
                let times = (*words).into();
                let fill = self.one(&[0xf3, 0x48, 0xab], Where::Fill(times));
                Laid::Sequence(vec![count, fill])
            }
            Code::Sequence(parts) => {
                Laid::Sequence(parts.iter().map(|part| self.code(function, part)).collect())
            }
            Code::If(then, otherwise) => {
                let (first, both) = self.branch(function, JE, [then, otherwise]);
                Laid::Sequence(vec![first, Laid::Either(both)])
            }
            Code::Repeat(most, body) => {
                let top = self.assembler.here();
                let first = self.turns(*most);
                let body = self.code(function, body);
                let (_, back) = self.jump(JE, top);
                let turn = Laid::Sequence(vec![first, body, back]);
                Laid::Loop(1, *most, Box::new(turn))
            }
            Code::While(most, body) => {
                let top = self.assembler.here();
                let first = self.turns(*most);
                let (exit, leave) = self.jump(JE, 0);
                let body = self.code(function, body);
                let (_, back) = self.jump(JMP, top);
                self.assembler.land(exit);
                let (again, at) = match (&first, &leave) {
                    (Laid::One(first), Laid::One(leave)) => (first.clone(), leave.clone()),
                    _ => unreachable!("both are instructions"),
                };
                let turn = Laid::Sequence(vec![first, leave, body, back]);
                let turns = Laid::Loop(0, *most - 1, Box::new(turn));
                Laid::Sequence(vec![turns, Laid::One(again), Laid::One(at)])
            }
            Code::Op(op) => self.one(&op.bytes(), Where::Op(op.clone())),
            Code::Aligned(register, alignment) => {
                self.assembler.records.push(Record {
                    address: self.assembler.here(),
                    kind: Kind::Pointer {
                        alignment: *alignment,
                    },
                    value: 0,
                    detail: (*register).into(),
                });
                self.one(&[0x90], Where::Nowhere)
            }
            Code::Together(most) => {
                self.assembler.records.push(Record {
                    address: self.assembler.here(),
                    kind: Kind::Together,
                    value: *most,
                    detail: 0,
                });
                self.one(&[0x90], Where::Nowhere)
            }
            Code::Below(test, then, otherwise) => {
                let Test {
                    register,
                    with,
                    or_equal,
                    is_half,
                } = *test;
                let mut bytes = match with {
                    Ok(number) => {
                        let mut bytes = vec![0x48 | register >> 3, 0x81, 0xf8 | register & 7];
                        bytes.extend(number.to_le_bytes());
                        bytes
                    }
                    Err(other) => vec![
                        0x48 | register >> 3 | other >> 3 << 2,
                        0x39,
                        0xc0 | (other & 7) << 3 | register & 7,
                    ],
                };
                if is_half {
                    bytes[0] &= !8;
                }
                let compare = self.one(&bytes, Where::Nowhere);
                let opcode: &[u8] = match or_equal {
                    true => &[0x0f, 0x87],
                    false => &[0x0f, 0x83],
                };
                let (first, both) = self.branch(function, opcode, [then, otherwise]);
                Laid::Sequence(vec![compare, first, Laid::Tested(*test, both)])
            }
            Code::Fork(most, first, second) => {
                let top = self.assembler.here();
                let begin = self.turns(*most);
                let (branch, leave) = self.jump(JE, 0);
                let first = self.code(function, first);
                let (_, back) = self.jump(JMP, top);
                self.assembler.land(branch);
                let second = self.code(function, second);
                let (_, other) = self.jump(JE, top);
                Laid::Fork(
                    *most,
                    Box::new([
                        Laid::Sequence(vec![begin, leave]),
                        Laid::Sequence(vec![first, back]),
                        Laid::Sequence(vec![second, other]),
                    ]),
                )
            }
            Code::Split(most, together, body) => {
                let top = self.assembler.here();
                let begin = self.one(&[0x90], Where::Nowhere);
                let body = self.code(function, body);
                let (branch, leave) = self.jump(JE, 0);
                self.turns(*most);
                self.jump(JMP, top);
                self.assembler.land(branch);
                let mark = self.code(function, &Code::Together(*together));
                let (_, other) = self.jump(JE, top);
                let turn = Laid::Sequence(vec![begin, body, leave, mark, other]);
                Laid::Loop(*together, *together, Box::new(turn))
            }
            Code::Late(most, header, body) => {
                let top = self.assembler.here();
                // A loop in it has a beginning of its own.
                let own = self.one(&[0x90], Where::Nowhere);
                let header = self.code(function, header);
                let (exit, leave) = self.jump(JE, 0);
                let first = self.turns(*most);
                let body = self.code(function, body);
                let (_, back) = self.jump(JMP, top);
                self.assembler.land(exit);
                let header = Laid::Sequence(vec![own, header, leave]);
                let body = Laid::Sequence(vec![first, body, back]);
                Laid::Late(*most, Box::new([header, body]))
            }
            Code::Call(by) => match Some(function + by).filter(|&callee| callee <= FUNCTIONS) {
                Some(callee) => {
                    let target = BASE + callee as u64 * DISTANCE;
                    let (_, call) = self.jump(&[0xe8], target);
                    let Laid::One(call) = call else { return call };
                    let access = Where::Stack(-8, -8);
                    Laid::Sequence(vec![
                        Laid::One(Placed { access, ..call }),
                        Laid::Call(callee),
                    ])
                }
                None => self.one(&[0x90], Where::Nowhere),
            },
        }
    }
}

/// The program, and where its parts are.
pub fn laid_out(functions: &[Code]) -> (Image, Vec<Laid>) {
    let (mut records, mut texts, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for (function, code) in functions.iter().enumerate() {
        let base = BASE + function as u64 * DISTANCE;
        let mut layout = Layout {
            assembler: Assembler {
                bytes: Vec::new(),
                base,
                records: Vec::new(),
            },
        };
        let mut parts = Vec::new();
        if function == 0 {
            let set = [&[0x48, 0xc7, 0xc4][..], &STACK.to_le_bytes()].concat();
            parts.push(layout.one(&set, Where::Nowhere));
        }
        parts.push(layout.code(function, code));
        parts.push(match function {
            // hlt ends it.
            0 => layout.one(&[0xf4], Where::Nowhere),
            _ => layout.one(&[0xc3], Where::Stack(0, 8)),
        });
        records.extend(layout.assembler.records);
        texts.push((format!("function_{function}"), base, layout.assembler.bytes));
        all.push(Laid::Sequence(parts));
    }
    (Image::of_code(InstructionSet::X86_64, texts, records), all)
}
