//! Networks by themselves: the reduction keeps the optimum, and what is no path is no answer.

use std::rc::Rc;

use proptest::prelude::*;
use sandglass_wcet::flow::{longest, optimum};
use sandglass_wcet::reduce::{Edge, Network, Term, Way, SINK, SOURCE};

use crate::programs::image;

/// From, to, cost, and what is used up.
type Plain = (usize, usize, i64, Vec<Term>);

fn network(nodes: usize, limits: &[i64], edges: &[Plain]) -> Network {
    let mut network = Network::new();
    while network.nodes < nodes {
        network.node();
    }
    for &limit in limits {
        network.limit(limit);
    }
    for (from, to, cost, terms) in edges {
        network.edges.push(Edge {
            from: *from,
            to: *to,
            cost: *cost,
            terms: terms.clone(),
            way: Rc::new(Way::Nothing),
        });
    }
    network
}

/// The dearest of all paths through a network without cycles.
fn dearest(limits: &[i64], edges: &[Plain]) -> Option<i64> {
    let mut best = None;
    let mut open = vec![(SOURCE, 0, limits.to_vec())];
    while let Some((node, cost, left)) = open.pop() {
        if node == SINK && left.iter().all(|&left| left >= 0) {
            best = best.max(Some(cost));
        }
        for (_, to, more, terms) in edges.iter().filter(|edge| edge.0 == node) {
            let mut left = left.clone();
            for &(limit, amount) in terms {
                left[limit] -= amount;
            }
            open.push((*to, cost + more, left));
        }
    }
    best
}

const NODES: usize = 9;
const LIMITS: usize = 3;

/// Nodes in the order of paths: the sink is the last.
fn place(at: usize) -> usize {
    match at {
        0 => SOURCE,
        at if at == NODES - 1 => SINK,
        at => at + 1,
    }
}

fn terms() -> impl Strategy<Value = Vec<Term>> {
    proptest::collection::btree_map(0..LIMITS, -1_i64..3, 0..=LIMITS)
        .prop_map(|terms| terms.into_iter().filter(|term| term.1 != 0).collect())
}

fn forward() -> impl Strategy<Value = Vec<Plain>> {
    let edge = (0..NODES - 1, 1..NODES, 0_i64..20, terms()).prop_map(|(a, b, cost, terms)| {
        let (from, to) = (a.min(b - 1), b.max(a + 1));
        (place(from), place(to), cost, terms)
    });
    proptest::collection::vec(edge, 4..18)
}

/// Edges that lead back, each at most so often.
fn backward() -> impl Strategy<Value = Vec<(usize, usize, i64, i64)>> {
    let edge = (1..NODES - 1, 1..NODES - 1, 0_i64..20, 0_i64..4)
        .prop_map(|(a, b, cost, most)| (place(a.max(b)), place(a.min(b)), cost, most));
    proptest::collection::vec(edge, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_optimum_is_the_dearest_path(edges in forward(), limits in [0_i64..4, 0_i64..4, 0_i64..4]) {
        let mut whole = network(NODES, &limits, &edges);
        let expected = dearest(&limits, &edges);
        prop_assert_eq!(optimum(&whole).unwrap(), expected);
        prop_assert_eq!(optimum(&whole.reduced()).unwrap(), expected);
        prop_assert_eq!(longest(&mut whole, &image()).unwrap().map(|longest| longest.cost), expected);
    }

    #[test]
    fn the_reduction_keeps_the_optimum(forward in forward(), backward in backward(), limits in [0_i64..4, 0_i64..4, 0_i64..4]) {
        let mut limits = limits.to_vec();
        let mut edges = forward;
        for (from, to, cost, most) in backward {
            limits.push(most);
            edges.push((from, to, cost, vec![(limits.len() - 1, 1)]));
        }
        let whole = network(NODES, &limits, &edges);
        prop_assert_eq!(optimum(&whole.reduced()).unwrap(), optimum(&whole).unwrap());
    }
}

/// Where only a limit across loops bounds a cycle, the equations have a solution in which it turns where no path enters it:
/// that is no path, and the longest is another.
#[test]
fn a_cycle_apart_from_the_path_is_no_part_of_it() {
    let straight = (SOURCE, SINK, 100, Vec::new());
    let entered = (SOURCE, 2, 1, Vec::new());
    let left = (2, SINK, 1, Vec::new());
    let turn = (2, 2, 10, vec![(0, 1)]);
    let mut edges = [straight, entered, left, turn];
    let cost_of = |nodes: usize, limits: &[i64], edges: &[Plain]| {
        let found = longest(&mut network(nodes, limits, edges), &image()).expect("a path");
        found.map(|longest| longest.cost)
    };
    let cost = |limits: &[i64], edges: &[Plain]| cost_of(3, limits, edges);
    assert_eq!(optimum(&network(3, &[5], &edges)).unwrap(), Some(150));
    assert_eq!(cost(&[5], &edges), Some(100));
    edges[0].2 = 50;
    assert_eq!(cost(&[5], &edges), Some(52));

    // With a bound of its own, which entering it provides, it does not turn elsewhere in the first place.
    edges[1].3 = vec![(1, -5)];
    edges[3].3 = vec![(0, 1), (1, 1)];
    assert_eq!(optimum(&network(3, &[5, 0], &edges)).unwrap(), Some(52));
    assert_eq!(cost(&[5, 0], &edges), Some(52));

    // Nor if the bound is provided before, as for all loops of a function when it is called: whether or not it is entered.
    let called = (SOURCE, 3, 0, vec![(1, -5)]);
    let around = (3, SINK, 45, Vec::new());
    let entered = (3, 2, 1, Vec::new());
    let left = (2, SINK, 1, Vec::new());
    let turn = (2, 2, 10, vec![(1, 1)]);
    let mut edges = [called, around, entered, left, turn];
    assert_eq!(optimum(&network(4, &[5, 0], &edges)).unwrap(), Some(95));
    assert_eq!(cost_of(4, &[5, 0], &edges), Some(52));
    edges[1].2 = 53;
    assert_eq!(cost_of(4, &[5, 0], &edges), Some(53));
}

#[test]
fn without_a_way_there_is_no_longest() {
    for edges in [
        vec![],
        vec![(SOURCE, 2, 1, Vec::new())],
        vec![(2, SINK, 1, Vec::new())],
    ] {
        let mut network = network(3, &[], &edges);
        assert_eq!(optimum(&network).unwrap(), None);
        assert!(longest(&mut network, &image()).unwrap().is_none());
    }
}

#[test]
fn an_endless_turn_has_no_longest() {
    let edges = [
        (SOURCE, 2, 1, vec![]),
        (2, 2, 1, vec![]),
        (2, SINK, 1, vec![]),
    ];
    let error = longest(&mut network(3, &[], &edges), &image()).expect_err("it has no end");
    assert!(
        format!("{error:#}").contains("no longest path"),
        "{error:#}"
    );
}
