//! Four cores in many random schedules (`shuttle`): nobody waits for more than one turn of each
//! other core, and whatever is asked of a core is done, wherever the core is.

mod word;

use std::sync::atomic::Ordering::SeqCst;

use shuttle::sync::atomic::AtomicU32;
use shuttle::sync::Arc;
use shuttle::thread;
use std::sync::atomic::Ordering;

use sandglass_lock::{Lock, Requests};

const CORES: usize = 4;
const SCHEDULES: usize = 2_000;
/// What asks a core to forget a translation.
const FLUSH: Requests = Requests(4);

word!(Shuttle, shuttle);

struct Machine {
    lock: Lock<Shuttle, CORES>,
    /// Who is in the kernel: 1 if anybody.
    inside: AtomicU32,
    /// Turns that have begun.
    turns: AtomicU32,
    /// Cores that have work to do.
    running: AtomicU32,
    interrupts: [AtomicU32; CORES],
    /// Whether each core has the translation cached.
    cached: [AtomicU32; CORES],
}

impl Machine {
    fn answer(&self, core: usize, asked: Requests) {
        assert_eq!(asked, FLUSH);
        self.cached[core].store(0, SeqCst);
    }

    /// A turn of `core`, which waits for no more than one turn of each other core.
    fn turn(&self, core: usize, work: impl FnOnce()) {
        let turn = self.lock.arrive().unwrap_or_else(|ticket| {
            self.lock
                .wait(core, ticket, |asked| self.answer(core, asked))
        });
        assert_eq!(self.inside.fetch_add(1, SeqCst), 0, "alone");
        assert_eq!(self.turns.fetch_add(1, SeqCst), turn.ticket(), "in order");
        work();
        let waiting = self.running.load(SeqCst) > 1;
        assert!(
            waiting || !self.lock.others_wait(),
            "nobody is left to wait"
        );
        assert_eq!(self.inside.fetch_sub(1, SeqCst), 1);
        self.lock.leave(turn);
    }

    /// `core` asks all others to forget the translation, and nobody has it then.
    fn unmap(&self, core: usize) {
        self.turn(core, || {
            let others = ((1 << CORES) - 1) & !(1 << core);
            self.lock
                .request(others, FLUSH, |to| self.interrupts[to].store(1, SeqCst));
            for other in (0..CORES).filter(|&other| other != core) {
                assert_eq!(self.cached[other].load(SeqCst), 0, "core {other}");
            }
        });
    }

    /// A piece of user code of `core`: it caches the translation, and takes interrupts.
    fn run(&self, core: usize) {
        self.take_interrupt(core);
        thread::yield_now();
        self.take_interrupt(core);
    }

    fn take_interrupt(&self, core: usize) {
        if self.interrupts[core].swap(0, SeqCst) != 0 {
            self.lock.serve(core, |asked| self.answer(core, asked));
        }
    }
}

#[test]
fn four_cores_ask_each_other() {
    shuttle::check_random(
        || {
            let machine = Arc::new(Machine {
                lock: Lock::with(|value| Shuttle(AtomicU32::new(value))),
                inside: AtomicU32::new(0),
                turns: AtomicU32::new(0),
                running: AtomicU32::new(CORES as u32),
                interrupts: std::array::from_fn(|_| AtomicU32::new(0)),
                cached: std::array::from_fn(|_| AtomicU32::new(1)),
            });
            let cores = (0..CORES).map(|core| {
                let machine = machine.clone();
                thread::spawn(move || {
                    machine.run(core);
                    machine.unmap(core);
                    machine.run(core);
                    machine.turn(core, || ());
                    // In user code until all are done: others may still ask for something.
                    machine.running.fetch_sub(1, SeqCst);
                    while machine.running.load(SeqCst) > 0 {
                        machine.run(core);
                    }
                })
            });
            for core in cores.collect::<Vec<_>>() {
                core.join().expect("a core");
            }
        },
        SCHEDULES,
    );
}
