//! The control flow of one function.

use std::collections::BTreeSet;

use anyhow::{bail, ensure, Context, Result};

use crate::code::{Flow, Instruction};
use crate::image::{Function, Image};

/// How a block ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// In one of these blocks, or for good in one of these functions.
    Go {
        blocks: Vec<usize>,
        functions: Vec<usize>,
    },
    /// It calls that function, and goes on in that block.
    Call {
        callee: usize,
        next: Option<usize>,
    },
    Return,
    /// At user level.
    Leave,
    /// Until there is an interrupt; then here.
    Wait(Option<usize>),
    /// Never.
    Trap,
}

/// Instructions that are executed one after the other.
#[derive(Debug, Clone)]
pub struct Block {
    pub code: Vec<Instruction>,
    pub end: End,
}

impl Block {
    pub fn start(&self) -> u64 {
        self.code[0].address
    }

    pub fn contains(&self, address: u64) -> bool {
        let last = self.code[self.code.len() - 1];
        (self.start()..last.end()).contains(&address)
    }

    /// Whether it ends in a branch that always leads the same way, since the block makes a number of what is tested.
    fn has_no_choice(&self) -> bool {
        self.code.len() > 1 && self.code[self.code.len() - 1].flow_behind.is_some()
    }

    /// Those within the function that may come next; calls return.
    pub fn successors(&self) -> Vec<usize> {
        match &self.end {
            End::Go { blocks, .. } => blocks.clone(),
            End::Call { next, .. } => next.iter().copied().collect(),
            End::Wait(_) | End::Return | End::Leave | End::Trap => Vec::new(),
        }
    }
}

/// The blocks of a function, in the order of their addresses: the first is its entry.
#[derive(Debug, Clone)]
pub struct Graph {
    pub blocks: Vec<Block>,
}

impl Graph {
    /// Of the function with that number.
    ///
    /// # Errors
    /// It has an indirect jump, bytes that are no instruction, or a jump to nowhere.
    pub fn of(image: &Image, number: usize) -> Result<Self> {
        let function = &image.functions[number];
        ensure!(
            !function.code.is_empty(),
            "{} has no instructions: give its symbol a size, or its section code",
            function.name
        );
        let starts = starts(function);
        let index = |address: u64| starts.binary_search(&address).ok();
        let mut blocks = Vec::new();
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(u64::MAX);
            let code: Vec<Instruction> = function
                .code
                .iter()
                .filter(|instruction| (start..end).contains(&instruction.address))
                .copied()
                .collect();
            let mut last = code[code.len() - 1];
            if let Some(flow) = last.flow_behind.filter(|_| code.len() > 1) {
                last.flow = flow;
            }
            let next = index(last.end());
            let end = end_of(image, number, last, next, &index)?;
            blocks.push(Block { code, end });
        }
        Ok(Self { blocks })
    }

    /// Leaves out blocks that only what never comes back, or branches without a choice, could lead to.
    pub fn keep_reachable(&mut self) {
        let mut targets = vec![false; self.blocks.len()];
        for block in &self.blocks {
            for next in block.successors() {
                targets[next] = true;
            }
        }
        let mut reached = vec![false; self.blocks.len()];
        let roots =
            (0..self.blocks.len()).filter(|&i| i == 0 || !targets[i] && !self.is_left_out(i));
        let mut open: Vec<usize> = roots.collect();
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut reached[block], true) {
                open.extend(self.blocks[block].successors());
            }
        }
        for (block, reached) in self.blocks.iter_mut().zip(reached) {
            if !reached {
                block.end = End::Trap;
            }
        }
    }

    /// Whether only what is left out could lead to this block, to which no jump leads: a call or a return to user level
    /// before it that never comes back, or a branch that never leads there.
    fn is_left_out(&self, number: usize) -> bool {
        let start = self.blocks[number].start();
        let avoids = |block: &Block| {
            let last = block.code[block.code.len() - 1];
            let names = matches!(last.flow, Flow::Branch(target) if target == start);
            block.has_no_choice() && (names || last.end() == start)
        };
        let is_end = |end: &End| matches!(end, End::Call { next: None, .. } | End::Leave);
        let never_back = number > 0 && is_end(&self.blocks[number - 1].end);
        never_back || self.blocks.iter().any(avoids)
    }

    /// The block that holds `address`.
    pub fn block_at(&self, address: u64) -> Option<usize> {
        self.blocks.iter().position(|block| block.contains(address))
    }
}

/// How a block with this last instruction ends.
fn end_of(
    image: &Image,
    number: usize,
    last: Instruction,
    next: Option<usize>,
    index: &impl Fn(u64) -> Option<usize>,
) -> Result<End> {
    let at = || image.place(last.address);
    let beginning = |target: u64| {
        let callee = image.function_at(target);
        let callee = callee.filter(|&callee| image.functions[callee].start == target);
        callee.with_context(|| {
            format!(
                "{}: it leads to {target:#x}, where no function begins. Give the target a symbol, or end the function before",
                at()
            )
        })
    };
    let go = |targets: &[u64]| {
        let (mut blocks, mut functions) = (Vec::new(), Vec::new());
        for &target in targets {
            match index(target) {
                Some(block) if blocks.contains(&block) => {}
                Some(block) => blocks.push(block),
                None => functions.push(beginning(target)?),
            }
        }
        Ok(End::Go { blocks, functions })
    };
    match last.flow {
        Flow::Next => go(&[last.end()]),
        Flow::Jump(target) => go(&[target]),
        Flow::Branch(target) => go(&[target, last.end()]),
        Flow::Call(target) => {
            let callee = beginning(target)?;
            if callee == number {
                bail!("{}: recursion, which has no bound. Write it as a loop", at());
            }
            Ok(End::Call { callee, next })
        }
        Flow::Return => Ok(End::Return),
        Flow::Leave => Ok(End::Leave),
        Flow::Wait => Ok(End::Wait(next)),
        Flow::Trap => Ok(End::Trap),
        Flow::Indirect => bail!(
            "{}: nobody knows where it goes on. Branch on values instead of calling through pointers, and build without jump tables",
            at()
        ),
        Flow::Invalid => bail!(
            "{}: the bytes are no instruction that the decoder knows. Keep data out of text sections, or teach the decoder",
            at()
        ),
    }
}

/// Where blocks start: at the function's beginning, at targets of jumps from anywhere, behind whatever does not simply
/// go on.
fn starts(function: &Function) -> Vec<u64> {
    let mut starts = BTreeSet::from([function.start]);
    for instruction in &function.code {
        match instruction.flow {
            Flow::Next => continue,
            Flow::Jump(target) | Flow::Branch(target) => {
                starts.insert(target);
            }
            _ => {}
        }
        starts.insert(instruction.end());
    }
    let addresses: BTreeSet<u64> = function.code.iter().map(|code| code.address).collect();
    starts.intersection(&addresses).copied().collect()
}
