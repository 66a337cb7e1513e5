//! The network of everything that can be executed between an entry and an exit: each function anew wherever it is called.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{bail, Context, Result};

use crate::annotations::{Kind, HEIGHT, LEVELS};
use crate::code::{Change, Instruction};
use crate::flow::{longest, Longest};
use crate::graph::{place, Block, End, Graph};
use crate::image::Image;
use crate::limits::Bound;
use crate::program::Program;
use crate::reduce::{sum, Edge, Network, Term, Way, SINK, SOURCE};

/// What the analysis is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Levels of capability spaces.
    pub levels: u64,
    /// Height of a tree of threads.
    pub height: u64,
    /// The function that checks for interrupts: what is executed ends there, and begins there anew.
    pub point: Option<usize>,
    /// Calls of which there are no more between two checks.
    pub bounds: Vec<Bound>,
}

impl Question {
    /// What a number of a record means.
    fn meant(&self, value: u64) -> u64 {
        match value {
            LEVELS => self.levels,
            HEIGHT => self.height,
            number => number,
        }
    }
}

/// A call of a function that always comes back and counts as one step: which, and with which third argument.
type Step = (usize, Option<u64>);

pub struct Analysis<'i> {
    image: &'i Image,
    question: Question,
    program: Program<'i>,
    steps: BTreeMap<Step, Option<Rc<Longest>>>,
    whole: BTreeMap<usize, bool>,
}

/// Where a call in a network stands.
struct Site<'s> {
    /// Loops around it, of all functions: what a turn of theirs may use of which limit.
    around: &'s [Term],
    /// Where it goes on behind the call.
    next: Option<usize>,
    third_argument: Option<u64>,
}

impl<'i> Analysis<'i> {
    pub fn new(image: &'i Image, question: Question) -> Self {
        Self {
            image,
            program: Program::new(image, question.point),
            question,
            steps: BTreeMap::new(),
            whole: BTreeMap::new(),
        }
    }

    /// Whether calls of the function are inlined: it may leave the kernel, or check for interrupts.
    fn is_inlined(&mut self, function: usize) -> Result<bool> {
        if let Some(&known) = self.whole.get(&function) {
            return Ok(known);
        }
        self.whole.insert(function, false);
        let code = self.program.code(function)?;
        let within = |address: u64| self.image.function_at(address) == Some(function);
        let has_steps = self.image.records.iter().any(|record| {
            let counts = match record.kind {
                Kind::Steps => true,
                Kind::Mark => self
                    .question
                    .bounds
                    .iter()
                    .any(|bound| bound.marks.contains(&record.value)),
                _ => false,
            };
            counts && within(record.address)
        });
        let mut inlined = has_steps || Some(function) == self.question.point;
        for block in &code.graph.blocks {
            match &block.end {
                End::Leave | End::Wait(_) => inlined = true,
                End::Call { callee, .. } => {
                    inlined |= self.is_counted(function, *callee) || self.is_inlined(*callee)?;
                }
                End::Go { functions, .. } => {
                    for &callee in functions {
                        inlined |= self.is_counted(function, callee) || self.is_inlined(callee)?;
                    }
                }
                _ => {}
            }
        }
        self.whole.insert(function, inlined);
        Ok(inlined)
    }

    /// Whether a limit counts this call.
    fn is_counted(&self, caller: usize, callee: usize) -> bool {
        self.question
            .bounds
            .iter()
            .any(|bound| bound.counts(caller, callee))
    }

    /// What a call uses up of the limits.
    fn call_terms(&self, network: &mut Network, caller: usize, callee: usize) -> Vec<Term> {
        let mut terms = Vec::new();
        for (number, bound) in self.question.bounds.iter().enumerate() {
            if bound.counts(caller, callee) {
                terms = sum(
                    &terms,
                    &[(limit_of(network, number, bound), bound.weight())],
                );
            }
        }
        terms
    }

