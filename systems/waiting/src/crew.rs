//! The threads of a window, on their cores.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{Notification, SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::testing::shared;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::time::{pause, Tsc};
use sandglass::{boot, heap, BootInfo, Process, SetupError};

use crate::isa;

/// Time of an attacker, µs.
const ATTACKER: SchedParams = SchedParams::new(9_000, 10_000);
/// Priority of attackers, and of what runs when they wait.
pub const LOW: u8 = 1;
const LOWEST: u8 = 0;

/// Round robin, with slices that nobody uses up, µs.
pub const LONG: SchedParams = SchedParams::new(3_600_000_000, 3_600_000_000);

/// Priority of the root task, above all others.
const TOP: u8 = 254;

/// Slots for all windows.
const CSPACE_RADIX: u32 = 14;

pub struct Crew {
    pub process: Process,
    boot: &'static BootInfo,
    /// The threads of this window.
    threads: Vec<Tcb>,
    /// How often each attacker of this window has done its operation.
    rounds: Vec<&'static AtomicU64>,
}

impl Crew {
    pub fn new(boot: &'static BootInfo) -> Result<Self, SetupError> {
        let mut process = Process::root_task(boot);
        process.use_serial_console()?;
        process.use_exit_port()?;
        process.resources.enlarge_cspace(CSPACE_RADIX)?;
        isa::tick(&mut process)?;
        heap::share(process.resources.notification()?);
        process.authority().set_priority(process.authority(), TOP)?;
        let crew = Self {
            process,
            boot,
            threads: Vec::new(),
            rounds: Vec::new(),
        };
        crew.control(0).configure(boot::SCHED_CONTEXT, LONG)?;
        Ok(crew)
    }

    /// The cores of the attackers: all but the first.
    pub fn attacked_cores(&self) -> Range<u64> {
        1..self.boot.cores()
    }

    /// The frequency of the clock.
    pub fn clock(&self) -> Tsc {
        let clock = self.boot.tsc();
        clock.expect("the kernel tells the frequency of its clock")
    }

    pub fn control(&self, core: u64) -> SchedControl {
        let control = self.boot.sched_control(core);
        control.expect("there is an authority for every core that runs")
    }

    /// Makes a thread of this window, with a context for `core`; it runs when the window begins.
    pub fn thread(
        &mut self,
        core: u64,
        priority: u8,
        time: SchedParams,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(Tcb, SchedContext), SetupError> {
        let context = self.process.resources.sched_context(time.size_bits())?;
        self.control(core).configure(context, time)?;
        let params = ThreadParams::new(priority, context);
        let thread = Thread::new(&mut self.process, params, body)?;
        self.threads.push(thread.tcb());
        Ok((thread.tcb(), context))
    }

    /// Makes the attacker of `core`, which does `round` over and over.
    pub fn attacker(
        &mut self,
        core: u64,
        mut round: impl FnMut() + Send + 'static,
    ) -> Result<Tcb, SetupError> {
        let rounds: &'static AtomicU64 = shared();
        self.rounds.push(rounds);
        let (attacker, _) = self.thread(core, LOW, ATTACKER, move || loop {
            round();
            // The emulator goes on with another core.
            pause();
            rounds.fetch_add(1, Ordering::Relaxed);
        })?;
        Ok(attacker)
    }

    /// A notification that is signalled whenever no other thread can run on `core`.
    pub fn quiet(&mut self, core: u64) -> Result<Notification, SetupError> {
        let quiet = self.process.resources.notification()?;
        self.thread(core, LOWEST, LONG, move || loop {
            quiet.signal();
        })?;
        Ok(quiet)
    }

    /// The window begins: all threads run, the latest made first.
    pub fn start(&self) -> Result<(), SetupError> {
        for thread in self.threads.iter().rev() {
            thread.resume()?;
        }
        Ok(())
    }

    /// How often each attacker has done its operation.
    pub fn rounds(&self) -> Vec<u64> {
        let rounds = self.rounds.iter();
        rounds
            .map(|rounds| rounds.load(Ordering::Relaxed))
            .collect()
    }

    /// Stops all threads of this window for good.
    pub fn stop(&mut self) -> Result<(), SetupError> {
        self.rounds.clear();
        for thread in self.threads.drain(..) {
            thread.suspend()?;
        }
        Ok(())
    }
}

/// Executes some instructions for each of `rounds`.
pub fn count_down(mut rounds: u64) {
    while rounds > 0 {
        rounds = core::hint::black_box(rounds - 1);
    }
}
