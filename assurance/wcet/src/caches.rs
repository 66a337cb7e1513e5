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
use crate::code::Instruction;
use crate::data::DataState;
use crate::graph::{Block, End};
use crate::must::Must;
use crate::program::Code;
use crate::reduce::{Network, Way, SINK, SOURCE};

/// Lines that a loop may bring at its entrance for each turn that it may take.
const LINES_PER_TURN: u64 = 4;

/// A loop in its context, for what it brings at its entrance.
#[derive(Debug)]
pub struct Inside {
    /// The loop around it, of whichever function.
    pub outer: Option<Rc<Inside>>,
    /// Lines that it brings, besides those of the loops around it; and how many lines of each one's set it uses.
    lines: BTreeMap<u64, u64>,
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
    fn block(&self) -> &Block {
        &self.code.graph.blocks[self.block]
    }
}

/// An edge, as caches see it.
#[derive(Debug, Clone)]
pub struct Use {
    pub executed: Option<Executed>,
    /// Then this call.
    pub step: Option<Step>,
    /// Loops that are entered then.
    pub enters: Vec<Rc<Inside>>,
}

/// Code that a function or a loop may execute.
#[derive(Debug)]
pub struct Footprint {
    lines: BTreeSet<u64>,
    /// How many of these each set has.
    sets: BTreeMap<usize, u64>,
}

/// What is known at a place of the network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    code: Must,
    data: Option<DataState>,
}

impl State {
    fn unknown(model: &Model, stack: Option<u64>) -> Self {
        Self {
            code: Must::new(model.code),
            data: match model.data {
                Data::Uncached { .. } => None,
                Data::WriteBack { geometry, .. } => Some(DataState {
                    cache: Must::new(geometry),
                    stack,
                }),
            },
        }
    }

    /// What is known if either holds. Whether that is less than before.
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = self.code.join(&other.code);
        if let (Some(own), Some(others)) = (&mut self.data, &other.data) {
            changed |= own.join(others);
        }
        changed
    }
}

/// A call that counts as one step, and what matters to it of what was before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Context {
    pub step: Step,
    /// What is sure of the code that it may execute, and where the stack is.
    state: Option<State>,
    /// Lines of its code that a loop around it brings.
    brought: Vec<u64>,
}

impl Context {
    /// Where nothing matters.
    pub const fn alone(step: Step) -> Self {
        Self {
            step,
            state: None,
            brought: Vec::new(),
        }
    }

    /// What is brought by loops around it.
    pub fn within(&self) -> Option<Rc<Inside>> {
        let lines: BTreeMap<u64, u64> = self.brought.iter().map(|&line| (line, 1)).collect();
        (!lines.is_empty()).then(|| Rc::new(Inside { outer: None, lines }))
    }
}

