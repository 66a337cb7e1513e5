//! The measurement of every visit of the kernel: how many instructions it executes from where it is entered, or from a
//! check for interrupts, to the next check, or until it is left; and how often it goes ways of which there is a limit.
//!
//! What is watched is in a list that `assurance/wcet` writes for a kernel's file (its module `watch` says how it looks).
//! For machines on which one core runs the kernel.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Write;

use sandglass_cache::Model;

use crate::cycles::Cycles;

/// What to do when the instruction at an address is about to be executed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mark {
    /// The kernel is entered, in the way with that number.
    Entry(usize),
    /// It checks for interrupts.
    Point,
    /// It is left for user code.
    Exit,
    /// It waits for an interrupt.
    Idle,
    /// The branch with that number may lead to what limits count.
    Branch(usize),
    /// Branches lead here.
    Target,
    /// An object of the kernel is invoked.
    Invocation,
}

/// A branch that is counted if it leads to `target`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Branch {
    limits: Vec<usize>,
    target: u64,
}

/// What is watched.
#[derive(Default, Debug)]
pub struct List {
    marks: HashMap<u64, Vec<Mark>>,
    /// Limits that count how often the instruction there is executed.
    calls: HashMap<u64, Vec<usize>>,
    branches: Vec<Branch>,
    /// The ways into the kernel.
    kinds: Vec<String>,
    limits: usize,
    /// The processors on which cycles are counted, too, and their names.
    models: Vec<(String, Model)>,
}

impl List {
    /// From its text.
    ///
    /// # Errors
    /// The line that is none of such a list.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for line in text.lines() {
            list.take(line)
                .ok_or_else(|| format!("what is to be watched has the line `{line}`"))?;
        }
        Ok(list)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let number = |word: &str| u64::from_str_radix(word, 16).ok();
        let limit = |list: &Self, word: &str| {
            number(word)
                .map(|it| it as usize)
                .filter(|&it| it < list.limits)
        };
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["point", address] => self.mark(number(address)?, Mark::Point),
            ["entry", kind, address] => {
                let known = self.kinds.iter().position(|it| it == kind);
                let kind = known.unwrap_or_else(|| {
                    self.kinds.push(kind.to_owned());
                    self.kinds.len() - 1
                });
                self.mark(number(address)?, Mark::Entry(kind));
            }
            ["model", name, ..] => {
                let model = Model::parse(&words[2..].join(" "))?;
                self.models.push((name.to_owned(), model));
            }
            ["invocation", address] => self.mark(number(address)?, Mark::Invocation),
            ["limits", count] => self.limits = number(count)? as usize,
            ["call", which, address] => {
                let which = limit(self, which)?;
                self.calls.entry(number(address)?).or_default().push(which);
            }
            ["branch", which, address, target] => {
                let which = limit(self, which)?;
                self.branch(which, number(address)?, number(target)?);
            }
            _ => return None,
        }
        Some(())
    }

    fn mark(&mut self, address: u64, mark: Mark) {
        let marks = self.marks.entry(address).or_default();
        if !marks.contains(&mark) {
            marks.push(mark);
        }
    }

    fn branch(&mut self, limit: usize, address: u64, target: u64) {
        let known = self.marks(address).iter().find_map(|mark| match mark {
            Mark::Branch(number) => Some(*number),
            _ => None,
        });
        match known {
            Some(number) => self.branches[number].limits.push(limit),
            None => {
                let limits = vec![limit];
                self.branches.push(Branch { limits, target });
                self.mark(address, Mark::Branch(self.branches.len() - 1));
                self.mark(target, Mark::Target);
            }
        }
    }

    /// What there is to do before the instruction at `address`, as far as its address says it.
    pub fn marks(&self, address: u64) -> &[Mark] {
        self.marks.get(&address).map_or(&[], Vec::as_slice)
    }

    /// The counters that count the instruction at `address`.
    pub fn counters(&self, address: u64) -> &[usize] {
        self.calls.get(&address).map_or(&[], Vec::as_slice)
    }

    /// How many counters there are: one for each limit.
    pub const fn limits(&self) -> usize {
        self.limits
    }
}

/// How a stretch begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Edge {
    Entry,
    Point,
    Exit,
    Idle,
}

impl Edge {
    const fn name(self) -> &'static str {
        match self {
            Edge::Entry => "entry",
            Edge::Point => "point",
            Edge::Exit => "exit",
            Edge::Idle => "idle",
        }
    }
}

/// A stretch that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    kind: usize,
    from: Edge,
    /// Instructions executed before.
    before: u64,
}

