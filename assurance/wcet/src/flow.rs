//! The most that one unit of flow from the source to the sink can cost.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::{bail, ensure, Result};
use good_lp::{
    constraint, microlp, variable, Expression, ProblemVariables, ResolutionError, Solution,
    SolverModel, Variable,
};

use crate::graph::Graph;
use crate::image::Image;
use crate::prices::Line;
use crate::reduce::{Edge, Network, Way, SINK, SOURCE};

/// The optimum.
#[derive(Debug, Clone)]
pub struct Longest {
    pub cost: i64,
    /// Each block (function, number) on the way.
    pub counts: BTreeMap<(usize, usize), Visits>,
    /// The way itself.
    pub ways: Vec<Rc<Way>>,
    /// How often each edge of the network is gone.
    pub edges: Vec<u64>,
    /// How often each line is brought into its cache, as far as lines have names.
    pub missed: BTreeMap<Line, u64>,
    /// Lines that may not be there when they are used.
    pub used: BTreeSet<Line>,
}

/// How often a block is executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visits {
    pub times: u64,
    /// Instructions, all together.
    pub cost: i64,
}

/// The longest way; `None` if none leads to the sink. What the solver had to be told against loops that turn apart from the way
/// stays in the network: it holds whatever edges cost.
///
/// # Errors
/// There is no longest one; what the solver found is no path; or it gave up. The image is for messages.
pub fn longest(network: &mut Network, image: &Image) -> Result<Option<Longest>> {
    for _ in 0..MOST_CUTS {
        let Some(all) = most_expensive(network)? else {
            return Ok(None);
        };
        let (ways, apart) = ordered(network, all.clone());
        if apart.iter().any(|&times| times > 0) {
            cut(network, &apart, image)?;
            continue;
        }
        let mut longest = Longest {
            cost: 0,
            counts: BTreeMap::new(),
            ways,
            edges: Vec::new(),
            missed: BTreeMap::new(),
            used: BTreeSet::new(),
        };
        for (edge, &times) in network.edges.iter().zip(&all) {
            longest.cost += edge.cost * times as i64;
            count(&edge.way, times, &mut longest.counts);
        }
        longest.edges = all;
        return Ok(Some(longest));
    }
    bail!("the solver finds loops that turn where nothing enters them, after {MOST_CUTS} constraints against that")
}

/// So many loops that turn apart from the way are forbidden, one after the other.
const MOST_CUTS: usize = 64;

/// How often each edge is gone on the longest way, and in loops apart from it; `None` if no way leads to the sink.
fn most_expensive(network: &Network) -> Result<Option<Vec<u64>>> {
    let small = network.reduced();
    let times = match &small.edges[..] {
        [edge] if edge.from == SOURCE && edge.to == SINK && within(&small, &edge.terms) => vec![1],
        _ => match solve(&small)? {
            Some(times) => times,
            None => return Ok(None),
        },
    };
    // Again of the whole network: only there it shows what hangs together.
    let mut all = vec![0; network.edges.len()];
    for (edge, times) in small.edges.iter().zip(times) {
        add_edges(&edge.way, times, &mut all);
    }
    check(network, &all)?;
    Ok(Some(all))
}

/// Forbids a loop that turns `apart` from the way, in the solver's result: nothing bounds it but what is counted across loops,
/// and that is left over. An edge of it is gone as often as there may be steps, at most, for each time that
/// the loop is entered.
///
/// # Errors
/// It has no steps.
fn cut(network: &mut Network, apart: &[u64], image: &Image) -> Result<()> {
    let turning: Vec<usize> = (0..apart.len()).filter(|&edge| apart[edge] > 0).collect();
    let mut nodes = BTreeSet::from([network.edges[turning[0]].from]);
    // As often as there are edges would do: each turn finds one more, or all are found.
    for _ in &turning {
        for &edge in &turning {
            let Edge { from, to, .. } = network.edges[edge];
            if nodes.contains(&from) || nodes.contains(&to) {
                nodes.extend([from, to]);
            }
        }
    }
    // At most so often in all; or after each time that what provides for it is gone, as the entrance of a function is, outside
    // of the loop: which is entered behind that, then.
    let most_of = |limit: usize| {
        let edges = network.edges.iter();
        let mut provided = edges.flat_map(|edge| {
            let terms = edge.terms.iter();
            let terms = terms.filter(|term| term.0 == limit && term.1 < 0);
            let inside = nodes.contains(&edge.from) || nodes.contains(&edge.to);
            terms.map(move |term| (!inside).then_some(-term.1))
        });
        let most = provided.try_fold(0, |most: i64, provided| Some(most.max(provided?)))?;
        Some(network.limits[limit] + most)
    };
    let step = turning.iter().find_map(|&edge| {
        let here = &network.edges[edge];
        let terms = here.terms.iter().filter(|term| term.1 > 0);
        let mut terms = terms.filter(|_| nodes.contains(&here.from));
        terms.find_map(|term| Some((edge, most_of(term.0)? / term.1)))
    });
    let Some((step, most)) = step else {
        bail!(
            "{}: this loop turns where nothing enters it. Write a bound of its own in its source, with `Turns`",
            place(image, &network.edges[turning[0]].way)
        );
    };
    let limit = network.limit(0);
    for (number, edge) in network.edges.iter_mut().enumerate() {
        if number == step {
            edge.terms.push((limit, 1));
        } else if nodes.contains(&edge.to) && !nodes.contains(&edge.from) {
            edge.terms.push((limit, -most));
        }
    }
    Ok(())
}

