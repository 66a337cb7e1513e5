//! A path as a tree of calls: who called what, and what each executed.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::flow::Longest;
use crate::graph::{End, Graph};
use crate::image::Image;
use crate::lines::Line;
use crate::reduce::Way;

/// A function on a path, inlined ones as others. Calls of a function out of the same line are one frame.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    pub name: Rc<str>,
    /// The line that calls it, if that is known.
    pub from: Option<Line>,
    /// Instructions, with all that it calls.
    pub cost: i64,
    /// Instructions of its own, by lines; 0 is a line that the compiler does not say.
    pub lines: BTreeMap<Line, i64>,
    /// In the order in which they are first called.
    pub calls: Vec<Frame>,
}

impl Frame {
    /// Instructions of its own.
    pub fn own(&self) -> i64 {
        self.lines.values().sum()
    }

    /// Frames from here to the deepest one below, this one included.
    pub fn depth(&self) -> usize {
        1 + self.calls.iter().map(Self::depth).max().unwrap_or(0)
    }

    /// Adds each function's own instructions, of this frame and those below.
    pub fn add_own(&self, functions: &mut BTreeMap<Rc<str>, i64>) {
        if self.own() > 0 {
            *functions.entry(self.name.clone()).or_default() += self.own();
        }
        for call in &self.calls {
            call.add_own(functions);
        }
    }

    fn add(&mut self, stack: &[Key], line: &Line, cost: i64) {
        self.cost += cost;
        let Some((key, rest)) = stack.split_first() else {
            *self.lines.entry(line.clone()).or_default() += cost;
            return;
        };
        let known = self
            .calls
            .iter()
            .position(|call| call.name == key.0 && call.from == key.1);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Self {
                name: key.0.clone(),
                from: key.1.clone(),
                ..Self::default()
            });
            self.calls.len() - 1
        });
        self.calls[at].add(rest, line, cost);
    }
}

/// A function, and the line that calls it.
type Key = (Rc<str>, Option<Line>);

/// The tree of a path. Its root is no function: what begins at a check for interrupts returns into functions whose calls
/// are not on the path, so that a path may have several roots.
pub fn tree(image: &Image, longest: &Longest) -> Frame {
    let mut walk = Walk {
        image,
        graphs: BTreeMap::new(),
        root: Frame::default(),
    };
    walk.go(&longest.ways, &[], None);
    walk.root
}

/// A function's name, as short as it is clear.
pub fn short(name: &str) -> String {
    name.replace("sandglass_kernel::", "")
}

struct Walk<'i> {
    image: &'i Image,
    graphs: BTreeMap<usize, Option<Rc<Graph>>>,
    root: Frame,
}

/// Where a walk is.
#[derive(Default)]
struct Position {
    /// For each function that was called on the way and has not returned: the functions around the call.
    callers: Vec<Vec<Key>>,
    /// The line of the last call.
    from: Option<Line>,
    /// The block before, if it has not been followed by a whole call.
    last: Option<(usize, usize)>,
}

impl Walk<'_> {
    /// Goes a way below functions that called it, in that line.
    fn go(&mut self, ways: &[Rc<Way>], below: &[Key], from: Option<Line>) {
        let mut position = Position {
            from,
            ..Position::default()
        };
        for way in ways {
            self.way(way, below, &mut position);
        }
    }

    fn way(&mut self, way: &Way, below: &[Key], position: &mut Position) {
        match way {
            Way::Nothing | Way::Edge(_) => {}
            Way::Both(first, second) => {
                self.way(first, below, position);
                self.way(second, below, position);
            }
            Way::Block {
                function,
                block,
                cost,
            } => {
                self.enter(*function, position);
                self.block(*function, *block, *cost, below, position);
                position.last = Some((*function, *block));
            }
            Way::Step(_, step) => {
                let mut around = [below, &position.callers.concat()].concat();
                let mut from = None;
                if let Some((function, block)) = position.last.take() {
                    let (inner, line) = self.call(function, block, position);
                    around.extend(inner);
                    from = line;
                }
                self.go(&step.ways, &around, from);
            }
        }
    }

    /// Comes to a block of a function: was it called, or returned into?
    fn enter(&mut self, function: usize, position: &mut Position) {
        let Some((before, block)) = position.last.take() else {
            return;
        };
        let Some(graph) = self.graph(before) else {
            return;
        };
        match &graph.blocks[block].end {
            End::Call { callee, .. } if *callee == function => {
                let (around, line) = self.call(before, block, position);
                position.callers.push(around);
                position.from = line;
            }
            End::Return => {
                let caller = position.callers.pop();
                let first = caller.as_ref().and_then(|around| around.first());
                position.from = first.and_then(|(_, from)| from.clone());
            }
            _ => {}
        }
    }

    /// The functions around the call that a block ends with, inlined ones last, and its line.
    fn call(
        &mut self,
        function: usize,
        block: usize,
        position: &Position,
    ) -> (Vec<Key>, Option<Line>) {
        let Some(graph) = self.graph(function) else {
            return (Vec::new(), None);
        };
        let code = &graph.blocks[block].code;
        let (keys, line) = self.keys(function, code[code.len() - 1].address, &position.from);
        (keys, Some(line))
    }

    fn block(
        &mut self,
        function: usize,
        block: usize,
        cost: i64,
        below: &[Key],
        position: &Position,
    ) {
        let Some(graph) = self.graph(function) else {
            return;
        };
        let code = &graph.blocks[block].code;
        // What repeats itself is what the block costs beyond its instructions.
        let mut more = cost - code.len() as i64;
        let around = [below, &position.callers.concat()].concat();
        for instruction in code {
            let mut each = 1;
            if instruction.repeats {
                each += std::mem::take(&mut more);
            }
            let (keys, line) = self.keys(function, instruction.address, &position.from);
            self.root.add(&[&around[..], &keys].concat(), &line, each);
        }
    }

    /// The functions around an address, from the one that is in the file by itself to the innermost, and the line.
    fn keys(&self, function: usize, address: u64, from: &Option<Line>) -> (Vec<Key>, Line) {
        let frames = self.image.frames(address);
        let mut from = from.clone();
        let mut keys = Vec::new();
        for frame in frames.iter().rev() {
            let name = match &*frame.function {
                "" => &self.image.functions[function].name,
                name => name,
            };
            keys.push((short(name).into(), from));
            from = Some(frame.line.clone());
        }
        if keys.is_empty() {
            let name = short(&self.image.functions[function].name);
            keys.push((name.into(), from.take()));
        }
        let unknown = || Line {
            file: "".into(),
            number: 0,
        };
        (keys, from.unwrap_or_else(unknown))
    }

    fn graph(&mut self, function: usize) -> Option<Rc<Graph>> {
        let image = self.image;
        self.graphs
            .entry(function)
            .or_insert_with(|| Graph::of(image, function).ok().map(Rc::new))
            .clone()
    }
}
