//! What a board has, as its device tree tells: memory, interrupt controller, timer, console, cores, and
//! where the loader put the root task. The names are those of the tree's specification and of its bindings.
//!
//! The tree is walked three times: for what is chosen, for the alias by which the console may be named, and
//! for the devices. A device is told when all properties of its node have been seen, so that their order
//! does not matter.

use sandglass_abi::vspace::aarch64::{MAX_IRQ, MAX_IRQ_ZYNQMP};

use super::tree::{long, number, Error, Token, Tree};
use super::PAGE_SIZE;
use crate::arch::list::List;
use crate::arch::Range;

/// Most nodes inside each other.
const DEPTH: usize = 16;
/// Most pieces of memory, and of memory that is not to be used.
pub const MOST_RANGES: usize = 16;
/// Most regions of redistributors of a GICv3.
pub const MOST_REGIONS: usize = 4;
/// Most cores that are looked at.
pub const MOST_CORES: usize = 8;

/// Cells of an address and of a size, unless a node says something else.
const ADDRESS_CELLS: u32 = 2;
const SIZE_CELLS: u32 = 1;

/// Which of the timer's interrupts is that of the virtual timer.
const VIRTUAL_TIMER: usize = 2;
/// Type of a private interrupt, and the number of the first one in the controller.
const PRIVATE: u32 = 1;
const FIRST_PRIVATE: u32 = 16;
const PRIVATES: u32 = 16;

/// A function of PSCI that starts a core, as of version 0.2.
const PSCI_CPU_ON: u32 = 0xc400_0003;

/// Boards on which user level may name more interrupts than the profile's, with the highest (06, section 7).
const INTERRUPTS: &[(&[u8], u64)] = &[(b"xlnx,zynqmp", MAX_IRQ_ZYNQMP)];

/// Controllers whose registers appear again, in all that they take: user level has none of it. Of others it has what is
/// behind the first page of each part (06, section 5).
const REPEATED: &[&[u8]] = &[b"arm,gic-400"];

/// The interrupt controller, by the physical addresses of its registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Controller {
    /// The registers that nobody else is to have: a page at least.
    Gic2 {
        distributor: Range,
        interface: Range,
    },
    Gic3 {
        distributor: u64,
        redistributors: [Range; MOST_REGIONS],
    },
}

impl Controller {
    /// Its registers, as far as it says where they end: what is left is empty.
    fn parts(self) -> [Range; MOST_REGIONS + 1] {
        let mut parts = [Range { start: 0, end: 0 }; MOST_REGIONS + 1];
        let (first, others) = match &self {
            Controller::Gic2 {
                distributor,
                interface,
            } => (*distributor, core::slice::from_ref(interface)),
            Controller::Gic3 {
                distributor,
                redistributors,
            } => {
                let page = Range {
                    start: *distributor,
                    end: distributor.saturating_add(PAGE_SIZE),
                };
                (page, &redistributors[..])
            }
        };
        for (place, &part) in parts.iter_mut().zip(core::iter::once(&first).chain(others)) {
            *place = part;
        }
        parts
    }
}

/// The kind of a console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uart {
    Pl011,
    Cadence,
}

/// How firmware is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conduit {
    Hvc,
    Smc,
}

/// Firmware that starts cores and stops the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Psci {
    pub conduit: Conduit,
    /// Number of the function that starts a core.
    pub cpu_on: u32,
}

/// A core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// Its affinity, as in MPIDR_EL1.
    pub affinity: u64,
    /// Whether PSCI starts it.
    pub by_psci: bool,
}

/// What a board has.
pub struct Board {
    /// As told: in any order, of any alignment, and perhaps overlapping.
    pub memory: List<Range, MOST_RANGES>,
    /// Memory that is not to be used.
    pub reserved: List<Range, MOST_RANGES>,
    pub controller: Controller,
    /// The highest interrupt that user level may name.
    pub max_irq: u64,
    /// Number of the virtual timer's interrupt.
    pub timer: u32,
    pub cores: List<Processor, MOST_CORES>,
    pub psci: Option<Psci>,
    /// The root task's file.
    pub root_task: Option<Range>,
}

