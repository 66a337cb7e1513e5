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

/// The properties of which a node is remembered to have them, by their place in [`NAMES`].
#[derive(Clone, Copy)]
enum Property {
    Compatible,
    DeviceType,
    Reg,
    Ranges,
    Interrupts,
    EnableMethod,
    Method,
    Status,
    AddressCells,
    SizeCells,
    InterruptCells,
    Regions,
    CpuOn,
}

const PROPERTIES: usize = Property::CpuOn as usize + 1;

/// What they are called.
const NAMES: [&[u8]; PROPERTIES] = [
    b"compatible",
    b"device_type",
    b"reg",
    b"ranges",
    b"interrupts",
    b"enable-method",
    b"method",
    b"status",
    b"#address-cells",
    b"#size-cells",
    b"#interrupt-cells",
    b"#redistributor-regions",
    b"cpu_on",
];

/// What is remembered of a node that has not ended.
#[derive(Clone, Copy)]
struct Node<'t> {
    name: &'t [u8],
    values: [Option<&'t [u8]>; PROPERTIES],
    /// Whether all its properties have been seen.
    is_settled: bool,
}

impl<'t> Node<'t> {
    const EMPTY: Node<'static> = Node {
        name: &[],
        values: [None; PROPERTIES],
        is_settled: false,
    };

    /// Takes note of a property.
    fn property(&mut self, name: &[u8], value: &'t [u8]) {
        let mut places = self.values.iter_mut().zip(NAMES);
        if let Some((place, _)) = places.find(|(_, known)| same(known, name)) {
            *place = Some(value);
        }
    }

    /// What it has; nothing is as good as an empty value.
    fn value(&self, property: Property) -> &'t [u8] {
        self.values[property as usize].unwrap_or_default()
    }

    /// A property that is one number, or what it is without it.
    #[inline(never)]
    fn cell(&self, property: Property, otherwise: u32) -> u32 {
        match self.values[property as usize] {
            Some(value) => number(value).unwrap_or(u32::MAX),
            None => otherwise,
        }
    }

    /// Cells of an address in the node.
    fn address_cells(&self) -> u32 {
        self.cell(Property::AddressCells, ADDRESS_CELLS)
    }

    /// Cells of a size in the node.
    fn size_cells(&self) -> u32 {
        self.cell(Property::SizeCells, SIZE_CELLS)
    }

    /// Whether the first string of a property is `expected`.
    fn says(&self, property: Property, expected: &[u8]) -> bool {
        same(text(self.value(property)), expected)
    }

    /// Whether the node is compatible with one of `names`.
    fn is(&self, names: &[&[u8]]) -> bool {
        strings(self.value(Property::Compatible))
            .any(|has| names.iter().any(|name| same(name, has)))
    }

    /// Whether the device can be used.
    fn is_usable(&self) -> bool {
        self.value(Property::Status).is_empty()
            || self.says(Property::Status, b"okay")
            || self.says(Property::Status, b"ok")
    }

    /// Whether `part` of a path names it: the unit's address can be left out.
    fn is_named(&self, part: &[u8]) -> bool {
        same(self.name, part) || same(before(self.name, b'@'), part)
    }
}

/// The strings of a list, each with a zero at its end.
fn strings(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == 0).filter(|it| !it.is_empty())
}

/// Whether the two have the same bytes: in one place, not in each that asks.
#[inline(never)]
fn same(a: &[u8], b: &[u8]) -> bool {
    a == b
}

/// The first string of a value.
#[inline(never)]
fn text(value: &[u8]) -> &[u8] {
    before(value, 0)
}

/// What is before the first `end`, or all.
#[inline(never)]
fn before(bytes: &[u8], end: u8) -> &[u8] {
    bytes.split(|&byte| byte == end).next().unwrap_or(bytes)
}

