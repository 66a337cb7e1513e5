//! What the blocks of a network cost on a processor with caches.
//!
//! The network has each function anew wherever it is called, so that what is in a cache for sure is known at each of its
//! nodes ([`crate::must`]): a fixed point over the network, which begins with caches of which nothing is known.
//!
//! Where ways meet, little is sure, and what a loop uses in its first turn is not sure at the beginning of the second. So
//! loops are treated by persistence (Ferdinand and Wilhelm 1999): a line of code whose set is used, in all that the loop may
//! execute, by no more lines than it has ways, is brought at most once whenever the loop is entered. That costs a miss at
//! the entrance, also if the path never comes by, and nothing in the loop. It is simpler than a copy of each loop's first
//! turn, and better where a turn has several ways. A loop that would have more to pay at its entrance than its turns can
//! use is left to what is sure.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use sandglass_cache::{Data, Geometry, Model};

use crate::analysis::{Analysis, Step};
use crate::code::{Flow, Instruction};
use crate::data::{At, Misses};
use crate::given::left;
use crate::graph::{Block, End};
use crate::image::Image;
use crate::persistence::Since;
use crate::pointers::Pointer;
use crate::prices::{data_miss, Call, Line, Passed, Price, Priced};
use crate::program::Code;
use crate::reduce::{Network, SINK};
use crate::states::{turning, State};
use crate::streams::Streams;
use crate::values::Here;

/// Lines that a loop may bring at its entrance for each turn that it may take.
const LINES_PER_TURN: u64 = 4;

/// A loop in its context, for what it brings at its entrance.
#[derive(Debug)]
pub struct Inside {
    /// The loop around it, of whichever function.
    pub outer: Option<Rc<Inside>>,
    /// Lines that it brings, besides those of the loops around it; and how many lines of each one's set it uses.
    pub(crate) lines: BTreeMap<u64, u64>,
}

impl Inside {
    fn brings(inside: &Option<Rc<Self>>, line: u64) -> bool {
        let mut open = inside;
        while let Some(each) = open {
            if each.lines.contains_key(&line) {
                return true;
            }
            open = &each.outer;
        }
        false
    }
}

/// Loops around a place, the inner ones first.
pub fn around(inside: &Option<Rc<Inside>>) -> Vec<Rc<Inside>> {
    let mut all: Vec<Rc<Inside>> = Vec::new();
    let mut open = inside;
    while let Some(each) = open {
        all.push(each.clone());
        open = &each.outer;
    }
    all
}

/// What an edge executes.
#[derive(Debug, Clone)]
pub struct Executed {
    pub code: Rc<Code>,
    pub function: usize,
    pub block: usize,
    /// How often each instruction repeats itself that does.
    pub repeats: Vec<u64>,
    pub within: Option<Rc<Inside>>,
}

impl Executed {
    pub(crate) fn block(&self) -> &Block {
        &self.code.graph.blocks[self.block]
    }
}

/// An edge, as caches see it.
#[derive(Debug, Clone)]
pub struct Use {
    pub executed: Option<Executed>,
    /// The address that the block goes on at, if it does in the same function.
    pub leads_to: Option<u64>,
    /// Then this call.
    pub step: Option<Step>,
    /// Loops that are entered then.
    pub enters: Vec<Rc<Inside>>,
}

/// Where a block is executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'s> {
    pub node: usize,
    pub model: &'s Model,
    /// Accesses that are paid for where their loops are entered.
    pub streams: &'s Streams,
}

/// Code that a function or a loop may execute.
#[derive(Debug)]
pub struct Footprint {
    pub(crate) lines: BTreeSet<u64>,
    /// How many of these each set has.
    pub(crate) sets: BTreeMap<usize, u64>,
}

