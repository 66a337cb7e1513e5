//! Random structured programs: what the analysis computes is what the dearest of all their executions costs.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sandglass_wcet::analysis::{Analysis, Question};
use sandglass_wcet::annotations::{Kind, Record};
use sandglass_wcet::code::InstructionSet;
use sandglass_wcet::image::Image;
use sandglass_wcet::limits::Bound;

/// A program in a structured language.
#[derive(Debug, Clone)]
enum Code {
    /// So many instructions.
    Straight(u8),
    Sequence(Vec<Code>),
    /// A branch on a flag: those with the same number below [`FLAGS`] go the same way in an execution.
    If(u8, Box<Code>, Box<Code>),
    /// Once or more, up to so often.
    Repeat(u64, Box<Code>),
    /// The condition is evaluated up to so often, which is once more than the body is executed.
    While(u64, Box<Code>),
    /// Of a function with a higher number than whoever calls it, by how much higher.
    Call(usize),
}

const FLAGS: u8 = 2;
/// Functions besides the one where the program begins; the last calls none.
const FUNCTIONS: usize = 3;
pub const DISTANCE: u64 = 0x1_0000;
pub const BASE: u64 = 0x40_0000;

/// Machine code of a function.
pub struct Assembler {
    pub bytes: Vec<u8>,
    pub base: u64,
    pub records: Vec<Record>,
}

impl Assembler {
    pub fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// An instruction with a relative target, which is given or patched later.
    pub fn relative(&mut self, opcode: &[u8], target: u64) -> usize {
        self.bytes.extend(opcode);
        let offset = target.wrapping_sub(self.here() + 4) as i32;
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.len()
    }

    /// Lets the instruction that ends at `end` lead here.
    pub fn land(&mut self, end: usize) {
        let offset = (self.bytes.len() - end) as i32;
        self.bytes[end - 4..end].copy_from_slice(&offset.to_le_bytes());
    }

    pub fn turns(&mut self, value: u64) {
        let address = self.here();
        let kind = Kind::Turns;
        self.records.push(Record {
            address,
            kind,
            value,
            detail: 0,
        });
        self.bytes.push(NOP);
    }

    fn code(&mut self, function: usize, code: &Code) {
        match code {
            Code::Straight(count) => self.bytes.extend((0..*count).map(|_| NOP)),
            Code::Sequence(parts) => parts.iter().for_each(|part| self.code(function, part)),
            Code::If(_, then, otherwise) => {
                let branch = self.relative(JE, 0);
                self.code(function, then);
                let jump = self.relative(JMP, 0);
                self.land(branch);
                self.code(function, otherwise);
                self.land(jump);
            }
            Code::Repeat(most, body) => {
                let top = self.here();
                self.turns(*most);
                self.code(function, body);
                self.relative(JE, top);
            }
            Code::While(most, body) => {
                let top = self.here();
                self.turns(*most);
                let exit = self.relative(JE, 0);
                self.code(function, body);
                self.relative(JMP, top);
                self.land(exit);
            }
            Code::Call(by) => match callee(function, *by) {
                Some(callee) => {
                    self.relative(&[0xe8], BASE + callee as u64 * DISTANCE);
                }
                None => self.bytes.push(NOP),
            },
        }
    }
}

const NOP: u8 = 0x90;
pub const JE: &[u8] = &[0x0f, 0x84];
pub const JMP: &[u8] = &[0xe9];

fn callee(function: usize, by: usize) -> Option<usize> {
    Some(function + by).filter(|&callee| callee <= FUNCTIONS)
}

fn image(functions: &[Code]) -> Image {
    let mut records = Vec::new();
    let mut texts = Vec::new();
    for (number, code) in functions.iter().enumerate() {
        let mut assembler = Assembler {
            bytes: Vec::new(),
            base: BASE + number as u64 * DISTANCE,
            records: Vec::new(),
        };
        assembler.code(number, code);
        match number {
            0 => assembler.bytes.extend([0x48, 0xcf]), // iretq
            _ => assembler.bytes.push(0xc3),           // ret
        }
        records.extend(assembler.records);
        texts.push((
            format!("function_{number}"),
            assembler.base,
            assembler.bytes,
        ));
    }
    Image::of_code(InstructionSet::X86_64, texts, records)
}

/// What an execution costs, and how often it calls the last function.
type Execution = (i64, u64);