impl Board {
    /// Reads what `tree` says. The console is told even if the rest is wrong, as far as it has been found by then: somebody
    /// has to be told what is wrong.
    ///
    /// # Errors
    /// The tree is none, or something that the kernel cannot do without is missing in it.
    pub fn read(tree: &Tree, console: &mut Option<(Uart, u64)>) -> Result<Board, Error> {
        let mut reader = Reader::new();
        let outcome = reader.read(tree);
        // Memory would be written.
        let told = reader.console.filter(|&(_, at)| {
            let first = Range {
                start: at,
                end: at.saturating_add(1),
            };
            !reader.memory.iter().any(|memory| memory.overlaps(first))
        });
        *console = told;
        outcome?;
        reader.finish()
    }
}

/// What a walk looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Chosen,
    Alias,
    Devices,
}

/// What is remembered of a node that has not ended.
#[derive(Clone, Copy)]
struct Node<'t> {
    name: &'t [u8],
    compatible: &'t [u8],
    device_type: &'t [u8],
    reg: &'t [u8],
    ranges: Option<&'t [u8]>,
    interrupts: &'t [u8],
    enable_method: &'t [u8],
    method: &'t [u8],
    status: &'t [u8],
    address_cells: u32,
    size_cells: u32,
    interrupt_cells: u32,
    regions: u32,
    cpu_on: Option<u32>,
    /// Whether all its properties have been seen.
    is_settled: bool,
}

impl<'t> Node<'t> {
    const EMPTY: Node<'static> = Node {
        name: &[],
        compatible: &[],
        device_type: &[],
        reg: &[],
        ranges: None,
        interrupts: &[],
        enable_method: &[],
        method: &[],
        status: &[],
        address_cells: ADDRESS_CELLS,
        size_cells: SIZE_CELLS,
        interrupt_cells: 0,
        regions: 1,
        cpu_on: None,
        is_settled: false,
    };

    /// Takes note of a property.
    fn property(&mut self, name: &[u8], value: &'t [u8]) {
        let cell = || number(value).unwrap_or(u32::MAX);
        match name {
            b"compatible" => self.compatible = value,
            b"device_type" => self.device_type = value,
            b"reg" => self.reg = value,
            b"ranges" => self.ranges = Some(value),
            b"interrupts" => self.interrupts = value,
            b"enable-method" => self.enable_method = value,
            b"method" => self.method = value,
            b"status" => self.status = value,
            b"#address-cells" => self.address_cells = cell(),
            b"#size-cells" => self.size_cells = cell(),
            b"#interrupt-cells" => self.interrupt_cells = cell(),
            b"#redistributor-regions" => self.regions = cell(),
            b"cpu_on" => self.cpu_on = number(value),
            _ => {}
        }
    }

    /// Whether the node is compatible with one of `names`.
    fn is(&self, names: &[&[u8]]) -> bool {
        strings(self.compatible).any(|has| names.contains(&has))
    }

    /// Whether the device can be used.
    fn is_usable(&self) -> bool {
        self.status.is_empty() || matches!(text(self.status), b"okay" | b"ok")
    }

    /// Whether `part` of a path names it: the unit's address can be left out.
    fn is_named(&self, part: &[u8]) -> bool {
        self.name == part || before(self.name, b'@') == part
    }
}

/// The strings of a list, each with a zero at its end.
fn strings(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == 0).filter(|it| !it.is_empty())
}

/// The first string of a value.
fn text(value: &[u8]) -> &[u8] {
    before(value, 0)
}

/// What is before the first `end`, or all.
fn before(bytes: &[u8], end: u8) -> &[u8] {
    bytes.split(|&byte| byte == end).next().unwrap_or(bytes)
}

