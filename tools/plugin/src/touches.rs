//! What visits of the kernel touch: memory, lines of caches, branches, and instructions that the processor waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Bits of an address within a line of a cache: 64 bytes on all processors that we know.
const LINE_BITS: u32 = 6;

/// An instruction of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fetched {
    pub address: u64,
    pub bytes: u64,
    /// The processor waits until all before it are done.
    pub serialises: bool,
}

/// What a visit touched.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Touched {
    loads: u64,
    stores: u64,
    /// Control went elsewhere than to the next instruction.
    taken: u64,
    /// Different lines, of data and of code.
    data_lines: u64,
    code_lines: u64,
    serialising: u64,
}

/// A visit, from its first instruction on.
#[derive(Default, Debug)]
struct Visit {
    /// The first of the functions asked for that it came to.
    function: Option<u64>,
    instructions: u64,
    touched: Touched,
    data: BTreeSet<u64>,
    code: BTreeSet<u64>,
    last: Option<Fetched>,
}

/// Follows the kernel's visits.
#[derive(Default, Debug)]
pub struct TouchMeter {
    functions: Vec<u64>,
    /// None while user code runs, and in visits that did not come from there.
    visit: Option<Visit>,
    /// The most that those touched which came to a function and had as many instructions, and how many there were.
    seen: BTreeMap<(u64, u64), (Touched, u64)>,
}

impl TouchMeter {
    /// Tells visits apart by which of these functions they come to first.
    pub fn new(functions: Vec<u64>) -> Self {
        Self {
            functions,
            ..Self::default()
        }
    }

    /// User code runs.
    pub fn leaves(&mut self) {
        if let Some(visit) = self.visit.take() {
            self.ended(visit);
        }
        self.visit = Some(Visit::default());
    }

    /// The kernel waits for an interrupt: its visit ends with no return.
    pub fn idles(&mut self) {
        self.visit = None;
    }

    /// An instruction of the kernel is executed; each repetition of one is one.
    pub fn executes(&mut self, fetched: Fetched) {
        let is_one = self.functions.contains(&fetched.address);
        let Some(visit) = &mut self.visit else {
            return;
        };
        if is_one && visit.function.is_none() {
            visit.function = Some(fetched.address);
        }
        visit.instructions += 1;
        visit.touched.serialising += u64::from(fetched.serialises);
        let end = fetched.address + fetched.bytes.max(1) - 1;
        visit
            .code
            .extend([fetched.address, end].map(|at| at >> LINE_BITS));
        if let Some(last) = visit.last {
            let goes_on = fetched.address == last.address + last.bytes;
            visit.touched.taken += u64::from(!goes_on && fetched != last);
        }
        visit.last = Some(fetched);
    }

    /// It reads or writes so many bytes of memory.
    pub fn accesses(&mut self, address: u64, bytes: u64, is_store: bool) {
        let Some(visit) = &mut self.visit else {
            return;
        };
        let counter = if is_store {
            &mut visit.touched.stores
        } else {
            &mut visit.touched.loads
        };
        *counter += 1;
        let end = address + bytes.max(1) - 1;
        visit.data.extend([address, end].map(|at| at >> LINE_BITS));
    }

    fn ended(&mut self, visit: Visit) {
        let Some(function) = visit.function else {
            return;
        };
        let touched = Touched {
            data_lines: visit.data.len() as u64,
            code_lines: visit.code.len() as u64,
            ..visit.touched
        };
        let (most, count) = self.seen.entry((function, visit.instructions)).or_default();
        *most = touched.max(*most);
        *count += 1;
    }

    /// At the machine's end, for each kind of visit a line `visits FUNCTION INSTRUCTIONS COUNT LOADS STORES TAKEN DATA CODE
    /// SERIALISING`: the function's address in hexadecimal, how many there were, lines of data and of code.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for ((function, instructions), (it, count)) in &self.seen {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "visits {function:x} {instructions} {count} {} {} {} {} {} {}",
                it.loads, it.stores, it.taken, it.data_lines, it.code_lines, it.serialising
            );
        }
        text
    }
}

/// Whether the processor waits, before the instruction of these bytes or behind it, until all others are done: on x86_64 what
/// writes control and model-specific registers, forgets translations, or returns by IRET, and the fences of loads and of
/// memory; on aarch64 ISB, DSB, and ERET.
pub fn serialises(bytes: &[u8]) -> bool {
    match *bytes {
        // WRMSR, CPUID; MOV to a control register.
        [0x0f, 0x30 | 0xa2] | [0x0f, 0x22, _] | [0x44, 0x0f, 0x22, _] => true,
        // LFENCE, MFENCE, IRETQ.
        [0x0f, 0xae, 0xe8 | 0xf0] | [0x48, 0xcf] => true,
        // INVLPG; INVPCID.
        [0x0f, 0x01, operand, ..] => operand >> 3 & 7 == 7 && operand >> 6 != 3,
        [0x66, 0x0f, 0x38, 0x82, ..] => true,
        // ISB, DSB; ERET.
        [0xdf | 0x9f, domain, 0x03, 0xd5] => domain >> 4 == 3,
        [0xe0, 0x03, 0x9f, 0xd6] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(address: u64) -> Fetched {
        Fetched {
            address,
            bytes: 4,
            serialises: address == 0x204,
        }
    }

    #[test]
    fn visits_are_told_apart_by_function_and_length_and_the_most_is_kept() {
        let mut meter = TouchMeter::new(vec![0x200]);
        // The machine's beginning is no visit.
        meter.executes(instruction(0x200));
        for stores in [1, 3] {
            meter.leaves();
            for address in [0x13c, 0x140, 0x200, 0x204, 0x140] {
                meter.executes(instruction(address));
            }
            meter.accesses(0x3e, 4, false);
            for _ in 0..stores {
                meter.accesses(0x1000, 8, true);
            }
        }
        meter.leaves();
        meter.executes(instruction(0x200));
        meter.idles();
        meter.executes(instruction(0x200));
        meter.leaves();
        // Two branches; lines 4, 5 and 8 of code, 0, 1 and 64 of data.
        assert_eq!(meter.summary(), "visits 200 5 2 1 3 2 3 3 1\n");
    }

    #[test]
    fn a_repetition_is_no_branch() {
        let mut meter = TouchMeter::new(vec![0x200]);
        meter.leaves();
        for address in [0x200, 0x200, 0x204] {
            meter.executes(instruction(address));
        }
        meter.leaves();
        assert_eq!(meter.summary(), "visits 200 3 1 0 0 0 0 1 1\n");
    }

    #[test]
    fn what_the_processor_waits_for_is_known_by_its_bytes() {
        for waits in [
            &[0x0f, 0x30][..],
            &[0x0f, 0x22, 0xd8],
            &[0x48, 0xcf],
            &[0x0f, 0x01, 0x38],
            &[0xdf, 0x3f, 0x03, 0xd5],
            &[0x9f, 0x3b, 0x03, 0xd5],
        ] {
            assert!(serialises(waits), "{waits:x?}");
        }
        // SWAPGS, SYSRETQ, RDTSC, DMB, NOP of aarch64.
        for goes_on in [
            &[0x0f, 0x01, 0xf8][..],
            &[0x48, 0x0f, 0x07],
            &[0x0f, 0x31],
            &[0xbf, 0x3b, 0x03, 0xd5],
            &[0x1f, 0x20, 0x03, 0xd5],
        ] {
            assert!(!serialises(goes_on), "{goes_on:x?}");
        }
    }
}
