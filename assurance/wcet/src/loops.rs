//! The loops of a function, and what bounds them.

use std::collections::BTreeSet;

use anyhow::{bail, ensure, Result};
use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::annotations::{Kind, Record, DEEPER, LEVELS, OF_ARGUMENT};
use crate::graph::{Block, End, Graph};
use crate::image::Image;

/// A natural loop.
#[derive(Debug, Clone)]
pub struct Loop {
    /// Where it is entered.
    pub header: usize,
    pub blocks: BTreeSet<usize>,
    /// From within it back to the header.
    pub back_edges: Vec<(usize, usize)>,
    /// What bounds its turns; each by itself.
    pub bounds: Vec<TurnBound>,
}

/// A bound of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnBound {
    /// What the source says.
    pub kind: Kind,
    /// Blocks of which at most `most` are executed, all together, whenever the loop is entered.
    pub marked: Vec<usize>,
    /// A number, or a parameter of the analysis.
    pub most: u64,
    /// Of steps: their kind. Those of others are counted apart.
    pub detail: u64,
}

impl Loop {
    /// The bound that counts each turn by itself: `None` if marks of several kinds do, as those that are counted with other
    /// loops', or those of loops within this one that are counted between checks for interrupts.
    pub fn counts_each(&self, image: &Image, graph: &Graph) -> Option<&TurnBound> {
        let [bound] = &self.bounds[..] else {
            return None;
        };
        let is_besides = |record: &Record| {
            let is_it = (record.kind, record.value, record.detail)
                == (bound.kind, bound.most, bound.detail);
            let mut blocks = self.blocks.iter();
            matches!(record.kind, Kind::Steps | Kind::Together)
                && !is_it
                && blocks.any(|&block| graph.blocks[block].contains(record.address))
        };
        let is_loop = !self.back_edges.is_empty();
        (is_loop && !image.records.iter().any(is_besides)).then_some(bound)
    }

    fn is_marked(&self, block: usize) -> bool {
        self.bounds.iter().any(|each| each.marked.contains(&block))
    }
}

/// The loops of the function with this number, inner ones before outer ones.
///
/// # Errors
/// A loop has two entries, no bound, or several that may be meant for loops which the compiler has made one; a bound is
/// in no loop.
pub fn find(
    image: &Image,
    function: usize,
    graph: &Graph,
    point: Option<usize>,
) -> Result<Vec<Loop>> {
    let mut loops = natural(image, graph)?;
    claim(image, function, graph, &mut loops)?;
    for (i, each) in loops.iter().enumerate() {
        ensure!(
            !runs_unmarked(image, graph, point, each, &loops[..i]),
            "{}: this loop has no bound. Write one in its source, with `Turns`, on the way that every turn takes",
            image.place(graph.blocks[each.header].start())
        );
        is_clear(image, graph, each)?;
    }
    loops.extend(together(image, graph));
    Ok(loops)
}

/// What loops of the function may do together in one call: as the bound of a loop around all of it, which is entered with
/// the function and never repeats itself.
fn together(image: &Image, graph: &Graph) -> Option<Loop> {
    let mut bounds: Vec<TurnBound> = Vec::new();
    let records = image.records.iter();
    for record in records.filter(|record| record.kind == Kind::Together) {
        let Some(block) = graph.block_at(record.address) else {
            continue;
        };
        // What counts twice stands there twice.
        let marked = (0..=record.detail).map(|_| block);
        match bounds.iter_mut().find(|bound| bound.most == record.value) {
            Some(bound) => bound.marked.extend(marked),
            None => bounds.push(TurnBound {
                kind: record.kind,
                marked: marked.collect(),
                most: record.value,
                detail: 0,
            }),
        }
    }
    (!bounds.is_empty()).then(|| Loop {
        header: 0,
        blocks: (0..graph.blocks.len()).collect(),
        back_edges: Vec::new(),
        bounds,
    })
}

fn natural(image: &Image, graph: &Graph) -> Result<Vec<Loop>> {
    let back_edges = back_edges(graph);
    let mut loops: Vec<Loop> = Vec::new();
    for &(from, header) in &back_edges {
        let blocks = body(graph, header, from);
        match loops.iter_mut().find(|each| each.header == header) {
            Some(each) => {
                each.blocks.extend(blocks);
                each.back_edges.push((from, header));
            }
            None => loops.push(Loop {
                header,
                blocks,
                back_edges: vec![(from, header)],
                bounds: Vec::new(),
            }),
        }
    }
    let mut rest = DiGraph::<(), ()>::new();
    let nodes: Vec<NodeIndex> = graph.blocks.iter().map(|_| rest.add_node(())).collect();
    for (i, block) in graph.blocks.iter().enumerate() {
        for next in block.successors() {
            if !back_edges.contains(&(i, next)) {
                rest.add_edge(nodes[i], nodes[next], ());
            }
        }
    }
    if let Err(cycle) = petgraph::algo::toposort(&rest, None) {
        bail!(
            "{}: a loop with two entries, whose turns cannot be counted. Write it as one loop",
            image.place(graph.blocks[cycle.node_id().index()].start())
        );
    }
    loops.sort_by_key(|each| each.blocks.len());
    Ok(loops)
}

