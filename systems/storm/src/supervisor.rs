//! The supervisor: builds arenas, keeps their threads going, and counts.

use core::sync::atomic::Ordering::Relaxed;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use sandglass::abi::fault;
use sandglass::cap::{Notification, Rights, SchedParams};
use sandglass::message::{Message, Received};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{println, sys, Process, SetupError};

use crate::actor::Dice;
use crate::arch::instructions::class::Class;
use crate::arch::{unknown_syscall, SYSTEM_CALL};
use crate::area::{Area, AREAS, THREADS};
use crate::arena::{Arena, Storm};
use crate::canary::{Watch, STALL, TICK};
use crate::ground::{Ground, TIMEOUT};
use crate::instructions::batch::MOST_ITEMS;
use crate::instructions::begun_in;
use crate::instructions::handler::{self, Next, Outcomes, NO_OUTCOMES};
use crate::options::Options;
use crate::tally::Totals;

/// Below the canary alone.
pub const PRIORITY: u8 = 254;
/// Below all priorities of the storm but those that it chooses itself.
const IDLE_PRIORITY: u8 = 1;
/// How often the thread of this priority may report that nobody else runs.
const IDLE: SchedParams = SchedParams::new(60, 200);
/// Signal of that: of the first core; that of core `n` is `n` bits further, and all of them.
const QUIET: u64 = 1 << QUIET_SHIFT;
const QUIET_SHIFT: u32 = 36;
const ALL_QUIET: u64 = u64::MAX << QUIET_SHIFT;

/// System calls, or instructions, after which an arena is replaced.
const MADE_PER_ARENA: u64 = 15_000;
/// An arena with more has lost its counters, or consists of a loop of one instruction that nothing ends: its
/// threads are stopped soon after the former.
const MOST_PER_ARENA: u64 = 4 * MADE_PER_ARENA;
/// Reports in a row, with nothing made in between, that mean that an arena is dead.
const FRUITLESS: u64 = 8;
/// Progress is told once in so many of them.
const MADE_PER_REPORT: u64 = 50_000;
/// A system call takes the kernel at least so many ticks, an instruction with what prepares it as many
/// on the average: an arena with more of them has lost its counters.
const TICKS_PER_CALL: u64 = 100;
const TICKS_PER_INSTRUCTION: u64 = 2;

/// Faults of a batch after which its thread starts anew: items may jump back, and do so for ever.
const FAULTS_PER_BATCH: u64 = 2 * MOST_ITEMS as u64;

/// Faults by number, as the supervisor received them.
pub type Faults = [u64; fault::VM_FAULT as usize + 1];

/// What a run has come to.
pub struct Summary {
    pub calls: u64,
    pub instructions: u64,
    pub arenas: u64,
    /// Arenas whose counters the storm has overwritten: what they made does not count.
    pub discarded: u64,
    pub totals: Totals,
    /// Instructions by class, and the faults of each.
    pub attempts: [u64; Class::COUNT],
    pub outcomes: Outcomes,
    pub faults: Faults,
}

/// The supervisor's state in one arena.
struct Round<'a> {
    arena: Arena<'a>,
    ground: &'a Ground,
    watch: &'static Watch,
    storm: Storm,
    random: Xoshiro256PlusPlus,
    faults: &'a mut Faults,
    outcomes: Outcomes,
    /// What each area has made at the last report of idleness.
    seen: [u64; AREAS],
    /// Stirs in a row that found a thread without anything new.
    idle: [u64; AREAS],
    /// What each area had made at its thread's last fault.
    at_fault: [u64; AREAS],
    /// Starts of each thread at its last fault, and its faults since.
    batches: [(u64, u64); THREADS],
    /// Starts of each thread at the last tick, and at its last timeout.
    at_tick: [u64; THREADS],
    at_timeout: [u64; THREADS],
    /// Reports without progress in a row.
    fruitless: u64,
    /// Signals of the cores that were quiet since the storm was last stirred.
    quiet: u64,
}

/// Starts the thread, on each core, that reports when nobody else runs there.
pub fn start_idlers(
    process: &mut Process,
    ground: &Ground,
    signals: Notification,
) -> Result<(), SetupError> {
    for (core, control) in ground.controls.iter().enumerate() {
        let quiet = process
            .resources
            .mint(signals, Rights::WRITE, QUIET << core)?;
        let context = process.resources.sched_context(IDLE.size_bits())?;
        control.configure(context, IDLE)?;
        Thread::spawn(
            process,
            ThreadParams::new(IDLE_PRIORITY, context),
            move || loop {
                quiet.signal();
                sys::yield_now();
            },
        )?;
    }
    Ok(())
}

