//! The functions of a kernel as the analysis needs them: their control flow, their loops, and whether they come back.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{bail, Result};

use crate::graph::{End, Graph};
use crate::image::Image;
use crate::loops::{self, Loop};

/// A function.
#[derive(Debug)]
pub struct Code {
    pub graph: Graph,
    pub loops: Vec<Loop>,
    /// Whether it ever comes back.
    pub returns: bool,
}

/// The functions that were asked for, by their numbers.
#[derive(Debug)]
pub struct Program<'i> {
    pub image: &'i Image,
    /// The function that checks for interrupts.
    point: Option<usize>,
    code: BTreeMap<usize, Rc<Code>>,
    /// Functions that are being looked at, each called by the one before it.
    open: Vec<usize>,
}

impl<'i> Program<'i> {
    pub fn new(image: &'i Image, point: Option<usize>) -> Self {
        Self {
            image,
            point,
            code: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    /// A function; first those that it calls.
    ///
    /// # Errors
    /// It cannot be analysed: recursion, jumps to nobody knows where, loops without a bound.
    pub fn code(&mut self, function: usize) -> Result<Rc<Code>> {
        self.code_for(function, None)
    }

    /// A function that is called at this address.
    fn code_for(&mut self, function: usize, call: Option<u64>) -> Result<Rc<Code>> {
        if let Some(code) = self.code.get(&function) {
            return Ok(code.clone());
        }
        if let Some(first) = self.open.iter().position(|&open| open == function) {
            let round = self.open[first..].iter().chain([&function]);
            let names: Vec<&str> = round
                .map(|&each| self.image.functions[each].name.as_str())
                .collect();
            bail!(
                "{}: recursion, which has no bound: {}. Write it as a loop",
                call.map_or(String::new(), |call| self.image.place(call)),
                names.join(" calls ")
            );
        }
        self.open.push(function);
        let mut graph = Graph::of(self.image, function)?;
        for block in &mut graph.blocks {
            let last = block.code.last().map(|last| last.address);
            match &mut block.end {
                End::Call { callee, next } => {
                    let returns = self.code_for(*callee, last)?.returns;
                    *next = next.filter(|_| returns);
                }
                End::Go { functions, .. } => {
                    for &mut function in functions {
                        self.code_for(function, last)?;
                    }
                }
                _ => {}
            }
        }
        self.open.pop();
        graph.keep_reachable();
        let returns = graph.blocks.iter().any(|block| match &block.end {
            End::Return => true,
            End::Go { functions, .. } => {
                functions.iter().any(|function| self.code[function].returns)
            }
            _ => false,
        });
        let loops = loops::find(self.image, function, &graph, self.point)?;
        let code = Rc::new(Code {
            graph,
            loops,
            returns,
        });
        self.code.insert(function, code.clone());
        Ok(code)
    }
}
