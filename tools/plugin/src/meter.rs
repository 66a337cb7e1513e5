//! The measurement: how many instructions the kernel executes between two marks, and how many at
//! most without a look for interrupts.

use std::collections::BTreeMap;
use std::fmt;

/// A piece of code that runs from its first instruction to its last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Block {
    /// Address of the first instruction.
    pub start: u64,
    /// Number of instructions.
    pub length: u32,
    pub place: Place,
}

/// Where a block stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    User,
    Kernel,
    /// The first block of the function that looks for interrupts.
    Point,
    /// The kernel waits for an interrupt at its end.
    Halt,
}

/// An edge of a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    /// The kernel is entered.
    Entry,
    /// The kernel looks for interrupts.
    Point,
    /// The kernel returns to a thread.
    Exit,
    /// The kernel waits.
    Idle,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Edge::Entry => "entry",
            Edge::Point => "point",
            Edge::Exit => "exit",
            Edge::Idle => "idle",
        })
    }
}

/// A piece of the kernel's way in which it does not look for interrupts.
#[derive(Debug)]
struct Stretch {
    from: Edge,
    to: Edge,
    instructions: u64,
    /// Addresses of the blocks, and how often each ran in a row.
    way: Vec<(Block, u64)>,
}

impl Stretch {
    fn new(from: Edge) -> Self {
        Self {
            from,
            to: from,
            instructions: 0,
            way: Vec::new(),
        }
    }

    fn restart(&mut self, from: Edge) {
        self.from = from;
        self.instructions = 0;
        self.way.clear();
    }

    fn add(&mut self, block: Block) {
        self.instructions += u64::from(block.length);
        match self.way.last_mut() {
            Some((last, times)) if *last == block => *times += 1,
            _ => self.way.push((block, 1)),
        }
    }
}

/// What happened since the beginning was marked.
#[derive(Debug)]
struct Interval {
    /// Entries into the kernel.
    passages: u64,
    /// Instructions of the kernel.
    total: u64,
    /// Those of its first passage, and of its longest.
    first: u64,
    longest: u64,
    /// Those of the passage that it is in.
    passage: Option<u64>,
    stretch: Stretch,
    longest_stretch: Stretch,
    /// Stretches from a look for interrupts to the next, and their instructions.
    steps: u64,
    in_steps: u64,
}

impl Interval {
    fn new() -> Self {
        Self {
            passages: 0,
            total: 0,
            first: 0,
            longest: 0,
            passage: None,
            stretch: Stretch::new(Edge::Entry),
            longest_stretch: Stretch::new(Edge::Entry),
            steps: 0,
            in_steps: 0,
        }
    }

    fn end_stretch(&mut self, to: Edge) {
        if (self.stretch.from, to) == (Edge::Point, Edge::Point) {
            self.steps += 1;
            self.in_steps += self.stretch.instructions;
        }
        if self.stretch.instructions > self.longest_stretch.instructions {
            std::mem::swap(&mut self.stretch, &mut self.longest_stretch);
            self.longest_stretch.to = to;
        }
    }

    fn end_passage(&mut self, to: Edge) {
        let Some(instructions) = self.passage.take() else {
            return;
        };
        self.end_stretch(to);
        self.passages += 1;
        self.total += instructions;
        self.longest = self.longest.max(instructions);
        if self.passages == 1 {
            self.first = instructions;
        }
    }

    fn run(&mut self, block: Block) {
        if block.place == Place::User {
            return self.end_passage(Edge::Exit);
        }
        let passage = match self.passage {
            Some(passage) => passage,
            None => {
                self.stretch.restart(Edge::Entry);
                0
            }
        };
        if block.place == Place::Point {
            self.end_stretch(Edge::Point);
            self.stretch.restart(Edge::Point);
        }
        self.stretch.add(block);
        self.passage = Some(passage + u64::from(block.length));
        if block.place == Place::Halt {
            self.end_passage(Edge::Idle);
        }
    }
}

/// One line of the measurement; one of the steps of a long operation, from a look for interrupts to the next, if there were any:
/// how many, and their instructions; and a line for each block of the longest stretch: its address, and the instructions
/// executed there.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = &self.longest_stretch;
        writeln!(
            f,
            "interval {} {} {} {} {} {} {}",
            self.passages,
            self.total,
            self.first,
            self.longest,
            longest.instructions,
            longest.from,
            longest.to
        )?;
        if self.steps > 0 {
            writeln!(f, "steps {} {}", self.steps, self.in_steps)?;
        }
        let mut places = BTreeMap::new();
        for (block, times) in &longest.way {
            *places.entry(block.start).or_insert(0) += times * u64::from(block.length);
        }
        for (start, instructions) in places {
            writeln!(f, "at {start:#x} {instructions}")?;
        }
        Ok(())
    }
}

/// Measures from a mark to the next.
pub struct Meter {
    interval: Option<Interval>,
}

impl Meter {
    pub const fn new() -> Self {
        Self { interval: None }
    }

    /// The measurement begins, or begins anew.
    pub fn begin(&mut self) {
        self.interval = Some(Interval::new());
    }

    /// The measurement ends: its text, if there was one.
    pub fn end(&mut self) -> Option<String> {
        self.interval.take().map(|interval| interval.to_string())
    }

    /// `block` runs.
    #[inline]
    pub fn run(&mut self, block: Block) {
        if let Some(interval) = &mut self.interval {
            interval.run(block);
        }
    }
}
