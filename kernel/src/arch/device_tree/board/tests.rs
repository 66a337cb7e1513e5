//! Device trees, well-made ones and others. The trees are built here: a tree is a header and a list of tokens.

use super::*;
use std::string::String;
use std::vec::Vec;

const NONE: Range = Range { start: 0, end: 0 };

/// A tree while it is built.
#[derive(Clone, Default)]
struct Builder {
    structure: Vec<u8>,
    strings: Vec<u8>,
    reservations: Vec<(u64, u64)>,
}

impl Builder {
    fn word(&mut self, word: u32) -> &mut Self {
        self.structure.extend(word.to_be_bytes());
        self
    }

    fn pad(&mut self) -> &mut Self {
        while !self.structure.len().is_multiple_of(4) {
            self.structure.push(0);
        }
        self
    }

    fn begin(&mut self, name: &str) -> &mut Self {
        self.word(1).structure.extend(name.as_bytes());
        self.structure.push(0);
        self.pad()
    }

    fn end(&mut self) -> &mut Self {
        self.word(2)
    }

    fn bytes(&mut self, name: &str, value: &[u8]) -> &mut Self {
        let at = self.strings.len() as u32;
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
        self.word(3).word(value.len() as u32).word(at);
        self.structure.extend(value);
        self.pad()
    }

    fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.bytes(name, (String::from(value) + "\0").as_bytes())
    }

    fn cells(&mut self, name: &str, cells: &[u32]) -> &mut Self {
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        self.bytes(name, &bytes)
    }

    /// The finished tree: header, reservations, structure, strings.
    fn tree(&self) -> Vec<u8> {
        let mut reservations = Vec::new();
        for (start, size) in self.reservations.iter().copied().chain([(0, 0)]) {
            reservations.extend(u64::to_be_bytes(start));
            reservations.extend(u64::to_be_bytes(size));
        }
        let structure_at = 40 + reservations.len();
        let strings_at = structure_at + self.structure.len();
        let total = strings_at + self.strings.len();
        let header = [
            0xd00d_feed,
            total,
            structure_at,
            strings_at,
            40,
            17,
            16,
            0,
            self.strings.len(),
            self.structure.len(),
        ];
        let header = header.iter().flat_map(|&word| (word as u32).to_be_bytes());
        let mut bytes: Vec<u8> = header.collect();
        bytes.extend(reservations);
        bytes.extend(&self.structure);
        bytes.extend(&self.strings);
        bytes
    }
}

/// What of a board is left out, or done in another way.
#[derive(Clone, Copy, PartialEq)]
enum But {
    Nothing,
    NoMemory,
    NoTimer,
    ShortTimer,
    SharedTimer,
    NoController,
    OneReg,
    OddController,
    ControllerInMemory,
    ConsoleInMemory,
    TwoCells,
    NoCores,
    WideCells,
    HalfReg,
    WrappingMemory,
    ManyMemories,
    OnlyStart,
    EmptyRootTask,
    LateProperty,
    Gic3,
    Disabled,
}

