//! From a machine to the root task (ABI 06).

#![forbid(unsafe_code)]

mod found;
mod list;
mod refusal;

pub use found::{
    Found, Framebuffer, MemoryMapEntry, Range, MAX_MEMORY_MAP, MAX_RAM, MAX_RESERVED,
};
pub use list::List;
pub use refusal::Refusal;