    /// The longest way through a function, from its entry to where it comes back; `None` if it never does.
    fn step(&mut self, step: Step) -> Result<Option<Rc<Longest>>> {
        if let Some(known) = self.steps.get(&step) {
            return Ok(known.clone());
        }
        let mut network = Network::new();
        let site = Site {
            around: &[],
            next: Some(SINK),
            third_argument: step.1,
        };
        let (entry, terms) = self.inline(&mut network, step.0, &site)?;
        network.edges.push(start(entry, terms));
        let found = longest(network)
            .with_context(|| self.image.functions[step.0].name.clone())?
            .map(Rc::new);
        self.steps.insert(step, found.clone());
        Ok(found)
    }

    /// The longest way from any of these addresses to user level or to a check for interrupts, and from one of those on.
    ///
    /// # Errors
    /// Code that cannot be analysed: it says where, and what would be right.
    pub fn longest(&mut self, entries: &[u64]) -> Result<Option<Longest>> {
        let mut network = Network::new();
        let mut done = BTreeMap::new();
        for &entry in entries {
            let function = self
                .image
                .function_at(entry)
                .with_context(|| format!("{entry:#x} is in no function"))?;
            if let std::collections::btree_map::Entry::Vacant(vacant) = done.entry(function) {
                let site = Site {
                    around: &[],
                    next: None,
                    third_argument: None,
                };
                vacant.insert(self.blocks(&mut network, function, &site)?);
            }
            let code = self.program.code(function)?;
            let block = code
                .graph
                .block_at(entry)
                .context("an entry that is no instruction")?;
            network
                .edges
                .push(start(done[&function][block], Vec::new()));
        }
        longest(network)
    }

    /// Adds a function to a network. Returns its entry, and what entering it uses up.
    fn inline(
        &mut self,
        network: &mut Network,
        function: usize,
        site: &Site,
    ) -> Result<(usize, Vec<Term>)> {
        let question = self.question.clone();
        let first_limit = network.limits.len();
        let nodes = self.blocks(network, function, site)?;
        let code = self.program.code(function)?;
        // Its own limits come first, in the order of its loops.
        let terms = code
            .loops
            .iter()
            .enumerate()
            .filter(|(_, each)| each.header == 0)
            .map(|(i, each)| (first_limit + i, -(question.meant(each.turns) as i64)))
            .collect();
        Ok((nodes[0], terms))
    }

    fn blocks(
        &mut self,
        network: &mut Network,
        function: usize,
        site: &Site,
    ) -> Result<Vec<usize>> {
        let code = self.program.code(function)?;
        let question = self.question.clone();
        let limits: Vec<usize> = code.loops.iter().map(|_| network.limit(0)).collect();
        let nodes: Vec<usize> = code.graph.blocks.iter().map(|_| network.node()).collect();
        for (number, block) in code.graph.blocks.iter().enumerate() {
            let cost = self.cost(function, &code.graph, number, site)?;
            let mut marks: Vec<Term> = sum(
                &self.steps_in(network, block),
                &self.marks_in(network, block),
            );
            for (each, &limit) in code.loops.iter().zip(&limits) {
                if each.marked.contains(&number) {
                    marks = sum(&marks, &[(limit, 1)]);
                }
            }
            let edge = |to: usize, terms: Vec<Term>, more: i64| Edge {
                from: nodes[number],
                to,
                cost: cost + more,
                terms,
                way: Rc::new(Way::Block(function, number)),
            };
            // What going on in a block of this function uses up.
            let entering = |to: usize| -> Vec<Term> {
                let mut terms = marks.clone();
                for (each, &limit) in code.loops.iter().zip(&limits) {
                    if each.header == to && !each.blocks.contains(&number) {
                        let turns = question.meant(each.turns) as i64;
                        terms = sum(&terms, &[(limit, -turns)]);
                    }
                }
                terms
            };
            match block.end.clone() {
                End::Go { blocks, functions } => {
                    for to in blocks {
                        network.edges.push(edge(nodes[to], entering(to), 0));
                    }
                    for callee in functions {
                        let site = Site {
                            around: site.around,
                            next: site.next,
                            third_argument: site.third_argument,
                        };
                        let counted = self.call_terms(network, function, callee);
                        let (entry, terms) = self.called(network, callee, &site)?;
                        network
                            .edges
                            .push(edge(entry, sum(&sum(&marks, &counted), &terms), 0));
                    }
                }
                End::Return => {
                    if let Some(next) = site.next {
                        network.edges.push(edge(next, marks.clone(), 0));
                    }
                }
                End::Leave | End::Wait(_) => network.edges.push(edge(SINK, marks.clone(), 0)),
                End::Trap => {}
                End::Call { callee, next } => {
                    let mut around = site.around.to_vec();
                    for (each, &limit) in code.loops.iter().zip(&limits) {
                        if each.blocks.contains(&number) {
                            around.push((limit, -(question.meant(each.turns) as i64)));
                        }
                    }
                    around.sort();
                    let counted = self.call_terms(network, function, callee);
                    let third_argument = third_argument(self.image, &code.graph, number);
                    if self.is_inlined(callee)? {
                        // Behind the call, on its own: what happens there enters loops that begin there.
                        let behind = match next {
                            Some(next) => {
                                let node = network.node();
                                network.edges.push(Edge {
                                    from: node,
                                    to: nodes[next],
                                    cost: 0,
                                    terms: entering(next),
                                    way: Rc::new(Way::Nothing),
                                });
                                Some(node)
                            }
                            None => None,
                        };
                        let site = Site {
                            around: &around,
                            next: behind,
                            third_argument,
                        };
                        let (entry, terms) = self.called(network, callee, &site)?;
                        network.edges.push(edge(entry, sum(&counted, &terms), 0));
                    } else if let (Some(step), Some(next)) = (
                        self.step((callee, self.passed(callee, third_argument)))?,
                        next,
                    ) {
                        let mut edge = edge(nodes[next], sum(&entering(next), &counted), step.cost);
                        edge.way = Rc::new(Way::Both(edge.way, Rc::new(Way::Step(callee, step))));
                        network.edges.push(edge);
                    }
                }
            }
        }
        Ok(nodes)
    }

