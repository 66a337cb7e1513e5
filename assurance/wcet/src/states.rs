//! What is known at each node of a network of caches, registers and memory: a fixed point.

use std::collections::BTreeSet;
use std::rc::Rc;

use anyhow::Result;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use sandglass_cache::{Data, Model};

use crate::analysis::{Analysis, Step};
use crate::caches::Setting;
use crate::data::{DataState, Misses};
use crate::meeting::Meets;
use crate::must::Must;
use crate::reduce::{Network, SOURCE};
use crate::streams::Streams;
use crate::values::{Origin, Symbol, Symbols, Term};

/// What is known at a place of the network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    pub(crate) code: Must,
    pub(crate) data: Option<DataState>,
}

impl State {
    pub(crate) fn unknown(model: &Model) -> Self {
        Self {
            code: Must::new(model.code),
            data: match model.data {
                Data::Uncached { .. } => None,
                Data::WriteBack { .. } => Some(DataState::new()),
            },
        }
    }

    /// Anything may be in the caches.
    fn caches_are_unknown(&mut self, model: &Model) {
        self.code = Must::new(model.code);
        if let Some(data) = &mut self.data {
            data.cache_is_unknown();
        }
    }

    /// What is known if either holds, in a node. Whether that is less than before.
    fn join(&mut self, other: &Self, meets: Meets, model: &Model, symbols: &mut Symbols) -> bool {
        let mut changed = self.code.join(&other.code);
        if let (Some(own), Some(others), Data::WriteBack { geometry, .. }) =
            (&mut self.data, &other.data, model.data)
        {
            changed |= own.join(others, meets, geometry, symbols);
        }
        changed
    }
}

/// A call that counts as one step, and what matters to it of what was before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Context {
    pub step: Step,
    /// What is sure of the code that it may execute, and of registers and memory.
    pub(crate) state: Option<State>,
}

impl Context {
    /// Where nothing matters.
    pub const fn alone(step: Step) -> Self {
        Self { step, state: None }
    }
}