/// The number of `cells` cells at the beginning of `bytes`, and the rest.
fn take(bytes: &[u8], cells: u32) -> Result<(u64, &[u8]), Error> {
    let (value, size) = match cells {
        0 => (Some(0), 0),
        1 => (number(bytes).map(u64::from), 4),
        2 => (long(bytes), 8),
        _ => return Err(Error::Cells),
    };
    match (value, bytes.get(size..)) {
        (Some(value), Some(rest)) => Ok((value, rest)),
        _ => Err(Error::Reg),
    }
}

/// The nodes that have not ended, from the root.
struct Chain<'t> {
    nodes: [Node<'t>; DEPTH],
    depth: usize,
}

impl<'t> Chain<'t> {
    /// Node `depth` of the chain; the root is 0.
    fn at(&self, depth: usize) -> Option<&Node<'t>> {
        self.nodes.get(..self.depth)?.get(depth)
    }

    /// The node that is the `up`th from the last, which is 0.
    fn up(&self, up: usize) -> Option<&Node<'t>> {
        self.at(self.depth.checked_sub(up.wrapping_add(1))?)
    }

    /// Whether the last node is where `path` leads.
    fn is_at(&self, path: &[u8]) -> bool {
        let mut depth = 0usize;
        for part in path.split(|&byte| byte == b'/').filter(|it| !it.is_empty()) {
            depth = depth.wrapping_add(1);
            if !self.at(depth).is_some_and(|node| node.is_named(part)) {
                return false;
            }
        }
        depth.wrapping_add(1) == self.depth && depth > 0
    }

    /// Calls `each` with the ranges of the last node's `reg`, as processors see them; nothing, where they see
    /// none of it.
    fn reg(&self, mut each: impl FnMut(Range) -> Result<(), Error>) -> Result<(), Error> {
        let (Some(node), Some(parent)) = (self.up(0), self.up(1)) else {
            return Ok(());
        };
        let mut rest = node.reg;
        // An entry without cells would never end.
        if parent.address_cells == 0 && parent.size_cells == 0 {
            return Ok(());
        }
        while !rest.is_empty() {
            let (start, more) = take(rest, parent.address_cells)?;
            let (size, more) = take(more, parent.size_cells)?;
            rest = more;
            let end = start.checked_add(size).ok_or(Error::AddressWraps)?;
            if let Some(range) = self.translate(Range { start, end })? {
                each(range)?;
            }
        }
        Ok(())
    }

    /// What processors have in place of `range`, which is in the address space of the last node's parent.
    fn translate(&self, range: Range) -> Result<Option<Range>, Error> {
        let mut range = range;
        let mut up = 1;
        while let (Some(bus), Some(above)) = (self.up(up), self.up(up + 1)) {
            let Some(mut rest) = bus.ranges else {
                return Ok(None);
            };
            let mut found = rest.is_empty().then_some(range);
            if bus.address_cells == 0 {
                return Err(Error::Ranges);
            }
            while !rest.is_empty() {
                let (child, more) = take(rest, bus.address_cells).map_err(ranges)?;
                let (parent, more) = take(more, above.address_cells).map_err(ranges)?;
                let (size, more) = take(more, bus.size_cells).map_err(ranges)?;
                rest = more;
                let end = child.checked_add(size).ok_or(Error::AddressWraps)?;
                if child <= range.start && range.end <= end {
                    let moved = |address: u64| {
                        let offset = address.wrapping_sub(child);
                        parent.checked_add(offset).ok_or(Error::AddressWraps)
                    };
                    found = Some(Range {
                        start: moved(range.start)?,
                        end: moved(range.end)?,
                    });
                }
            }
            let Some(translated) = found else {
                return Ok(None);
            };
            range = translated;
            up += 1;
        }
        Ok(Some(range))
    }
}

/// An error in a `ranges`.
fn ranges(error: Error) -> Error {
    match error {
        Error::Reg => Error::Ranges,
        other => other,
    }
}