/// The structure of a board like QEMU's, in which the console is on a bus of its own.
fn board(but: But) -> Builder {
    let mut it = Builder::default();
    it.begin("");
    it.cells(
        "#address-cells",
        &[if but == But::WideCells { 3 } else { 2 }],
    );
    it.cells("#size-cells", &[2]);
    if but != But::NoMemory {
        it.begin("memory@40000000").text("device_type", "memory");
        match but {
            But::HalfReg => it.cells("reg", &[0, 0x4000_0000, 0]),
            But::WrappingMemory => it.cells("reg", &[!0, 0, 1, 0]),
            But::ManyMemories => it.cells("reg", &[1; 4 * 17]),
            _ => it.cells("reg", &[0, 0x4000_0000, 0, 0x2000_0000]),
        };
        it.end();
    }
    if but == But::LateProperty {
        it.cells("late", &[1]);
    }
    if but != But::NoTimer {
        it.begin("timer").text("compatible", "arm,armv8-timer");
        match but {
            But::ShortTimer => it.cells("interrupts", &[1, 13, 4, 1, 14, 4]),
            But::SharedTimer => it.cells("interrupts", &[1, 13, 4, 1, 14, 4, 0, 11, 4]),
            _ => it.cells("interrupts", &[1, 13, 4, 1, 14, 4, 1, 11, 4, 1, 10, 4]),
        };
        it.end();
    }
    it.begin("psci");
    it.bytes("compatible", b"arm,psci-1.0\0arm,psci\0");
    it.text("method", "hvc").end();
    if but != But::NoController {
        it.begin("intc@8000000");
        let kind = if but == But::Gic3 {
            "arm,gic-v3"
        } else {
            "arm,cortex-a15-gic"
        };
        it.text("compatible", kind);
        it.cells(
            "#interrupt-cells",
            &[if but == But::TwoCells { 2 } else { 3 }],
        );
        match but {
            But::OneReg => it.cells("reg", &[0, 0x0800_0000, 0, 0x1_0000]),
            But::ControllerInMemory => it.cells(
                "reg",
                &[0, 0x4000_0000, 0, 0x1000, 0, 0x0801_0000, 0, 0x1000],
            ),
            But::OddController => it.cells("reg", &[0, 0x0800_0010, 0, 0x1000, 0, 1, 0, 1]),
            _ => it.cells(
                "reg",
                &[0, 0x0800_0000, 0, 0x1_0000, 0, 0x0801_0000, 0, 0x1_0000],
            ),
        };
        if but == But::Disabled {
            it.text("status", "disabled");
        }
        it.end();
    }
    if but != But::NoCores {
        it.begin("cpus");
        it.cells("#address-cells", &[1]).cells("#size-cells", &[0]);
        for core in 0..2 {
            it.begin(&std::format!("cpu@{core}"));
            it.text("device_type", "cpu").cells("reg", &[core]);
            it.text("enable-method", "psci").end();
        }
        it.end();
    }
    it.begin("bus@9000000");
    it.cells("#address-cells", &[1]).cells("#size-cells", &[1]);
    let bus = match but {
        But::ConsoleInMemory => 0x4900_0000,
        _ => 0x0900_0000,
    };
    it.cells("ranges", &[0, 0, bus, 0x10_0000]);
    for at in [0x1000, 0x2000] {
        it.begin(&std::format!("serial@{at:x}"));
        it.cells("reg", &[at, 0x1000]);
        it.bytes("compatible", b"arm,pl011\0arm,primecell\0").end();
    }
    it.end();
    it.begin("aliases");
    it.text("serial0", "/bus@9000000/serial@2000").end();
    it.begin("reserved-memory");
    it.cells("#address-cells", &[2]).cells("#size-cells", &[2]);
    it.bytes("ranges", &[]);
    it.begin("firmware@50000000");
    it.cells("reg", &[0, 0x5000_0000, 0, 0x1000]).end();
    it.end();
    it.begin("chosen").text("stdout-path", "serial0:115200n8");
    match but {
        But::OnlyStart => it.cells("linux,initrd-start", &[0x4800_0000]),
        But::EmptyRootTask => it
            .cells("linux,initrd-start", &[0x4800_0000])
            .cells("linux,initrd-end", &[0x4800_0000]),
        _ => it
            .cells("linux,initrd-start", &[0x4800_0000])
            .cells("linux,initrd-end", &[0, 0x4800_1234]),
    };
    it.end();
    it.end();
    it.word(9);
    it
}

fn read(bytes: &[u8]) -> Result<Board, Error> {
    Board::read(&Tree::new(bytes)?, &mut None)
}

/// The console of a tree, whatever else is in it.
fn console(bytes: &[u8]) -> Option<(Uart, u64)> {
    let mut console = None;
    let tree = Tree::new(bytes).unwrap_or_else(|error| panic!("{}", error.message()));
    let _ = Board::read(&tree, &mut console);
    console
}

fn error(bytes: &[u8]) -> Error {
    read(bytes).err().expect("the tree is refused")
}

