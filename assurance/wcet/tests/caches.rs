//! Caches: no execution of a program costs more, in the simulation of the same caches, than what is computed of it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use proptest::prelude::*;
use sandglass_cache::{Data, Geometry, Model, Simulation};
use sandglass_wcet::analysis::{Analysis, Question};
use sandglass_wcet::annotations::{Kind, Record};
use sandglass_wcet::code::InstructionSet;
use sandglass_wcet::image::Image;

use crate::programs::{bound, image, number, question};
use crate::random::{Assembler, BASE, DISTANCE, JE, JMP};

/// A program in a structured language.
#[derive(Debug, Clone)]
enum Code {
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
}

/// Functions besides the one where the program begins; the last checks for interrupts.
const FUNCTIONS: usize = 3;
/// Where the stack begins, and variables are.
const STACK: u32 = 0x10_0100;
const VARIABLES: u32 = 0x10_0000;
const STRIDE: u32 = 24;

/// An instruction: where, how long, and what it accesses, so many times.
#[derive(Debug, Clone, Copy)]
struct Placed {
    address: u64,
    bytes: u64,
    access: Where,
}

#[derive(Debug, Clone, Copy)]
enum Where {
    Nowhere,
    Variable(u64),
    /// From the stack pointer before it; and what it adds to it.
    Stack(i64, i64),
    /// So many words from where the first register points, which follows.
    Fill(u64),
    Point(usize, bool),
    Through(usize, u64, bool),
    Copy(usize, usize),
    Move(usize, u64),
    Keep(usize, u64),
    Find(usize, u64),
}

/// RDI, RSI and RBX.
const REGISTERS: [u8; 3] = [7, 6, 3];

/// A program with its addresses.
#[derive(Debug)]
enum Laid {
    One(Placed),
    Sequence(Vec<Laid>),
    /// One of these.
    Either(Box<[Laid; 2]>),
    /// From so often to so often.
    Loop(u64, u64, Box<Laid>),
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
                let point = self.one(&code, Where::Point(*register, *aligned));
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
                self.one(&code, Where::Through(*register, offset.into(), *writes))
            }
            Code::Copy(from, to) => {
                let registers = 0xc0 | REGISTERS[*from] << 3 | REGISTERS[*to];
                self.one(&[0x48, 0x89, registers], Where::Copy(*from, *to))
            }
            Code::Move(register, words) => {
                let by = u32::from(*words) * 8;
                let code = number(&[0x48, 0x81, 0xc0 | REGISTERS[*register]], by);
                self.one(&code, Where::Move(*register, by.into()))
            }
            Code::Keep(register, which) | Code::Find(register, which) => {
                let address = VARIABLES + u32::from(*which) * STRIDE;
                let registers = 0x04 | REGISTERS[*register] << 3;
                let (opcode, access) = match code {
                    Code::Keep(..) => (0x89, Where::Keep(*register, address.into())),
                    _ => (0x8b, Where::Find(*register, address.into())),
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
                let (branch, first) = self.jump(JE, 0);
                let then = self.code(function, then);
                let (jump, last) = self.jump(JMP, 0);
                self.assembler.land(branch);
                let otherwise = self.code(function, otherwise);
                self.assembler.land(jump);
                let either = [Laid::Sequence(vec![then, last]), otherwise];
                Laid::Sequence(vec![first, Laid::Either(Box::new(either))])
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
                    (Laid::One(first), Laid::One(leave)) => (*first, *leave),
                    _ => unreachable!("both are instructions"),
                };
                let turn = Laid::Sequence(vec![first, leave, body, back]);
                let turns = Laid::Loop(0, *most - 1, Box::new(turn));
                Laid::Sequence(vec![turns, Laid::One(again), Laid::One(at)])
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
fn laid_out(functions: &[Code]) -> (Image, Vec<Laid>) {
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

/// Takes every choice once, as far as there are not too many.
#[derive(Default)]
struct Choices {
    /// What was chosen, and of how many.
    taken: Vec<(u64, u64)>,
    at: usize,
}

impl Choices {
    fn of(&mut self, options: u64) -> u64 {
        if self.at == self.taken.len() {
            self.taken.push((0, options));
        }
        self.at += 1;
        self.taken[self.at - 1].0
    }

    /// Whether there is another execution. The first choices change first, so that few executions differ a lot.
    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, options)) = self.taken.pop() {
            if chosen + 1 < options {
                self.taken.push((chosen + 1, options));
                return true;
            }
        }
        false
    }
}