impl Analysis<'_> {
    /// A network with what its edges cost.
    ///
    /// # Errors
    /// A call on the way cannot be analysed.
    pub(crate) fn price(&mut self, network: Network, begin: Option<State>) -> Result<Priced> {
        let Some(model) = self.question.model else {
            return Ok(Priced::new(&network, BTreeMap::new(), None));
        };
        // Calls that are found on the way have networks of their own.
        let outer = self.symbols.go_to(Here {
            turning: turning(&network),
            ..Here::default()
        });
        let begin = begin.unwrap_or_else(|| State::unknown(&model));
        let (mut states, streams) = self.states(&network, &model, begin)?;
        let since = self.since(&network, model.code)?;
        let mut prices = BTreeMap::new();
        for (&edge, each) in &network.uses {
            let node = network.edges[edge].from;
            let (Some(state), Some(since)) = (&states[node], &since[node]) else {
                continue;
            };
            let setting = Setting {
                node,
                model: &model,
                streams: &streams,
            };
            let known = (state.clone(), since.clone());
            let to = network.edges[edge].to;
            prices.insert(edge, self.price_of(each, to, setting, known)?);
        }
        self.symbols.go_to(outer);
        Ok(Priced::new(&network, prices, states[SINK].take()))
    }

    /// What an edge to a node costs.
    fn price_of(
        &mut self,
        each: &Use,
        to: usize,
        setting: Setting,
        (mut state, mut since): (State, Since),
    ) -> Result<Price> {
        let model = setting.model;
        let mut price = Price::default();
        if let Some(executed) = &each.executed {
            for instruction in &executed.block().code {
                for line in lines_with(instruction, model.code) {
                    if !state.code.access(line) && !Inside::brings(&executed.within, line) {
                        price.misses(Line::Code(line), since.stays(line));
                    }
                    since.access(line);
                }
            }
            let mut misses = Misses::default();
            self.data_of(executed, setting, &mut state, &mut misses);
            for (line, stays) in misses.lines {
                price.misses(Line::Data(line), stays);
            }
            price.cost += misses.more as i64 * data_miss(model);
        }
        if let Some(step) = each.step {
            let footprint = self.footprint(step.0, model.code)?;
            let call = self.call_of(each, step, setting, (&mut state, &since))?;
            price.call = Some(call);
            since.call(&footprint);
        }
        for inside in &each.enters {
            for (line, used) in entered(inside, model, &state) {
                let stays = since.stays_beside(line, used - 1);
                price.misses(Line::Code(line), stays);
            }
        }
        if !each.enters.is_empty() {
            price.cost += setting.streams.cost_from(to, model);
        }
        Ok(price)
    }

    /// A call that counts as a step.
    fn call_of(
        &mut self,
        each: &Use,
        step: Step,
        setting: Setting,
        (state, since): (&mut State, &Since),
    ) -> Result<Call> {
        let Setting { node, model, .. } = setting;
        let (context, names) = self.context(step, node, state, model)?;
        *state = self.after(&context, &names, node, state.clone(), model)?;
        let called = self.called_in(&context)?;
        let staying = since.staying(&*self.footprint(step.0, model.code)?);
        let around = each.executed.iter().flat_map(|it| around(&it.within));
        let brought: BTreeSet<u64> = around.flat_map(|it| it.lines.clone().into_keys()).collect();
        let mut lines = BTreeMap::new();
        for &inner in called.lines() {
            let passed = match inner {
                Line::Code(line) => Passed {
                    outer: inner,
                    is_brought: brought.contains(&line),
                    stays: staying.contains(&line),
                },
                Line::Data(line) => {
                    let Some(outer) = left(line, &names, node, &mut self.symbols) else {
                        continue;
                    };
                    Passed {
                        outer: Line::Data(outer),
                        is_brought: false,
                        stays: !self.symbols.changes(outer),
                    }
                }
            };
            lines.insert(inner, passed);
        }
        Ok(Call {
            function: step.0,
            called,
            lines,
        })
    }

    /// All code that a function may execute, with what it calls.
    pub(crate) fn footprint(&mut self, function: usize, cache: Geometry) -> Result<Rc<Footprint>> {
        if let Some(known) = self.footprints.get(&function) {
            return Ok(known.clone());
        }
        let code = self.program.code(function)?;
        let lines = self.lines_of(code.graph.blocks.iter(), cache)?;
        let footprint = Rc::new(Footprint::of(lines, cache));
        self.footprints.insert(function, footprint.clone());
        Ok(footprint)
    }

    /// Lines of code of blocks and of what they call.
    fn lines_of<'b>(
        &mut self,
        blocks: impl Iterator<Item = &'b Block>,
        cache: Geometry,
    ) -> Result<BTreeSet<u64>> {
        let mut lines = BTreeSet::new();
        for block in blocks {
            let callees = match &block.end {
                End::Trap => continue,
                End::Call { callee, .. } => std::slice::from_ref(callee),
                End::Go { functions, .. } => functions,
                End::Return | End::Leave | End::Wait(_) => &[],
            };
            lines.extend(block.code.iter().flat_map(|it| lines_with(it, cache)));
            for &callee in callees {
                lines.extend(&self.footprint(callee, cache)?.lines);
            }
        }
        Ok(lines)
    }

    /// Loops of a function in their context, as its code has them: those that bring nothing, too.
    pub(crate) fn insides(
        &mut self,
        function: usize,
        within: &Option<Rc<Inside>>,
    ) -> Result<Vec<Option<Rc<Inside>>>> {
        let code = self.program.code(function)?;
        let mut insides: Vec<Option<Rc<Inside>>> = vec![None; code.loops.len()];
        let Some(model) = self.question.model else {
            return Ok(insides);
        };
        // Inner loops come first.
        for (number, each) in code.loops.iter().enumerate().rev() {
            if each.back_edges.is_empty() {
                continue;
            }
            let around = code.loops.iter().zip(&insides).skip(number + 1);
            let mut around = around.filter(|(other, _)| other.blocks.is_superset(&each.blocks));
            let outer = around.find_map(|(_, inside)| inside.clone());
            let outer = outer.or_else(|| within.clone());
            let footprint = self.loop_footprint(function, number, &code, model.code)?;
            let lines = footprint.persistent(model.code, |line| !Inside::brings(&outer, line));
            let bounds = each.bounds.iter();
            let turns = bounds.map(|bound| self.question.meant(bound.most));
            let most = turns.min().unwrap_or(1).saturating_mul(LINES_PER_TURN);
            let lines = match lines.len() as u64 <= most {
                true => lines,
                false => BTreeMap::new(),
            };
            insides[number] = Some(Rc::new(Inside { outer, lines }));
        }
        Ok(insides)
    }

    fn loop_footprint(
        &mut self,
        function: usize,
        number: usize,
        code: &Code,
        cache: Geometry,
    ) -> Result<Rc<Footprint>> {
        if let Some(known) = self.loop_footprints.get(&(function, number)) {
            return Ok(known.clone());
        }
        let blocks = code.loops[number].blocks.iter();
        let lines = self.lines_of(blocks.map(|&block| &code.graph.blocks[block]), cache)?;
        let footprint = Rc::new(Footprint::of(lines, cache));
        self.loop_footprints
            .insert((function, number), footprint.clone());
        Ok(footprint)
    }
}

