//! The network of everything that can be executed between an entry and an exit: each function anew wherever it is called.

use std::rc::Rc;

use anyhow::Result;

use crate::analysis::Analysis;
use crate::annotations::Kind;
use crate::graph::{Block, End};
use crate::limits::Bound;
use crate::program::Code;
use crate::reduce::{sum, Check, Edge, Network, Term, Way, SINK, SOURCE};

/// Where a call in a network stands.
#[derive(Clone, Copy)]
pub(crate) struct Site<'s> {
    /// Loops around it, of all functions: what entering them provides of which limit.
    pub around: &'s [Term],
    /// Where it goes on behind the call.
    pub next: Option<usize>,
    /// What is known of it, in bytes, at the most.
    pub third_argument: Option<u64>,
    /// The address of the call, for messages.
    pub call: Option<u64>,
}

/// A function as part of a network.
pub(crate) struct Copy {
    function: usize,
    pub code: Rc<Code>,
    /// A node for each block.
    nodes: Vec<usize>,
    /// For each loop, the numbers of the limits of its bounds, and what entering it provides of them.
    limits: Vec<Vec<Term>>,
}

/// A block that is being added.
struct From<'c> {
    copy: &'c Copy,
    site: &'c Site<'c>,
    block: usize,
    /// Instructions.
    cost: i64,
    /// What executing it uses up.
    marks: Vec<Term>,
}

impl Copy {
    /// The node of a block, and what entering the function there provides.
    pub fn entry(&self, block: usize) -> (usize, Vec<Term>) {
        (self.nodes[block], self.around(block))
    }

    /// What going on in block `to` provides, for loops that it enters, coming out of block `from`.
    fn entering(&self, from: usize, to: usize) -> Vec<Term> {
        let entered = self.code.loops.iter().zip(&self.limits);
        let entered = entered.filter(|(each, _)| each.header == to && !each.blocks.contains(&from));
        entered.fold(Vec::new(), |terms, (_, limits)| sum(&terms, limits))
    }

    /// What the bounds of its loops count of a block.
    fn turns(&self, block: usize) -> Vec<Term> {
        let mut terms = Vec::new();
        for (each, limits) in self.code.loops.iter().zip(&self.limits) {
            for (bound, &(limit, _)) in each.bounds.iter().zip(limits) {
                if bound.marked.contains(&block) {
                    terms = sum(&terms, &[(limit, 1)]);
                }
            }
        }
        terms
    }

    /// What entering the loops around a block provides.
    fn around(&self, block: usize) -> Vec<Term> {
        let around = self.code.loops.iter().zip(&self.limits);
        let around = around.filter(|(each, _)| each.blocks.contains(&block));
        around.fold(Vec::new(), |terms, (_, limits)| sum(&terms, limits))
    }
}

impl From<'_> {
    /// An edge from this block. `more` is used up besides what the block itself uses up.
    fn edge(&self, to: usize, more: &[Term]) -> Edge {
        Edge {
            from: self.copy.nodes[self.block],
            to,
            cost: self.cost,
            terms: sum(&self.marks, more),
            way: Rc::new(Way::Block {
                function: self.copy.function,
                block: self.block,
                cost: self.cost,
            }),
        }
    }
}