/// An execution.
struct Execution<'e> {
    functions: &'e [Laid],
    simulation: Simulation,
    choices: &'e mut Choices,
    stack: u64,
    /// Where registers point, what is kept, and by what the next pointer is made.
    registers: [u64; 3],
    kept: BTreeMap<u64, u64>,
    chance: u64,
    /// How often each instruction was executed since the last check.
    executed: BTreeMap<u64, u64>,
    /// The dearest stretch between two checks: its cycles and its instructions.
    most: (u64, BTreeMap<u64, u64>),
}

impl Execution<'_> {
    fn run(&mut self, laid: &Laid) {
        match laid {
            Laid::One(placed) => self.executes(*placed),
            Laid::Sequence(parts) => parts.iter().for_each(|part| self.run(part)),
            Laid::Either(both) => {
                let which = self.choices.of(2) as usize;
                self.run(&both[which]);
            }
            Laid::Loop(least, most, turn) => {
                // The most first: it is the likeliest to be dear.
                let turns = most - self.choices.of(most - least + 1);
                (0..turns).for_each(|_| self.run(turn));
            }
            Laid::Call(callee) => {
                if *callee == FUNCTIONS {
                    self.checks();
                }
                let functions = self.functions;
                self.run(&functions[*callee]);
            }
        }
    }

    /// A stretch ends, and another begins.
    fn checks(&mut self) {
        let executed = std::mem::take(&mut self.executed);
        let cycles = self.simulation.cycles();
        if cycles > self.most.0 {
            self.most = (cycles, executed);
        }
        self.simulation.restart();
    }

    fn executes(&mut self, placed: Placed) {
        let Placed {
            address,
            bytes,
            access,
        } = placed;
        // What repeats itself once more, to see that it is done.
        let (times, more) = match access {
            Where::Fill(times) => (times, 1),
            _ => (1, 0),
        };
        *self.executed.entry(address).or_default() += times + more;
        (0..more).for_each(|_| self.simulation.executes(address, bytes));
        if address == BASE {
            self.stack = STACK.into();
        }
        for word in 0..times {
            self.simulation.executes(address, bytes);
            self.accesses(access, word);
        }
        if let Where::Fill(times) = access {
            self.registers[0] += times * 8;
        }
    }

    fn accesses(&mut self, access: Where, word: u64) {
        match access {
            Where::Nowhere => {}
            Where::Variable(address) => self.simulation.accesses(address, 8, false),
            Where::Stack(offset, by) => {
                let at = self.stack.wrapping_add_signed(offset);
                self.simulation.accesses(at, 8, by < 0);
                self.stack = self.stack.wrapping_add_signed(by);
            }
            Where::Fill(_) => {
                let at = self.registers[0] + word * 8;
                self.simulation.accesses(at, 8, true);
            }
            Where::Point(register, aligned) => {
                let chance = self
                    .chance
                    .wrapping_mul(0x9e37_79b9)
                    .wrapping_add(0x7f4a_7c15);
                self.chance = chance;
                // Mostly in few sets, whatever the cache.
                let places = chance >> 8;
                let within = if aligned { 0 } else { places / 64 % 8 * 8 };
                let somewhere = FIRST_POINTER + places % 8 * 8192 + places / 8 % 3 * 64 + within;
                // Or at a variable.
                let variable = u64::from(VARIABLES) + places / 64 % 3 * u64::from(STRIDE);
                self.registers[register] = match !aligned && (places / 512).is_multiple_of(4) {
                    true => variable,
                    false => somewhere,
                };
            }
            Where::Through(register, offset, writes) => {
                let at = self.registers[register] + offset;
                self.simulation.accesses(at, 8, writes);
                if writes {
                    // Nobody knows what.
                    self.kept
                        .insert(at, FIRST_POINTER + 0x10_0000 + at % 64 * 8);
                }
            }
            Where::Copy(from, to) => self.registers[to] = self.registers[from],
            Where::Move(register, by) => self.registers[register] += by,
            Where::Keep(register, at) => {
                self.simulation.accesses(at, 8, true);
                self.kept.insert(at, self.registers[register]);
            }
            Where::Find(register, at) => {
                self.simulation.accesses(at, 8, false);
                self.registers[register] = self.kept.get(&at).copied().unwrap_or(FIRST_POINTER);
            }
        }
    }
}

