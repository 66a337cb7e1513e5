//! The most that one unit of flow from the source to the sink can cost.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{bail, Result};
use good_lp::{
    constraint, microlp, variable, Expression, ProblemVariables, ResolutionError, Solution,
    SolverModel, Variable,
};

use crate::reduce::{Network, Way, SINK, SOURCE};

/// The optimum.
#[derive(Debug, Clone)]
pub struct Longest {
    pub cost: i64,
    /// How often each block (function, number) is executed on the way.
    pub counts: BTreeMap<(usize, usize), u64>,
    /// The way itself.
    pub ways: Vec<Rc<Way>>,
}

/// The longest way; `None` if none leads to the sink.
///
/// # Errors
/// There is no longest one, or the solver gave up.
pub fn longest(network: Network) -> Result<Option<Longest>> {
    let network = network.reduced();
    if network.edges.is_empty() {
        return Ok(None);
    }
    if let [edge] = &network.edges[..] {
        if edge.from == SOURCE && edge.to == SINK && within(&network, &edge.terms) {
            let mut counts = BTreeMap::new();
            count(&edge.way, 1, &mut counts);
            return Ok(Some(Longest {
                cost: edge.cost,
                counts,
                ways: vec![edge.way.clone()],
            }));
        }
    }
    solve(&network)
}

fn within(network: &Network, terms: &[(usize, i64)]) -> bool {
    terms
        .iter()
        .all(|&(limit, amount)| amount <= network.limits[limit])
}

fn solve(network: &Network) -> Result<Option<Longest>> {
    let mut problem = ProblemVariables::new();
    let flows: Vec<Variable> = network
        .edges
        .iter()
        .map(|_| problem.add(variable().integer().min(0)))
        .collect();
    let mut balance = vec![Expression::default(); network.nodes];
    let mut used = vec![Expression::default(); network.limits.len()];
    let mut cost = Expression::default();
    let mut limited = vec![false; network.limits.len()];
    for (edge, &flow) in network.edges.iter().zip(&flows) {
        balance[edge.from] += flow;
        balance[edge.to] -= flow;
        cost += edge.cost as f64 * flow;
        for &(limit, amount) in &edge.terms {
            used[limit] += amount as f64 * flow;
            limited[limit] = true;
        }
    }
    let mut model = problem.maximise(&cost).using(microlp);
    for (node, balance) in balance.into_iter().enumerate() {
        let supply = match node {
            SOURCE => 1,
            SINK => -1,
            _ => 0,
        };
        model = model.with(constraint!(balance == supply));
    }
    for ((used, &amount), is_limited) in used.into_iter().zip(&network.limits).zip(limited) {
        if is_limited {
            model = model.with(constraint!(used <= amount as f64));
        }
    }
    let solution = match model.solve() {
        Ok(solution) => solution,
        Err(ResolutionError::Infeasible) => return Ok(None),
        Err(ResolutionError::Unbounded) => bail!("there is no longest path: a loop has no bound"),
        Err(error) => bail!("the solver found no optimum: {error}"),
    };
    let mut longest = Longest {
        cost: 0,
        counts: BTreeMap::new(),
        ways: Vec::new(),
    };
    let mut times_of = vec![0; network.edges.len()];
    for (i, (edge, &flow)) in network.edges.iter().zip(&flows).enumerate() {
        let times = solution.value(flow).round() as u64;
        if times > 0 {
            longest.cost += edge.cost * times as i64;
            count(&edge.way, times, &mut longest.counts);
            times_of[i] = times;
        }
    }
    longest.ways = ordered(network, times_of);
    Ok(Some(longest))
}

/// The edges in an order in which they can be gone, each so many times (Hierholzer's algorithm).
fn ordered(network: &Network, mut times: Vec<u64>) -> Vec<Rc<Way>> {
    let mut path = Vec::new();
    let mut stack: Vec<(usize, Option<usize>)> = vec![(SOURCE, None)];
    while let Some(&(node, by)) = stack.last() {
        let next = (0..times.len()).find(|&i| times[i] > 0 && network.edges[i].from == node);
        match next {
            Some(edge) => {
                times[edge] -= 1;
                stack.push((network.edges[edge].to, Some(edge)));
            }
            None => {
                stack.pop();
                path.extend(by.map(|edge| network.edges[edge].way.clone()));
            }
        }
    }
    path.reverse();
    path
}

/// Adds the blocks of a way that is gone `times` times.
fn count(way: &Way, times: u64, counts: &mut BTreeMap<(usize, usize), u64>) {
    let mut open = vec![way];
    while let Some(way) = open.pop() {
        match way {
            Way::Nothing => {}
            Way::Block(function, block) => *counts.entry((*function, *block)).or_default() += times,
            Way::Step(_, step) => {
                for (&block, &inner) in &step.counts {
                    *counts.entry(block).or_default() += times * inner;
                }
            }
            Way::Both(first, second) => open.extend([&**first, &**second]),
        }
    }
}