impl Analysis<'_> {
    /// Adds a function to a network.
    pub(crate) fn copy(
        &mut self,
        network: &mut Network,
        function: usize,
        site: &Site,
    ) -> Result<Copy> {
        let code = self.program.code(function)?;
        let provided = |most: u64| -(self.question.meant(most) as i64);
        let limits = code.loops.iter().map(|each| {
            let bounds = each.bounds.iter();
            bounds
                .map(|bound| (network.limit(0), provided(bound.most)))
                .collect()
        });
        let copy = Copy {
            function,
            limits: limits.collect(),
            nodes: code.graph.blocks.iter().map(|_| network.node()).collect(),
            code,
        };
        for block in 0..copy.nodes.len() {
            self.block(network, &copy, site, block)?;
        }
        Ok(copy)
    }

    fn block(
        &mut self,
        network: &mut Network,
        copy: &Copy,
        site: &Site,
        number: usize,
    ) -> Result<()> {
        let block = &copy.code.graph.blocks[number];
        let counted = sum(
            &self.steps_in(network, block),
            &self.marks_in(network, block),
        );
        let from = From {
            copy,
            site,
            block: number,
            cost: self.cost(copy.function, block, site)?,
            marks: sum(&counted, &copy.turns(number)),
        };
        match &block.end {
            End::Go { blocks, functions } => {
                for &to in blocks {
                    let entered = copy.entering(number, to);
                    network.edges.push(from.edge(copy.nodes[to], &entered));
                }
                let jump = block.code.last().map(|jump| jump.address);
                let site = Site {
                    third_argument: self.third_argument(&copy.code.graph, number, site),
                    call: jump,
                    ..*site
                };
                for &callee in functions {
                    let counted = self.call_terms(network, copy.function, callee);
                    let (entry, terms) = self.called(network, callee, &site)?;
                    network.edges.push(from.edge(entry, &sum(&counted, &terms)));
                }
            }
            End::Return => {
                let next = site.next.into_iter();
                network.edges.extend(next.map(|next| from.edge(next, &[])));
            }
            End::Leave | End::Wait(_) => network.edges.push(from.edge(SINK, &[])),
            End::Trap => {}
            End::Call { callee, next } => self.call(network, &from, *callee, *next)?,
        }
        Ok(())
    }

    /// A block that calls: what is inlined comes between it and the next; what is not is a part of the edge.
    fn call(
        &mut self,
        network: &mut Network,
        from: &From,
        callee: usize,
        next: Option<usize>,
    ) -> Result<()> {
        let copy = from.copy;
        let counted = self.call_terms(network, copy.function, callee);
        let third_argument = self.third_argument(&copy.code.graph, from.block, from.site);
        let call = copy.code.graph.blocks[from.block].code.last();
        let call = call.map(|call| call.address);
        if self.is_inlined(callee)? {
            // Behind the call, on its own: what happens there enters loops that begin there.
            let behind = next.map(|next| {
                let node = network.node();
                network.edges.push(Edge {
                    from: node,
                    to: copy.nodes[next],
                    cost: 0,
                    terms: copy.entering(from.block, next),
                    way: Rc::new(Way::Nothing),
                });
                node
            });
            let site = Site {
                around: &sum(from.site.around, &copy.around(from.block)),
                next: behind,
                third_argument,
                call,
            };
            let (entry, terms) = self.called(network, callee, &site)?;
            network.edges.push(from.edge(entry, &sum(&counted, &terms)));
            return Ok(());
        }
        let passed = self.passed(callee, third_argument, call)?;
        if let (Some(step), Some(next)) = (self.step((callee, passed))?, next) {
            let entered = copy.entering(from.block, next);
            let mut edge = from.edge(copy.nodes[next], &sum(&entered, &counted));
            edge.cost += step.cost;
            edge.way = Rc::new(Way::Both(edge.way, Rc::new(Way::Step(callee, step))));
            network.edges.push(edge);
        }
        Ok(())
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
        let (entry, terms) = self.copy(network, callee, site)?.entry(0);
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
        let check = network.node();
        network.edges.push(Edge {
            from: check,
            to: SINK,
            cost: 0,
            terms: Vec::new(),
            way: Rc::new(Way::Nothing),
        });
        network.checks.push(Check {
            node: check,
            behind: start(entry, begins),
        });
        Ok((check, Vec::new()))
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
}

/// The limit that counts the calls of a bound.
pub(crate) fn limit_of(network: &mut Network, number: usize, bound: &Bound) -> usize {
    *network.bounds.entry(number).or_insert_with(|| {
        network.limits.push(bound.limit());
        network.limits.len() - 1
    })
}

/// The edge by which the unit of flow comes to an entry.
pub(crate) fn start(entry: usize, terms: Vec<Term>) -> Edge {
    Edge {
        from: SOURCE,
        to: entry,
        cost: 0,
        terms,
        way: Rc::new(Way::Nothing),
    }
}
