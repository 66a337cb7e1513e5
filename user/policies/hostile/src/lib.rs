//! Hostile scripts for the state machines of policies, on the host.
//!
//! A script is bytes. They say which system there is (tables, priorities, budgets), and then what its rogues do, which
//! is anything that can reach the state machine: requests out of order, completions that nobody asked for, budgets that
//! run out, work that never ends. Honest participants follow the rules in a small simulation of the rest of the
//! system. What must hold whatever the bytes are is checked after each step: nothing is lost, and everybody honest is
//! served within the bound that the policy states.
//!
//! Each file in `scripts` is one policy's; it joins by a line in [`scripts`]. The same functions of bytes are played
//! by a seed ([`storm`]), and by the fuzzing engine, which looks for bytes that reach new code.

mod journal;
mod promise;
pub mod scripts;
mod source;
pub mod storm;

pub use journal::Journal;
pub use promise::{Broken, Held};
pub use scripts::SCRIPTS;
use source::Source;

/// What plays a policy's scripts.
#[derive(Clone, Copy)]
pub struct Script {
    /// Name of the policy, and of its corpus.
    pub name: &'static str,
    /// What the bytes are.
    pub what: &'static str,
    /// What can happen, as its journal calls it. A storm in which something of it does not shows little.
    pub situations: &'static [&'static str],
    play: fn(&mut Source, &mut Journal) -> Held,
    /// Plays the bytes.
    ///
    /// # Panics
    /// A promise is broken.
    pub check: fn(&[u8]),
    /// The bytes as a person reads them: tells what happens, as it happens, to the end or to the broken promise.
    pub explain: fn(&[u8]) -> String,
}

impl Script {
    /// Plays the bytes, and notes what happens.
    ///
    /// # Errors
    /// A promise is broken.
    pub fn play(&self, bytes: &[u8], journal: &mut Journal) -> Held {
        (self.play)(&mut Source::new(bytes), journal)
    }
}

/// The script of this policy.
pub fn find(name: &str) -> Option<&'static Script> {
    SCRIPTS.iter().find(|script| script.name == name)
}
