//! The network of everything that can be executed between an entry and an exit: each function anew wherever it is called.

use std::collections::BTreeSet;
use std::rc::Rc;

use anyhow::Result;

use crate::analysis::{Analysis, Step};
use crate::annotations::Kind;
use crate::caches::{around, Executed, Inside, Use};
use crate::graph::{Block, End};
use crate::limits::Bound;
use crate::program::Code;
use crate::reduce::{sum, Check, Edge, Entered, Network, Term, Way, SINK, SOURCE};
use crate::states::Context;

/// Where a call in a network stands.
#[derive(Clone, Copy)]
pub(crate) struct Site<'s> {
    /// Loops around it, of all functions: what entering them provides of which limit.
    pub around: &'s [Term],
    /// The same loops, for what they bring into the caches.
    pub within: &'s Option<Rc<Inside>>,
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
    /// For each loop, what it brings into the caches; and what loops around the function do.
    insides: Vec<Option<Rc<Inside>>>,
    within: Option<Rc<Inside>>,
}

/// A block that is being added.
struct From<'c> {
    copy: &'c Copy,
    site: &'c Site<'c>,
    block: usize,
    /// Instructions, or cycles without those for what is not in the caches.
    cost: i64,
    /// What executing it uses up.
    marks: Vec<Term>,
    /// What caches have to do with it; nothing if instructions are counted.
    executed: Option<Executed>,
    /// Only paths matter that do not execute it; what is known behind it is known all the same.
    is_left_out: bool,
}

impl Copy {
    /// The node of a block, and what entering the function there provides.
    pub fn entry(&self, block: usize) -> Entered {
        let loops = self.code.loops.iter().zip(&self.insides);
        let loops = loops.filter(|(each, _)| each.blocks.contains(&block));
        Entered {
            node: self.nodes[block],
            terms: self.around(block),
            loops: loops.filter_map(|(_, inside)| inside.clone()).collect(),
        }
    }

    /// Loops that are entered where block `from` goes on in block `to`.
    fn entered(&self, from: usize, to: usize) -> Vec<Rc<Inside>> {
        let loops = self.code.loops.iter().zip(&self.insides);
        let entered = loops.filter(|(each, _)| each.header == to && !each.blocks.contains(&from));
        entered.filter_map(|(_, inside)| inside.clone()).collect()
    }