/// What has been found so far.
struct Reader<'t> {
    memory: List<Range, MOST_RANGES>,
    reserved: List<Range, MOST_RANGES>,
    max_irq: u64,
    controller: Option<Controller>,
    interrupt_cells: u32,
    timer: Option<&'t [u8]>,
    console: Option<(Uart, u64)>,
    /// Whether that is the one that was chosen.
    is_chosen: bool,
    cores: List<Processor, MOST_CORES>,
    psci: Option<Psci>,
    /// Where the console is, or by which alias that is known.
    path: &'t [u8],
    root_task: [Option<&'t [u8]>; 2],
}

impl<'t> Reader<'t> {
    fn new() -> Self {
        Reader {
            memory: List::new(),
            reserved: List::new(),
            max_irq: MAX_IRQ,
            controller: None,
            interrupt_cells: 0,
            timer: None,
            console: None,
            is_chosen: false,
            cores: List::new(),
            psci: None,
            path: &[],
            root_task: [None; 2],
        }
    }

    /// Reads all that is to be found.
    fn read(&mut self, tree: &Tree<'t>) -> Result<(), Error> {
        for entry in tree.reservations() {
            self.reserve(entry?)?;
        }
        for pass in [Pass::Chosen, Pass::Alias, Pass::Devices] {
            self.walk(tree, pass)?;
        }
        Ok(())
    }

    fn reserve(&mut self, range: Range) -> Result<(), Error> {
        let pushed = range.is_empty() || self.reserved.push(range).is_ok();
        pushed.then_some(()).ok_or(Error::TooManyReserved)
    }

    /// Walks through the whole tree.
    fn walk(&mut self, tree: &Tree<'t>, pass: Pass) -> Result<(), Error> {
        let mut chain = Chain {
            nodes: [Node::EMPTY; DEPTH],
            depth: 0,
        };
        let mut has_root = false;
        let mut tokens = tree.tokens();
        // Each turn consumes a token.
        while let Some(token) = tokens.next()? {
            match token {
                Token::Begin(name) => {
                    if chain.depth == 0 && has_root {
                        return Err(Error::SecondRoot);
                    }
                    has_root = true;
                    self.settle(&mut chain, pass)?;
                    let place = chain.nodes.get_mut(chain.depth).ok_or(Error::TooDeep)?;
                    *place = Node {
                        name,
                        ..Node::EMPTY
                    };
                    chain.depth = chain.depth.wrapping_add(1);
                }
                Token::Property { name, value } => {
                    let last = chain.depth.checked_sub(1).ok_or(Error::PropertyOutside)?;
                    if let Some(node) = chain.nodes.get_mut(last) {
                        if node.is_settled {
                            return Err(Error::PropertyLate);
                        }
                        node.property(name, value);
                    }
                    self.property(&chain, pass, name, value);
                }
                Token::End => {
                    self.settle(&mut chain, pass)?;
                    chain.depth = chain.depth.checked_sub(1).ok_or(Error::ExtraEnd)?;
                }
            }
        }
        if chain.depth > 0 || !has_root {
            return Err(Error::NoRoot);
        }
        Ok(())
    }

    /// A property of the last node of the chain, in the walks that are about single properties.
    fn property(&mut self, chain: &Chain, pass: Pass, name: &[u8], value: &'t [u8]) {
        match pass {
            Pass::Chosen if chain.is_at(b"/chosen") => match name {
                // Behind a colon are the rate and format of a serial port.
                b"stdout-path" => self.path = before(text(value), b':'),
                b"linux,initrd-start" => self.root_task[0] = Some(value),
                b"linux,initrd-end" => self.root_task[1] = Some(value),
                _ => {}
            },
            Pass::Alias if name == self.path && chain.is_at(b"/aliases") => {
                self.path = text(value);
            }
            _ => {}
        }
    }

