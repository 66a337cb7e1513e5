//! The loops of a function, and what bounds them.

use std::collections::BTreeSet;

use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::annotations::{Kind, Record};
use crate::graph::{place, Block, End, Graph};
use crate::image::Image;

/// A natural loop.
#[derive(Debug, Clone)]
pub struct Loop {
    /// Where it is entered.
    pub header: usize,
    pub blocks: BTreeSet<usize>,
    /// From within it back to the header.
    pub back_edges: Vec<(usize, usize)>,
    /// Blocks of which at most so many are executed whenever it is entered.
    pub marked: Vec<usize>,
    pub turns: u64,
}

/// The loops of a function, inner ones before outer ones.
///
/// # Errors
/// A loop has two entries, or no bound.
pub fn find(image: &Image, graph: &Graph, point: Option<usize>) -> Result<Vec<Loop>, String> {
    let mut loops = natural(image, graph)?;
    mark(image, graph, &mut loops);
    let together = together(image, graph);
    for (i, each) in loops.iter().enumerate() {
        if runs_unmarked(image, graph, point, each, &loops[..i]) {
            return Err(format!(
                "{}: this loop has no bound. Write one in its source, with `Turns`, on the way that every turn takes",
                place(image, graph.blocks[each.header].start())
            ));
        }
    }
    loops.extend(together);
    Ok(loops)
}

/// What all loops of the function may do together: as a loop that is entered with the function, and has no turns of its
/// own.
fn together(image: &Image, graph: &Graph) -> Option<Loop> {
    let mut all = Loop {
        header: 0,
        blocks: (0..graph.blocks.len()).collect(),
        back_edges: Vec::new(),
        marked: Vec::new(),
        turns: 0,
    };
    for record in image
        .records
        .iter()
        .filter(|record| record.kind == Kind::Together)
    {
        if let Some(block) = graph
            .block_at(record.address)
            .filter(|block| !all.marked.contains(block))
        {
            all.marked.push(block);
            all.turns = all.turns.max(record.value);
        }
    }
    (!all.marked.is_empty()).then_some(all)
}

fn natural(image: &Image, graph: &Graph) -> Result<Vec<Loop>, String> {
    let mut flow = DiGraph::<(), ()>::new();
    let nodes: Vec<NodeIndex> = graph.blocks.iter().map(|_| flow.add_node(())).collect();
    // Whatever no jump leads to is entered from outside.
    let root = flow.add_node(());
    let mut targets = BTreeSet::new();
    for (i, block) in graph.blocks.iter().enumerate() {
        for next in block.successors() {
            targets.insert(next);
            flow.add_edge(nodes[i], nodes[next], ());
        }
    }
    for (i, &node) in nodes.iter().enumerate() {
        if i == 0 || !targets.contains(&i) {
            flow.add_edge(root, node, ());
        }
    }
    let dominators = dominators::simple_fast(&flow, root);
    let dominates = |a: usize, b: usize| {
        dominators
            .dominators(nodes[b])
            .is_some_and(|mut all| all.any(|node| node == nodes[a]))
    };
    let mut loops: Vec<Loop> = Vec::new();
    let mut back_edges = BTreeSet::new();
    for (i, block) in graph.blocks.iter().enumerate() {
        for header in block.successors() {
            if !dominates(header, i) {
                continue;
            }
            back_edges.insert((i, header));
            let blocks = body(graph, header, i);
            match loops.iter_mut().find(|each| each.header == header) {
                Some(each) => {
                    each.blocks.extend(blocks);
                    each.back_edges.push((i, header));
                }
                None => loops.push(Loop {
                    header,
                    blocks,
                    back_edges: vec![(i, header)],
                    marked: Vec::new(),
                    turns: 0,
                }),
            }
        }
    }
    let mut rest = DiGraph::<(), ()>::new();
    let rest_nodes: Vec<NodeIndex> = graph.blocks.iter().map(|_| rest.add_node(())).collect();
    for (i, block) in graph.blocks.iter().enumerate() {
        for next in block.successors() {
            if !back_edges.contains(&(i, next)) {
                rest.add_edge(rest_nodes[i], rest_nodes[next], ());
            }
        }
    }
    if let Err(cycle) = petgraph::algo::toposort(&rest, None) {
        let block = cycle.node_id().index();
        return Err(format!(
            "{}: a loop with two entries, whose turns cannot be counted. Write it as one loop",
            place(image, graph.blocks[block].start())
        ));
    }
    loops.sort_by_key(|each| each.blocks.len());
    Ok(loops)
}

/// What reaches `back` without going through `header`, and the header.
fn body(graph: &Graph, header: usize, back: usize) -> BTreeSet<usize> {
    let mut blocks = BTreeSet::from([header]);
    let mut open = vec![back];
    while let Some(block) = open.pop() {
        if !blocks.insert(block) {
            continue;
        }
        for (before, each) in graph.blocks.iter().enumerate() {
            if each.successors().contains(&block) {
                open.push(before);
            }
        }
    }
    blocks
}

/// Gives each loop what the source says of it: a mark belongs to the innermost loop around it. One at the header of a
/// loop that has marks of its own within belongs to the loop around that: its own instructions are those before.
fn mark(image: &Image, graph: &Graph, loops: &mut [Loop]) {
    let turns = |record: &&Record| record.kind == Kind::Turns;
    let steps = |record: &&Record| record.kind == Kind::Steps;
    // Steps bound a loop that has no bound of its own: it cannot take more turns than there are steps.
    for record in image
        .records
        .iter()
        .filter(turns)
        .chain(image.records.iter().filter(steps))
    {
        let Some(block) = graph.block_at(record.address) else {
            continue;
        };
        let Some(each) = loops.iter_mut().find(|each| each.blocks.contains(&block)) else {
            continue;
        };
        if !each.marked.contains(&block) {
            each.marked.push(block);
        }
        each.turns = each.turns.max(record.value);
    }
}

/// Whether a turn of the loop goes by none of its marks, loops within it (`inner`) left aside.
fn runs_unmarked(
    image: &Image,
    graph: &Graph,
    point: Option<usize>,
    each: &Loop,
    inner: &[Loop],
) -> bool {
    let is_inner_back =
        |edge: (usize, usize)| inner.iter().any(|one| one.back_edges.contains(&edge));
    let mut seen = BTreeSet::new();
    let mut open = vec![each.header];
    while let Some(block) = open.pop() {
        let limited = each.marked.contains(&block) || ends(image, &graph.blocks[block], point);
        if limited || !seen.insert(block) {
            continue;
        }
        for next in graph.blocks[block].successors() {
            if each.back_edges.contains(&(block, next)) {
                return true;
            }
            if each.blocks.contains(&next) && !is_inner_back((block, next)) {
                open.push(next);
            }
        }
    }
    false
}

/// Whether a block checks for interrupts, or is a step of those that are counted between such checks.
fn ends(image: &Image, block: &Block, point: Option<usize>) -> bool {
    let checks = matches!(block.end, End::Call { callee, .. } if Some(callee) == point);
    let is_step = |record: &Record| {
        matches!(record.kind, Kind::Steps | Kind::Together) && block.contains(record.address)
    };
    checks || image.records.iter().any(is_step)
}
