//! Two cores in every interleaving, with every value that a weakly ordered machine may let them
//! read (`loom`, within a bound on preemptions). Each core's registers and the kernel's state are
//! cells at which the checker allows one core at a time, in an order that the lock establishes.

mod word;

use std::cell::Cell;
use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU32;
use loom::sync::Arc;
use loom::thread;
use sandglass_lock::{Lock, Requests};

/// Preemptions of a core by the other in one interleaving, at most.
const PREEMPTIONS: usize = 4;

/// What asks a core to leave user code for good until it has had its turn.
const STALL: Requests = Requests(1);

/// What core 0 asks about.
const SUBJECT: u32 = 0x77;

word!(Loom, loom);

struct Machine {
    lock: Lock<Loom, 2>,
    /// The kernel's state: the tickets in the order in which their turns came.
    turns: UnsafeCell<Vec<u32>>,
    /// The registers of what core 1 runs.
    registers: UnsafeCell<u32>,
    /// What core 0 asks about: written before it asks, read when core 1 answers.
    subject: UnsafeCell<u32>,
    /// Whether an interrupt waits at core 1.
    interrupt: AtomicU32,
}

impl Machine {
    fn new() -> Arc<Self> {
        Arc::new(Machine {
            lock: Lock::with(|value| Loom(AtomicU32::new(value))),
            turns: UnsafeCell::new(Vec::new()),
            registers: UnsafeCell::new(0),
            subject: UnsafeCell::new(0),
            interrupt: AtomicU32::new(0),
        })
    }

    /// A turn of `core`, in which it does `work`. Returns whether it was stalled before.
    fn turn(&self, core: usize, work: impl FnOnce()) -> bool {
        let stalled = Cell::new(false);
        let turn = self.lock.arrive().unwrap_or_else(|ticket| {
            self.lock.wait(core, ticket, |asked| {
                self.answer(asked);
                stalled.set(true);
            })
        });
        self.turns.with_mut(|turns| {
            // SAFETY: the checker fails if the other core is at it.
            unsafe { (*turns).push(turn.ticket()) }
        });
        work();
        self.lock.leave(turn);
        stalled.get()
    }

    /// A step of what core 1 runs, or of the kernel on its behalf.
    fn step(&self) {
        self.registers.with_mut(|registers| {
            // SAFETY: as above.
            unsafe { *registers += 1 }
        });
    }

    /// Core 1 runs user code until the interrupt comes, and leaves it.
    fn run_until_interrupted(&self) {
        self.step();
        while self.interrupt.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        self.lock.serve(1, |asked| self.answer(asked));
    }

    fn answer(&self, asked: Requests) {
        assert_eq!(asked, STALL);
        self.subject.with(|subject| {
            // SAFETY: as above.
            assert_eq!(unsafe { *subject }, SUBJECT);
        });
    }

    /// Core 0 has a turn in which it works on what core 1 runs.
    fn stall_other(&self) {
        self.turn(0, || {
            let interrupt = |core| {
                assert_eq!(core, 1);
                self.interrupt.store(1, Ordering::Relaxed);
            };
            self.subject.with_mut(|subject| {
                // SAFETY: as above.
                unsafe { *subject = SUBJECT }
            });
            self.lock.request(0b10, STALL, interrupt);
            self.step();
        });
    }
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

#[test]
fn turns_come_one_at_a_time_and_in_order() {
    explore(|| {
        let machine = Machine::new();
        let other = machine.clone();
        let other = thread::spawn(move || other.turn(1, || ()));
        machine.turn(0, || ());
        machine.turn(0, || ());
        other.join().expect("a core");
        machine.turns.with(|turns| {
            // SAFETY: all have had their turns.
            assert_eq!(unsafe { &*turns }, &[0, 1, 2]);
        });
    });
}

/// A turn that goes on until another core waits ends: who waits is seen, and gets its turn.
#[test]
fn a_long_turn_makes_way_for_whoever_waits() {
    explore(|| {
        let machine = Machine::new();
        let other = machine.clone();
        let other = thread::spawn(move || other.turn(1, || ()));
        machine.turn(0, || {
            let has_had_its_turn = machine.turns.with(|turns| {
                // SAFETY: it is this core's turn.
                unsafe { (*turns).len() == 2 }
            });
            while !has_had_its_turn && !machine.lock.others_wait() {
                thread::yield_now();
            }
        });
        other.join().expect("a core");
        assert!(!machine.lock.others_wait(), "nobody waits at the end");
    });
}

/// When the request returns, the core has left user code, and its registers are the kernel's.
#[test]
fn a_core_in_user_code_leaves_its_registers_to_the_kernel() {
    explore(|| {
        let machine = Machine::new();
        let other = machine.clone();
        let other = thread::spawn(move || {
            other.run_until_interrupted();
            other.turn(1, || other.step());
        });
        machine.stall_other();
        other.join().expect("a core");
    });
}

/// As above for a core that enters the kernel by itself about then: it may wait for its turn when it
/// is asked, or have had it and be back in user code.
#[test]
fn a_core_that_enters_by_itself_is_stalled_too() {
    explore(|| {
        let machine = Machine::new();
        let other = machine.clone();
        let other = thread::spawn(move || {
            other.step();
            if !other.turn(1, || ()) {
                other.run_until_interrupted();
                other.turn(1, || other.step());
            }
        });
        machine.stall_other();
        other.join().expect("a core");
    });
}