/// Below, nothing points.
const FIRST_POINTER: u64 = 0x20_0000;

/// What is said of turns that are apart from the path.
const APART: &str = "turns where nothing enters it";

/// So many executions are analysed by themselves.
const SEEN: usize = 3;

/// So many executions are looked at, at most.
const EXECUTIONS: usize = 60;

fn code() -> impl Strategy<Value = Code> {
    let leaf = prop_oneof![
        3 => proptest::collection::vec(1_u8..9, 1..6).prop_map(Code::Straight),
        1 => (0_u8..6).prop_map(Code::Variable),
        1 => (0_u8..4).prop_map(Code::Stack),
        1 => (0_u8..9).prop_map(Code::Fill),
        2 => (0_usize..3, any::<bool>()).prop_map(|(register, aligned)| Code::Point(register, aligned)),
        5 => (0_usize..3, 0_u8..12, any::<bool>()).prop_map(|(register, words, writes)| Code::Through(register, words, writes)),
        1 => (0_usize..3, 0_usize..3).prop_map(|(from, to)| Code::Copy(from, to)),
        2 => (0_usize..3, 1_u8..9).prop_map(|(register, words)| Code::Move(register, words)),
        1 => (0_usize..3, 0_u8..3).prop_map(|(register, which)| Code::Keep(register, which)),
        1 => (0_usize..3, 0_u8..3).prop_map(|(register, which)| Code::Find(register, which)),
        3 => (1..=FUNCTIONS).prop_map(Code::Call),
    ];
    leaf.prop_recursive(4, 14, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            proptest::collection::vec(inner, 2..5).prop_map(Code::Sequence),
            (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Code::If(a, b)),
            (1_u64..6, boxed.clone()).prop_map(|(most, body)| Code::Repeat(most, body)),
            (1_u64..6, boxed).prop_map(|(most, body)| Code::While(most, body)),
        ]
    })
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (1_u32..3, prop_oneof![Just(1), Just(2), Just(4)]).prop_map(|(sets, ways)| Geometry {
        line: 16,
        sets: 1 << sets,
        ways,
    })
}

/// Small, or as large as those of processors.
fn data_geometry() -> impl Strategy<Value = Geometry> {
    let large = prop_oneof![Just(1), Just(2), Just(4)].prop_map(|ways| Geometry {
        line: 64,
        sets: 128,
        ways,
    });
    prop_oneof![geometry(), large]
}

fn model() -> impl Strategy<Value = Model> {
    let data = prop_oneof![
        1 => Just(Data::Uncached { access: 1000 }),
        4 => data_geometry().prop_map(|geometry| Data::WriteBack {
            geometry,
            miss: 1000,
            write_back: 10_000,
        }),
    ];
    (geometry(), data).prop_map(|(code, data)| Model {
        instruction: 1,
        code,
        code_miss: 100,
        data,
    })
}

