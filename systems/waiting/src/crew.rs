//! The threads of a window, on their cores.

use alloc::vec::Vec;
use core::hint::spin_loop;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{Notification, SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::testing::shared;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{boot, heap, BootInfo, Process, SetupError};

/// Time of an attacker, µs.
const ATTACKER: SchedParams = SchedParams::new(9_000, 10_000);
/// Priority of attackers, and of what runs when they wait.
pub const LOW: u8 = 1;
const LOWEST: u8 = 0;

/// Round robin, with slices that nobody uses up, µs.
pub const LONG: SchedParams = SchedParams::new(3_600_000_000, 3_600_000_000);

/// Priority of the root task, above all others.
const TOP: u8 = 254;

/// Ports of the interval timer's first channel and of its commands; the command for a count of two bytes
/// that begins anew when it has ended; and a count, at 1.19 MHz.
const PIT_CHANNEL: u16 = 0x40;
const PIT_COMMAND: u16 = 0x43;
const RATE_GENERATOR: u8 = 0x34;
const PIT_COUNT: u16 = 12;

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
        tick(&mut process)?;
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

    /// Ticks of the clock in a microsecond.
    pub fn ticks_per_us(&self) -> u64 {
        self.boot.tsc().map_or(1000, |tsc| u64::from(tsc.mhz()))
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
            spin_loop();
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

/// Lets a timer of the machine expire every 10 µs, whose interrupt nobody takes.
///
/// The emulator stays with a core until that pauses, or until a timer expires; then it goes on with the
/// first. Without this it would, once in each job, leave the task in its user code for an attacker that is
/// alone in the kernel, until the task's budget is over: while virtual time passes for both of them.
fn tick(process: &mut Process) -> Result<(), SetupError> {
    let ports = process.resources.io_ports(PIT_CHANNEL, PIT_COMMAND)?;
    ports.out8(PIT_COMMAND, RATE_GENERATOR)?;
    for byte in PIT_COUNT.to_le_bytes() {
        ports.out8(PIT_CHANNEL, byte)?;
    }
    Ok(())
}

/// Executes some instructions for each of `rounds`.
pub fn count_down(mut rounds: u64) {
    while rounds > 0 {
        rounds = core::hint::black_box(rounds - 1);
    }
}