/// Measures visits. Counters only ever grow.
#[derive(Debug)]
pub struct Visits {
    list: List,
    open: Option<Open>,
    /// Of each limit, at the beginning of the stretch.
    before: Vec<u64>,
    /// Instructions executed before the branch that was executed last, and its number.
    branch: Option<(u64, usize)>,
    /// The most instructions of stretches of a kind that were seen.
    most: HashMap<(usize, Edge, Edge), u64>,
    /// The most calls that each limit counts: of stretches that begin at an entry, and at a check.
    most_calls: [Vec<u64>; 2],
    text: String,
    cycles: Vec<Cycles>,
}

impl Visits {
    pub fn new(list: List) -> Self {
        Self {
            cycles: list
                .models
                .iter()
                .map(|(name, model)| Cycles::new(name.clone(), *model))
                .collect(),
            open: None,
            before: vec![0; list.limits],
            branch: None,
            most: HashMap::new(),
            most_calls: [vec![0; list.limits], vec![0; list.limits]],
            text: String::new(),
            list,
        }
    }

    pub const fn list(&self) -> &List {
        &self.list
    }

    /// Who counts cycles.
    pub fn cycles(&mut self) -> &mut [Cycles] {
        &mut self.cycles
    }

    /// `mark` is met, when so many instructions have been executed, and so many calls that each limit counts.
    pub fn meets(&mut self, mark: Mark, address: u64, executed: u64, calls: &[Cell<u64>]) {
        match mark {
            Mark::Entry(kind) => {
                // What an exception of the kernel's own ends is a stretch, too.
                self.ends(Edge::Entry, executed, calls);
                self.begins(kind, Edge::Entry, executed, calls);
            }
            Mark::Point => {
                if let Some(Open { kind, .. }) = self.open {
                    self.ends(Edge::Point, executed, calls);
                    self.begins(kind, Edge::Point, executed, calls);
                }
            }
            // The last instruction counts.
            Mark::Exit => self.ends(Edge::Exit, executed + 1, calls),
            Mark::Idle => self.ends(Edge::Idle, executed + 1, calls),
            Mark::Invocation => {
                self.cycles.iter_mut().for_each(Cycles::invokes);
            }
            Mark::Branch(number) => self.branch = Some((executed, number)),
            Mark::Target => {
                if let Some((before, number)) = self.branch.take() {
                    let branch = &self.list.branches[number];
                    if before + 1 == executed && branch.target == address {
                        branch
                            .limits
                            .iter()
                            .for_each(|&limit| calls[limit].update(|calls| calls + 1));
                    }
                }
            }
        }
    }

    fn begins(&mut self, kind: usize, from: Edge, executed: u64, calls: &[Cell<u64>]) {
        for cycles in &mut self.cycles {
            cycles.begins(matches!(from, Edge::Entry));
        }
        self.open = Some(Open {
            kind,
            from,
            before: executed,
        });
        for (before, calls) in self.before.iter_mut().zip(calls) {
            *before = calls.get();
        }
    }

    fn ends(&mut self, to: Edge, executed: u64, calls: &[Cell<u64>]) {
        let Some(Open { kind, from, before }) = self.open.take() else {
            return;
        };
        for cycles in &mut self.cycles {
            let stretch = [&self.list.kinds[kind], from.name(), to.name()];
            cycles.ends(
                stretch.map(str::to_owned),
                matches!(to, Edge::Exit | Edge::Idle),
            );
        }
        let instructions = executed - before;
        let most = self.most.entry((kind, from, to)).or_default();
        // Writing to a string does not fail.
        if instructions > *most {
            *most = instructions;
            let kind = &self.list.kinds[kind];
            let (from, to) = (from.name(), to.name());
            let _ = writeln!(self.text, "stretch {kind} {from} {to} {instructions}");
        }
        let most_calls = &mut self.most_calls[usize::from(from == Edge::Point)];
        let counts = calls.iter().zip(&self.before).zip(most_calls);
        for (limit, ((after, &before), most)) in counts.enumerate() {
            if after.get() - before > *most {
                *most = after.get() - before;
                let _ = writeln!(self.text, "calls {} {limit} {most}", from.name());
            }
        }
    }

