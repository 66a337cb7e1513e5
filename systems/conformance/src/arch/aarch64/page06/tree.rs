//! The device tree, as far as checks need it: devices of the root, whose addresses and sizes have two cells.

use crate::prelude::*;

/// A flattened device tree.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    blob: &'a [u8],
}

/// An address and bytes.
pub type Part = (u64, u64);

const MAGIC: u32 = 0xd00d_feed;
const BEGIN: u32 = 1;
const END: u32 = 2;
const PROPERTY: u32 = 3;
const NOTHING: u32 = 4;

impl<'a> Tree<'a> {
    /// The tree in a chunk.
    pub fn new(blob: &'a [u8]) -> Result<Self, Failure> {
        let tree = Self { blob };
        ensure!(blob.len() >= 40 && tree.word(0) == MAGIC, "no device tree");
        Ok(tree)
    }

    /// The bytes that it says that it has.
    pub fn bytes(self) -> usize {
        self.word(4) as usize
    }

    fn word(self, at: usize) -> u32 {
        let bytes = self.blob.get(at..).and_then(|rest| rest.first_chunk());
        u32::from_be_bytes(bytes.copied().unwrap_or_default())
    }

    /// The text at `at`, which ends with a zero.
    fn text(self, at: usize) -> &'a [u8] {
        let rest = self.blob.get(at..).unwrap_or_default();
        rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// The root and the nodes below it, each with its properties: name and value.
    fn nodes(self) -> Vec<Vec<(&'a [u8], &'a [u8])>> {
        let (mut at, strings) = (self.word(8) as usize, self.word(12) as usize);
        let (mut nodes, mut depth): (Vec<Vec<_>>, usize) = (Vec::new(), 0);
        loop {
            let token = self.word(at);
            at += 4;
            match token {
                BEGIN => {
                    at += (self.text(at).len() + 1).next_multiple_of(4);
                    depth += 1;
                    if depth <= 2 {
                        nodes.push(Vec::new());
                    }
                }
                END => depth -= 1,
                PROPERTY => {
                    let length = self.word(at) as usize;
                    let name = self.text(strings + self.word(at + 4) as usize);
                    let value = self.blob.get(at + 8..at + 8 + length).unwrap_or_default();
                    at += 8 + length.next_multiple_of(4);
                    if let (1 | 2, Some(node)) = (depth, nodes.last_mut()) {
                        node.push((name, value));
                    }
                }
                NOTHING => {}
                _ => return nodes,
            }
        }
    }

    /// What `reg` says of the nodes with a property that `chosen` is true of.
    fn parts(self, chosen: impl Fn(&[u8], &[u8]) -> bool) -> Vec<Part> {
        let nodes = self.nodes().into_iter();
        let nodes = nodes.filter(|node| node.iter().any(|&(name, value)| chosen(name, value)));
        let registers = nodes.flat_map(|node| node.into_iter().filter(|&(name, _)| name == b"reg"));
        let double = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |all, &byte| all << 8 | u64::from(byte))
        };
        registers
            .flat_map(|(_, value)| value.chunks_exact(16))
            .map(|part| (double(&part[..8]), double(&part[8..])))
            .collect()
    }

    /// Memory.
    pub fn memory(self) -> Vec<Part> {
        self.parts(|name, value| name == b"device_type" && value.starts_with(b"memory"))
    }

    /// The registers of the device that is compatible with `what`, if there is one.
    pub fn registers(self, what: &str) -> Option<Vec<Part>> {
        let parts = self.parts(|name, value| is_compatible(name, value, what));
        Some(parts).filter(|parts| !parts.is_empty())
    }

    /// Whether the board, or a device of it, is compatible with `what`.
    pub fn has(self, what: &str) -> bool {
        let is_it = |&(name, value): &(&[u8], &[u8])| is_compatible(name, value, what);
        self.nodes().iter().any(|node| node.iter().any(is_it))
    }
}

/// Whether this property says that its node is compatible with `what`.
fn is_compatible(name: &[u8], value: &[u8], what: &str) -> bool {
    let mut texts = value.split(|&byte| byte == 0);
    name == b"compatible" && texts.any(|text| text == what.as_bytes())
}
