//! Device trees: how they are read, and what they tell of a board. For machines that have one; and on hosts whatever the
//! architecture is, since it is nothing but a function of bytes.

pub mod board;
pub mod tree;
