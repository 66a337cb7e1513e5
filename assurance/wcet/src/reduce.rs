//! A network made small without a change of its optimum: a node through which few ways lead is left out, and each of
//! these ways becomes one edge; of two edges between the same nodes, one that costs more and uses up no more of any limit
//! stands for both.

use std::rc::Rc;

use crate::caches::{Inside, Use};

/// What a way leads through.
#[derive(Debug)]
pub enum Way {
    Nothing,
    /// An edge of a network before its reduction.
    Edge(usize),
    /// A block of a function: their numbers, and how many instructions are executed in it.
    Block {
        function: usize,
        block: usize,
        cost: i64,
    },
    Both(Rc<Way>, Rc<Way>),
    /// A call that counts as one step.
    Step(usize, Rc<crate::flow::Longest>),
}

/// What a limit counts on an edge: the number of the limit, and how much of it passing the edge once uses up.
pub type Term = (usize, i64);

/// A directed edge.
#[derive(Debug, Clone)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub cost: i64,
    /// In the order of the limits, each once.
    pub terms: Vec<Term>,
    pub way: Rc<Way>,
}

/// Sum of two lists of terms.
pub fn sum(a: &[Term], b: &[Term]) -> Vec<Term> {
    let mut all: Vec<Term> = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let limit = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.0.min(y.0),
            (Some(x), None) => x.0,
            (None, Some(y)) => y.0,
            (None, None) => break,
        };
        let mut amount = 0;
        if let Some(x) = a.get(i).filter(|x| x.0 == limit) {
            amount += x.1;
            i += 1;
        }
        if let Some(y) = b.get(j).filter(|y| y.0 == limit) {
            amount += y.1;
            j += 1;
        }
        if amount != 0 {
            all.push((limit, amount));
        }
    }
    all
}

/// Whether the first terms use up no more of any limit than the second.
fn no_more(a: &[Term], b: &[Term]) -> bool {
    let negated: Vec<Term> = b.iter().map(|&(limit, amount)| (limit, -amount)).collect();
    sum(a, &negated).iter().all(|&(_, amount)| amount <= 0)
}

/// A check for interrupts.
#[derive(Debug, Clone)]
pub struct Check {
    /// What is executed before it ends here.
    pub node: usize,
    /// How the unit of flow comes to what is executed behind it.
    pub behind: Edge,
    /// And what caches have to do with that.
    pub used: Option<Use>,
}

/// What flows from node 0, the source, to node 1, the sink.
#[derive(Debug, Clone)]
pub struct Network {
    pub nodes: usize,
    pub edges: Vec<Edge>,
    /// What of each limit there is.
    pub limits: Vec<i64>,
    /// The limit of which there is nothing, if anything is on no path: it uses that.
    nothing: Option<usize>,
    /// Limits of steps between two checks for interrupts: by their kind and how many there are.
    pub steps: std::collections::BTreeMap<(u64, u64), usize>,
    /// Limits of calls: by the number of the bound.
    pub bounds: std::collections::BTreeMap<usize, usize>,
    /// Nothing begins behind them yet.
    pub checks: Vec<Check>,
    /// Checks behind which something begins: their nodes, and the edges by which the unit of flow comes there.
    pub resumed: Vec<(usize, usize)>,
    /// Functions from which nothing comes back, by their numbers: their entries.
    pub lasts: std::collections::BTreeMap<usize, Entered>,
    /// Limits of executions: by the addresses of blocks.
    pub executions: std::collections::BTreeMap<u64, usize>,
    /// By the nodes in which loops begin: how often these are executed, at most, whenever they are entered.
    pub turns: std::collections::BTreeMap<usize, u64>,
    /// By the numbers of edges: what caches have to do with them.
    pub uses: std::collections::BTreeMap<usize, Use>,
}

/// Where a function is entered.
#[derive(Debug, Clone)]
pub struct Entered {
    pub node: usize,
    /// What is provided by entering it.
    pub terms: Vec<Term>,
    /// Loops that are entered with it.
    pub loops: Vec<Rc<Inside>>,
}

