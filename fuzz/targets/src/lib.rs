//! What is fuzzed: functions of bytes that panic when a promise is broken.
//!
//! A target takes any bytes, does with the kernel or the tools what they say, and checks what must
//! hold whatever they say. It has no state: the same bytes do the same. The fuzzing engine
//! (`fuzz/engine`) looks for bytes that panic; the tests of this crate replay those that once
//! reached something new (`fuzz/corpus`).

#![forbid(unsafe_op_in_unsafe_fn)]

mod archive;
mod bytes;
mod description;
mod device_tree;
mod loader;
mod lock_step;
mod memory;
mod policies;
mod root_task;
mod system_calls;

/// A function of bytes that keeps its promises, whatever the bytes are.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of its corpus, and on the command line.
    pub name: &'static str,
    /// What the bytes are.
    pub what: &'static str,
    /// Runs it.
    ///
    /// # Panics
    /// A promise is broken.
    pub run: fn(&[u8]),
    /// The bytes as a person reads them.
    pub explain: fn(&[u8]) -> String,
}

/// Those that are in this crate.
const OWN: &[Target] = &[
    system_calls::TARGET,
    lock_step::TARGET,
    root_task::TARGET,
    loader::TARGET,
    description::TARGET,
    archive::TARGET,
    device_tree::TARGET,
];

/// All targets.
pub fn targets() -> impl Iterator<Item = Target> {
    OWN.iter().copied().chain(policies::targets())
}

/// The target called `name`.
pub fn find(name: &str) -> Option<Target> {
    targets().find(|target| target.name == name)
}