/// Programs that do little but follow pointers.
fn pointers() -> impl Strategy<Value = Code> {
    let register = 0_usize..3;
    let leaf = prop_oneof![
        2 => (register.clone(), any::<bool>()).prop_map(|(register, aligned)| Code::Point(register, aligned)),
        8 => (register.clone(), 0_u8..4, any::<bool>()).prop_map(|(register, words, writes)| Code::Through(register, words * 2, writes)),
        2 => (register.clone(), 0_usize..3).prop_map(|(from, to)| Code::Copy(from, to)),
        4 => (register.clone(), 1_u8..3).prop_map(|(register, words)| Code::Move(register, words)),
        2 => (register.clone(), 0_u8..2).prop_map(|(register, which)| Code::Keep(register, which)),
        2 => (register, 0_u8..2).prop_map(|(register, which)| Code::Find(register, which)),
        1 => (1..=FUNCTIONS).prop_map(Code::Call),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let several = proptest::collection::vec(inner.clone(), 2..7).prop_map(Code::Sequence);
        let boxed = several.clone().prop_map(Box::new);
        prop_oneof![
            2 => several,
            1 => (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Code::If(a, b)),
            2 => (1_u64..12, boxed).prop_map(|(most, body)| Code::Repeat(most, body)),
        ]
    })
}