pub const SOURCE: usize = 0;
pub const SINK: usize = 1;

impl Network {
    pub fn new() -> Self {
        Self {
            nodes: 2,
            edges: Vec::new(),
            limits: Vec::new(),
            nothing: None,
            steps: Default::default(),
            bounds: Default::default(),
            lasts: Default::default(),
            checks: Vec::new(),
            resumed: Vec::new(),
            executions: Default::default(),
            turns: Default::default(),
            uses: Default::default(),
        }
    }

    pub fn node(&mut self) -> usize {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds an edge, and what caches have to do with it.
    pub fn add(&mut self, edge: Edge, used: Option<Use>) {
        if let Some(used) = used {
            self.uses.insert(self.edges.len(), used);
        }
        self.edges.push(edge);
    }

    pub fn limit(&mut self, amount: i64) -> usize {
        self.limits.push(amount);
        self.limits.len() - 1
    }

    /// The limit of which there is nothing.
    pub fn nothing(&mut self) -> usize {
        match self.nothing {
            Some(known) => known,
            None => {
                let new = self.limit(0);
                *self.nothing.insert(new)
            }
        }
    }

    /// Whether an edge may be on a path.
    pub fn is_possible(&self, edge: &Edge) -> bool {
        edge.terms.iter().all(|term| Some(term.0) != self.nothing)
    }

    /// What is executed behind a check for interrupts begins there, if anything leads to the check that does not pass where
    /// nothing may. With `all`, behind each check, since what leads there is left out.
    pub fn go_on_behind_checks(&mut self, all: bool) {
        if all {
            for check in std::mem::take(&mut self.checks) {
                self.resumed.push((check.node, self.edges.len()));
                self.add(check.behind, check.used);
            }
        }
        let never: Vec<bool> = (0..self.limits.len())
            .map(|limit| self.never(limit))
            .collect();
        let is_closed = |&(limit, amount): &Term| amount > 0 && never[limit];
        let mut out = vec![Vec::new(); self.nodes];
        for edge in &self.edges {
            if !edge.terms.iter().any(is_closed) {
                out[edge.from].push(edge.to);
            }
        }
        let mut checks = std::mem::take(&mut self.checks);
        let mut reached = vec![false; self.nodes];
        let mut open = vec![SOURCE];
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut reached[node], true) {
                continue;
            }
            open.extend(&out[node]);
            if let Some(found) = checks.iter().position(|check| check.node == node) {
                let check = checks.swap_remove(found);
                open.push(check.behind.to);
                self.resumed.push((check.node, self.edges.len()));
                self.add(check.behind, check.used);
            }
        }
    }

    /// Whether there is nothing of a limit, and nothing provides any.
    fn never(&self, limit: usize) -> bool {
        let behind = self.checks.iter().map(|check| &check.behind);
        let provides = |edge: &Edge| {
            let of_it = edge.terms.iter().filter(|term| term.0 == limit);
            of_it.into_iter().any(|term| term.1 < 0)
        };
        self.limits[limit] <= 0 && !self.edges.iter().chain(behind).any(provides)
    }

    /// The same nodes and limits.
    #[must_use]
    pub fn without_edges(&self) -> Self {
        Self {
            nodes: self.nodes,
            limits: self.limits.clone(),
            ..Self::new()
        }
    }

    /// The same optimum, of fewer nodes and edges, whose ways are of edges of this one.
    #[must_use]
    pub fn reduced(&self) -> Self {
        let edges = self.edges.iter().enumerate().map(|(number, edge)| Edge {
            way: Rc::new(Way::Edge(number)),
            ..edge.clone()
        });
        Reduction::new(Self {
            edges: edges.collect(),
            ..self.without_edges()
        })
        .run()
    }
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

struct Reduction {
    edges: Vec<Option<Edge>>,
    into: Vec<Vec<usize>>,
    out: Vec<Vec<usize>>,
    limits: Vec<i64>,
}