impl Footprint {
    fn of(lines: BTreeSet<u64>, cache: Geometry) -> Self {
        let mut sets = BTreeMap::new();
        for &line in &lines {
            *sets.entry(cache.set_of(line)).or_default() += 1;
        }
        Self { lines, sets }
    }

    /// Lines that stay once they are there, of those that are asked for; and how many lines of its set are used.
    fn persistent(&self, cache: Geometry, wanted: impl Fn(u64) -> bool) -> BTreeMap<u64, u64> {
        let lines = self
            .lines
            .iter()
            .map(|&line| (line, self.sets[&cache.set_of(line)]));
        lines
            .filter(|&(line, used)| used <= cache.ways && wanted(line))
            .collect()
    }
}

/// Lines that a loop brings at its entrance, and how many lines of each one's set it uses. A line that is there stays until the loop
/// uses it, if the others of its set that the loop uses cannot drive it out before.
fn entered<'i>(
    inside: &'i Inside,
    model: &'i Model,
    state: &'i State,
) -> impl Iterator<Item = (u64, u64)> + 'i {
    let is_there = |line: u64, used: u64| {
        let age = state.code.age(line);
        age.is_some_and(|age| age + used <= model.code.ways)
    };
    let lines = inside.lines.iter().map(|(&line, &used)| (line, used));
    lines.filter(move |&(line, used)| !is_there(line, used))
}