/// Edges to a block that every way to their beginning leads through.
fn back_edges(graph: &Graph) -> BTreeSet<(usize, usize)> {
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
    let mut back_edges = BTreeSet::new();
    for (i, block) in graph.blocks.iter().enumerate() {
        let headers = block.successors().into_iter();
        back_edges.extend(headers.filter(|&to| dominates(to, i)).map(|to| (i, to)));
    }
    back_edges
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

/// Gives each loop what the source says of it: a record belongs to the innermost loop around it. Steps between checks for
/// interrupts bound the loop, too: it cannot take more turns with one than there are.
fn claim(image: &Image, function: usize, graph: &Graph, loops: &mut [Loop]) -> Result<()> {
    let mut outside = Vec::new();
    for record in &image.records {
        let is_bound = matches!(record.kind, Kind::Turns | Kind::Steps);
        if !is_bound || image.function_at(record.address) != Some(function) {
            continue;
        }
        let block = graph.block_at(record.address);
        let around = loops
            .iter_mut()
            .find(|each| block.is_some_and(|block| each.blocks.contains(&block)));
        let (Some(block), Some(each)) = (block, around) else {
            outside.push(record);
            continue;
        };
        let same = |bound: &&mut TurnBound| {
            let bound = (bound.kind, bound.most, bound.detail);
            bound == (record.kind, record.value, record.detail)
        };
        match each.bounds.iter_mut().find(same) {
            // A block with two records counts twice.
            Some(bound) => bound.marked.push(block),
            None => each.bounds.push(TurnBound {
                kind: record.kind,
                marked: vec![block],
                most: record.value,
                detail: record.detail,
            }),
        }
    }
    // The compiler may copy the last turn's beginning out of a loop. What it has not left in one bounds nothing.
    for record in outside.iter().filter(|record| record.kind == Kind::Turns) {
        let is_copy = loops
            .iter()
            .flat_map(|each| &each.bounds)
            .any(|bound| (bound.kind, bound.most) == (record.kind, record.value));
        ensure!(
            is_copy,
            "{}: a bound of {} is written here, where no loop is, so that it bounds nothing. Remove it, or move it into the loop, on the way that every turn takes",
            image.place(record.address),
            named(record.value)
        );
    }
    Ok(())
}

/// Whether it is clear what is bounded. Where the compiler made one loop of two, or unrolled an inner one, records of both
/// stand in what is left, and neither number says how often it turns. Records of one number are turns of one loop, even if
/// a turn goes by several: the source counts some turns twice.
fn is_clear(image: &Image, graph: &Graph, each: &Loop) -> Result<()> {
    let mut turns = each.bounds.iter().filter(|bound| bound.kind == Kind::Turns);
    if let (Some(bound), Some(other)) = (turns.next(), turns.next()) {
        bail!(
            "{}: two bounds claim this loop, {} and {}. The compiler has made one loop of two, or unrolled one: make the inner one a function of its own, with `#[inline(never)]`",
            image.place(graph.blocks[each.header].start()),
            named(bound.most),
            named(other.most)
        );
    }
    Ok(())
}

/// A bound's number for messages.
pub fn named(most: u64) -> String {
    match most {
        LEVELS => "the levels of capability spaces".to_string(),
        DEEPER => "the levels of capability spaces but for the first".to_string(),
        part if part & OF_ARGUMENT != 0 => {
            format!(
                "a turn for each {} bytes of the third argument",
                part & !OF_ARGUMENT
            )
        }
        number => number.to_string(),
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
        let limited = each.is_marked(block) || ends(image, &graph.blocks[block], point);
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

/// Whether a block checks for interrupts, or is a step of those that are counted between such checks, or with those of
/// other loops.
fn ends(image: &Image, block: &Block, point: Option<usize>) -> bool {
    let checks = matches!(block.end, End::Call { callee, .. } if Some(callee) == point);
    let is_step = |record: &Record| {
        matches!(record.kind, Kind::Steps | Kind::Together) && block.contains(record.address)
    };
    checks || image.records.iter().any(is_step)
}