impl Analysis<'_> {
    /// What is known at each node, and which accesses go through memory step by step.
    pub(crate) fn states(
        &mut self,
        network: &Network,
        model: &Model,
        begin: State,
    ) -> Result<(Vec<Option<State>>, Streams)> {
        // Calls that are found on the way have networks of their own, in which places change by something else.
        let others = self.symbols.take_steps();
        let found = self.states_of(network, model, begin);
        self.symbols.put_steps(others);
        found
    }

    fn states_of(
        &mut self,
        network: &Network,
        model: &Model,
        begin: State,
    ) -> Result<(Vec<Option<State>>, Streams)> {
        let mut streams = Streams::default();
        let mut states = self.fixed_point(network, model, begin.clone(), &streams)?;
        let Data::WriteBack { geometry, .. } = model.data else {
            return Ok((states, streams));
        };
        let missed = self.missed(network, model, &states, &streams);
        streams = Streams::of(missed, network, geometry, &mut self.symbols);
        self.symbols.step_by(streams.symbols());
        // Those that miss all the same are not worth their price; without them, others may miss.
        let mut has_changed = !streams.is_empty();
        while has_changed {
            states = self.fixed_point(network, model, begin.clone(), &streams)?;
            let missed = self.missed(network, model, &states, &streams);
            has_changed = streams.leave_out(&missed);
            self.symbols.step_by(streams.symbols());
        }
        Ok((states, streams))
    }

    /// Addresses whose lines may be missing.
    fn missed(
        &mut self,
        network: &Network,
        model: &Model,
        states: &[Option<State>],
        streams: &Streams,
    ) -> Vec<Term> {
        let mut missed = Misses::default();
        for (&edge, each) in &network.uses {
            let node = network.edges[edge].from;
            if let (Some(executed), Some(state)) = (&each.executed, &states[node]) {
                let mut state = state.clone();
                let setting = Setting {
                    node,
                    model,
                    streams,
                };
                self.executed_in(executed, setting, &mut state, &mut missed);
            }
        }
        missed.at
    }

    /// What is known at each node, if these accesses are paid for ahead.
    fn fixed_point(
        &mut self,
        network: &Network,
        model: &Model,
        begin: State,
        streams: &Streams,
    ) -> Result<Vec<Option<State>>> {
        let mut search = Search::new(network, begin.clone());
        loop {
            while let Some((node, state)) = search.next() {
                self.go_on(&mut search, node, state, model, streams)?;
            }
            // Behind a check to which nothing leads, if those that do are left out, nothing is known.
            if !search.resume(&begin) {
                return Ok(search.states);
            }
        }
    }

    /// What is known at a node comes to the next.
    fn go_on(
        &mut self,
        search: &mut Search,
        node: usize,
        mut state: State,
        model: &Model,
        streams: &Streams,
    ) -> Result<()> {
        // All edges out of a node execute the same block.
        let uses = search.out[node]
            .iter()
            .find_map(|edge| search.network.uses.get(edge));
        if let Some(executed) = uses.and_then(|uses| uses.executed.as_ref()) {
            let setting = Setting {
                node,
                model,
                streams,
            };
            self.executed_in(executed, setting, &mut state, &mut Misses::default());
        }
        for number in search.out[node].clone() {
            let edge = &search.network.edges[number];
            let each = search.network.uses.get(&number);
            let mut state = state.clone();
            if edge.from != node {
                state.caches_are_unknown(model);
            }
            if let Some(each) = each {
                self.branches(each, node, model, &mut state);
                if let Some(step) = each.step {
                    let (context, names) = self.context(step, node, &state, model)?;
                    state = self.after(&context, &names, node, state, model)?;
                }
            }
            let is_entry = each.is_some_and(|each| !each.enters.is_empty());
            if let (true, Some(data), Data::WriteBack { geometry, .. }) =
                (is_entry, &mut state.data, model.data)
            {
                data.begins(streams.from(edge.to), geometry, &mut self.symbols);
            }
            search.arrive(edge.to, state, is_entry, |known, state, meets| {
                let streams = streams.from(edge.to);
                known.join(state, Meets { streams, ..meets }, model, &mut self.symbols)
            });
        }
        Ok(())
    }

    /// What matters to a call.
    pub(crate) fn context(
        &mut self,
        step: Step,
        node: usize,
        state: &State,
        model: &Model,
    ) -> Result<(Context, Rc<[Symbol]>)> {
        let footprint = self.footprint(step.0, model.code)?;
        let is_own = |line: u64| footprint.lines.contains(&line);
        let mut entry = State::unknown(model);
        entry.code = state.code.only(is_own);
        let mut names: Rc<[Symbol]> = Rc::new([]);
        if let Some(data) = &state.data {
            // What the same call left before is forgotten: it will be called by the same names.
            let mut data = data.clone();
            data.forget(
                &self.symbols,
                &|origin| matches!(*origin, Origin::Left { node: by, .. } if by == node),
            );
            data.forget_lost(&self.symbols);
            let given = data.given(&mut self.symbols);
            (entry.data, names) = (Some(given.state), given.names);
        }
        let context = Context {
            step,
            state: Some(entry),
        };
        Ok((context, names))
    }

    /// What is known behind a call out of a node: in the sets that its code uses, what it leaves there, and other lines older by
    /// as many as it may have brought. Of data, what it leaves, which it has as its caller had it.
    pub(crate) fn after(
        &mut self,
        context: &Context,
        names: &[Symbol],
        node: usize,
        mut state: State,
        model: &Model,
    ) -> Result<State> {
        let footprint = self.footprint(context.step.0, model.code)?;
        let called = self.called_in(context)?;
        for (&set, &lines) in &footprint.sets {
            state.code.age_set(set, lines);
        }
        let is_own = |line: u64| footprint.lines.contains(&line);
        let nothing = State::unknown(model);
        let left = called.left.as_ref().unwrap_or(&nothing);
        state.code.replace(&left.code, is_own);
        if let Some(left) = &left.data {
            state.data = Some(left.left(names, node, &mut self.symbols));
        }
        Ok(state)
    }
}

/// So often less is known at a node than before, until nothing more is expected of it.
const MOST_CHANGES: u32 = 100;
/// After so many, what changes is expected to go on.
const FEW_CHANGES: u32 = 16;