/// The number of `cells` cells at the beginning of `bytes`, and the rest.
#[inline(never)]
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

    /// The entries of the last node's `reg`.
    fn reg(&self) -> Reg<'_, 't> {
        let rest = match (self.up(0), self.up(1)) {
            // An entry without cells would never end.
            (Some(node), Some(parent)) if parent.address_cells() > 0 || parent.size_cells() > 0 => {
                node.value(Property::Reg)
            }
            _ => &[],
        };
        Reg { chain: self, rest }
    }

    /// What processors have in place of `range`, which is in the address space of the last node's parent.
    fn translate(&self, range: Range) -> Result<Option<Range>, Error> {
        let mut range = range;
        let mut up = 1;
        while let (Some(bus), Some(above)) = (self.up(up), self.up(up + 1)) {
            let Some(mut rest) = bus.values[Property::Ranges as usize] else {
                return Ok(None);
            };
            let mut found = rest.is_empty().then_some(range);
            let (cells, size_cells) = (bus.address_cells(), bus.size_cells());
            if cells == 0 {
                return Err(Error::Ranges);
            }
            while !rest.is_empty() {
                let (child, more) = take(rest, cells).map_err(ranges)?;
                let (parent, more) = take(more, above.address_cells()).map_err(ranges)?;
                let (size, more) = take(more, size_cells).map_err(ranges)?;
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

/// What is left of the `reg` of a chain's last node.
struct Reg<'c, 't> {
    chain: &'c Chain<'t>,
    rest: &'t [u8],
}

impl Reg<'_, '_> {
    /// The next range as processors see it, passing those of which they see nothing; `None` at the end.
    ///
    /// # Errors
    /// The entry, or a `ranges` on the way to the processors, is wrong.
    #[inline(never)]
    fn next(&mut self) -> Result<Option<Range>, Error> {
        // Each turn consumes an entry.
        while let (false, Some(parent)) = (self.rest.is_empty(), self.chain.up(1)) {
            let (start, more) = take(self.rest, parent.address_cells())?;
            let (size, more) = take(more, parent.size_cells())?;
            self.rest = more;
            let end = start.checked_add(size).ok_or(Error::AddressWraps)?;
            let seen = self.chain.translate(Range { start, end })?;
            if seen.is_some() {
                return Ok(seen);
            }
        }
        Ok(None)
    }
}

/// An error in a `ranges`.
fn ranges(error: Error) -> Error {
    match error {
        Error::Reg => Error::Ranges,
        other => other,
    }
}

/// Adds `range` to `list`, unless it is empty.
///
/// # Errors
/// `full`, if the list is.
#[inline(never)]
fn put(list: &mut List<Range, MOST_RANGES>, range: Range, full: Error) -> Result<(), Error> {
    let pushed = range.is_empty() || list.push(range).is_ok();
    pushed.then_some(()).ok_or(full)
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
            put(&mut self.reserved, entry?, Error::TooManyReserved)?;
        }
        for pass in [Pass::Chosen, Pass::Alias, Pass::Devices] {
            self.walk(tree, pass)?;
        }
        Ok(())
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
            Pass::Chosen if chain.is_at(b"/chosen") => {
                if same(name, b"stdout-path") {
                    // Behind a colon are the rate and format of a serial port.
                    self.path = before(text(value), b':');
                } else if same(name, b"linux,initrd-start") {
                    self.root_task[0] = Some(value);
                } else if same(name, b"linux,initrd-end") {
                    self.root_task[1] = Some(value);
                }
            }
            Pass::Alias if same(name, self.path) && chain.is_at(b"/aliases") => {
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
        let mut reg = chain.reg();
        if node.says(Property::DeviceType, b"memory") {
            while let Some(range) = reg.next()? {
                put(&mut self.memory, range, Error::TooMuchMemory)?;
            }
            return Ok(());
        }
        if is_below(b"reserved-memory") {
            while let Some(range) = reg.next()? {
                put(&mut self.reserved, range, Error::TooManyReserved)?;
            }
            return Ok(());
        }
        if is_below(b"cpus") && node.says(Property::DeviceType, b"cpu") {
            let (affinity, _) = take(node.value(Property::Reg), parent.address_cells())?;
            let methods = node.value(Property::EnableMethod);
            let by_psci = strings(methods).any(|method| same(method, b"psci"));
            // More than the kernel has room for are left as they are.
            let _ = self.cores.push(Processor { affinity, by_psci });
            return Ok(());
        }
        if node.is(&[b"arm,psci-1.0", b"arm,psci-0.2", b"arm,psci"]) {
            self.set_psci(node);
        } else if node.is(&[b"arm,armv8-timer"]) {
            self.timer = Some(node.value(Property::Interrupts));
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
        let conduit = if node.says(Property::Method, b"hvc") {
            Conduit::Hvc
        } else if node.says(Property::Method, b"smc") {
            Conduit::Smc
        } else {
            return;
        };
        // Before version 0.2 each machine had numbers of its own.
        let cpu_on = if node.is(&[b"arm,psci-1.0", b"arm,psci-0.2"]) {
            Some(PSCI_CPU_ON)
        } else {
            node.values[Property::CpuOn as usize].and_then(number)
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
        let mut places = parts.iter_mut();
        let mut reg = chain.reg();
        while let Some(range) = reg.next()? {
            if range.start % PAGE_SIZE != 0 {
                return Err(Error::ControllerReg);
            }
            if let Some(part) = places.next() {
                *part = range;
            }
        }
        let [distributor, regions @ ..] = parts;
        if distributor.is_empty() || regions[0].is_empty() {
            return Err(Error::ControllerReg);
        }
        self.controller = Some(if is_gic3 {
            let mut redistributors = [NONE; MOST_REGIONS];
            let told = redistributors.iter_mut().zip(regions);
            // Behind the redistributors are the registers of compatible interfaces.
            for (place, region) in told.take(node.cell(Property::Regions, 1) as usize) {
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
        self.interrupt_cells = node.cell(Property::InterruptCells, 0);
        Ok(())
    }

    /// The console is the one that was chosen; if that is none that is known, the first one.
    fn set_console(&mut self, uart: Uart, chain: &Chain) -> Result<(), Error> {
        let is_chosen = chain.is_at(self.path);
        if self.is_chosen || (self.console.is_some() && !is_chosen) {
            return Ok(());
        }
        let mut reg = chain.reg();
        let first = reg.next()?;
        // The others must be right, too.
        while reg.next()?.is_some() {}
        if let Some(first) = first {
            self.console = Some((uart, first.start));
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
