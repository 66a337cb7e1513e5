//! The arrangements that the search found worst, and those that were known before, on the bare
//! kernel.

use core::ops::Range;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use sandglass::abi::message::{ipc_buffer, MessageInfo, REGISTER_MRS};
use sandglass::cap::{Capability, Slot, Tcb, Untyped};
use sandglass::time::{spin_until, ticks};
use sandglass::vspace::Region;
use sandglass::{println, sys, thread_block, SetupError};
use sandglass_arrangements as arrangements;
use sandglass_arrangements::{Arrangement, Machine, Operation, Program, Refused};

use crate::lab::{self, Lab};
use crate::messages::LEVELS;
use crate::program;

/// Threads in arrangements whose operation is called through capability spaces of several depths: in
/// a quick run, and in one that has more threads than that makes.
const QUICK_DEEP_SIZE: u64 = 150;
const DEEP_SIZE: u64 = 1_000;

/// Most threads in all arrangements: to make more takes so long that one of an operation must do.
const MOST_FOR_ALL: u64 = 1_000;

/// Objects that one Retype makes at most.
const MOST_OBJECTS: u64 = 256;

/// Slots that do not grow with the threads.
const OTHER_SLOTS: u64 = 6_000;
/// Slots for each thread: for itself, its context, a reply object, an object, another.
const SLOTS_PER_THREAD: u64 = 5;
/// Bytes for each thread and its objects, and for what does not grow.
const BYTES_PER_THREAD: u64 = 4_600;
const OTHER_BYTES: u64 = 48 << 20;

/// Slots that are needed for arrangements of `size` threads.
pub const fn slots(size: u64) -> u64 {
    SLOTS_PER_THREAD * size + OTHER_SLOTS
}

/// Measures all of them: against as many attackers as others are, through a space of one level, as
/// in all other measurements; and against some, through spaces of several depths.
pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    let known = |size| arrangements::known(size).expect("the host's tests have read them");
    let mut bench = Bench::new(lab)?;
    for size in bench.lab.sizes.clone() {
        println!("bounds: the worst known arrangements of {size}");
        let mut sized = known(size);
        sized.retain(|known| known.operation().has_size());
        if size > MOST_FOR_ALL {
            sized = last_of_each(sized);
        }
        for arrangement in sized {
            let flat = through(&arrangement, 1);
            bench.run("many", &arrangement.row(), size, &flat, size)?;
        }
    }
    println!("bounds: the worst known arrangements through deep spaces");
    let is_quick = bench.lab.crowd_size() <= MOST_FOR_ALL;
    let size = if is_quick { QUICK_DEEP_SIZE } else { DEEP_SIZE };
    for arrangement in known(size) {
        let name = arrangement.row();
        match arrangement.operation() {
            // What the depth costs there is seen in the invocations of threads and contexts.
            Operation::Queued => continue,
            Operation::Retype => {
                let flat = through(&arrangement, 1);
                bench.run("single", &name, MOST_OBJECTS, &flat, MOST_OBJECTS)?;
            }
            _ => {}
        }
        let name = format!("deep-{name}");
        for levels in LEVELS {
            let deep = through(&arrangement, levels);
            bench.run("deep", &name, u64::from(levels), &deep, size)?;
        }
    }
    Ok(())
}

/// Of arrangements of one operation the last, which the search found; none of operations on one of
/// many threads, of which others are measured with as many ([`crate::queues`], [`crate::releases`]).
fn last_of_each(arrangements: Vec<Arrangement>) -> Vec<Arrangement> {
    let mut last: Vec<Arrangement> = Vec::new();
    for arrangement in arrangements {
        if arrangement.operation() == Operation::Queued {
            continue;
        }
        last.retain(|other| other.operation() != arrangement.operation());
        last.push(arrangement);
    }
    last
}

/// The same arrangement, whose operation is called through a capability space of so many levels.
fn through(arrangement: &Arrangement, levels: u32) -> Arrangement {
    let same = arrangement.with_named("levels", &format!("{levels}"));
    same.expect("every operation is called through some space")
}

/// This task as the maker of arrangements.
struct Bench<'l> {
    lab: &'l mut Lab,
    memory: Untyped,
    memory_bits: u32,
    slots: Range<u64>,
    buffer: Region,
    /// What is printed for each measurement.
    line: String,
}