    /// All properties of the last node have been seen.
    fn settle(&mut self, chain: &mut Chain<'t>, pass: Pass) -> Result<(), Error> {
        let Some(last) = chain.depth.checked_sub(1) else {
            return Ok(());
        };
        let was_settled = match chain.nodes.get_mut(last) {
            Some(node) => core::mem::replace(&mut node.is_settled, true),
            None => true,
        };
        if was_settled || pass != Pass::Devices {
            return Ok(());
        }
        self.device(chain)
    }

    /// The last node, of which everything is known.
    fn device(&mut self, chain: &Chain<'t>) -> Result<(), Error> {
        let Some(node) = chain.up(0) else {
            return Ok(());
        };
        let Some(parent) = chain.up(1) else {
            let known = INTERRUPTS.iter().find(|(board, _)| node.is(&[board]));
            self.max_irq = known.map_or(MAX_IRQ, |&(_, max)| max);
            return Ok(());
        };
        if !node.is_usable() {
            return Ok(());
        }
        let is_below = |name: &[u8]| chain.depth == 3 && parent.is_named(name);
        if text(node.device_type) == b"memory" {
            return chain.reg(|range| {
                let pushed = range.is_empty() || self.memory.push(range).is_ok();
                pushed.then_some(()).ok_or(Error::TooMuchMemory)
            });
        }
        if is_below(b"reserved-memory") {
            return chain.reg(|range| self.reserve(range));
        }
        if is_below(b"cpus") && text(node.device_type) == b"cpu" {
            let (affinity, _) = take(node.reg, parent.address_cells)?;
            let by_psci = strings(node.enable_method).any(|method| method == b"psci");
            // More than the kernel has room for are left as they are.
            let _ = self.cores.push(Processor { affinity, by_psci });
            return Ok(());
        }
        if node.is(&[b"arm,psci-1.0", b"arm,psci-0.2", b"arm,psci"]) {
            self.set_psci(node);
        } else if node.is(&[b"arm,armv8-timer"]) {
            self.timer = Some(node.interrupts);
        } else if node.is(&[b"arm,gic-v3"]) {
            self.set_controller(node, chain, true)?;
        } else if node.is(&[b"arm,gic-400", b"arm,cortex-a15-gic", b"arm,cortex-a7-gic"]) {
            self.set_controller(node, chain, false)?;
        } else if node.is(&[b"arm,pl011"]) {
            self.set_console(Uart::Pl011, chain)?;
        } else if node.is(&[b"cdns,uart-r1p12", b"cdns,uart-r1p8", b"xlnx,xuartps"]) {
            self.set_console(Uart::Cadence, chain)?;
        }
        Ok(())
    }

    fn set_psci(&mut self, node: &Node) {
        let conduit = match text(node.method) {
            b"hvc" => Conduit::Hvc,
            b"smc" => Conduit::Smc,
            _ => return,
        };
        // Before version 0.2 each machine had numbers of its own.
        let cpu_on = if node.is(&[b"arm,psci-1.0", b"arm,psci-0.2"]) {
            Some(PSCI_CPU_ON)
        } else {
            node.cpu_on
        };
        self.psci = cpu_on.map(|cpu_on| Psci { conduit, cpu_on });
    }