/// Runs arenas until both storms have made what `options` ask for.
pub fn run(
    ground: &Ground,
    watch: &'static Watch,
    options: Options,
) -> Result<Summary, SetupError> {
    let mut summary = Summary::new();
    for storm in Storm::ALL {
        let mut reported = None;
        while summary.made(storm) < options.of(storm) {
            let seed = options.seed.wrapping_add(summary.arenas);
            watch.seed.store(seed, Relaxed);
            let (made, wanted) = (summary.made(storm), options.of(storm));
            if reported.is_none_or(|reported| made >= reported + MADE_PER_REPORT) {
                reported = Some(made);
                println!("\nstorm: {made} of {wanted} {}, seed {seed}", storm.unit());
            }
            let most = MADE_PER_ARENA.min(wanted - made);
            run_arena(ground, watch, storm, seed, most, &mut summary)?;
        }
    }
    Ok(summary)
}

/// Runs one arena until it has made `most`, and adds up what it made.
fn run_arena(
    ground: &Ground,
    watch: &'static Watch,
    storm: Storm,
    seed: u64,
    most: u64,
    summary: &mut Summary,
) -> Result<(), SetupError> {
    let began = sandglass::time::ticks();
    let mut round = Round {
        arena: Arena::build(ground, storm, seed)?,
        ground,
        watch,
        storm,
        random: Xoshiro256PlusPlus::seed_from_u64(!seed),
        faults: &mut summary.faults,
        outcomes: NO_OUTCOMES,
        seen: [0; AREAS],
        idle: [0; AREAS],
        at_fault: [0; AREAS],
        batches: [(0, 0); THREADS],
        at_tick: [0; THREADS],
        at_timeout: [0; THREADS],
        fruitless: 0,
        quiet: 0,
    };
    round.run(most);
    let outcomes = round.outcomes;
    // Threads that the storm has made may run on other cores until their memory is revoked.
    ground.clear()?;
    let made = watch.made();
    let ticks = sandglass::time::ticks() - began;
    summary.arenas += 1;
    if !summary.add(storm, watch, made, ticks, &outcomes) {
        summary.discarded += 1;
    }
    Ok(())
}

impl Summary {
    const fn new() -> Self {
        Self {
            calls: 0,
            instructions: 0,
            arenas: 0,
            discarded: 0,
            totals: Totals::new(),
            attempts: [0; Class::COUNT],
            outcomes: NO_OUTCOMES,
            faults: [0; fault::VM_FAULT as usize + 1],
        }
    }

    /// How much of a storm was made.
    pub const fn made(&self, storm: Storm) -> u64 {
        match storm {
            Storm::Calls => self.calls,
            Storm::Instructions => self.instructions,
        }
    }

    /// Adds what an arena has made in `ticks`: not if its counters contradict each other.
    fn add(
        &mut self,
        storm: Storm,
        watch: &Watch,
        made: u64,
        ticks: u64,
        outcomes: &Outcomes,
    ) -> bool {
        match storm {
            Storm::Calls => {
                let counted = watch.areas().map(|area| area.tally.calls()).sum();
                let most = MOST_PER_ARENA.min(ticks / TICKS_PER_CALL);
                if made.abs_diff(counted) > AREAS as u64 || made > most {
                    return false;
                }
                self.calls += made;
                watch.areas().for_each(|area| self.totals.add(&area.tally));
            }
            Storm::Instructions => {
                let attempts = begun_in(watch.areas());
                let counted = attempts.iter().copied().fold(0, u64::wrapping_add);
                let most = MOST_PER_ARENA.min(ticks / TICKS_PER_INSTRUCTION);
                if made.abs_diff(counted) > (AREAS * MOST_ITEMS) as u64 || made > most {
                    return false;
                }
                self.instructions += counted;
                for (sum, count) in self.attempts.iter_mut().zip(attempts) {
                    *sum += count;
                }
                let sums = self.outcomes.iter_mut().flatten();
                for (sum, count) in sums.zip(outcomes.iter().flatten()) {
                    *sum += count;
                }
            }
        }
        true
    }
}