    /// The third argument, if the function cares.
    fn passed(&self, callee: usize, third_argument: Option<u64>) -> Option<u64> {
        FILLING
            .contains(&self.image.functions[callee].name.as_str())
            .then_some(third_argument)
            .flatten()
    }

    /// A function that is called or jumped to. A check for interrupts ends what came before it, and begins what comes
    /// after it, anywhere in the loops around.
    fn called(
        &mut self,
        network: &mut Network,
        callee: usize,
        site: &Site,
    ) -> Result<(usize, Vec<Term>)> {
        // Where nothing comes back, and no loop is around, one copy is enough.
        let last = site.next.is_none() && site.around.is_empty() && site.third_argument.is_none();
        if let Some(known) = network.lasts.get(&callee).filter(|_| last) {
            return Ok(known.clone());
        }
        let (entry, terms) = self.inline(network, callee, site)?;
        if last {
            network.lasts.insert(callee, (entry, terms.clone()));
        }
        if Some(callee) != self.question.point {
            return Ok((entry, terms));
        }
        let mut begins = sum(&terms, site.around);
        for (number, bound) in self.question.bounds.iter().enumerate() {
            let limit = limit_of(network, number, bound);
            begins = sum(&begins, &[(limit, -bound.more_after_check)]);
        }
        network.edges.push(start(entry, begins));
        Ok((SINK, Vec::new()))
    }

    /// What a block uses up of the limits of marks.
    fn marks_in(&self, network: &mut Network, block: &Block) -> Vec<Term> {
        let mut terms = Vec::new();
        let marks = self
            .image
            .records
            .iter()
            .filter(|record| record.kind == Kind::Mark && block.contains(record.address));
        for mark in marks {
            for (number, bound) in self.question.bounds.iter().enumerate() {
                if bound.marks.contains(&mark.value) {
                    terms = sum(&terms, &[(limit_of(network, number, bound), 1)]);
                }
            }
        }
        terms
    }

    /// What a block uses up of the steps between checks for interrupts.
    fn steps_in(&self, network: &mut Network, block: &Block) -> Vec<Term> {
        let record = self
            .image
            .records
            .iter()
            .find(|record| record.kind == Kind::Steps && block.contains(record.address));
        let Some(record) = record else {
            return Vec::new();
        };
        let limit = *network.steps.entry(record.value).or_insert_with(|| {
            network.limits.push(record.value as i64);
            network.limits.len() - 1
        });
        vec![(limit, 1)]
    }

