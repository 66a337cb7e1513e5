//! Executions of programs, beside what is computed of them.

use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use sandglass_cache::{Model, Simulation};
use sandglass_wcet::analysis::{Analysis, Question};

use super::code::*;
use super::layout::*;
use crate::random::BASE;

/// Takes every choice once, as far as there are not too many.
#[derive(Default)]
struct Choices {
    /// What was chosen, and of how many.
    taken: Vec<(u64, u64)>,
    at: usize,
}

impl Choices {
    fn of(&mut self, options: u64) -> u64 {
        // What is tested differs from execution to execution.
        if self
            .taken
            .get(self.at)
            .is_some_and(|taken| taken.1 != options)
        {
            self.taken.truncate(self.at);
        }
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
    registers: [u64; 16],
    /// What was written to memory.
    kept: BTreeMap<u64, u64>,
    /// By what the next pointer is made.
    chance: u64,
    /// How often operations were executed that have something else each time, by their addresses.
    times: BTreeMap<u64, usize>,
    /// How often each instruction was executed since the last check.
    executed: BTreeMap<u64, u64>,
    /// The dearest stretch between two checks: its cycles and its instructions.
    most: (u64, BTreeMap<u64, u64>),
}

impl Execution<'_> {
    fn run(&mut self, laid: &Laid) {
        match laid {
            Laid::One(placed) => self.executes(placed),
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
            Laid::Tested(test, both) => {
                let half = |value: u64| match test.is_half {
                    true => value & 0xffff_ffff,
                    false => value,
                };
                let own = half(self.registers[place(test.register)]);
                let other = half(match test.with {
                    Ok(number) => i64::from(number) as u64,
                    Err(register) => self.registers[place(register)],
                });
                let holds = own < other || test.or_equal && own == other;
                self.run(&both[usize::from(!holds)]);
            }
            Laid::Fork(most, all) => {
                let turns = most - self.choices.of(*most);
                for turn in 0..turns {
                    self.run(&all[0]);
                    let is_last = turn + 1 == turns;
                    let which = if is_last { 0 } else { self.choices.of(2) };
                    self.run(&all[2 - which as usize]);
                }
            }
            Laid::Late(most, both) => {
                let turns = most - self.choices.of(most + 1);
                for _ in 0..turns {
                    self.run(&both[0]);
                    self.run(&both[1]);
                }
                self.run(&both[0]);
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

    fn executes(&mut self, placed: &Placed) {
        let Placed {
            address,
            bytes,
            access,
        } = placed.clone();
        // What repeats itself once more, to see that it is done.
        let (times, more) = match access {
            Where::Fill(times) => (times, 1),
            _ => (1, 0),
        };
        *self.executed.entry(address).or_default() += times + more;
        (0..more).for_each(|_| self.simulation.executes(address, bytes));
        if address == BASE {
            self.registers[place(RSP)] = STACK.into();
        }
        for word in 0..times {
            self.simulation.executes(address, bytes);
            self.accesses(access.clone(), word, address);
        }
        if let Where::Fill(times) = access {
            self.registers[place(RDI)] += times * 8;
        }
    }

    fn address(&self, at: &Mem) -> u64 {
        let index = at
            .index
            .map_or(0, |(index, shift)| self.registers[place(index)] << shift);
        let base = self.registers[place(at.base)];
        base.wrapping_add(index).wrapping_add_signed(at.plus.into())
    }

    /// What is in memory where nothing was kept: a pointer, mostly.
    fn word(&self, at: u64) -> u64 {
        let found = FIRST_POINTER + at / 8 % 7 * 8192 + at / 64 % 5 * 8;
        self.kept.get(&at).copied().unwrap_or(found)
    }

    fn operates(&mut self, op: &Op, address: u64) {
        match op {
            Op::Load(to, at) => {
                let at = self.address(at);
                self.simulation.accesses(at, 8, false);
                self.registers[place(*to)] = self.word(at);
            }
            Op::Store(from, at) => {
                let at = self.address(at);
                self.simulation.accesses(at, 8, true);
                self.kept.insert(at, self.registers[place(*from)]);
            }
            Op::Any(to, of_objects) => {
                let places = self.chances();
                let somewhere = FIRST_POINTER + places % 8 * 8192 + places / 8 % 3 * 64;
                self.registers[place(*to)] = match of_objects {
                    true => somewhere,
                    false => match places / 64 % 4 {
                        0 => u64::from(VARIABLES) + places / 256 % 40 * 8,
                        1 => u64::from(STACK) - 64 + places / 256 % 16 * 8,
                        _ => somewhere + places / 256 % 8 * 8,
                    },
                };
            }
            Op::Lea(to, at) => self.registers[place(*to)] = self.address(at),
            Op::LoadHalf(to, at) => {
                let at = self.address(at);
                self.simulation.accesses(at, 4, false);
                self.registers[place(*to)] = self.word(at) & 0xffff_ffff;
            }
            Op::StoreHalf(from, at) => {
                let at = self.address(at);
                self.simulation.accesses(at, 4, true);
                let word =
                    self.word(at) & !0xffff_ffff | self.registers[place(*from)] & 0xffff_ffff;
                self.kept.insert(at, word);
            }
            Op::MoveHalf(to, from) => {
                self.registers[place(*to)] = self.registers[place(*from)] & 0xffff_ffff
            }
            Op::AddHalf(to, by) => {
                self.registers[place(*to)] =
                    self.registers[place(*to)].wrapping_add_signed((*by).into()) & 0xffff_ffff;
            }
            Op::Choose(to, from) => {
                if self.choices.of(2) == 0 {
                    self.registers[place(*to)] = self.registers[place(*from)];
                }
            }
            Op::Push(from) => {
                let value = self.registers[place(*from)];
                self.registers[place(RSP)] = self.registers[place(RSP)].wrapping_sub(8);
                self.simulation
                    .accesses(self.registers[place(RSP)], 8, true);
                self.kept.insert(self.registers[place(RSP)], value);
            }
            Op::Pop(to) => {
                let at = self.registers[place(RSP)];
                self.simulation.accesses(at, 8, false);
                self.registers[place(RSP)] = at.wrapping_add(8);
                self.registers[place(*to)] = self.word(at);
            }
            Op::Number(to, number) => self.registers[place(*to)] = i64::from(*number) as u64,
            Op::Move(to, from) => self.registers[place(*to)] = self.registers[place(*from)],
            Op::Add(to, by) => {
                self.registers[place(*to)] =
                    self.registers[place(*to)].wrapping_add_signed((*by).into())
            }
            Op::AddRegister(to, from) => {
                self.registers[place(*to)] =
                    self.registers[place(*to)].wrapping_add(self.registers[place(*from)]);
            }
            Op::And(to, by) => self.registers[place(*to)] &= i64::from(*by) as u64,
            Op::Or(to, by) => self.registers[place(*to)] |= i64::from(*by) as u64,
            Op::Shl(to, by) => self.registers[place(*to)] <<= by,
            Op::Shr(to, by) => self.registers[place(*to)] >>= by,
            Op::Unknown(to, values) => {
                let times = self.times.entry(address).or_default();
                self.registers[place(*to)] = values[*times % values.len()];
                *times += 1;
            }
            Op::Raw(_, accesses) => {
                for (at, writes) in accesses {
                    self.simulation.accesses(*at, 8, *writes);
                }
            }
        }
    }

    /// By what a pointer is made.
    fn chances(&mut self) -> u64 {
        let chance = self.chance.wrapping_mul(0x9e37_79b9);
        self.chance = chance.wrapping_add(0x7f4a_7c15);
        self.chance >> 8
    }

    fn accesses(&mut self, access: Where, word: u64, address: u64) {
        match access {
            Where::Op(op) => self.operates(&op, address),
            Where::Nowhere => {}
            Where::Variable(address) => self.simulation.accesses(address, 8, false),
            Where::Stack(offset, by) => {
                let stack = self.registers[place(RSP)];
                self.registers[place(RSP)] = stack.wrapping_add_signed(by);
                let at = stack.wrapping_add_signed(offset);
                if by < 0 {
                    // Of no matter what.
                    self.kept.insert(at, 0x70_0000);
                }
                self.simulation.accesses(at, 8, by < 0);
            }
            Where::Fill(_) => {
                let at = self.registers[place(RDI)] + word * 8;
                self.simulation.accesses(at, 8, true);
            }
            Where::Point(register, aligned) => {
                // Mostly in few sets, whatever the cache.
                let places = self.chances();
                let within = if aligned { 0 } else { places / 64 % 8 * 8 };
                let somewhere = FIRST_POINTER + places % 8 * 8192 + places / 8 % 3 * 64 + within;
                // Or at a variable.
                let variable = u64::from(VARIABLES) + places / 64 % 3 * u64::from(STRIDE);
                self.registers[place(register)] = match !aligned && (places / 512).is_multiple_of(4)
                {
                    true => variable,
                    false => somewhere,
                };
            }
            Where::Through(register, offset, writes) => {
                let at = self.registers[place(register)] + offset;
                self.simulation.accesses(at, 8, writes);
                if writes {
                    // Nobody knows what.
                    self.kept
                        .insert(at, FIRST_POINTER + 0x10_0000 + at % 64 * 8);
                }
            }
            Where::Keep(register, at) => {
                self.simulation.accesses(at, 8, true);
                self.kept.insert(at, self.registers[place(register)]);
            }
            Where::Find(register, at) => {
                self.simulation.accesses(at, 8, false);
                self.registers[place(register)] =
                    self.kept.get(&at).copied().unwrap_or(FIRST_POINTER);
            }
        }
    }
}

/// The place of a register.
fn place(register: u8) -> usize {
    usize::from(register)
}

/// Below, nothing points.
const FIRST_POINTER: u64 = 0x20_0000;

/// What is said of turns that are apart from the path.
const APART: &str = "turns where nothing enters it";

/// So many executions are analysed by themselves.
const SEEN: usize = 3;

/// So many executions are looked at, at most.
const EXECUTIONS: usize = 60;

/// Executes a program as far as there is time, and compares what that costs with what is computed. The most of both, if anything is
/// computed.
pub fn compare(functions: &[Code], model: Model) -> Result<Option<[i64; 2]>, TestCaseError> {
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
            registers: [FIRST_POINTER; 16],
            kept: BTreeMap::new(),
            chance: number as u64,
            times: BTreeMap::new(),
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