impl Round<'_> {
    /// Keeps the threads going until they have made `most`, or cannot any more.
    fn run(&mut self, most: u64) {
        while self.watch.made() < most && self.fruitless < FRUITLESS {
            let received = self.ground.endpoint.recv(self.ground.reply);
            self.watch.heartbeat.fetch_add(1, Relaxed);
            if received.badge & (ALL_QUIET | STALL | TICK) == 0 {
                self.handle_fault(received);
                continue;
            }
            if received.badge & TICK != 0 && self.storm == Storm::Instructions {
                self.end_loops();
            }
            self.quiet |= received.badge & ALL_QUIET;
            let all = (1 << self.ground.controls.len()) - 1;
            if received.badge & STALL != 0 {
                self.stir(true);
            } else if self.quiet >> QUIET_SHIFT == all {
                self.stir(false);
            }
        }
        self.arena.stop();
    }

    fn dice(&mut self) -> Dice<'_> {
        Dice(&mut self.random)
    }

    /// A core; with one there is nothing to choose.
    fn any_core(&mut self) -> usize {
        match self.ground.controls.len() {
            1 => 0,
            cores => self.dice().index(cores),
        }
    }

    /// Lets threads that make nothing start anew: all of them, or some, so that others
    /// may meet those that still wait.
    fn stir(&mut self, all: bool) {
        self.quiet = 0;
        let mut progress = false;
        for (index, area) in self.watch.areas().enumerate() {
            let made = area.made();
            let gets_on = made != self.seen[index];
            self.seen[index] = made;
            progress |= gets_on;
            self.idle[index] = if gets_on { 0 } else { self.idle[index] + 1 };
            if index >= THREADS || gets_on && !all {
                continue;
            }
            // To start it again is cheap, but helps only if its objects are as they were.
            match self.idle[index] {
                _ if all => self.arena.restore(index),
                0..2 => self.arena.revive(index),
                _ => self.arena.restore(index),
            }
        }
        self.fruitless = if progress { 0 } else { self.fruitless + 1 };
    }

    /// Lets threads start anew that execute the same batch as at the last tick.
    fn end_loops(&mut self) {
        for (index, area) in self.watch.areas().take(THREADS).enumerate() {
            let starts = area.control.starts.load(Relaxed);
            if core::mem::replace(&mut self.at_tick[index], starts) == starts {
                self.arena.revive(index);
            }
        }
    }

    /// Whether a thread that has used up its budget executes the same batch as it did then the last
    /// time.
    fn is_in_loop(&mut self, index: usize) -> bool {
        let area = self.watch.areas().take(THREADS).nth(index);
        area.is_some_and(|area| {
            let starts = area.control.starts.load(Relaxed);
            core::mem::replace(&mut self.at_timeout[index], starts) == starts
        })
    }

    fn handle_fault(&mut self, received: Received) {
        let message = received.message;
        if let Some(count) = self.faults.get_mut(message.label() as usize) {
            *count += 1;
        }
        let index = (received.badge & !TIMEOUT).wrapping_sub(1) as usize;
        if received.badge & TIMEOUT != 0 {
            let loops = self.storm == Storm::Instructions && self.is_in_loop(index);
            match self.dice().below(4) {
                _ if loops => self.arena.revive(index),
                0 => self.arena.revive(index),
                1 => {
                    let core = self.any_core();
                    self.arena.refill(index, core);
                    self.ground.reply.send(Message::EMPTY);
                }
                2 => {}
                _ => self.ground.reply.send(Message::EMPTY),
            }
            return;
        }
        let Some(area) = self.watch.areas().take(THREADS).nth(index) else {
            return;
        };
        match self.storm {
            Storm::Calls => self.handle_fault_of_caller(index, area, &message),
            Storm::Instructions => self.handle_fault_of_instruction(index, area, &message),
        }
    }

    fn handle_fault_of_instruction(&mut self, index: usize, area: &Area, message: &Message) {
        let starts = area.control.starts.load(Relaxed);
        let batch = &mut self.batches[index];
        *batch = match batch.0 == starts {
            true => (starts, batch.1 + 1),
            false => (starts, 1),
        };
        if batch.1 > FAULTS_PER_BATCH {
            return self.arena.revive(index);
        }
        let dice = &mut Dice(&mut self.random);
        match handler::handle(message, area, &mut self.outcomes, dice) {
            Next::Answer(answer) => self.ground.reply.send(answer),
            Next::Registers(registers, count) => self.arena.go_on(index, &registers[..count]),
            Next::Anew => self.arena.revive(index),
        }
    }

    fn handle_fault_of_caller(&mut self, index: usize, area: &Area, message: &Message) {
        let made = area.made();
        let fruitless = self.at_fault.get(index) == Some(&made);
        if let Some(at_fault) = self.at_fault.get_mut(index) {
            *at_fault = made;
        }
        match self.dice().below(8) {
            // It stays blocked until the next stir.
            0 => {}
            _ if fruitless && !self.dice().one_in(4) => {}
            // The same again, or a little further.
            1 => self.ground.reply.send(skip(message)),
            2 => self.arena.restore(index),
            // Often of an FPU or an address space that was taken away.
            _ if matches!(message.label(), fault::USER_EXCEPTION | fault::VM_FAULT) => {
                self.arena.restore(index);
            }
            _ => self.arena.revive(index),
        }
    }
}

/// The answer to a fault that lets the thread go on behind the instruction, as far as the fault
/// allows for that.
fn skip(message: &Message) -> Message {
    const INSTRUCTION_BYTES: u64 = SYSTEM_CALL.len() as u64;
    match message.label() {
        fault::USER_EXCEPTION => {
            let ip = message.word(fault::user_exception::FAULT_IP);
            Message::new(0, [ip + INSTRUCTION_BYTES])
        }
        fault::UNKNOWN_SYSCALL => {
            let mut words = [0; unknown_syscall::REPLY_LENGTH];
            message.copy_words(&mut words);
            words[unknown_syscall::FAULT_IP] += INSTRUCTION_BYTES;
            Message::long(0, &words)
        }
        _ => Message::EMPTY,
    }
}