impl Reduction {
    fn new(network: Network) -> Self {
        let mut this = Self {
            edges: Vec::new(),
            into: vec![Vec::new(); network.nodes],
            out: vec![Vec::new(); network.nodes],
            limits: network.limits,
        };
        for edge in network.edges {
            this.insert(edge);
        }
        this
    }

    fn insert(&mut self, edge: Edge) {
        let (from, to) = (edge.from, edge.to);
        let parallel: Vec<usize> = self.out[from]
            .iter()
            .copied()
            .filter(|&other| {
                self.edges[other]
                    .as_ref()
                    .is_some_and(|other| other.to == to)
            })
            .collect();
        for other in parallel {
            let Some(old) = &self.edges[other] else {
                continue;
            };
            if old.cost >= edge.cost && no_more(&old.terms, &edge.terms) {
                return;
            }
            if edge.cost >= old.cost && no_more(&edge.terms, &old.terms) {
                self.remove(other);
            }
        }
        self.edges.push(Some(edge));
        let number = self.edges.len() - 1;
        self.out[from].push(number);
        self.into[to].push(number);
    }

    fn remove(&mut self, number: usize) {
        if let Some(edge) = self.edges[number].take() {
            self.out[edge.from].retain(|&other| other != number);
            self.into[edge.to].retain(|&other| other != number);
        }
    }

    /// How many edges more there are without this node; `None` if it must stay.
    fn growth(&self, node: usize) -> Option<isize> {
        if node == SOURCE || node == SINK {
            return None;
        }
        let (into, out) = (self.into[node].len(), self.out[node].len());
        if into + out == 0
            || self.out[node]
                .iter()
                .any(|edge| self.into[node].contains(edge))
        {
            return None;
        }
        Some((into * out) as isize - (into + out) as isize)
    }

    fn eliminate(&mut self, node: usize) {
        let into = std::mem::take(&mut self.into[node]);
        let out = std::mem::take(&mut self.out[node]);
        let taken = |edges: &mut Vec<Option<Edge>>, numbers: Vec<usize>| -> Vec<Edge> {
            numbers
                .iter()
                .filter_map(|&number| edges[number].take())
                .collect()
        };
        let into_edges = taken(&mut self.edges, into.clone());
        let out_edges = taken(&mut self.edges, out.clone());
        for edge in &into_edges {
            self.out[edge.from].retain(|other| !into.contains(other));
        }
        for edge in &out_edges {
            self.into[edge.to].retain(|other| !out.contains(other));
        }
        for first in &into_edges {
            for second in &out_edges {
                self.insert(Edge {
                    from: first.from,
                    to: second.to,
                    cost: first.cost + second.cost,
                    terms: sum(&first.terms, &second.terms),
                    way: Rc::new(Way::Both(first.way.clone(), second.way.clone())),
                });
            }
        }
    }

    fn run(mut self) -> Network {
        // Chains first, then what grows a little and falls together with what is there.
        for slack in [0, 2, 8, 0] {
            loop {
                let mut changed = false;
                for node in 2..self.into.len() {
                    if self.growth(node).is_some_and(|growth| growth <= slack) {
                        self.eliminate(node);
                        changed = true;
                    }
                }
                if !changed {
                    break;
                }
            }
        }
        self.finish()
    }

    fn finish(self) -> Network {
        let mut numbers = vec![None; self.into.len()];
        numbers[SOURCE] = Some(SOURCE);
        numbers[SINK] = Some(SINK);
        let mut nodes = 2;
        let mut number = |node: usize| {
            *numbers[node].get_or_insert_with(|| {
                nodes += 1;
                nodes - 1
            })
        };
        let edges = self
            .edges
            .into_iter()
            .flatten()
            .map(|edge| Edge {
                from: number(edge.from),
                to: number(edge.to),
                ..edge
            })
            .collect();
        Network {
            nodes,
            edges,
            limits: self.limits,
            ..Network::new()
        }
    }
}