fn both(a: &BTreeSet<Execution>, b: &BTreeSet<Execution>) -> BTreeSet<Execution> {
    a.iter()
        .flat_map(|a| b.iter().map(|b| (a.0 + b.0, a.1 + b.1)))
        .collect()
}

fn one(cost: i64) -> BTreeSet<Execution> {
    BTreeSet::from([(cost, 0)])
}

/// All executions; with `flags`, those in which each flag has one value.
fn executions(
    functions: &[Code],
    function: usize,
    code: &Code,
    flags: Option<[bool; FLAGS as usize]>,
) -> BTreeSet<Execution> {
    let of = |code: &Code| executions(functions, function, code, flags);
    match code {
        Code::Straight(count) => one((*count).into()),
        Code::Sequence(parts) => parts.iter().fold(one(0), |all, part| both(&all, &of(part))),
        Code::If(flag, then, otherwise) => {
            let value = flags.and_then(|flags| flags.get(usize::from(*flag)).copied());
            let mut all = BTreeSet::new();
            if value != Some(false) {
                all.extend(both(&one(2), &of(then)));
            }
            if value != Some(true) {
                all.extend(both(&one(1), &of(otherwise)));
            }
            all
        }
        Code::Repeat(most, body) => {
            let turn = both(&one(2), &of(body));
            let mut all = BTreeSet::new();
            let mut turns = one(0);
            for _ in 0..*most {
                turns = both(&turns, &turn);
                all.extend(&turns);
            }
            all
        }
        Code::While(most, body) => {
            let turn = both(&one(3), &of(body));
            let mut all = BTreeSet::new();
            let mut turns = one(0);
            for _ in 0..*most {
                all.extend(both(&turns, &one(2)));
                turns = both(&turns, &turn);
            }
            all
        }
        Code::Call(by) => match callee(function, *by) {
            Some(callee) => {
                let calls = BTreeSet::from([(2, u64::from(callee == FUNCTIONS))]);
                both(
                    &calls,
                    &executions(functions, callee, &functions[callee], flags),
                )
            }
            None => one(1),
        },
    }
}

fn code() -> impl Strategy<Value = Code> {
    let leaf = prop_oneof![
        (0_u8..6).prop_map(Code::Straight),
        (1..=FUNCTIONS).prop_map(Code::Call),
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            proptest::collection::vec(inner, 2..4).prop_map(Code::Sequence),
            (0..FLAGS + 2, boxed.clone(), boxed.clone())
                .prop_map(|(flag, a, b)| Code::If(flag, a, b)),
            (1_u64..4, boxed.clone()).prop_map(|(most, body)| Code::Repeat(most, body)),
            (1_u64..4, boxed).prop_map(|(most, body)| Code::While(most, body)),
        ]
    })
}

fn computed(image: &Image, bounds: Vec<Bound>) -> Option<i64> {
    let question = Question {
        levels: 8,
        point: None,
        bounds,
        model: None,
        executed: None,
    };
    let longest = Analysis::new(image, question).longest(&[BASE]);
    longest
        .expect("it can be analysed")
        .map(|longest| longest.cost)
}

fn dearest<'e>(executions: impl IntoIterator<Item = &'e Execution>) -> Option<i64> {
    executions
        .into_iter()
        .map(|execution| execution.0 + 1)
        .max()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_is_the_dearest_execution(functions in proptest::collection::vec(code(), FUNCTIONS + 1), most in 0_u64..4) {
        let image = image(&functions);
        let all = executions(&functions, 0, &functions[0], None);
        let bound = computed(&image, Vec::new());
        prop_assert_eq!(bound, dearest(&all));

        // No call of the last function more than so many; and at least one.
        let last = FUNCTIONS;
        let limit = Bound {
            most: Some(most),
            least: 0,
            more_after_check: 0,
            calls: vec![(None, last)],
            marks: Vec::new(),
        };
        let within = all.iter().filter(|execution| execution.1 <= most);
        prop_assert_eq!(computed(&image, vec![limit]), dearest(within));
        let through = all.iter().filter(|execution| execution.1 >= 1);
        prop_assert_eq!(computed(&image, vec![Bound::through(last)]), dearest(through));

        // What the code says of flags is not known to the analysis: it is never below what can happen.
        for flags in [[false, false], [false, true], [true, false], [true, true]] {
            let possible = executions(&functions, 0, &functions[0], Some(flags));
            prop_assert!(bound >= dearest(&possible));
        }
    }
}