/// Adds how often the edges are gone of which a way consists that is gone `times` times.
fn add_edges(way: &Way, times: u64, all: &mut [u64]) {
    let mut open = vec![way];
    while let Some(way) = open.pop() {
        match way {
            Way::Edge(number) => all[*number] += times,
            Way::Both(first, second) => open.extend([&**first, &**second]),
            Way::Nothing | Way::Block { .. } | Way::Step(..) => {}
        }
    }
}

/// What the longest way costs, by the solver, of the network as it is; cycles apart from the way count, too.
///
/// # Errors
/// As with [`longest`].
pub fn optimum(network: &Network) -> Result<Option<i64>> {
    let Some(times) = solve(network)? else {
        return Ok(None);
    };
    check(network, &times)?;
    let costs = network.edges.iter().zip(times);
    Ok(Some(
        costs.map(|(edge, times)| edge.cost * times as i64).sum(),
    ))
}

/// Where a way begins, for messages.
fn place(image: &Image, way: &Way) -> String {
    match way {
        Way::Nothing | Way::Edge(_) => String::new(),
        Way::Step(function, _) => image.place(image.functions[*function].start),
        Way::Block {
            function, block, ..
        } => match Graph::of(image, *function) {
            Ok(graph) => image.place(graph.blocks[*block].start()),
            Err(_) => image.functions[*function].name.clone(),
        },
        Way::Both(first, second) => match place(image, first) {
            nothing if nothing.is_empty() => place(image, second),
            found => found,
        },
    }
}

/// Whether one way with these terms keeps all limits.
fn within(network: &Network, terms: &[(usize, i64)]) -> bool {
    let used = |limit: usize| {
        let own = terms.iter().find(|term| term.0 == limit);
        own.map_or(0, |term| term.1)
    };
    let mut limits = network.limits.iter().enumerate();
    limits.all(|(limit, &most)| used(limit) <= most)
}

/// How often each edge is gone on the longest way, by the solver; `None` if no way leads to the sink. First without the
/// demand for whole numbers: most networks have an optimum in these anyway, and what has none at all is noticed.
fn solve(network: &Network) -> Result<Option<Vec<u64>>> {
    let leads = |node: usize, edge: &Edge| edge.from == node || edge.to == node;
    let is_open = |node: usize| network.edges.iter().any(|edge| leads(node, edge));
    let limited = limited(network);
    let mut limits = network.limits.iter().zip(limited);
    let missed = limits.any(|(&most, limited)| most < 0 && !limited);
    if !is_open(SOURCE) || !is_open(SINK) || missed {
        return Ok(None);
    }
    let Some(flows) = solution(network, false)? else {
        return Ok(None);
    };
    let are_whole = flows.iter().all(|flow| (flow - flow.round()).abs() < WHOLE);
    let flows = match are_whole {
        true => Some(flows),
        false => solution(network, true)?,
    };
    Ok(flows.map(|flows| flows.iter().map(|flow| flow.round() as u64).collect()))
}

/// Limits that an edge uses.
fn limited(network: &Network) -> Vec<bool> {
    let mut limited = vec![false; network.limits.len()];
    for (limit, _) in network.edges.iter().flat_map(|edge| &edge.terms) {
        limited[*limit] = true;
    }
    limited
}

/// How far from a whole number one may be that stands for it.
const WHOLE: f64 = 1e-6;