/// Only what is missing in the data cache costs anything.
fn data_alone() -> impl Strategy<Value = Model> {
    data_geometry().prop_map(|geometry| Model {
        instruction: 1,
        code: SMALL.code,
        code_miss: 0,
        data: Data::WriteBack {
            geometry,
            miss: 1000,
            write_back: 0,
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_execution_costs_more_than_computed(functions in proptest::collection::vec(code(), FUNCTIONS), check in 0_u8..9, model in model()) {
        compare(&[functions, vec![Code::Straight(vec![check.max(1)])]].concat(), model)?;
    }

    #[test]
    fn no_way_along_pointers_costs_more_than_computed(functions in proptest::collection::vec(pointers(), FUNCTIONS), model in data_alone()) {
        compare(&[functions, vec![Code::Straight(vec![1])]].concat(), model)?;
    }
}

/// A pointer may lead to where another one is kept: what is found there is not what was kept.
#[test]
fn what_is_written_through_a_pointer_may_change_what_is_kept() {
    let (kept, other) = (1, 0);
    let both = || [0, 8].map(|words| Code::Through(kept, words, false));
    let parts = [
        // So that it is executed many times, with pointers that lead elsewhere.
        vec![Code::Repeat(40, Box::new(Code::Straight(vec![1])))],
        vec![Code::Point(kept, true), Code::Keep(kept, 0)],
        both().to_vec(),
        vec![Code::Point(other, false), Code::Through(other, 0, true)],
        vec![Code::Find(kept, 0)],
        both().to_vec(),
    ];
    let nothing = || Code::Straight(vec![1]);
    let functions = [
        Code::Sequence(parts.concat()),
        nothing(),
        nothing(),
        nothing(),
    ];
    let model = Model {
        code_miss: 0,
        ..WRITES_BACK
    };
    compare(&functions, model).expect("no execution costs more");
}

/// What goes through memory step by step is not there in the next turn, if others of its set were used before and behind it.
#[test]
fn a_line_that_a_loop_comes_back_to_may_have_been_driven_out() {
    let (walks, before, behind) = (1, 0, 2);
    // Two others come to another line of the same set in each turn.
    let turn = [
        Code::Through(before, 0, false),
        Code::Through(walks, 0, false),
        Code::Through(behind, 0, false),
        Code::Move(walks, 1),
        Code::Move(before, 16),
        Code::Move(behind, 16),
    ];
    let nothing = || Code::Straight(vec![1]);
    // Where they point depends on how often one pointed before.
    for (points, ways) in (3..40).flat_map(|points| [1, 2, 3, 4].map(|ways| (points, ways))) {
        let points = (0..points).map(|number| Code::Point(number % 3, true));
        let walk = Code::Repeat(40, Box::new(Code::Sequence(turn.to_vec())));
        let parts: Vec<Code> = points.chain([walk]).collect();
        let functions = [Code::Sequence(parts), nothing(), nothing(), nothing()];
        let data = Data::WriteBack {
            geometry: Geometry {
                line: 64,
                sets: 2,
                ways,
            },
            miss: 1000,
            write_back: 0,
        };
        compare(&functions, Model { data, ..SMALL }).expect("no execution costs more");
    }
}

/// What a turn has brought may have been driven out in the same turn.
#[test]
fn a_line_that_a_turn_comes_back_to_may_have_been_driven_out() {
    let walks = 1;
    // If a turn's words begin where a line does, another line of the same set is used behind the first of them. That of the
    // word before the turn is in the other set.
    let turn = [0, 23, 1, 2, 3, 4, 5, 6, 7].map(|words| Code::Through(walks, words, false));
    let turn = turn.into_iter().chain([Code::Move(walks, 8)]).collect();
    let walk = Code::Repeat(40, Box::new(Code::Sequence(turn)));
    let begins = [Code::Point(walks, false), Code::Through(walks, 0, false)];
    let all = Code::Sequence(begins.into_iter().chain([walk]).collect());
    let nothing = || Code::Straight(vec![1]);
    let functions = [all, nothing(), nothing(), nothing()];
    let data = Data::WriteBack {
        geometry: Geometry {
            line: 64,
            sets: 2,
            ways: 1,
        },
        miss: 1000,
        write_back: 0,
    };
    compare(&functions, Model { data, ..SMALL }).expect("no execution costs more");
}

/// In which order a turn goes through its part of memory does not matter.
#[test]
fn a_loop_through_memory_brings_each_line_once() {
    let walks = 1;
    let turn = [2, 0, 3, 1].map(|words| Code::Through(walks, words, false));
    let turn = turn.into_iter().chain([Code::Move(walks, 4)]).collect();
    let walk = Code::Repeat(40, Box::new(Code::Sequence(turn)));
    let nothing = || Code::Straight(vec![1]);
    let all = Code::Sequence(vec![Code::Point(walks, true), walk]);
    let found = compare(&[all, nothing(), nothing(), nothing()], WRITES_BACK);
    let [observed, computed] = found
        .expect("no execution costs more")
        .expect("it is computed");
    // One comes first, and the first may begin anywhere in its line.
    assert!(computed <= observed + 2 * 1000, "{computed} for {observed}");
}

/// Nobody knows which of several branches is the first to use a line; but only one of them is, on any way.
#[test]
fn what_several_branches_use_is_brought_once() {
    let nothing = || Box::new(Code::Straight(vec![1]));
    let used = [
        Code::Variable(0),
        Code::Stack(2),
        Code::Call(1),
        Code::Through(1, 0, false),
        Code::Repeat(3, Box::new(Code::Through(1, 0, true))),
    ];
    for used in used {
        let branch = Code::If(Box::new(used.clone()), nothing());
        let mut parts = vec![Code::Point(1, true)];
        parts.extend((0..4).map(|_| branch.clone()));
        let functions = [
            Code::Sequence(parts),
            Code::Variable(1),
            *nothing(),
            *nothing(),
        ];
        let code = Geometry {
            sets: 256,
            ways: 2,
            ..SMALL.code
        };
        let model = Model {
            code,
            ..WRITES_BACK
        };
        let found = compare(&functions, model).expect("no execution costs more");
        let [observed, computed] = found.expect("it is computed");
        assert_eq!(observed, computed, "{used:?}");
    }
}

/// Executes a program as far as there is time, and compares what that costs with what is computed. The most of both, if anything is
/// computed.
fn compare(functions: &[Code], model: Model) -> Result<Option<[i64; 2]>, TestCaseError> {
    let (image, laid) = laid_out(functions);
    let computed = |executed| {
        let question = Question {
            levels: 8,
            point: Some(FUNCTIONS),
            bounds: Vec::new(),
            model: Some(model),
            executed,
        };
        match Analysis::new(&image, question).longest(&[BASE]) {
            // Behind a check, loops around it begin anew. A path that does not come by again leaves their turns to whoever
            // takes them: where that is dear, it is refused, since it is no path.
            Err(error) if error.to_string().contains(APART) => None,
            found => Some(found.expect("it can be analysed").expect("it ends").cost),
        }
    };
    let Some(most) = computed(None) else {
        return Ok(None);
    };
    let mut dearest = 0;
    let mut choices = Choices::default();
    for number in 0..EXECUTIONS {
        let mut execution = Execution {
            functions: &laid,
            simulation: Simulation::new(model),
            choices: &mut choices,
            stack: 0,
            registers: [FIRST_POINTER; 3],
            kept: BTreeMap::new(),
            chance: number as u64,
            executed: BTreeMap::new(),
            most: (0, BTreeMap::new()),
        };
        execution.run(&laid[0]);
        execution.checks();
        let (observed, executed) = execution.most;
        dearest = dearest.max(observed as i64);
        prop_assert!(
            observed as i64 <= most,
            "{observed} cycles, {most} computed"
        );
        // Of paths that execute no more than this one, too.
        let alike = (number < SEEN)
            .then(|| computed(Some(Rc::new(executed))))
            .flatten();
        if let Some(alike) = alike {
            prop_assert!(
                observed as i64 <= alike && alike <= most,
                "{observed} cycles, {alike} computed of this path, {most} of all"
            );
        }
        if !choices.next() {
            break;
        }
    }
    Ok(Some([dearest, most]))
}

const SMALL: Model = Model {
    instruction: 1,
    code: Geometry {
        line: 64,
        sets: 64,
        ways: 1,
    },
    code_miss: 100,
    data: Data::Uncached { access: 10 },
};

/// The same with a data cache of 32 KiB.
const WRITES_BACK: Model = Model {
    data: Data::WriteBack {
        geometry: Geometry {
            line: 64,
            sets: 128,
            ways: 4,
        },
        miss: 1000,
        write_back: 0,
    },
    ..SMALL
};

fn cycles(image: &Image, name: &str, model: Model) -> i64 {
    let question = Question {
        model: Some(model),
        ..question(image, Vec::new())
    };
    let found = bound(image, name, question);
    found.expect("it can be analysed").expect("it ends")
}

/// Lines that hold bytes of a function.
fn lines(image: &Image, name: &str) -> impl Iterator<Item = u64> {
    let function = &image.functions[number(image, name)];
    SMALL
        .code
        .lines(function.start, function.end - function.start)
}

/// Each line is brought once, whether it is in a loop, in a loop within a loop, or in a function that is called again.
#[test]
fn each_line_is_brought_once_where_all_have_room() {
    let image = image();
    for (name, others, instructions, accesses) in [
        ("straight", &[][..], 4, 9),
        ("nested", &[], 1 + 3 * (1 + 4 * 3 + 2) + 1, 9),
        (
            "calls_in_loop",
            &["three"],
            1 + 3 * (1 + 3 + 2) + 1,
            9 + 3 * 2,
        ),
        ("repeats_constant", &[], 1 + (1 + 7) + 1, 9 + 7 * 2),
    ] {
        let names = others.iter().chain([&name]);
        let all: BTreeSet<u64> = names.flat_map(|name| lines(&image, name)).collect();
        let expected = instructions + 10 * accesses + 100 * all.len() as i64;
        assert_eq!(cycles(&image, name, SMALL), expected, "{name}");
    }
}