/// Lines of code that hold an instruction.
pub(crate) fn lines_with(instruction: &Instruction, cache: Geometry) -> impl Iterator<Item = u64> {
    cache.lines(instruction.address, instruction.length.into())
}

impl Analysis<'_> {
    /// A block is executed in a node.
    pub(crate) fn executed_in(
        &mut self,
        executed: &Executed,
        setting: Setting,
        state: &mut State,
        misses: &mut Misses,
    ) {
        for instruction in &executed.block().code {
            for line in lines_with(instruction, setting.model.code) {
                state.code.access(line);
            }
        }
        self.data_of(executed, setting, state, misses);
    }

    /// What a block does to data.
    fn data_of(
        &mut self,
        executed: &Executed,
        setting: Setting,
        state: &mut State,
        misses: &mut Misses,
    ) {
        let Setting {
            node,
            model,
            streams,
        } = setting;
        let (Data::WriteBack { geometry, .. }, Some(data)) = (model.data, &mut state.data) else {
            return;
        };
        let mut repeats = executed.repeats.iter();
        for instruction in &executed.block().code {
            let repeats = match instruction.repeats {
                true => repeats.next().copied(),
                false => None,
            };
            let mut at = At {
                symbols: &mut self.symbols,
                cache: geometry,
                node,
                stack_pointer: self.image.set.stack_pointer(),
                streams,
                misses,
            };
            match repeats {
                Some(times) => data.repeats(instruction, times, &mut at),
                None => {
                    let pointers = self.pointers.get(&instruction.address);
                    let pointers = pointers.map_or(&[][..], Vec::as_slice);
                    data.executes(instruction, pointers, &mut at);
                }
            }
        }
    }

    /// What an edge says of registers whose block ends with a branch.
    pub(crate) fn branches(&mut self, each: &Use, node: usize, model: &Model, state: &mut State) {
        let (Some(executed), Some(to), Some(data), Data::WriteBack { geometry, .. }) =
            (&each.executed, each.leads_to, &mut state.data, model.data)
        else {
            return;
        };
        let code = &executed.block().code;
        let Some(branch) = code.last().filter(|_| code.len() > 1) else {
            return;
        };
        if let (Some(said), Flow::Branch(target)) = (branch.at_most, branch.flow) {
            if target != branch.end() && said.if_taken == (to == target) {
                let mut at = At {
                    symbols: &mut self.symbols,
                    cache: geometry,
                    node,
                    stack_pointer: self.image.set.stack_pointer(),
                    streams: &Streams::default(),
                    misses: &mut Misses::default(),
                };
                data.is_at_most(&said, branch.address, &mut at);
            }
        }
    }
}

/// What registers point to, by the addresses of instructions that are executed then.
pub(crate) fn pointers_of(image: &Image) -> BTreeMap<u64, Vec<Pointer>> {
    let mut pointers: BTreeMap<u64, Vec<Pointer>> = BTreeMap::new();
    for pointer in &image.pointers {
        let Some(function) = image.function_at(pointer.range.start) else {
            continue;
        };
        let code = &image.functions[function].code;
        let first = code.partition_point(|it| it.address < pointer.range.start);
        let within = code[first..].iter();
        for instruction in within.take_while(|it| it.address < pointer.range.end) {
            let known = pointers.entry(instruction.address).or_default();
            known.push(pointer.clone());
        }
    }
    pointers
}