impl Analysis<'_> {
    /// Gives the edges of a network their costs. What is known at its end; `None` without caches.
    ///
    /// # Errors
    /// A call on the way cannot be analysed.
    pub(crate) fn price(
        &mut self,
        network: &mut Network,
        context: Option<&Context>,
    ) -> Result<Option<State>> {
        let Some(model) = self.question.model else {
            return Ok(None);
        };
        let begin = context.and_then(|context| context.state.clone());
        let begin = begin.unwrap_or_else(|| State::unknown(&model, None));
        let states = self.states(network, &model, begin)?;
        for (edge, each) in std::mem::take(&mut network.uses) {
            let Some(mut state) = states[network.edges[edge].from].clone() else {
                continue;
            };
            let mut more = 0;
            if let Some(executed) = &each.executed {
                more = executed_in(executed, &model, &mut state);
                let cost = network.edges[edge].cost + more;
                network.edges[edge].way = Rc::new(Way::Block {
                    function: executed.function,
                    block: executed.block,
                    cost,
                });
            }
            if let Some(step) = each.step {
                let within = each.executed.as_ref().and_then(|it| it.within.clone());
                let context = self.context(step, &state, &within, &model)?;
                state = self.after(&context, state, &model)?;
                if let Some(step) = self.step(&context)? {
                    more += step.cost;
                    let way = network.edges[edge].way.clone();
                    let call = Rc::new(Way::Step(context.step.0, step));
                    network.edges[edge].way = Rc::new(Way::Both(way, call));
                }
            }
            more += each
                .enters
                .iter()
                .map(|it| entered(it, &model, &state))
                .sum::<i64>();
            network.edges[edge].cost += more;
        }
        Ok(states.into_iter().nth(SINK).flatten())
    }

    /// What is known at each node.
    fn states(
        &mut self,
        network: &Network,
        model: &Model,
        begin: State,
    ) -> Result<Vec<Option<State>>> {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); network.nodes];
        for (number, edge) in network.edges.iter().enumerate() {
            out[edge.from].push(number);
        }
        let (order, nodes) = order(network, &out);
        let mut states: Vec<Option<State>> = vec![None; network.nodes];
        states[SOURCE] = Some(begin);
        let mut open = BTreeSet::from([order[SOURCE]]);
        while let Some(next) = open.pop_first() {
            let node = nodes[next];
            let Some(before) = states[node].clone() else {
                continue;
            };
            let mut executed: Option<State> = None;
            for &number in &out[node] {
                let each = network.uses.get(&number);
                let block = each.and_then(|each| each.executed.as_ref());
                // All edges out of a node execute the same block.
                let known = executed.get_or_insert_with(|| {
                    let mut state = before.clone();
                    if let Some(block) = block {
                        executed_in(block, model, &mut state);
                    }
                    state
                });
                let mut state = known.clone();
                if let (Some(block), Some(step)) = (block, each.and_then(|each| each.step)) {
                    let context = self.context(step, &state, &block.within, model)?;
                    state = self.after(&context, state, model)?;
                }
                let to = network.edges[number].to;
                let changed = match &mut states[to] {
                    Some(known) => known.join(&state),
                    none => {
                        *none = Some(state);
                        true
                    }
                };
                if changed {
                    open.insert(order[to]);
                }
            }
        }
        Ok(states)
    }

    /// What matters to a call.
    fn context(
        &mut self,
        step: Step,
        state: &State,
        within: &Option<Rc<Inside>>,
        model: &Model,
    ) -> Result<Context> {
        let footprint = self.footprint(step.0, model.code)?;
        let is_own = |line: u64| footprint.lines.contains(&line);
        let mut entry = State::unknown(model, None);
        entry.code = state.code.only(is_own);
        if let (Some(entry), Some(data)) = (&mut entry.data, &state.data) {
            entry.stack = data.stack;
        }
        let mut brought: Vec<u64> = Vec::new();
        for each in around(within) {
            brought.extend(each.lines.keys().filter(|&&line| is_own(line)));
        }
        brought.sort_unstable();
        Ok(Context {
            step,
            state: Some(entry),
            brought,
        })
    }

    /// What is known behind a call: in the sets that its code uses, what it leaves there, and other lines older by as many
    /// as it may have brought. Its data may be anywhere, so that only what it leaves itself is sure.
    fn after(&mut self, context: &Context, mut state: State, model: &Model) -> Result<State> {
        let footprint = self.footprint(context.step.0, model.code)?;
        let left = self.left(context)?;
        for (&set, &lines) in &footprint.sets {
            state.code.age_set(set, lines);
        }
        let is_own = |line: u64| footprint.lines.contains(&line);
        let nothing = State::unknown(model, None);
        let left = left.as_deref().unwrap_or(&nothing);
        state.code.replace(&left.code, is_own);
        if let (Some(data), Some(left)) = (&mut state.data, &left.data) {
            data.cache.clone_from(&left.cache);
            data.stack = data.stack.map(|stack| stack.wrapping_add(RETURN_ADDRESS));
        }
        Ok(state)
    }

    /// What a call leaves; `None` if it never comes back.
    fn left(&mut self, context: &Context) -> Result<Option<Rc<State>>> {
        if let Some(known) = self.left.get(context) {
            return Ok(known.clone());
        }
        let mut network = self.network_of(context)?;
        let left = self.price_nothing(&mut network, context)?.map(Rc::new);
        self.left.insert(context.clone(), left.clone());
        Ok(left)
    }

    /// What is known at a network's end.
    fn price_nothing(&mut self, network: &mut Network, context: &Context) -> Result<Option<State>> {
        let (Some(model), Some(begin)) = (self.question.model, context.state.clone()) else {
            return Ok(None);
        };
        let states = self.states(network, &model, begin)?;
        Ok(states.into_iter().nth(SINK).flatten())
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

/// Bytes that a return takes off the stack.
const RETURN_ADDRESS: u64 = 8;

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

/// What it costs to bring the lines of a loop at its entrance. A line that is there stays until the loop uses it, if the
/// others of its set that the loop uses cannot drive it out before.
fn entered(inside: &Inside, model: &Model, state: &State) -> i64 {
    let is_there = |line: u64, used: u64| {
        let age = state.code.age(line);
        age.is_some_and(|age| age + used <= model.code.ways)
    };
    let lines = inside.lines.iter();
    let missed = lines
        .filter(|&(&line, &used)| !is_there(line, used))
        .count();
    missed as i64 * model.code_miss as i64
}

/// Lines of code that hold an instruction.
fn lines_with(instruction: &Instruction, cache: Geometry) -> impl Iterator<Item = u64> {
    cache.lines(instruction.address, instruction.length.into())
}

/// A block is executed. Cycles for what is not in the caches.
fn executed_in(executed: &Executed, model: &Model, state: &mut State) -> i64 {
    let mut cycles = 0;
    let mut repeats = executed.repeats.iter();
    for instruction in &executed.block().code {
        for line in lines_with(instruction, model.code) {
            let is_hit = state.code.access(line) || Inside::brings(&executed.within, line);
            cycles += u64::from(!is_hit) * model.code_miss;
        }
        let repeats = match instruction.repeats {
            true => repeats.next().copied(),
            false => None,
        };
        if let (
            Data::WriteBack {
                geometry,
                miss,
                write_back,
            },
            Some(data),
        ) = (model.data, &mut state.data)
        {
            let misses = match repeats {
                Some(times) => data.repeats(instruction, times, geometry),
                None => data.executes(instruction, geometry),
            };
            cycles += misses * (miss + write_back);
        }
    }
    cycles as i64
}

/// The nodes in an order in which few are looked at again: each with its place, and the nodes in their places.
fn order(network: &Network, out: &[Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let mut seen = vec![false; network.nodes];
    let mut nodes = Vec::new();
    let mut stack = vec![(SOURCE, 0)];
    seen[SOURCE] = true;
    while let Some((node, at)) = stack.pop() {
        let Some(&edge) = out[node].get(at) else {
            nodes.push(node);
            continue;
        };
        stack.push((node, at + 1));
        let to = network.edges[edge].to;
        if !std::mem::replace(&mut seen[to], true) {
            stack.push((to, 0));
        }
    }
    nodes.reverse();
    let mut order = vec![0; network.nodes];
    for (place, &node) in nodes.iter().enumerate() {
        order[node] = place;
    }
    (order, nodes)
}
