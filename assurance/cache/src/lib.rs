//! What instructions cost on a simple processor with first-level caches: the model that the analysis of the worst case
//! computes with (`assurance/wcet`), and the same caches as a simulation that follows one execution. Both are here, so that
//! what is computed and what is observed have one meaning.
//!
//! An instruction costs a fixed number of cycles; each line of code or data that is not in its cache costs more. Nothing
//! happens at once. Caches are indexed by the addresses that the kernel uses.

use std::fmt::Write;

/// Lines and sets of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Bytes of a line: a power of two, [`LEAST_LINE`] at least.
    pub line: u64,
    /// A power of two, two at least: neighbouring lines are in different sets.
    pub sets: u64,
    /// Lines of a set, the least recently used of which is replaced.
    pub ways: u64,
}

impl Geometry {
    /// Whether it can be simulated.
    pub const fn is_sound(&self) -> bool {
        self.line.is_power_of_two()
            && self.line >= LEAST_LINE
            && self.sets.is_power_of_two()
            && self.sets > 1
            && self.ways > 0
            && self.ways <= MOST_WAYS
    }

    /// The line that holds a byte.
    pub const fn line_of(&self, address: u64) -> u64 {
        address / self.line
    }

    /// The set that a line is in.
    pub const fn set_of(&self, line: u64) -> usize {
        (line % self.sets) as usize
    }

    /// The lines that hold `bytes` bytes from `address` on; at least one.
    pub fn lines(&self, address: u64, bytes: u64) -> impl Iterator<Item = u64> {
        let last = address.saturating_add(bytes.max(1) - 1);
        self.line_of(address)..=self.line_of(last)
    }
}

/// Smaller lines, or more ways, than any first-level cache has.
pub const LEAST_LINE: u64 = 16;
pub const MOST_WAYS: u64 = 16;

/// What data costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Data {
    /// The data cache is off: each access goes to memory, and takes so many cycles more.
    Uncached { access: u64 },
    /// A store that finds no line brings it, too; a line that is replaced is first written back if it was written to.
    WriteBack {
        geometry: Geometry,
        /// Cycles to bring a line.
        miss: u64,
        /// Cycles more to write one back.
        write_back: u64,
    },
}

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Model {
    /// Cycles of each instruction; of one that repeats itself, each time.
    pub instruction: u64,
    /// The instruction cache, and the cycles to bring a line into it.
    pub code: Geometry,
    pub code_miss: u64,
    pub data: Data,
}

impl Model {
    /// One line of text, for who has no other reader.
    pub fn line(&self) -> String {
        let Geometry { line, sets, ways } = self.code;
        let mut text = format!(
            "{} {line} {sets} {ways} {}",
            self.instruction, self.code_miss
        );
        // Writing to a string does not fail.
        let _ = match self.data {
            Data::Uncached { access } => write!(text, " uncached {access}"),
            Data::WriteBack {
                geometry: Geometry { line, sets, ways },
                miss,
                write_back,
            } => write!(text, " write-back {line} {sets} {ways} {miss} {write_back}"),
        };
        text
    }

    /// From such a line; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let geometry = |at: usize| {
            let geometry = Geometry {
                line: number(at)?,
                sets: number(at + 1)?,
                ways: number(at + 2)?,
            };
            geometry.is_sound().then_some(geometry)
        };
        let data = match (*words.get(5)?, words.len()) {
            ("uncached", 7) => Data::Uncached { access: number(6)? },
            ("write-back", 11) => Data::WriteBack {
                geometry: geometry(6)?,
                miss: number(9)?,
                write_back: number(10)?,
            },
            _ => return None,
        };
        Some(Self {
            instruction: number(0)?,
            code: geometry(1)?,
            code_miss: number(4)?,
            data,
        })
    }
}

/// A line in a cache.
#[derive(Debug, Clone, Copy)]
struct Held {
    line: u64,
    is_dirty: bool,
}

/// A cache, simulated. At first it holds what nobody asks for, all of it written to: the worst that can be found.
#[derive(Debug, Clone)]
struct Cache {
    geometry: Geometry,
    /// Of each set, the lines that were brought, the most recently used first. Ways beyond these are as at first.
    sets: Vec<Vec<Held>>,
}

/// What an access did.
struct Outcome {
    is_hit: bool,
    /// A line was written back.
    wrote_back: bool,
}

impl Cache {
    fn new(geometry: Geometry) -> Self {
        Self {
            sets: vec![Vec::new(); geometry.sets as usize],
            geometry,
        }
    }

    fn access(&mut self, line: u64, writes: bool) -> Outcome {
        let ways = self.geometry.ways as usize;
        let set = &mut self.sets[self.geometry.set_of(line)];
        let known = set.iter().position(|held| held.line == line);
        let mut wrote_back = false;
        let mut held = match known {
            Some(place) => set.remove(place),
            None => {
                wrote_back = match set.len() < ways {
                    true => true,
                    false => set.pop().is_some_and(|oldest| oldest.is_dirty),
                };
                Held {
                    line,
                    is_dirty: false,
                }
            }
        };
        held.is_dirty |= writes;
        set.insert(0, held);
        Outcome {
            is_hit: known.is_some(),
            wrote_back,
        }
    }

