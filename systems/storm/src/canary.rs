//! The canary: a periodic thread of the highest priority that notices when time, memory,
//! registers or capabilities of it are touched.
//!
//! Its context is replenished a period after it became current. So each job has a release time,
//! the start of the one before plus a period, and must end within [`DEADLINE_US`] from then.
//!
//! With several cores there is one on each. Virtual time is then the sum of what all cores
//! execute, in an order that is the emulator's, so no deadline is judged; that each canary does
//! its jobs, and that nothing of it is touched, is.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Relaxed};

use sandglass::abi::message::ipc_buffer;
use sandglass::abi::syscall::Syscall;
use sandglass::cap::{Frame, Notification, Rights, SchedContext, SchedParams, Slot};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::time::{self, Tsc};
use sandglass::{boot, println, thread_block, BootInfo, Process, SetupError};

use crate::arch::canary::{self as arch, Registers};
use crate::area::{Area, AREAS, AREA_BYTES};

/// Above everything.
pub const PRIORITY: u8 = 255;
const PERIOD_US: u64 = 1_000;
const BUDGET_US: u64 = 300;
/// From a job's release to its end.
pub const DEADLINE_US: u64 = 200;
/// Periods without a system call, or an instruction, of the storm after which the supervisor is told.
const STALLED_PERIODS: u64 = 4;
/// The supervisor is woken once in so many periods in any case.
const TICK_PERIODS: u64 = 8;
/// Periods without a sign of the supervisor that end the run.
const HANGING_PERIODS: u64 = 500;

/// Words of the pattern: four pages.
const PATTERN_WORDS: usize = 2048;
/// Words of the IPC buffer's page that no system call of the canary touches: behind those of its
/// longest invocation, up to the capabilities', and the rest of the page.
const BUFFER_WORDS: [core::ops::Range<usize>; 2] = [
    ipc_buffer::MESSAGE + 8..ipc_buffer::USER_DATA,
    ipc_buffer::WORDS..512,
];
/// Badge of its own notification.
const BADGE: u64 = 0x00c0_ffee_0000_0001;

/// Signals to the supervisor.
pub const STALL: u64 = 1 << 33;
pub const TICK: u64 = 1 << 34;

/// What the canary and the supervisor tell one another.
pub struct Watch {
    /// Changes as long as the supervisor is well.
    pub heartbeat: AtomicU64,
    /// The storm's areas, mapped for good.
    pub areas: AtomicPtr<Area>,
    /// Seed of the current arena.
    pub seed: AtomicU64,
    /// A witness has seen something.
    pub is_broken: AtomicBool,
    /// Of the canary of each core.
    pub jobs: Box<[Jobs]>,
}

/// The jobs of a canary.
#[derive(Default)]
pub struct Jobs {
    /// Jobs done.
    pub done: AtomicU64,
    /// How often the core's witness has looked.
    pub looks: AtomicU64,
    /// The longest time from a release to the job's start, and to its end, ticks.
    pub latest_start: AtomicU64,
    pub latest_end: AtomicU64,
}

impl Watch {
    /// For so many cores, before there are areas.
    pub fn new(cores: usize) -> Self {
        Self {
            heartbeat: AtomicU64::new(0),
            areas: AtomicPtr::default(),
            seed: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
            jobs: (0..cores).map(|_| Jobs::default()).collect(),
        }
    }

    /// The areas; none before there are any.
    pub fn areas(&self) -> impl Iterator<Item = &'static Area> {
        let first = self.areas.load(Relaxed);
        let count = if first.is_null() { 0 } else { AREAS };
        // SAFETY: they are `AREA_BYTES` apart and mapped for good; what the storm changes in them
        // is atomic, or not read by us.
        (0..count).map(move |i| unsafe { &*first.byte_add(i * AREA_BYTES as usize) })
    }

    /// System calls that the storm has made in the current arena, or instructions that it has begun.
    pub fn made(&self) -> u64 {
        self.areas().map(Area::made).fold(0, u64::wrapping_add)
    }
}