    /// What loops around a block bring into the caches.
    fn within(&self, block: usize) -> Option<Rc<Inside>> {
        let mut loops = self.code.loops.iter().zip(&self.insides);
        let inner = loops
            .find_map(|(each, inside)| inside.clone().filter(|_| each.blocks.contains(&block)));
        inner.or_else(|| self.within.clone())
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
                let records = bound.marked.iter().filter(|&&marked| marked == block);
                for _ in records {
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
    /// Adds an edge from this block, which enters these loops. `more` is used up besides what the block itself uses up.
    fn add(&self, network: &mut Network, to: usize, more: &[Term], loops: Vec<Rc<Inside>>) {
        let edge = self.edge(network, to, more);
        network.add(edge, self.uses(None, loops));
    }

    /// The same to another block of the function.
    fn go(&self, network: &mut Network, to: usize, more: &[Term], loops: Vec<Rc<Inside>>) {
        let address = self.copy.code.graph.blocks[to].start();
        let used = self.uses(None, loops).map(|used| Use {
            leads_to: Some(address),
            ..used
        });
        let edge = self.edge(network, self.copy.nodes[to], more);
        network.add(edge, used);
    }

    fn uses(&self, step: Option<Step>, enters: Vec<Rc<Inside>>) -> Option<Use> {
        self.executed.clone().map(|executed| Use {
            executed: Some(executed),
            leads_to: None,
            step,
            enters,
        })
    }

    fn edge(&self, network: &mut Network, to: usize, more: &[Term]) -> Edge {
        let mut terms = sum(&self.marks, more);
        if self.is_left_out {
            terms = sum(&terms, &[(network.nothing(), 1)]);
        }
        Edge {
            from: self.copy.nodes[self.block],
            to,
            cost: self.cost,
            terms,
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
        let limits = code.loops.iter().map(|each| {
            let bounds = each.bounds.iter();
            let provided = bounds.map(|bound| {
                let turns = self.turns(bound.most, site)?;
                Ok((network.limit(0), -(turns as i64)))
            });
            provided.collect::<Result<_>>()
        });
        let copy = Copy {
            function,
            limits: limits.collect::<Result<_>>()?,
            nodes: code.graph.blocks.iter().map(|_| network.node()).collect(),
            insides: self.insides(function, site.within)?,
            within: site.within.clone(),
            code,
        };
        for each in &copy.code.loops {
            if let Some(bound) = each.counts_each(self.image, &copy.code.graph) {
                let turns = self.turns(bound.most, site)?;
                // Where the mark is behind the header, that is executed once more.
                let executed = turns.saturating_add(1);
                network.turns.insert(copy.nodes[each.header], executed);
            }
        }
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
        let executions = self.executions_of(network, block);
        let counted = sum(
            &self.steps_in(network, block),
            &self.marks_in(network, block),
        );
        let counted = sum(&counted, executions.as_deref().unwrap_or_default());
        let from = From {
            copy,
            site,
            block: number,
            cost: self.cost(copy.function, block, site)?,
            marks: sum(&counted, &copy.turns(number)),
            executed: self.executed(copy, site, number)?,
            is_left_out: executions.is_none(),
        };
        match &block.end {
            End::Go { blocks, functions } => {
                for &to in blocks {
                    let entered = copy.entering(number, to);
                    from.go(network, to, &entered, copy.entered(number, to));
                }
                let jump = block.code.last().map(|jump| jump.address);
                let site = Site {
                    third_argument: self.third_argument(&copy.code.graph, number, site),
                    call: jump,
                    ..*site
                };
                for &callee in functions {
                    let counted = self.call_terms(network, copy.function, callee);
                    let entry = self.called(network, callee, &site)?;
                    let used = sum(&counted, &entry.terms);
                    from.add(network, entry.node, &used, entry.loops);
                }
            }
            End::Return => {
                if let Some(next) = site.next {
                    from.add(network, next, &[], Vec::new());
                }
            }
            End::Leave | End::Wait(_) => from.add(network, SINK, &[], Vec::new()),
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
                let edge = Edge {
                    from: node,
                    to: copy.nodes[next],
                    cost: 0,
                    terms: copy.entering(from.block, next),
                    way: Rc::new(Way::Nothing),
                };
                network.add(edge, self.enters(copy.entered(from.block, next)));
                node
            });
            let site = Site {
                around: &sum(from.site.around, &copy.around(from.block)),
                within: &copy.within(from.block),
                next: behind,
                third_argument,
                call,
            };
            let entry = self.called(network, callee, &site)?;
            let used = sum(&counted, &entry.terms);
            from.add(network, entry.node, &used, entry.loops);
            return Ok(());
        }
        let step = (callee, self.passed(callee, third_argument, call)?);
        let Some(next) = next else {
            return Ok(());
        };
        let entered = copy.entering(from.block, next);
        let mut edge = from.edge(network, copy.nodes[next], &sum(&entered, &counted));
        // With caches it costs what it costs there, which is found out when the network is whole.
        if self.question.model.is_none() {
            let called = self.called_in(&Context::alone(step))?;
            let Some(step) = called.longest(&BTreeSet::new(), self)? else {
                return Ok(());
            };
            edge.cost += step.cost;
            edge.way = Rc::new(Way::Both(edge.way, Rc::new(Way::Step(callee, step))));
        }
        network.add(edge, from.uses(Some(step), copy.entered(from.block, next)));
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
    fn called(&mut self, network: &mut Network, callee: usize, site: &Site) -> Result<Entered> {
        // Where nothing comes back, and no loop is around, one copy is enough.
        let alone = site.around.is_empty() && site.within.is_none();
        let last = site.next.is_none() && alone && site.third_argument.is_none();
        if let Some(known) = network.lasts.get(&callee).filter(|_| last) {
            return Ok(known.clone());
        }
        let entry = self.copy(network, callee, site)?.entry(0);
        if last {
            network.lasts.insert(callee, entry.clone());
        }
        if Some(callee) != self.question.point {
            return Ok(entry);
        }
        let mut begins = sum(&entry.terms, site.around);
        for (number, bound) in self.question.bounds.iter().enumerate() {
            let limit = limit_of(network, number, bound);
            begins = sum(&begins, &[(limit, -bound.more_after_check)]);
        }
        let entered = Entered {
            node: entry.node,
            terms: begins,
            loops: [entry.loops, around(site.within)].concat(),
        };
        let node = network.node();
        network.edges.push(Edge {
            from: node,
            to: SINK,
            cost: 0,
            terms: Vec::new(),
            way: Rc::new(Way::Nothing),
        });
        let (behind, used) = self.entering(entered);
        network.checks.push(Check { node, behind, used });
        Ok(Entered {
            node,
            terms: Vec::new(),
            loops: Vec::new(),
        })
    }

    /// Adds the edge by which the unit of flow comes to an entry.
    pub(crate) fn start(&self, network: &mut Network, entry: Entered) {
        let (edge, used) = self.entering(entry);
        network.add(edge, used);
    }

    fn entering(&self, entry: Entered) -> (Edge, Option<Use>) {
        let edge = Edge {
            from: SOURCE,
            to: entry.node,
            cost: 0,
            terms: entry.terms,
            way: Rc::new(Way::Nothing),
        };
        (edge, self.enters(entry.loops))
    }

    /// What an edge that executes nothing does to the caches.
    fn enters(&self, enters: Vec<Rc<Inside>>) -> Option<Use> {
        self.question.model.map(|_| Use {
            executed: None,
            leads_to: None,
            step: None,
            enters,
        })
    }

    /// What caches have to do with a block.
    fn executed(&self, copy: &Copy, site: &Site, block: usize) -> Result<Option<Executed>> {
        if self.question.model.is_none() {
            return Ok(None);
        }
        Ok(Some(Executed {
            repeats: self.all_repeats(copy.function, &copy.code.graph.blocks[block], site)?,
            code: copy.code.clone(),
            function: copy.function,
            block,
            within: copy.within(block),
        }))
    }

    /// What a block uses up of its executions; `None` if there are none, and nothing if nobody counts them.
    fn executions_of(&self, network: &mut Network, block: &Block) -> Option<Vec<Term>> {
        let Some(executed) = &self.question.executed else {
            return Some(Vec::new());
        };
        // A vector's entry may lie behind padding, which its block begins with: the last instruction says it all.
        let times = *executed.get(&block.code.last()?.address)?;
        let limit = *network.executions.entry(block.start()).or_insert_with(|| {
            network.limits.push(times as i64);
            network.limits.len() - 1
        });
        Some(vec![(limit, 1)])
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
                    terms = sum(
                        &terms,
                        &[(limit_of(network, number, bound), bound.weight())],
                    );
                }
            }
        }
        terms
    }

    /// What a block uses up of the steps between checks for interrupts.
    fn steps_in(&self, network: &mut Network, block: &Block) -> Vec<Term> {
        let mut terms = Vec::new();
        let records = self
            .image
            .records
            .iter()
            .filter(|record| record.kind == Kind::Steps && block.contains(record.address));
        for record in records {
            let counted = (record.detail, record.value);
            let limit = *network.steps.entry(counted).or_insert_with(|| {
                network.limits.push(record.value as i64);
                network.limits.len() - 1
            });
            terms = sum(&terms, &[(limit, 1)]);
        }
        terms
    }
}

/// The limit that counts the calls of a bound.
pub(crate) fn limit_of(network: &mut Network, number: usize, bound: &Bound) -> usize {
    *network.bounds.entry(number).or_insert_with(|| {
        network.limits.push(bound.limit());
        network.limits.len() - 1
    })
}
