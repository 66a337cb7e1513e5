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
use crate::area::{AREAS, THREADS};
use crate::arena::Arena;
use crate::canary::{Watch, STALL, TICK};
use crate::ground::{Ground, TIMEOUT};
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

/// System calls after which an arena is replaced.
const CALLS_PER_ARENA: u64 = 15_000;
/// Reports in a row, without any system call in between, that mean that an arena is dead.
const FRUITLESS: u64 = 8;
/// Progress is told once in so many system calls.
const CALLS_PER_REPORT: u64 = 50_000;
/// System calls take the kernel at least so many ticks: an arena with more has lost its counters.
const TICKS_PER_CALL: u64 = 100;

/// Faults by number, as the supervisor received them.
pub type Faults = [u64; fault::VM_FAULT as usize + 1];

/// What a run has come to.
pub struct Summary {
    pub calls: u64,
    pub arenas: u64,
    /// Arenas whose counters the storm has overwritten: their calls do not count.
    pub discarded: u64,
    pub totals: Totals,
    pub faults: Faults,
}

/// The supervisor's state in one arena.
struct Round<'a> {
    arena: Arena<'a>,
    ground: &'a Ground,
    watch: &'static Watch,
    random: Xoshiro256PlusPlus,
    faults: &'a mut Faults,
    /// System calls of each area, and of all, at the last report of idleness.
    seen: [u64; AREAS],
    /// Stirs in a row that found a thread without a new system call.
    idle: [u64; AREAS],
    /// System calls of each area at its thread's last fault.
    at_fault: [u64; AREAS],
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

/// Runs arenas until `options.calls` system calls are made.
pub fn run(
    ground: &Ground,
    watch: &'static Watch,
    options: Options,
) -> Result<Summary, SetupError> {
    let mut summary = Summary {
        calls: 0,
        arenas: 0,
        discarded: 0,
        totals: Totals::new(),
        faults: Faults::default(),
    };
    let mut reported = 0;
    while summary.calls < options.calls {
        let seed = options.seed.wrapping_add(summary.arenas);
        watch.seed.store(seed, Relaxed);
        if summary.arenas == 0 || summary.calls >= reported + CALLS_PER_REPORT {
            reported = summary.calls;
            let wanted = options.calls;
            println!("\nstorm: {reported} of {wanted} calls, seed {seed}");
        }
        let began = sandglass::time::ticks();
        let mut round = Round {
            arena: Arena::build(ground, seed)?,
            ground,
            watch,
            random: Xoshiro256PlusPlus::seed_from_u64(!seed),
            faults: &mut summary.faults,
            seen: [0; AREAS],
            idle: [0; AREAS],
            at_fault: [0; AREAS],
            fruitless: 0,
            quiet: 0,
        };
        round.run(CALLS_PER_ARENA.min(options.calls - summary.calls));
        // Threads that the storm has made may run on other cores until their memory is revoked.
        ground.clear()?;
        let calls = watch.calls();
        let counted: u64 = watch.areas().map(|area| area.tally.calls()).sum();
        let most = (sandglass::time::ticks() - began) / TICKS_PER_CALL;
        summary.arenas += 1;
        if calls.abs_diff(counted) <= AREAS as u64 && calls <= most {
            summary.calls += calls;
            watch
                .areas()
                .for_each(|area| summary.totals.add(&area.tally));
        } else {
            summary.discarded += 1;
        }
    }
    Ok(summary)
}

impl Round<'_> {
    /// Keeps the threads going until they have made `calls` system calls, or cannot any more.
    fn run(&mut self, calls: u64) {
        while self.watch.calls() < calls && self.fruitless < FRUITLESS {
            let received = self.ground.endpoint.recv(self.ground.reply);
            self.watch.heartbeat.fetch_add(1, Relaxed);
            if received.badge & (ALL_QUIET | STALL | TICK) == 0 {
                self.handle_fault(received);
                continue;
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

    /// Lets threads that make no system calls start anew: all of them, or some, so that others
    /// may meet those that still wait.
    fn stir(&mut self, all: bool) {
        self.quiet = 0;
        let mut progress = false;
        for (index, area) in self.watch.areas().enumerate() {
            let calls = area.control.calls.load(Relaxed);
            let made = calls != self.seen[index];
            self.seen[index] = calls;
            progress |= made;
            self.idle[index] = if made { 0 } else { self.idle[index] + 1 };
            if index >= THREADS || made && !all {
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

    fn handle_fault(&mut self, received: Received) {
        let message = received.message;
        if let Some(count) = self.faults.get_mut(message.label() as usize) {
            *count += 1;
        }
        let index = (received.badge & !TIMEOUT).wrapping_sub(1) as usize;
        if received.badge & TIMEOUT != 0 {
            match self.dice().below(4) {
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
        let calls = self.watch.areas().nth(index);
        let calls = calls.map_or(0, |area| area.control.calls.load(Relaxed));
        let fruitless = self.at_fault.get(index) == Some(&calls);
        if let Some(at_fault) = self.at_fault.get_mut(index) {
            *at_fault = calls;
        }
        match self.dice().below(8) {
            // It stays blocked until the next stir.
            0 => {}
            _ if fruitless && !self.dice().one_in(4) => {}
            // The same again, or a little further.
            1 => self.ground.reply.send(skip(&message)),
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
    const INSTRUCTION_BYTES: u64 = 2;
    match message.label() {
        fault::USER_EXCEPTION => {
            let ip = message.word(fault::user_exception::FAULT_IP);
            Message::new(0, [ip + INSTRUCTION_BYTES])
        }
        fault::UNKNOWN_SYSCALL => {
            let mut words = [0; fault::unknown_syscall::REPLY_LENGTH];
            message.copy_words(&mut words);
            words[fault::unknown_syscall::FAULT_IP] += INSTRUCTION_BYTES;
            Message::long(0, &words)
        }
        _ => Message::EMPTY,
    }
}
