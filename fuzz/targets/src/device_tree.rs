//! Device trees: what a board's loader says that there is, as any bytes.

use sandglass_kernel::arch::device_tree::board::{Board, Controller};
use sandglass_kernel::arch::device_tree::ram::{around, lowest, whole_pages};
use sandglass_kernel::arch::device_tree::tree::{Error, Tree, HEADER, MOST_BYTES};
use sandglass_kernel::arch::device_tree::PAGE_SIZE;
use sandglass_kernel::boot::Range;

use crate::Target;

pub const TARGET: Target = Target {
    name: "device-tree",
    what: "a device tree",
    run,
    explain,
};

/// The end of what the kernel reaches.
const LIMIT: u64 = 510 << 30;

/// Numbers of the header, by their index, that a tree of so many bytes has.
fn header(bytes: usize) -> [(usize, u32); 4] {
    [(0, 0xd00d_feed), (1, bytes as u32), (5, 17), (6, 16)]
}

/// The input with a header that is right in what fuzzers do not find, if it has room for one.
fn repaired(input: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = input.to_vec();
    if bytes.len() < HEADER || bytes.len() > MOST_BYTES {
        return None;
    }
    for (index, number) in header(input.len()) {
        bytes[4 * index..4 * index + 4].copy_from_slice(&number.to_be_bytes());
    }
    Some(bytes)
}

/// The board of a tree.
fn read(bytes: &[u8]) -> Result<Board, Error> {
    let tree = Tree::new(bytes)?;
    assert!((HEADER..=bytes.len()).contains(&tree.used()));
    let mut tokens = tree.tokens();
    let mut count = 0;
    while let Ok(Some(_)) = tokens.next() {
        count += 1;
    }
    assert!(count <= bytes.len() / 4, "a token has 4 bytes at least");
    Board::read(&tree, &mut None)
}

/// It is refused in words, or there is a board that can be booted.
fn run(input: &[u8]) {
    let repaired = repaired(input);
    for bytes in [Some(input), repaired.as_deref()].into_iter().flatten() {
        match read(bytes) {
            Ok(board) => check(&board),
            Err(error) => assert!(!error.message().is_empty()),
        }
    }
}

/// What a boot relies on.
fn check(board: &Board) {
    assert!(board.memory.iter().all(|range| !range.is_empty()));
    assert!(board.cores.iter().next().is_some());
    assert!((16..32).contains(&board.timer));
    let registers = match board.controller {
        Controller::Gic2 {
            distributor,
            interface,
        } => [distributor, interface],
        Controller::Gic3 {
            distributor,
            redistributors,
        } => [
            around(Range {
                start: distributor,
                end: distributor,
            }),
            redistributors[0],
        ],
    };
    for part in registers {
        assert_eq!(part.start % PAGE_SIZE, 0);
    }
    if let Some(file) = board.root_task {
        assert!(!file.is_empty());
    }
    check_ram(board);
}

/// What is left of the memory for the kernel to give away comes once.
fn check_ram(board: &Board) {
    let pieces = board.memory.iter().map(|&piece| whole_pages(piece, LIMIT));
    let pieces: Vec<Range> = pieces.collect();
    let holes: Vec<Range> = board.reserved.iter().copied().map(around).collect();
    let mut from = 0;
    let mut count = 0;
    while let Some(ram) = lowest(&pieces, &holes, from) {
        assert!(!ram.is_empty() && ram.start >= from.max(PAGE_SIZE) && ram.end <= LIMIT);
        assert_eq!((ram.start % PAGE_SIZE, ram.end % PAGE_SIZE), (0, 0));
        assert!(holes.iter().all(|hole| !hole.overlaps(ram)));
        from = ram.end;
        count += 1;
        assert!(
            count <= 33,
            "each piece begins with a piece or behind a hole"
        );
    }
}

fn explain(input: &[u8]) -> String {
    let mut lines = String::new();
    let repaired = repaired(input);
    for (what, bytes) in [("as it is", Some(input)), ("repaired", repaired.as_deref())] {
        let Some(bytes) = bytes else { continue };
        let said = match read(bytes) {
            Ok(board) => format!(
                "{} pieces of memory, {} cores, {:x?}",
                board.memory.iter().count(),
                board.cores.iter().count(),
                board.controller
            ),
            Err(error) => error.message().to_owned(),
        };
        lines.push_str(&format!("{what}: {said}\n"));
    }
    lines
}
