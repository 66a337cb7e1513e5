//! Device trees: how they are read, and what they tell of a board. For machines that have one; and on hosts whatever the
//! architecture is, since it is nothing but a function of bytes.

/// Bytes of a page.
pub const PAGE_SIZE: u64 = 4096;

pub mod board;
pub mod ram;
pub mod tree;
