//! A path as text, and what it costs.

use std::fmt::Write;

use crate::flow::Longest;
use crate::graph::Graph;
use crate::image::Image;
use crate::model::{Processor, INSTRUCTIONS};
use crate::reduce::Way;

/// Instructions of the cheapest call that is shown.
const LEAST: i64 = 50;

/// A cost with its unit: instructions, or cycles of a processor, and the time that they take.
pub fn cost(cost: i64, processor: Option<&Processor>) -> String {
    match processor {
        None => format!("{cost} {INSTRUCTIONS}"),
        Some(processor) => format!("{cost} cycles, {:.1} us", processor.microseconds(cost)),
    }
}

/// The calls of a path in their order, with what each costs in instructions, and where it is called.
pub fn path(image: &Image, longest: &Longest) -> String {
    let mut shown = Shown {
        image,
        function: usize::MAX,
        block: 0,
        text: String::new(),
    };
    for way in &longest.ways {
        shown.way(way, 0);
    }
    shown.text
}

struct Shown<'i> {
    image: &'i Image,
    /// Where the path is.
    function: usize,
    block: usize,
    text: String,
}

impl Shown<'_> {
    fn way(&mut self, way: &Way, depth: usize) {
        match way {
            Way::Nothing | Way::Edge(_) => {}
            Way::Both(first, second) => {
                self.way(first, depth);
                self.way(second, depth);
            }
            Way::Block {
                function, block, ..
            } => {
                if depth == 0 && self.function != *function {
                    let _ = writeln!(self.text, "in {}", self.name(*function));
                }
                (self.function, self.block) = (*function, *block);
            }
            Way::Step(function, step) if step.cost >= LEAST => {
                let width = 8 + 4 * depth;
                let line = format!("{:>width$} {}", step.cost, self.name(*function));
                let _ = writeln!(self.text, "{line:<80} {}", self.place());
                let at = (self.function, self.block);
                for way in &step.ways {
                    self.way(way, depth + 1);
                }
                (self.function, self.block) = at;
            }
            Way::Step(..) => {}
        }
    }

    /// A function's name, as short as it is clear.
    fn name(&self, function: usize) -> String {
        self.image.functions[function]
            .name
            .replace("sandglass_kernel::", "")
    }

    /// Lines of the source around the last instruction of the block, the innermost first.
    fn place(&self) -> String {
        let Ok(graph) = Graph::of(self.image, self.function) else {
            return String::new();
        };
        let code = &graph.blocks[self.block].code;
        let frames = self.image.frames(code[code.len() - 1].address);
        let lines = frames.iter().map(|frame| frame.line.to_string());
        lines.take(4).collect::<Vec<_>>().join(" < ")
    }
}