    /// The first controller counts: others are behind it.
    fn set_controller(&mut self, node: &Node, chain: &Chain, is_gic3: bool) -> Result<(), Error> {
        if self.controller.is_some() {
            return Ok(());
        }
        const NONE: Range = Range { start: 0, end: 0 };
        let mut parts = [NONE; MOST_REGIONS + 1];
        let mut count = 0usize;
        chain.reg(|range| {
            if range.start % PAGE_SIZE != 0 {
                return Err(Error::ControllerReg);
            }
            if let Some(part) = parts.get_mut(count) {
                *part = range;
            }
            count = count.wrapping_add(1);
            Ok(())
        })?;
        let [distributor, regions @ ..] = parts;
        if distributor.is_empty() || regions[0].is_empty() {
            return Err(Error::ControllerReg);
        }
        self.controller = Some(if is_gic3 {
            let mut redistributors = [NONE; MOST_REGIONS];
            let told = redistributors.iter_mut().zip(regions);
            // Behind the redistributors are the registers of compatible interfaces.
            for (place, region) in told.take(node.regions as usize) {
                *place = region;
            }
            Controller::Gic3 {
                distributor: distributor.start,
                redistributors,
            }
        } else {
            let withheld = |part: Range| {
                let first = part.start.saturating_add(PAGE_SIZE);
                Range {
                    start: part.start,
                    end: if node.is(REPEATED) {
                        first.max(part.end)
                    } else {
                        first
                    },
                }
            };
            Controller::Gic2 {
                distributor: withheld(distributor),
                interface: withheld(regions[0]),
            }
        });
        self.interrupt_cells = node.interrupt_cells;
        Ok(())
    }

    /// The console is the one that was chosen; if that is none that is known, the first one.
    fn set_console(&mut self, uart: Uart, chain: &Chain) -> Result<(), Error> {
        let is_chosen = chain.is_at(self.path);
        if self.is_chosen || (self.console.is_some() && !is_chosen) {
            return Ok(());
        }
        let mut first = None;
        chain.reg(|range| {
            first = first.or(Some(range.start));
            Ok(())
        })?;
        if let Some(paddr) = first {
            self.console = Some((uart, paddr));
            self.is_chosen = is_chosen;
        }
        Ok(())
    }

    fn finish(self) -> Result<Board, Error> {
        if self.memory.is_empty() {
            return Err(Error::NoMemory);
        }
        let controller = self.controller.ok_or(Error::NoController)?;
        let is_memory = |part: Range| self.memory.iter().any(|memory| memory.overlaps(part));
        if controller.parts().into_iter().any(is_memory) {
            return Err(Error::ControllerInMemory);
        }
        if self.interrupt_cells < 3 || self.interrupt_cells > 8 {
            return Err(Error::InterruptCells);
        }
        let timer = timer_interrupt(
            self.timer.ok_or(Error::NoTimer)?,
            self.interrupt_cells as usize,
        );
        if self.cores.is_empty() {
            return Err(Error::NoCores);
        }
        Ok(Board {
            memory: self.memory,
            reserved: self.reserved,
            max_irq: self.max_irq,
            controller,
            timer: timer.ok_or(Error::TimerInterrupts)?,
            cores: self.cores,
            psci: self.psci,
            root_task: root_task(self.root_task)?,
        })
    }
}

/// Number of the virtual timer's interrupt, in the list of the timer's interrupts of so many cells.
fn timer_interrupt(interrupts: &[u8], cells: usize) -> Option<u32> {
    let interrupt = interrupts.get(VIRTUAL_TIMER.wrapping_mul(cells).wrapping_mul(4)..)?;
    let kind = number(interrupt)?;
    let index = number(interrupt.get(4..)?)?;
    (kind == PRIVATE && index < PRIVATES).then(|| index.wrapping_add(FIRST_PRIVATE))
}

/// The range of the root task's file, if the loader has told it.
fn root_task(told: [Option<&[u8]>; 2]) -> Result<Option<Range>, Error> {
    // Loaders write one cell or two.
    let address = |value: &[u8]| match value.len() {
        4 => number(value).map(u64::from),
        8 => long(value),
        _ => None,
    };
    let [start, end] = match told {
        [None, None] => return Ok(None),
        told => told.map(|value| value.and_then(address)),
    };
    let (Some(start), Some(end)) = (start, end) else {
        return Err(Error::RootTask);
    };
    if end <= start {
        return Err(Error::RootTaskEmpty);
    }
    Ok(Some(Range { start, end }))
}

#[cfg(test)]
#[path = "board/tests.rs"]
mod tests;
