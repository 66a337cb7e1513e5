//! The functions of a kernel as the analysis needs them: their control flow, their loops, and whether they come back.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{anyhow, bail, Result};

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
        if let Some(code) = self.code.get(&function) {
            return Ok(code.clone());
        }
        if self.open.contains(&function) {
            self.open.push(function);
            let names: Vec<&str> = self
                .open
                .iter()
                .map(|&each| self.image.functions[each].name.as_str())
                .collect();
            bail!(
                "recursion, which has no bound: {}. Write it as a loop",
                names.join(" calls ")
            );
        }
        self.open.push(function);
        let mut graph = Graph::of(self.image, function).map_err(|error| anyhow!(error))?;
        for block in &mut graph.blocks {
            match &mut block.end {
                End::Call { callee, next } => {
                    let returns = self.code(*callee)?.returns;
                    *next = next.filter(|_| returns);
                }
                End::Go { functions, .. } => {
                    for &mut function in functions {
                        self.code(function)?;
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
        let loops = loops::find(self.image, &graph, self.point).map_err(|error| anyhow!(error))?;
        let code = Rc::new(Code {
            graph,
            loops,
            returns,
        });
        self.code.insert(function, code.clone());
        Ok(code)
    }
}