/// `bytes` with another number at `at`.
fn with(mut bytes: Vec<u8>, at: usize, number: u32) -> Vec<u8> {
    bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[test]
fn a_board_is_what_its_tree_says() {
    let mut builder = board(But::Nothing);
    builder.reservations.push((0x4000_0000, 0x1000));
    let bytes = builder.tree();
    let board = read(&bytes).unwrap_or_else(|error| panic!("{}", error.message()));
    let range = |start, end| Range { start, end };
    let memory: Vec<Range> = board.memory.iter().copied().collect();
    assert_eq!(memory, [range(0x4000_0000, 0x6000_0000)]);
    let reserved: Vec<Range> = board.reserved.iter().copied().collect();
    assert_eq!(
        reserved,
        [
            range(0x4000_0000, 0x4000_1000),
            range(0x5000_0000, 0x5000_1000)
        ]
    );
    assert_eq!(
        board.controller,
        Controller::Gic2 {
            distributor: range(0x0800_0000, 0x0800_1000),
            interface: range(0x0801_0000, 0x0801_1000),
        }
    );
    assert_eq!((board.timer, board.max_irq), (27, 159));
    assert_eq!(console(&bytes), Some((Uart::Pl011, 0x0900_2000)));
    assert_eq!(
        board.psci,
        Some(Psci {
            conduit: Conduit::Hvc,
            cpu_on: 0xc400_0003
        })
    );
    let cores: Vec<Processor> = board.cores.iter().copied().collect();
    let core = |affinity| Processor {
        affinity,
        by_psci: true,
    };
    assert_eq!(cores, [core(0), core(1)]);
    assert_eq!(board.root_task, Some(range(0x4800_0000, 0x4800_1234)));
}

#[test]
fn a_console_in_memory_is_none() {
    assert_eq!(console(&board(But::ConsoleInMemory).tree()), None);
}

#[test]
fn a_gic3_has_its_redistributors() {
    let bytes = board(But::Gic3).tree();
    let mut redistributors = [NONE; MOST_REGIONS];
    redistributors[0] = Range {
        start: 0x0801_0000,
        end: 0x0802_0000,
    };
    assert_eq!(
        read(&bytes).unwrap_or_else(|_| panic!()).controller,
        Controller::Gic3 {
            distributor: 0x0800_0000,
            redistributors
        }
    );
}

/// Firmware leaves room in trees, and puts the strings anywhere.
#[test]
fn what_is_used_of_a_tree_ends_with_its_last_part() {
    let mut bytes = board(But::Nothing).tree();
    let used = bytes.len();
    bytes.resize(used + 4096, 0xff);
    let bytes = with(bytes, 4, used as u32 + 4096);
    let tree = Tree::new(&bytes).unwrap_or_else(|_| panic!());
    assert_eq!(tree.used(), used);
    assert!(Board::read(&tree, &mut None).is_ok());
}

#[test]
fn headers_that_lie_are_refused() {
    let good = board(But::Nothing).tree();
    let long = good.len() as u32;
    assert_eq!(error(&[]), Error::NoHeader);
    assert_eq!(error(&good[..3]), Error::NoHeader);
    assert_eq!(error(&good[..6]), Error::NoHeader);
    assert_eq!(error(&good[..39]), Error::Truncated);
    assert_eq!(error(&with(good[..20].to_vec(), 4, 20)), Error::NoHeader);
    assert_eq!(error(&with(good.clone(), 0, 0xd00d_fee0)), Error::Magic);
    assert_eq!(error(&with(good.clone(), 4, long + 1)), Error::Truncated);
    assert_eq!(error(&with(good.clone(), 4, 1 << 30)), Error::TooBig);
    assert_eq!(error(&good[..good.len() - 1]), Error::Truncated);
    assert_eq!(error(&with(good.clone(), 20, 16)), Error::TooOld);
    assert_eq!(error(&with(good.clone(), 24, 18)), Error::TooNew);
    for at in [u32::MAX, long + 4, 58] {
        let bytes = with(good.clone(), 8, at);
        assert_eq!(error(&bytes), Error::StructureOutside, "{at:#x}");
    }
    assert_eq!(
        error(&with(good.clone(), 36, u32::MAX)),
        Error::StructureOutside
    );
    assert_eq!(
        error(&with(good.clone(), 12, u32::MAX)),
        Error::StringsOutside
    );
    assert_eq!(error(&with(good.clone(), 32, long)), Error::StringsOutside);
    assert_eq!(
        error(&with(good.clone(), 16, u32::MAX)),
        Error::ReservationsOutside
    );
    assert_eq!(
        error(&with(good.clone(), 16, long - 8)),
        Error::ReservationsOutside
    );
    let mut builder = board(But::Nothing);
    builder.reservations.push((u64::MAX, 2));
    assert_eq!(error(&builder.tree()), Error::AddressWraps);
}

#[test]
fn structures_that_are_none_are_refused() {
    let build = |tokens: fn(&mut Builder) -> &mut Builder| {
        let mut builder = Builder::default();
        tokens(&mut builder);
        error(&builder.tree())
    };
    assert_eq!(build(|it| it), Error::StructureEnds);
    assert_eq!(build(|it| it.begin("")), Error::StructureEnds);
    assert_eq!(build(|it| it.word(9)), Error::NoRoot);
    assert_eq!(build(|it| it.begin("").word(9)), Error::NoRoot);
    assert_eq!(build(|it| it.word(5)), Error::Token);
    assert_eq!(build(|it| it.end()), Error::ExtraEnd);
    assert_eq!(build(|it| it.begin("").end().begin("")), Error::SecondRoot);
    assert_eq!(build(|it| it.cells("early", &[1])), Error::PropertyOutside);
    assert_eq!(build(|it| it.word(1).word(0x6161_6161)), Error::NodeName);
    assert_eq!(
        build(|it| it.begin("").word(3).word(u32::MAX).word(0)),
        Error::PropertyEnds
    );
    assert_eq!(
        build(|it| it.begin("").word(3).word(0)),
        Error::PropertyEnds
    );
    assert_eq!(
        build(|it| it.begin("").word(3).word(0).word(77)),
        Error::PropertyName
    );
    let deep = build(|it| {
        for _ in 0..DEPTH + 1 {
            it.begin("deeper");
        }
        it
    });
    assert_eq!(deep, Error::TooDeep);
    assert_eq!(error(&board(But::LateProperty).tree()), Error::PropertyLate);
}

#[test]
fn boards_that_lack_something_are_refused() {
    for (but, right) in [
        (But::NoMemory, Error::NoMemory),
        (But::NoTimer, Error::NoTimer),
        (But::ShortTimer, Error::TimerInterrupts),
        (But::SharedTimer, Error::TimerInterrupts),
        (But::NoController, Error::NoController),
        (But::Disabled, Error::NoController),
        (But::OneReg, Error::ControllerReg),
        (But::OddController, Error::ControllerReg),
        (But::ControllerInMemory, Error::ControllerInMemory),
        (But::TwoCells, Error::InterruptCells),
        (But::NoCores, Error::NoCores),
        (But::WideCells, Error::Cells),
        (But::HalfReg, Error::Reg),
        (But::WrappingMemory, Error::AddressWraps),
        (But::ManyMemories, Error::TooMuchMemory),
        (But::OnlyStart, Error::RootTask),
        (But::EmptyRootTask, Error::RootTaskEmpty),
    ] {
        let bytes = board(but).tree();
        assert_eq!(error(&bytes), right);
        let found = console(&bytes).is_some();
        assert!(found || right != Error::NoMemory, "somebody can be told");
    }
    let mut many = board(But::Nothing);
    many.reservations = std::vec![(0x1000, 0x1000); MOST_RANGES];
    assert_eq!(error(&many.tree()), Error::TooManyReserved);
}

/// No tree makes the reader panic or go on for ever, wherever it was damaged or cut.
#[test]
fn damaged_trees_are_read_or_refused() {
    let good = board(But::Nothing).tree();
    for end in 0..good.len() {
        let cut = with(good.clone(), 4, end as u32);
        let _ = read(&cut[..end.max(8)]);
    }
    for at in (0..good.len() - 3).step_by(4) {
        for number in [0, 1, 3, 9, 0xffff, 0x7fff_ffff, u32::MAX] {
            let _ = read(&with(good.clone(), at, number));
        }
    }
}