/// The solver's optimum, in whole numbers or not; `None` if there is no way.
fn solution(network: &Network, whole: bool) -> Result<Option<Vec<f64>>> {
    let mut problem = ProblemVariables::new();
    let flow = || match whole {
        true => variable().integer().min(0),
        false => variable().min(0),
    };
    let flows: Vec<Variable> = network.edges.iter().map(|_| problem.add(flow())).collect();
    let mut balance = vec![Expression::default(); network.nodes];
    let mut used = vec![Expression::default(); network.limits.len()];
    let mut cost = Expression::default();
    for (edge, &flow) in network.edges.iter().zip(&flows) {
        balance[edge.from] += flow;
        balance[edge.to] -= flow;
        cost += edge.cost as f64 * flow;
        for &(limit, amount) in &edge.terms {
            used[limit] += amount as f64 * flow;
        }
    }
    let mut model = problem.maximise(&cost).using(microlp);
    for (node, balance) in balance.into_iter().enumerate() {
        model = model.with(constraint!(balance == supply(node) as f64));
    }
    let limits = used.into_iter().zip(&network.limits);
    for ((used, &amount), is_limited) in limits.zip(limited(network)) {
        if is_limited {
            model = model.with(constraint!(used <= amount as f64));
        }
    }
    match model.solve() {
        Ok(solution) => Ok(Some(
            flows.iter().map(|&flow| solution.value(flow)).collect(),
        )),
        Err(ResolutionError::Infeasible) => Ok(None),
        Err(ResolutionError::Unbounded) => bail!("there is no longest path: a loop has no bound"),
        Err(error) => bail!("the solver found no optimum: {error}"),
    }
}

/// What leaves a node more than comes to it.
fn supply(node: usize) -> i64 {
    match node {
        SOURCE => 1,
        SINK => -1,
        _ => 0,
    }
}

/// Whether what the solver found, which counts in floating point, is a solution in whole numbers.
fn check(network: &Network, times: &[u64]) -> Result<()> {
    let mut balance = vec![0; network.nodes];
    let mut used = vec![0; network.limits.len()];
    for (edge, &times) in network.edges.iter().zip(times) {
        balance[edge.from] += times as i64;
        balance[edge.to] -= times as i64;
        for &(limit, amount) in &edge.terms {
            used[limit] += amount * times as i64;
        }
    }
    let mut balances = balance.iter().enumerate();
    let flows = balances.all(|(node, &balance)| balance == supply(node));
    let within = used
        .iter()
        .zip(&network.limits)
        .all(|(used, most)| used <= most);
    ensure!(
        flows && within,
        "the solver's result is none in whole numbers: numbers of bounds are too large for it"
    );
    Ok(())
}

/// The edges in an order in which they can be gone, each so many times (Hierholzer's algorithm); and how often those are left
/// over that hang together with none of these.
fn ordered(network: &Network, mut times: Vec<u64>) -> (Vec<Rc<Way>>, Vec<u64>) {
    let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, edge) in network.edges.iter().enumerate().rev() {
        if times[number] > 0 {
            out.entry(edge.from).or_default().push(number);
        }
    }
    let mut path = Vec::new();
    let mut stack: Vec<(usize, Option<usize>)> = vec![(SOURCE, None)];
    while let Some(&(node, by)) = stack.last() {
        let edges = out.get_mut(&node);
        let next = edges.and_then(|edges| {
            let edge = *edges.last()?;
            times[edge] -= 1;
            if times[edge] == 0 {
                edges.pop();
            }
            Some(edge)
        });
        match next {
            Some(edge) => stack.push((network.edges[edge].to, Some(edge))),
            None => {
                stack.pop();
                path.extend(by.map(|edge| network.edges[edge].way.clone()));
            }
        }
    }
    path.reverse();
    (path, times)
}

/// Adds the blocks of a way that is gone `times` times.
fn count(way: &Way, times: u64, counts: &mut BTreeMap<(usize, usize), Visits>) {
    if times == 0 {
        return;
    }
    let mut add = |place: (usize, usize), visits: u64, cost: i64| {
        let all = counts.entry(place).or_default();
        all.times += visits * times;
        all.cost += cost * times as i64;
    };
    let mut open = vec![way];
    while let Some(way) = open.pop() {
        match way {
            Way::Nothing | Way::Edge(_) => {}
            Way::Block {
                function,
                block,
                cost,
            } => add((*function, *block), 1, *cost),
            Way::Step(_, step) => {
                for (&place, visits) in &step.counts {
                    add(place, visits.times, visits.cost);
                }
            }
            Way::Both(first, second) => open.extend([&**first, &**second]),
        }
    }
}