    /// What there is to write since this was last called: a line for each maximum that has grown, so that what was
    /// written last holds however the machine ends.
    pub fn take_text(&mut self) -> Option<String> {
        for cycles in &mut self.cycles {
            cycles.take_text(&mut self.text);
        }
        (!self.text.is_empty()).then(|| std::mem::take(&mut self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: u64 = 0x100;
    const VECTOR: u64 = 0x200;
    const POINT: u64 = 0x300;
    const CALL: u64 = 0x400;
    const BRANCH: u64 = 0x500;
    const TARGET: u64 = 0x600;
    const EXIT: u64 = 0x700;
    const IDLE: u64 = 0x800;
    const LIST: &str =
        "point 300\nentry system_call 100\nentry vector 200\nentry vector 210\nlimits 2\n\
                        call 0 400\ncall 1 400\nbranch 1 500 600\n";

    /// Executes instructions as QEMU does: marks, then counters.
    struct Core {
        visits: Visits,
        executed: u64,
        calls: Vec<Cell<u64>>,
        lines: Vec<String>,
    }

    impl Core {
        fn new() -> Self {
            let list = List::parse(LIST).unwrap();
            Self {
                calls: vec![Cell::new(0); list.limits()],
                visits: Visits::new(list),
                executed: 0,
                lines: Vec::new(),
            }
        }

        fn executes(&mut self, addresses: &[u64]) {
            for &address in addresses {
                let own = match address {
                    EXIT => Some(Mark::Exit),
                    IDLE => Some(Mark::Idle),
                    _ => None,
                };
                let marks: Vec<Mark> = self
                    .visits
                    .list()
                    .marks(address)
                    .iter()
                    .copied()
                    .chain(own)
                    .collect();
                for mark in marks {
                    self.visits.meets(mark, address, self.executed, &self.calls);
                }
                self.executed += 1;
                for &limit in self.visits.list().counters(address) {
                    self.calls[limit].update(|calls| calls + 1);
                }
                let text = self.visits.take_text().unwrap_or_default();
                self.lines.extend(text.lines().map(str::to_owned));
            }
        }
    }

    /// What is written of these instructions.
    fn lines(addresses: &[u64]) -> Vec<String> {
        let mut core = Core::new();
        core.executes(addresses);
        core.lines
    }

    #[test]
    fn a_visit_has_its_first_instruction_and_its_last() {
        assert_eq!(
            lines(&[ENTRY, 1, 2, EXIT]),
            ["stretch system_call entry exit 4"]
        );
        assert_eq!(lines(&[0x210, IDLE]), ["stretch vector entry idle 2"]);
    }

    #[test]
    fn a_check_for_interrupts_ends_a_stretch_and_begins_another_of_the_same_visit() {
        let seen = lines(&[ENTRY, 1, POINT, 2, 3, POINT, EXIT]);
        let stretches = ["entry point 2", "point point 3", "point exit 2"];
        assert_eq!(
            seen,
            stretches.map(|stretch| format!("stretch system_call {stretch}"))
        );
    }

    #[test]
    fn what_is_executed_before_the_first_entry_and_while_the_kernel_waits_counts_for_nothing() {
        let seen = lines(&[1, POINT, 2, EXIT, ENTRY, IDLE, 3, 4, VECTOR, 5, EXIT]);
        assert_eq!(
            seen,
            [
                "stretch system_call entry idle 2",
                "stretch vector entry exit 3"
            ]
        );
    }

    #[test]
    fn an_exception_of_the_kernel_ends_a_stretch_and_begins_one() {
        let seen = lines(&[ENTRY, 1, VECTOR, EXIT]);
        assert_eq!(
            seen,
            [
                "stretch system_call entry entry 2",
                "stretch vector entry exit 2"
            ]
        );
    }

    #[test]
    fn only_what_is_longer_than_before_is_written() {
        let seen = lines(&[
            ENTRY, 1, EXIT, ENTRY, EXIT, ENTRY, 2, EXIT, ENTRY, 1, 2, EXIT,
        ]);
        assert_eq!(
            seen,
            [
                "stretch system_call entry exit 3",
                "stretch system_call entry exit 4"
            ]
        );
    }

    #[test]
    fn calls_are_counted_between_two_checks_for_interrupts() {
        let seen = lines(&[CALL, ENTRY, CALL, CALL, POINT, CALL, EXIT]);
        let calls: Vec<&String> = seen
            .iter()
            .filter(|line| line.starts_with("calls"))
            .collect();
        assert_eq!(
            calls,
            [
                "calls entry 0 2",
                "calls entry 1 2",
                "calls point 0 1",
                "calls point 1 1"
            ]
        );
    }

    #[test]
    fn a_branch_counts_if_it_is_taken() {
        let calls = |addresses| {
            lines(addresses)
                .iter()
                .any(|line| line == "calls entry 1 1")
        };
        assert!(calls(&[ENTRY, BRANCH, TARGET, EXIT]));
        assert!(!calls(&[ENTRY, BRANCH, 1, TARGET, EXIT]));
        assert!(!calls(&[ENTRY, TARGET, EXIT]));
    }

    #[test]
    fn a_list_of_another_version_is_refused_with_the_line() {
        for line in [
            "point",
            "entry system_call x",
            "call 0 400",
            "model 1 64",
            "else 1",
        ] {
            let error = List::parse(&format!("point 300\n{line}\n")).unwrap_err();
            assert!(error.contains(line), "{error}");
        }
    }
}