    fn forget(&mut self) {
        self.sets.iter_mut().for_each(Vec::clear);
    }
}

/// An execution, followed.
#[derive(Debug, Clone)]
pub struct Simulation {
    model: Model,
    code: Cache,
    data: Option<Cache>,
    cycles: u64,
}

impl Simulation {
    pub fn new(model: Model) -> Self {
        Self {
            code: Cache::new(model.code),
            data: match model.data {
                Data::Uncached { .. } => None,
                Data::WriteBack { geometry, .. } => Some(Cache::new(geometry)),
            },
            model,
            cycles: 0,
        }
    }

    /// Cycles since it began, or began anew.
    pub const fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Begins anew, with caches that hold nothing of use.
    pub fn restart(&mut self) {
        self.cycles = 0;
        self.code.forget();
        if let Some(data) = &mut self.data {
            data.forget();
        }
    }

    /// An instruction is executed.
    pub fn executes(&mut self, address: u64, bytes: u64) {
        self.cycles += self.model.instruction;
        for line in self.model.code.lines(address, bytes) {
            if !self.code.access(line, false).is_hit {
                self.cycles += self.model.code_miss;
            }
        }
    }

    /// It reads or writes memory.
    pub fn accesses(&mut self, address: u64, bytes: u64, writes: bool) {
        match (self.model.data, &mut self.data) {
            (
                Data::WriteBack {
                    geometry,
                    miss,
                    write_back,
                },
                Some(cache),
            ) => {
                for line in geometry.lines(address, bytes) {
                    let outcome = cache.access(line, writes);
                    self.cycles += u64::from(!outcome.is_hit) * miss;
                    self.cycles += u64::from(outcome.wrote_back) * write_back;
                }
            }
            (Data::Uncached { access }, _) => self.cycles += access,
            (Data::WriteBack { .. }, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Model = Model {
        instruction: 1,
        code: Geometry {
            line: 16,
            sets: 2,
            ways: 1,
        },
        code_miss: 10,
        data: Data::WriteBack {
            geometry: Geometry {
                line: 16,
                sets: 2,
                ways: 2,
            },
            miss: 100,
            write_back: 1000,
        },
    };

    fn cycles(of: impl FnOnce(&mut Simulation)) -> u64 {
        let mut simulation = Simulation::new(SMALL);
        of(&mut simulation);
        simulation.cycles()
    }

    #[test]
    fn a_line_of_code_is_brought_once_until_another_takes_its_place() {
        assert_eq!(
            cycles(|it| [0, 4, 8].iter().for_each(|&at| it.executes(at, 4))),
            3 + 10
        );
        assert_eq!(
            cycles(|it| it.executes(14, 4)),
            1 + 20,
            "it lies in two lines"
        );
        // 0 and 32 are in one set, 16 is in the other.
        assert_eq!(
            cycles(|it| [0, 32, 16, 0].iter().for_each(|&at| it.executes(at, 1))),
            4 + 40
        );
    }

    #[test]
    fn the_least_recently_used_line_makes_room_and_is_written_back_if_it_was_written_to() {
        let at = |it: &mut Simulation, addresses: &[u64]| {
            addresses.iter().for_each(|&at| it.accesses(at, 8, false));
        };
        // What is there at first is dirty.
        assert_eq!(cycles(|it| at(it, &[0, 8, 32, 0])), 2 * 1100);
        // 64 takes the place of 32, which is clean.
        assert_eq!(cycles(|it| at(it, &[0, 32, 0, 64, 0])), 2 * 1100 + 100);
        let dirty = cycles(|it| {
            it.accesses(32, 8, true);
            at(it, &[0, 64]);
        });
        assert_eq!(dirty, 3 * 1100);
    }

    #[test]
    fn without_a_cache_every_access_costs_the_same() {
        let data = Data::Uncached { access: 7 };
        let mut simulation = Simulation::new(Model { data, ..SMALL });
        (0..3).for_each(|_| simulation.accesses(0, 8, true));
        assert_eq!(simulation.cycles(), 21);
        simulation.restart();
        assert_eq!(simulation.cycles(), 0);
    }

    #[test]
    fn a_line_of_text_says_the_whole_model() {
        let uncached = Model {
            data: Data::Uncached { access: 7 },
            ..SMALL
        };
        for model in [SMALL, uncached] {
            assert_eq!(Model::parse(&model.line()), Some(model));
        }
        for wrong in [
            "",
            "1 16 2 1 10",
            "1 16 1 1 10 uncached 7",
            "1 15 2 1 10 uncached 7",
            "1 16 2 1 10 uncached 7 8",
            "1 16 2 1 10 write-back 16 2 2 1",
        ] {
            assert_eq!(Model::parse(wrong), None, "{wrong}");
        }
    }
}
