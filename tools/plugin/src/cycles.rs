//! Cycles of every visit of the kernel, on a processor whose caches are simulated: each stretch begins with caches that hold
//! nothing of use, all of it written to.

use std::collections::HashMap;
use std::fmt::Write;

use sandglass_cache::{Model, Simulation};

/// A stretch, as [`crate::visits`] names it: the way into the kernel, and how it begins and ends.
pub type Stretch = [String; 3];

/// Follows the kernel.
#[derive(Debug)]
pub struct Cycles {
    simulation: Simulation,
    /// An object of the kernel is invoked in this stretch, which closed systems do not do.
    invokes: bool,
    /// A stretch whose last instruction is about to be executed, or is being executed.
    ending: Option<Stretch>,
    /// The most cycles that were seen, of all stretches and of those that closed systems have.
    most: HashMap<(Stretch, &'static str), u64>,
    text: String,
}

impl Cycles {
    pub fn new(model: Model) -> Self {
        Self {
            simulation: Simulation::new(model),
            invokes: false,
            ending: None,
            most: HashMap::new(),
            text: String::new(),
        }
    }

    /// A stretch begins with the next instruction.
    pub fn begins(&mut self) {
        self.finishes();
        self.simulation.restart();
        self.invokes = false;
    }

    /// A stretch ends: with the instruction that is about to be executed if `has_more`, else it has ended.
    pub fn ends(&mut self, stretch: Stretch, has_more: bool) {
        self.ending = Some(stretch);
        if !has_more {
            self.finishes();
        }
    }

    /// An object of the kernel is invoked.
    pub const fn invokes(&mut self) {
        self.invokes = true;
    }

    pub fn executes(&mut self, address: u64, bytes: u64) {
        self.simulation.executes(address, bytes);
    }

    pub fn accesses(&mut self, address: u64, bytes: u64, writes: bool) {
        self.simulation.accesses(address, bytes, writes);
    }

    fn finishes(&mut self) {
        let Some(stretch) = self.ending.take() else {
            return;
        };
        let cycles = self.simulation.cycles();
        let systems: &[&str] = match self.invokes {
            true => &["open"],
            false => &["open", "closed"],
        };
        for &system in systems {
            let most = self.most.entry((stretch.clone(), system)).or_default();
            if cycles > *most {
                *most = cycles;
                let [kind, from, to] = &stretch;
                // Writing to a string does not fail.
                let _ = writeln!(self.text, "cycles {system} {kind} {from} {to} {cycles}");
            }
        }
    }

    /// Adds what there is to write since this was last called.
    pub fn take_text(&mut self, text: &mut String) {
        text.push_str(&self.text);
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(of: impl FnOnce(&mut Cycles)) -> Vec<String> {
        let model = Model::parse("1 64 2 1 10 uncached 100").unwrap();
        let mut cycles = Cycles::new(model);
        of(&mut cycles);
        cycles.begins();
        let mut text = String::new();
        cycles.take_text(&mut text);
        text.lines().map(str::to_owned).collect()
    }

    fn stretch() -> Stretch {
        ["vectors", "entry", "exit"].map(str::to_owned)
    }

    #[test]
    fn the_last_instruction_counts_with_what_it_reads() {
        let seen = lines(|it| {
            it.begins();
            it.executes(0, 4);
            it.ends(stretch(), true);
            it.executes(4, 2);
            it.accesses(0, 8, false);
        });
        let expected =
            ["open", "closed"].map(|system| format!("cycles {system} vectors entry exit 112"));
        assert_eq!(seen, expected);
    }

    #[test]
    fn each_stretch_begins_with_nothing_of_use_in_the_caches() {
        let seen = lines(|it| {
            for more in [0, 1] {
                it.begins();
                (0..=more).for_each(|at| it.executes(at, 1));
                it.ends(stretch(), false);
                it.executes(64, 1);
            }
        });
        assert_eq!(seen.len(), 4);
        assert!(seen[2].ends_with(" 12"), "{seen:?}");
    }

    #[test]
    fn what_invokes_an_object_is_of_no_closed_system() {
        let seen = lines(|it| {
            it.begins();
            it.invokes();
            it.ends(stretch(), false);
            it.begins();
            it.executes(0, 1);
            it.ends(stretch(), false);
        });
        assert_eq!(
            seen,
            [
                "cycles open vectors entry exit 11",
                "cycles closed vectors entry exit 11"
            ]
        );
    }
}
