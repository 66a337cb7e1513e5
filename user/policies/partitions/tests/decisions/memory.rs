//! Memory for queues.

use sandglass_partitions::queue::{integers, List, Memory, Node};

pub struct Owned {
    lists: Vec<List>,
    bits: Vec<u64>,
    nodes: Vec<Node>,
}

impl Owned {
    pub fn new(slots: usize, elements: usize) -> Self {
        Self {
            lists: vec![List::default(); 2 * slots],
            bits: vec![0; integers(slots)],
            nodes: vec![Node::default(); elements],
        }
    }

    pub fn lend(&mut self) -> Memory<'_> {
        Memory {
            lists: &mut self.lists,
            bits: &mut self.bits,
            nodes: &mut self.nodes,
        }
    }
}