/// A search for what is known at each node of a network: until nothing changes.
struct Search<'n> {
    network: &'n Network,
    /// Edges out of each node. What goes on behind a check for interrupts finds registers and memory as they were before it.
    out: Vec<Vec<usize>>,
    /// How many edges lead to each node.
    into: Vec<usize>,
    /// Of each node its place in an order in which few are looked at again, and the nodes in their places.
    order: Vec<usize>,
    nodes: Vec<usize>,
    states: Vec<Option<State>>,
    /// How often less was known at a node than before.
    changes: Vec<u32>,
    /// Places of nodes that have to be looked at.
    open: BTreeSet<usize>,
}

impl<'n> Search<'n> {
    fn new(network: &'n Network, begin: State) -> Self {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); network.nodes];
        for (number, edge) in network.edges.iter().enumerate() {
            out[edge.from].push(number);
        }
        let (order, nodes) = order(network, &out);
        for &(check, edge) in &network.resumed {
            out[SOURCE].retain(|&other| other != edge);
            out[check].push(edge);
        }
        let mut states: Vec<Option<State>> = vec![None; network.nodes];
        states[SOURCE] = Some(begin);
        let mut into = vec![0; network.nodes];
        for &edge in out.iter().flatten() {
            into[network.edges[edge].to] += 1;
        }
        Self {
            network,
            into,
            out,
            open: BTreeSet::from([order[SOURCE]]),
            order,
            nodes,
            states,
            changes: vec![0; network.nodes],
        }
    }

    /// A node that has to be looked at, and what is known there.
    fn next(&mut self) -> Option<(usize, State)> {
        let node = self.nodes[self.open.pop_first()?];
        Some((node, self.states[node].clone()?))
    }

    /// Something comes to a node: what is known there if that holds, too, says the last.
    fn arrive(
        &mut self,
        to: usize,
        mut state: State,
        is_entry: bool,
        join: impl FnOnce(&mut State, &State, Meets) -> bool,
    ) {
        let changes = &mut self.changes[to];
        let changed = match &mut self.states[to] {
            Some(known) => {
                if let (Some(data), true) = (&mut state.data, *changes > MOST_CHANGES) {
                    data.give_up();
                }
                let meets = Meets {
                    node: to,
                    widen: *changes > FEW_CHANGES,
                    is_turn: !is_entry && self.network.turns.contains_key(&to),
                    streams: &[],
                };
                // Where only one way leads, what comes is what is known: it was more before.
                let changed = match self.into[to] {
                    1 => std::mem::replace(known, state.clone()) != state,
                    _ => join(known, &state, meets),
                };
                *changes += u32::from(changed);
                changed
            }
            none => {
                *none = Some(state);
                true
            }
        };
        if changed {
            self.open.insert(self.order[to]);
        }
    }

    /// Begins behind checks to which nothing led. Whether there are any.
    fn resume(&mut self, begin: &State) -> bool {
        for &(_, edge) in &self.network.resumed {
            let to = self.network.edges[edge].to;
            if self.states[to].is_none() {
                self.states[to] = Some(begin.clone());
                self.open.insert(self.order[to]);
            }
        }
        !self.open.is_empty()
    }
}

/// Nodes to which a path may come again, or what goes on behind a check for interrupts.
pub(crate) fn turning(network: &Network) -> BTreeSet<usize> {
    circles(network).flatten().collect()
}

/// Nodes that lead to each other, of a path and what goes on behind a check for interrupts.
pub(crate) fn circles(network: &Network) -> impl Iterator<Item = Vec<usize>> {
    let mut graph = DiGraph::<(), ()>::new();
    let nodes: Vec<_> = (0..network.nodes).map(|_| graph.add_node(())).collect();
    for edge in network.edges.iter().filter(|edge| edge.from != SOURCE) {
        graph.add_edge(nodes[edge.from], nodes[edge.to], ());
    }
    for &(check, edge) in &network.resumed {
        graph.add_edge(nodes[check], nodes[network.edges[edge].to], ());
    }
    let parts = tarjan_scc(&graph).into_iter();
    let circles = parts.filter(move |part| part.len() > 1 || graph.contains_edge(part[0], part[0]));
    circles.map(|part| part.into_iter().map(|node| node.index()).collect())
}

/// The nodes in an order in which few are looked at again: each with its place, and the nodes in their places.
pub(crate) fn order(network: &Network, out: &[Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
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
