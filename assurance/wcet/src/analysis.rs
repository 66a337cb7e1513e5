//! The question, and the order in which it is answered: what may leave the kernel, check for interrupts or be counted by
//! a limit becomes part of one network, anew wherever it is called; everything else is solved once for each context.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::BTreeSet;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use sandglass_cache::{Data, Model};

use crate::annotations::{Kind, DEEPER, LEVELS};
use crate::caches::{pointers_of, Footprint};
use crate::expand::{limit_of, Site};
use crate::flow::Longest;
use crate::graph::End;
use crate::image::Image;
use crate::limits::Bound;
use crate::pointers::Pointer;
use crate::prices::Priced;
use crate::program::Program;
use crate::reduce::{Network, SINK};
use crate::states::Context;
use crate::values::Symbols;

/// What the analysis is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Levels of capability spaces.
    pub levels: u64,
    /// The function that checks for interrupts: what is executed ends there, and begins there anew.
    pub point: Option<usize>,
    /// Calls of which there are no more between two checks.
    pub bounds: Vec<Bound>,
    /// The processor; without one, instructions are counted.
    pub model: Option<Model>,
    /// How often each instruction was executed, by its address, if only paths matter that execute each no more often.
    pub executed: Option<Rc<BTreeMap<u64, u64>>>,
}

impl Question {
    /// What a number of a record means.
    pub fn meant(&self, value: u64) -> u64 {
        match value {
            LEVELS => self.levels,
            DEEPER => self.levels.saturating_sub(1),
            number => number,
        }
    }
}

/// A call of a function that always comes back and counts as one step: which, and with which third argument.
pub type Step = (usize, Option<u64>);

/// What was found out so far.
#[derive(Debug)]
pub struct Analysis<'i> {
    pub(crate) image: &'i Image,
    pub(crate) question: Question,
    pub(crate) program: Program<'i>,
    /// Calls that count as a step.
    called: BTreeMap<Context, Rc<Priced>>,
    inlined: BTreeMap<usize, bool>,
    /// What each function may execute, and each of its loops.
    pub(crate) footprints: BTreeMap<usize, Rc<Footprint>>,
    pub(crate) loop_footprints: BTreeMap<(usize, usize), Rc<Footprint>>,
    /// What numbers are called that nobody knows; and what registers point to, by the addresses of instructions.
    pub(crate) symbols: Symbols,
    pub(crate) pointers: BTreeMap<u64, Vec<Pointer>>,
}

impl<'i> Analysis<'i> {
    /// Nothing is looked at before it is asked for.
    pub fn new(image: &'i Image, question: Question) -> Self {
        let has_data = matches!(
            question.model,
            Some(Model {
                data: Data::WriteBack { .. },
                ..
            })
        );
        Self {
            image,
            program: Program::new(image, question.point),
            pointers: match has_data {
                true => pointers_of(image),
                false => BTreeMap::new(),
            },
            symbols: Symbols::new(image.stacks.clone()),
            question,
            called: BTreeMap::new(),
            inlined: BTreeMap::new(),
            footprints: BTreeMap::new(),
            loop_footprints: BTreeMap::new(),
        }
    }

    /// Whether calls of the function are inlined: it may leave the kernel, or check for interrupts, or a limit counts
    /// what it does.
    pub(crate) fn is_inlined(&mut self, function: usize) -> Result<bool> {
        if let Some(&known) = self.inlined.get(&function) {
            return Ok(known);
        }
        let code = self.program.code(function)?;
        let mut inlined = Some(function) == self.question.point || self.has_counted_place(function);
        for block in &code.graph.blocks {
            let callees = match &block.end {
                End::Leave | End::Wait(_) => {
                    inlined = true;
                    continue;
                }
                End::Call { callee, .. } => std::slice::from_ref(callee),
                End::Go { functions, .. } => functions,
                End::Return | End::Trap => continue,
            };
            for &callee in callees {
                inlined |= self.is_counted(function, callee) || self.is_inlined(callee)?;
            }
        }
        self.inlined.insert(function, inlined);
        Ok(inlined)
    }

    /// Whether a place in the function is counted between checks for interrupts.
    fn has_counted_place(&self, function: usize) -> bool {
        self.image.records.iter().any(|record| {
            let bounds = &self.question.bounds;
            let counts = match record.kind {
                Kind::Steps => true,
                Kind::Mark => bounds
                    .iter()
                    .any(|bound| bound.marks.contains(&record.value)),
                Kind::Turns
                | Kind::Together
                | Kind::Repeats
                | Kind::Argument
                | Kind::Pointer { .. } => false,
            };
            counts && self.image.function_at(record.address) == Some(function)
        })
    }

    /// Whether a limit counts this call.
    fn is_counted(&self, caller: usize, callee: usize) -> bool {
        self.question
            .bounds
            .iter()
            .any(|bound| bound.counts(caller, callee))
    }

    /// A call that counts as a step.
    pub(crate) fn called_in(&mut self, context: &Context) -> Result<Rc<Priced>> {
        if let Some(known) = self.called.get(context) {
            return Ok(known.clone());
        }
        let network = self.network_of(context.step)?;
        let priced = Rc::new(self.price(network, context.state.clone())?);
        self.called.insert(context.clone(), priced.clone());
        Ok(priced)
    }

    /// All ways through a function, from its entry to where it comes back.
    fn network_of(&mut self, step: Step) -> Result<Network> {
        let mut network = Network::new();
        let site = Site {
            around: &[],
            within: &None,
            next: Some(SINK),
            third_argument: step.1,
            call: None,
        };
        let entry = self.copy(&mut network, step.0, &site)?.entry(0);
        self.start(&mut network, entry);
        Ok(network)
    }

    /// The longest way from any of these addresses to user level or to a check for interrupts, and from one of those on.
    ///
    /// # Errors
    /// Code that cannot be analysed: it says where, and what would be right.
    pub fn longest(&mut self, entries: &[u64]) -> Result<Option<Longest>> {
        let mut network = Network::new();
        // What the path must go through is missed also where nothing leads there.
        for (number, bound) in self.question.bounds.iter().enumerate() {
            limit_of(&mut network, number, bound);
        }
        let mut done = BTreeMap::new();
        for &entry in entries {
            let function = self
                .image
                .function_at(entry)
                .with_context(|| format!("{entry:#x} is in no function"))?;
            if let Entry::Vacant(vacant) = done.entry(function) {
                let site = Site {
                    around: &[],
                    within: &None,
                    next: None,
                    third_argument: None,
                    call: None,
                };
                vacant.insert(self.copy(&mut network, function, &site)?);
            }
            let copy = &done[&function];
            let block = copy
                .code
                .graph
                .block_at(entry)
                .context("an entry that is no instruction")?;
            self.start(&mut network, copy.entry(block));
        }
        network.go_on_behind_checks(self.question.executed.is_some());
        let priced = self.price(network, None)?;
        let longest = priced.longest(&BTreeSet::new(), self)?;
        Ok(longest.map(|it| Longest::clone(&it)))
    }
}