/// Everything that must not change.
struct Canary {
    core: usize,
    watch: &'static Watch,
    tsc: Tsc,
    supervisor: Notification,
    pattern: Box<[u64; PATTERN_WORDS]>,
    registers: Registers,
    buffer: *mut u64,
    context: SchedContext,
    /// Its own notification, with [`BADGE`].
    notification: Notification,
    frame: Frame,
    physical_address: u64,
    empty: Slot,
}
// SAFETY: the buffer is the thread's own.
unsafe impl Send for Canary {}

/// Word `i` of the pattern.
pub const fn pattern(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Starts the canary of core `core`. That of the first one, which is the supervisor's, signals
/// `supervisor` with badges [`STALL`] and [`TICK`] or-ed in.
pub fn start(
    process: &mut Process,
    boot: &'static BootInfo,
    core: usize,
    watch: &'static Watch,
    supervisor: Notification,
    tsc: Tsc,
) -> Result<(), SetupError> {
    let stall = process.resources.mint(supervisor, Rights::WRITE, STALL)?;
    let tick = process.resources.mint(supervisor, Rights::WRITE, TICK)?;
    let params = SchedParams::new(BUDGET_US, PERIOD_US);
    let context = process.resources.sched_context(params.size_bits())?;
    boot.sched_control(core as u64)
        .expect("there is an authority for every core that runs")
        .configure(context, params)?;
    let notification = process.resources.notification()?;
    let frame = process.resources.frame(sandglass::cap::FrameSize::Small)?;
    let canary = Canary {
        core,
        watch,
        tsc,
        supervisor: stall,
        pattern: Box::new(core::array::from_fn(pattern)),
        registers: Registers::pattern(),
        buffer: core::ptr::null_mut(),
        context,
        notification: process
            .resources
            .mint(notification, Rights::READ_WRITE, BADGE)?,
        frame,
        physical_address: frame.physical_address()?,
        empty: process.resources.allocate_slot()?,
    };
    let pointed_at = canary.pattern.as_ptr() as u64;
    let thread = Thread::new(process, ThreadParams::new(PRIORITY, context), move || {
        canary.run(tick)
    })?;
    let mut registers = thread.tcb().read_registers(false)?;
    registers.set(arch::SECOND_POINTER_REGISTER, pointed_at);
    thread.tcb().write_registers(&registers, false)?;
    thread.start()
}

/// What must change as long as others are well.
#[derive(Default)]
struct Others {
    heartbeat: Counter,
    made: Counter,
    /// The jobs of the other canary that has done the fewest.
    lowest: Counter,
}

/// A count of somebody else's.
#[derive(Default)]
struct Counter {
    last: u64,
    /// How often it was seen since it changed.
    unchanged: u64,
}

impl Counter {
    fn see(&mut self, count: u64) {
        self.unchanged = if count == self.last {
            self.unchanged + 1
        } else {
            0
        };
        self.last = count;
    }
}

impl Canary {
    fn run(mut self, tick: Notification) -> ! {
        self.buffer = thread_block::current_ipc_buffer().cast();
        for index in BUFFER_WORDS.into_iter().flatten() {
            // SAFETY: within the page of the thread's own buffer.
            unsafe { self.buffer.add(index).write_volatile(pattern(index)) };
        }
        let period = self.tsc.us_to_ticks(PERIOD_US);
        let mut others = Others::default();
        self.rest();
        let mut start = time::ticks();
        loop {
            self.rest();
            let release = start + period;
            start = time::ticks();
            self.check_data();
            self.check_caps();
            if self.watch.is_broken.load(Relaxed) {
                self.fail("a witness");
            }
            let periods = self.jobs().done.load(Relaxed) + 1;
            if self.core == 0 {
                self.look_after(&mut others, periods, tick);
            }
            self.jobs().done.store(periods, Relaxed);
            self.check_time(release, start, time::ticks());
        }
    }

    /// Its own jobs.
    fn jobs(&self) -> &Jobs {
        &self.watch.jobs[self.core]
    }

    /// Fails if the supervisor or another canary does not run, and wakes the supervisor when it is
    /// to look after the storm.
    fn look_after(&self, others: &mut Others, periods: u64, tick: Notification) {
        others.heartbeat.see(self.watch.heartbeat.load(Relaxed));
        others.made.see(self.watch.made());
        let jobs = &self.watch.jobs;
        if let Some(lowest) = jobs
            .iter()
            .skip(1)
            .map(|jobs| jobs.done.load(Relaxed))
            .min()
        {
            others.lowest.see(lowest);
        }
        if others.heartbeat.unchanged > HANGING_PERIODS {
            self.fail("the supervisor does not run");
        }
        if others.lowest.unchanged > HANGING_PERIODS && jobs.len() > 1 {
            self.fail("the canary of another core does not run");
        }
        if others.made.unchanged > STALLED_PERIODS {
            others.made.unchanged = 0;
            self.supervisor.signal();
        } else if periods.is_multiple_of(TICK_PERIODS) {
            tick.signal();
        }
    }

    /// Yields the rest of the budget, with known registers, and looks at them afterwards.
    fn rest(&self) {
        let before = &self.registers;
        let after = before.around(Syscall::Yield);
        if let Some(what) = after.difference(before) {
            self.fail(what);
        }
    }

    fn check_data(&self) {
        let changed = |(i, word): (usize, &u64)| {
            // SAFETY: a valid reference; others might write, which is what is looked for.
            let word = unsafe { core::ptr::from_ref(word).read_volatile() };
            word != pattern(i)
        };
        if self.pattern.iter().enumerate().any(changed) {
            self.fail("a word of the pattern");
        }
        for index in BUFFER_WORDS.into_iter().flatten() {
            // SAFETY: as in `run`.
            if unsafe { self.buffer.add(index).read_volatile() } != pattern(index) {
                self.fail("a word of the IPC buffer");
            }
        }
        if !core::ptr::eq(thread_block::current_ipc_buffer().cast(), self.buffer) {
            self.fail("the thread pointer or the thread block");
        }
        if arch::second_pointer_target() != pattern(0) {
            self.fail(arch::SECOND_POINTER);
        }
    }

    fn check_caps(&self) {
        self.notification.signal();
        if self.notification.poll() != BADGE {
            self.fail("its notification");
        }
        if self.frame.physical_address() != Ok(self.physical_address) {
            self.fail("its frame");
        }
        if self.context.consumed_us().is_err() {
            self.fail("its scheduling context");
        }
        let from = boot::CNODE.slot(self.notification.address());
        if self.empty.copy_from(from, Rights::ALL).is_err() || self.empty.delete().is_err() {
            self.fail("an empty slot of it");
        }
    }

    /// Checks the job that was released at `release`, began at `start` and ended at `end`, ticks.
    fn check_time(&self, release: u64, start: u64, end: u64) {
        let (late, response) = (start.saturating_sub(release), end.saturating_sub(release));
        self.jobs().latest_start.fetch_max(late, Relaxed);
        self.jobs().latest_end.fetch_max(response, Relaxed);
        let alone = self.watch.jobs.len() == 1;
        if alone && response > self.tsc.us_to_ticks(DEADLINE_US) {
            println!(
                "\nthe canary's job began {} us and ended {} us after its release",
                self.tsc.ticks_to_us(late),
                self.tsc.ticks_to_us(response)
            );
            self.fail("a deadline");
        }
    }

    /// Ends the run.
    fn fail(&self, what: &str) -> ! {
        let (seed, made) = (self.watch.seed.load(Relaxed), self.watch.made());
        let core = self.core;
        println!("\ntest canary ... FAILED: {what}, with seed {seed} after {made} calls or instructions of it (core {core})");
        println!("0 passed, 1 failed");
        crate::arch::end(1)
    }
}
