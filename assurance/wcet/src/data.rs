//! What is known of a data cache: lines of the stack and of statics, which have addresses. All other accesses may be
//! anywhere.

use sandglass_cache::Geometry;

use crate::code::{Access, Instruction, Place, StackChange};
use crate::must::Must;

/// What is known at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataState {
    pub cache: Must,
    /// Where the stack pointer points.
    pub stack: Option<u64>,
}

impl DataState {
    /// What is known if either holds. Whether that is less than before.
    pub fn join(&mut self, other: &Self) -> bool {
        let mut changed = self.cache.join(&other.cache);
        if self.stack != other.stack {
            changed |= self.stack.take().is_some();
        }
        changed
    }

    /// An instruction is executed. How many lines may have been missing.
    pub fn executes(&mut self, instruction: &Instruction, cache: Geometry) -> u64 {
        let mut missed = 0;
        for access in instruction.accesses.iter().flatten() {
            missed += match self.address(access.place) {
                Some(address) => {
                    let lines = cache.lines(address, access.bytes.into());
                    lines.filter(|&line| !self.cache.access(line)).count() as u64
                }
                None => {
                    let lines = spanned(access, 1, cache);
                    self.cache.age_all(lines);
                    lines
                }
            };
        }
        let more = instruction.more_accesses.into();
        self.cache.age_all(more);
        self.stack = match (instruction.stack, self.stack) {
            (StackChange::By(bytes), Some(stack)) => Some(stack.wrapping_add_signed(bytes)),
            (StackChange::To(address), _) => Some(address),
            _ => None,
        };
        missed + more
    }

    /// An instruction repeats itself so many times, from word to word. With two ways, its lines stay while it needs them,
    /// wherever they are; with one, what it reads and what it writes may drive each other out.
    pub fn repeats(&mut self, instruction: &Instruction, times: u64, cache: Geometry) -> u64 {
        self.cache = Must::new(cache);
        let accesses: Vec<&Access> = instruction.accesses.iter().flatten().collect();
        let spans = accesses.iter().map(|access| spanned(access, times, cache));
        match accesses.len() as u64 <= cache.ways {
            true => spans.sum(),
            false => times * accesses.len() as u64 * 2,
        }
    }

    fn address(&self, place: Place) -> Option<u64> {
        match place {
            Place::Fixed(address) => Some(address),
            Place::Stack(offset) => Some(self.stack?.wrapping_add_signed(offset)),
            Place::Unknown => None,
        }
    }
}

/// How many lines so many accesses use, one behind the other. What a processor accesses at once is in one line: the
/// kernel's data is aligned. What is more may begin anywhere.
fn spanned(access: &Access, times: u64, cache: Geometry) -> u64 {
    let bytes = u64::from(access.bytes).max(1) * times;
    match bytes {
        0 => 0,
        bytes if access.is_at_once() && times == 1 => bytes.div_ceil(cache.line),
        bytes => (bytes + cache.line - 2) / cache.line + 1,
    }
}