impl<'l> Bench<'l> {
    fn new(lab: &'l mut Lab) -> Result<Self, SetupError> {
        let most = lab.crowd_size();
        let bytes = BYTES_PER_THREAD * most + OTHER_BYTES;
        let memory_bits = bytes.next_power_of_two().ilog2();
        let resources = &mut lab.process.resources;
        let memory = resources.untyped(memory_bits)?;
        let count = slots(most);
        let first: Slot = resources.allocate_slots(count)?;
        let buffer = lab
            .process
            .space
            .map_new(&mut lab.process.resources, 4096)?;
        Ok(Self {
            lab,
            memory,
            memory_bits,
            slots: first.index()..first.index() + count,
            buffer,
            line: String::new(),
        })
    }

    /// Measures the operation of an arrangement of `threads`, and takes it apart again.
    fn run(
        &mut self,
        kind: &str,
        name: &str,
        size: u64,
        arrangement: &Arrangement,
        threads: u64,
    ) -> Result<(), SetupError> {
        self.line = format!("{kind} {name} {size} {}", lab::Cost::Stretch);
        let made = arrangements::run(self, arrangement, threads);
        if let Err(refused) = made {
            panic!("{arrangement} of {threads}: {refused:?}");
        }
        self.lab.raise()?;
        let slot = self.lab.process.resources.slot_of(self.memory);
        Ok(slot.revoke()?)
    }
}

impl Machine for Bench<'_> {
    fn memory(&self) -> (u64, u32) {
        (self.memory.address(), self.memory_bits)
    }

    fn slots(&self) -> Range<u64> {
        self.slots.clone()
    }

    fn control(&self) -> u64 {
        self.lab.control.address()
    }

    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Result<(), Refused> {
        let mut registers = [0; REGISTER_MRS];
        for (i, &word) in words.iter().enumerate() {
            match registers.get_mut(i) {
                Some(register) => *register = word,
                None => thread_block::write_word(ipc_buffer::MESSAGE + i, word),
            }
        }
        for (i, &cap) in caps.iter().enumerate() {
            thread_block::write_word(ipc_buffer::CAPS_OR_BADGES + i, cap);
        }
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        match sys::call(cap, info, registers).info.label() {
            0 => Ok(()),
            error => Err(Refused { label, error }),
        }
    }

    fn signal(&mut self, cap: u64) {
        sandglass::cap::Notification::at(cap).signal();
    }

    fn write(
        &mut self,
        tcb: u64,
        program: Program,
        call: arrangements::Call,
        starts: bool,
    ) -> Result<(), Refused> {
        let call = program::Call::new(call.number, call.cap)
            .info(call.info)
            .words(call.words)
            .reply(call.reply);
        let registers = match program {
            Program::Once => call.once(),
            Program::Repeat => call.repeated(),
        };
        Tcb::at(tcb)
            .write_registers(&registers, starts)
            .map_err(refused)
    }

    fn has_called(&mut self, tcb: u64) -> Result<bool, Refused> {
        let registers = Tcb::at(tcb).read_registers(false).map_err(refused)?;
        Ok(!program::is_before_call(&registers))
    }

    fn buffer(&self) -> (u64, u64) {
        let frame = self.buffer.frames().next().expect("a page has a frame");
        (self.buffer.address(), frame.cptr().raw())
    }

    fn write_buffer(&mut self, _tcb: u64, word: usize, value: u64) {
        assert!(word < ipc_buffer::WORDS);
        let words: *mut u64 = self.buffer.as_mut_ptr().cast();
        // SAFETY: a word of the page, which the thread that has it as its buffer leaves alone: it
        // does not run.
        unsafe { words.add(word).write_volatile(value) }
    }

    fn now(&self) -> u64 {
        ticks()
    }

    fn us_to_ticks(&self, us: u64) -> u64 {
        self.lab.us_to_ticks(us)
    }

    fn pass_until(&mut self, tick: u64) {
        spin_until(tick);
    }

    fn begin(&mut self) {
        program::begin();
    }

    fn end(&mut self) {
        program::end();
        println!("bounds {}", self.line);
    }
}

/// What the library says of a refusal, as arrangements know it: which, without the details.
fn refused(error: sandglass::Error) -> Refused {
    Refused {
        label: error.operation,
        error: sandglass::abi::error::ErrorNumber::IllegalOperation as u64,
    }
}
