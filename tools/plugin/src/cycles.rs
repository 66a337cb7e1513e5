//! Cycles of every visit of the kernel, on a processor whose caches are simulated: each stretch begins with caches that hold
//! nothing of use, all of it written to. Of the dearest, it is also said how often each instruction was executed.

use std::collections::HashMap;
use std::fmt::Write;

use sandglass_cache::{Model, Simulation};

/// A stretch, as [`crate::visits`] names it: the way into the kernel, and how it begins and ends.
pub type Stretch = [String; 3];

/// Follows the kernel.
#[derive(Debug)]
pub struct Cycles {
    /// The processor's.
    name: String,
    simulation: Simulation,
    /// An object of the kernel is invoked in this visit, which closed systems do not do.
    invokes: bool,
    /// A stretch whose last instruction is about to be executed, or is being executed.
    ending: Option<Stretch>,
    /// How often each instruction of this stretch was executed, by its address.
    executed: HashMap<u64, u64>,
    /// The most cycles that were seen, of all stretches and of those that closed systems have.
    most: HashMap<(Stretch, &'static str), u64>,
    /// The most of a stretch since a measurement began.
    measured: u64,
    text: String,
}

impl Cycles {
    pub fn new(name: String, model: Model) -> Self {
        Self {
            name,
            simulation: Simulation::new(model),
            invokes: false,
            ending: None,
            executed: HashMap::new(),
            most: HashMap::new(),
            measured: 0,
            text: String::new(),
        }
    }

    /// A measurement begins, or begins anew.
    pub fn measure(&mut self) {
        self.finishes();
        self.measured = 0;
    }

    /// What it comes to: `cycles NAME NUMBER`, of the dearest stretch since then.
    pub fn measured(&mut self) -> String {
        self.finishes();
        format!("cycles {} {}\n", self.name, self.measured)
    }

    /// A stretch begins with the next instruction; and a visit, unless it goes on behind a check for interrupts.
    pub fn begins(&mut self, is_entry: bool) {
        self.finishes();
        self.simulation.restart();
        self.executed.clear();
        self.invokes &= !is_entry;
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
        *self.executed.entry(address).or_default() += 1;
    }

    pub fn accesses(&mut self, address: u64, bytes: u64, writes: bool) {
        self.simulation.accesses(address, bytes, writes);
    }

    fn finishes(&mut self) {
        let Some(stretch) = self.ending.take() else {
            return;
        };
        let cycles = self.simulation.cycles();
        self.measured = self.measured.max(cycles);
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
                let _ = writeln!(
                    self.text,
                    "cycles {} {system} {kind} {from} {to} {cycles}",
                    self.name
                );
                self.text.push_str("executed");
                for (address, times) in &self.executed {
                    let _ = write!(self.text, " {address:x}:{times:x}");
                }
                self.text.push('\n');
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
        let mut cycles = Cycles::new("small".to_owned(), model);
        of(&mut cycles);
        cycles.begins(true);
        let mut text = String::new();
        cycles.take_text(&mut text);
        let cycles = text.lines().filter(|line| line.starts_with("cycles"));
        cycles.map(str::to_owned).collect()
    }

    fn stretch() -> Stretch {
        ["vectors", "entry", "exit"].map(str::to_owned)
    }

    #[test]
    fn the_last_instruction_counts_with_what_it_reads() {
        let seen = lines(|it| {
            it.begins(true);
            it.executes(0, 4);
            it.ends(stretch(), true);
            it.executes(4, 2);
            it.accesses(0, 8, false);
        });
        let expected = ["open", "closed"]
            .map(|system| format!("cycles small {system} vectors entry exit 112"));
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_measurement_has_the_dearest_stretch_since_it_began() {
        let model = Model::parse("1 64 2 1 10 uncached 100").unwrap();
        let mut cycles = Cycles::new("small".to_owned(), model);
        let stretch_of = |cycles: &mut Cycles, addresses: u64| {
            cycles.begins(true);
            (0..addresses).for_each(|at| cycles.executes(at, 1));
            cycles.ends(stretch(), true);
        };
        stretch_of(&mut cycles, 5);
        cycles.measure();
        stretch_of(&mut cycles, 2);
        stretch_of(&mut cycles, 3);
        assert_eq!(cycles.measured(), "cycles small 13\n");
        cycles.measure();
        assert_eq!(cycles.measured(), "cycles small 0\n");
    }

    #[test]
    fn executions_are_those_of_the_dearest_stretch() {
        let model = Model::parse("1 64 2 1 10 uncached 100").unwrap();
        let mut cycles = Cycles::new("small".to_owned(), model);
        for addresses in [&[1, 4, 4][..], &[2]] {
            cycles.begins(true);
            addresses.iter().for_each(|&at| cycles.executes(at, 1));
            cycles.ends(stretch(), false);
        }
        let mut text = String::new();
        cycles.take_text(&mut text);
        let executed: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("executed "))
            .collect();
        assert_eq!(executed.len(), 2, "of open systems and of closed ones");
        for words in executed {
            let mut words: Vec<&str> = words.split(' ').collect();
            words.sort_unstable();
            assert_eq!(words, ["1:1", "4:2"]);
        }
    }

    #[test]
    fn each_stretch_begins_with_nothing_of_use_in_the_caches() {
        let seen = lines(|it| {
            for more in [0, 1] {
                it.begins(true);
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
            it.begins(true);
            it.invokes();
            it.ends(stretch(), false);
            // Behind a check it is the same visit.
            it.begins(false);
            it.executes(0, 1);
            it.executes(0, 1);
            it.ends(stretch(), false);
            it.begins(true);
            it.executes(0, 1);
            it.ends(stretch(), false);
        });
        assert_eq!(
            seen,
            [
                "cycles small open vectors entry exit 12",
                "cycles small closed vectors entry exit 11"
            ]
        );
    }
}