    /// Instructions of a block; those that repeat themselves count every time, and once more to see that they are done.
    fn cost(&self, function: usize, graph: &Graph, number: usize, site: &Site) -> Result<i64> {
        let block = &graph.blocks[number];
        let mut cost = block.code.len() as i64;
        for (i, instruction) in block
            .code
            .iter()
            .enumerate()
            .filter(|(_, instruction)| instruction.repeats)
        {
            cost += self.repeats(function, &block.code[..i], instruction, site)? as i64;
        }
        Ok(cost)
    }

    /// How often an instruction repeats itself behind `before`, those of its block.
    fn repeats(
        &self,
        function: usize,
        before: &[Instruction],
        instruction: &Instruction,
        site: &Site,
    ) -> Result<u64> {
        let recorded =
            self.image.records.iter().find(|record| {
                record.address == instruction.address && record.kind == Kind::Repeats
            });
        if let Some(record) = recorded {
            return Ok(self.question.meant(record.value));
        }
        let change = before
            .iter()
            .rev()
            .map(|each| each.count)
            .find(|&change| change != Change::None);
        if let Some(Change::Number(number)) = change {
            return Ok(number);
        }
        let name = &self.image.functions[function].name;
        if !FILLING.contains(&name.as_str()) {
            bail!(
                "{}: this instruction repeats itself without a bound. Write one beside it, with `arch::bounds`",
                place(self.image, instruction.address)
            );
        }
        let Some(bytes) = site.third_argument else {
            bail!("a call of {name} of nobody knows how many bytes. Say how many, with `arch::bounds::at_most`");
        };
        // Up to a word's beginning, words, and what is left.
        Ok(if instruction.bytes_each > 1 {
            bytes / 8
        } else {
            bytes.min(7)
        })
    }
}

/// Functions of the compiler's library with instructions that repeat themselves, as often as the third argument says.
const FILLING: [&str; 3] = ["memcpy", "memset", "memmove"];

/// The limit that counts the calls of a bound.
fn limit_of(network: &mut Network, number: usize, bound: &Bound) -> usize {
    *network.bounds.entry(number).or_insert_with(|| {
        network.limits.push(bound.limit());
        network.limits.len() - 1
    })
}

fn start(entry: usize, terms: Vec<Term>) -> Edge {
    Edge {
        from: SOURCE,
        to: entry,
        cost: 0,
        terms,
        way: Rc::new(Way::Nothing),
    }
}

/// The constant that the block gives the function that it calls as third argument.
fn third_argument(image: &Image, graph: &Graph, number: usize) -> Option<u64> {
    let chain = chain(graph, number);
    let said = |block: &Block| {
        let record = image
            .records
            .iter()
            .find(|record| record.kind == Kind::Argument && block.contains(record.address));
        record.map(|record| record.value)
    };
    if let Some(bytes) = chain.iter().find_map(|&block| said(&graph.blocks[block])) {
        return Some(bytes);
    }
    let change = chain.iter().find_map(|&number| {
        let block = &graph.blocks[number];
        let calls = usize::from(matches!(block.end, End::Call { .. }));
        let before = block.code[..block.code.len() - calls].iter().rev();
        before
            .map(|each| each.third_argument)
            .find(|&change| change != Change::None)
    });
    match change {
        Some(Change::Number(constant)) => Some(constant),
        _ => None,
    }
}

/// A block and those before it, as far as there is only one way there, the last first.
fn chain(graph: &Graph, number: usize) -> Vec<usize> {
    let mut chain = vec![number];
    while chain.len() < LOOK_BACK {
        let last = chain[chain.len() - 1];
        let mut before =
            (0..graph.blocks.len()).filter(|&each| graph.blocks[each].successors().contains(&last));
        match (before.next(), before.next()) {
            (Some(only), None) if !chain.contains(&only) => chain.push(only),
            _ => break,
        }
    }
    chain
}

/// Blocks before a call in which its arguments are looked for.
const LOOK_BACK: usize = 5;
