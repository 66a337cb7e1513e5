//! One file for each policy. It has
//!
//! - `WHAT`: what its bytes are;
//! - `SITUATIONS`: what can happen;
//! - `play`: plays a script.

use crate::{Held, Journal, Script, Source};

/// Declares the files, and makes their table.
macro_rules! scripts {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*

        /// All of them.
        pub const SCRIPTS: &[Script] = &[$(Script {
            name: stringify!($file),
            what: $file::WHAT,
            situations: $file::SITUATIONS,
            play: $file::play,
            check: |bytes| check($file::play, bytes),
            explain: |bytes| explain($file::play, bytes),
        }),*];
    };
}

scripts! { releases, timeouts, blocking, edf, modes, arbiter, timers, allocations, partitions }

fn check(play: fn(&mut Source, &mut Journal) -> Held, bytes: &[u8]) {
    if let Err(broken) = play(&mut Source::new(bytes), &mut Journal::default()) {
        panic!("{broken}");
    }
}

fn explain(play: fn(&mut Source, &mut Journal) -> Held, bytes: &[u8]) -> String {
    match play(&mut Source::new(bytes), &mut Journal::telling()) {
        Ok(()) => "everything holds".to_owned(),
        Err(broken) => broken.to_string(),
    }
}
