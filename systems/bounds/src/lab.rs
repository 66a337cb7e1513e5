//! What the measurements share.

use alloc::vec::Vec;
use core::fmt;

use sandglass::cap::{ObjectType, SchedContext, SchedControl, SchedParams, Slot};
use sandglass::firmware::Files;
use sandglass::time::{spin_until, Tsc};
use sandglass::{boot, println, BootInfo, Process, SetupError};

use crate::crowd::{Crowd, Member};
use crate::known;
use crate::lines;
use crate::program::{begin, end};

/// Priority of this thread while it works, and while it lets all others run.
pub const TOP: u8 = 254;
pub const BOTTOM: u8 = 1;

/// Round robin, with slices that nobody uses up, µs.
pub const LONG: SchedParams = SchedParams::new(3_600_000_000, 3_600_000_000);

/// Numbers of attackers to compare; the last only if the run is asked for as many.
const SIZES: [u64; 4] = [10, 1_000, 10_000, 100_000];
const DEFAULT_MOST: u64 = 1_000;

/// Threads besides the crowd, for operations that are done with one of them.
const VISITORS: u64 = 16;

/// Slots for what does not grow with the crowd.
const OTHER_SLOTS: u64 = 12_000;

/// What of a measurement is the cost of the operation, in instructions of the kernel.
#[derive(Clone, Copy)]
pub enum Cost {
    /// The first passage through the kernel.
    First,
    /// The longest passage: what delays a thread that is above all of this.
    Longest,
    /// All passages: what is taken from a thread that runs meanwhile.
    Total,
    /// The longest stretch without a look for interrupts: of long operations, which stop there.
    Stretch,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cost::First => "first",
            Cost::Longest => "longest",
            Cost::Total => "total",
            Cost::Stretch => "stretch",
        })
    }
}

pub struct Lab {
    pub process: Process,
    pub control: SchedControl,
    clock: Tsc,
    /// The longest period, in ticks.
    pub max_period: u64,
    /// Numbers of attackers, ascending.
    pub sizes: Vec<u64>,
    pub crowd: Crowd,
    /// The first of as many empty slots as the crowd has threads.
    pub spare_slots: Slot,
    pub visitors: Vec<Member>,
    /// Only the longest paths are measured.
    pub only_worst: bool,
}

impl Lab {
    pub fn new(boot: &'static BootInfo) -> Result<Self, SetupError> {
        let mut process = Process::root_task(boot);
        process.use_serial_console()?;
        process.use_exit_port()?;
        let files = Files::open(&mut process)?;
        let most = files.number("opt/sandglass/most");
        let only_worst = files.number("opt/sandglass/worst")?.is_some();
        let most = most?.unwrap_or(DEFAULT_MOST);
        let mut sizes: Vec<u64> = SIZES.into_iter().filter(|&size| size <= most).collect();
        if sizes.len() == SIZES.len() {
            // Between 1,000 and 100,000 nothing is to be learnt.
            sizes.remove(2);
        }
        let most = sizes.last().copied().unwrap_or(0);
        // Threads and their contexts, endpoints, reply objects, and copies of a capability.
        let slots = 5 * most + OTHER_SLOTS + known::slots(most);
        process
            .resources
            .enlarge_cspace(slots.next_power_of_two().ilog2())?;
        let control = boot.sched_control(0).expect("there is a first core");
        control.configure(boot::SCHED_CONTEXT, LONG)?;
        process.authority().set_priority(process.authority(), TOP)?;
        println!("bounds: making {most} threads");
        let crowd = Crowd::new(&mut process, control, most)?;
        let visitors = Crowd::new(&mut process, control, VISITORS)?
            .members()
            .to_vec();
        let spare_slots = process.resources.allocate_slots(most)?;
        Ok(Self {
            process,
            spare_slots,
            control,
            clock: boot
                .tsc()
                .expect("the kernel tells the frequency of its clock"),
            max_period: boot
                .timing()
                .expect("the kernel tells the longest period")
                .max_period,
            sizes,
            crowd,
            visitors,
            only_worst,
        })
    }

    /// So many ticks pass in `us` µs, rounded up.
    pub fn us_to_ticks(&self, us: u64) -> u64 {
        self.clock.us_to_ticks(us) + 1
    }

    /// So many µs pass in `ticks`, rounded down.
    pub fn ticks_to_us(&self, ticks: u64) -> u64 {
        self.clock.ticks_to_us(ticks)
    }

    /// Number of threads in the crowd.
    pub fn crowd_size(&self) -> u64 {
        self.crowd.members().len() as u64
    }

    /// A configured scheduling context.
    pub fn context(&mut self, params: SchedParams) -> Result<SchedContext, SetupError> {
        let context = self.process.resources.sched_context(params.size_bits())?;
        self.control.configure(context, params)?;
        Ok(context)
    }

    /// The same, at this line of a row ([`lines`]).
    pub fn context_at(
        &mut self,
        line: u64,
        params: SchedParams,
    ) -> Result<SchedContext, SetupError> {
        let kind = ObjectType::SchedContext(params.size_bits());
        let context = lines::object(&mut self.process.resources, line, kind)?;
        self.control.configure(context, params)?;
        Ok(context)
    }

    /// This thread lets all others run first.
    pub fn lower(&self) -> Result<(), SetupError> {
        Ok(self.own_priority(BOTTOM)?)
    }

    /// This thread runs before all others.
    pub fn raise(&self) -> Result<(), SetupError> {
        Ok(self.own_priority(TOP)?)
    }

    /// Gives a thread another priority.
    pub fn prioritise(&self, member: Member, priority: u8) -> Result<(), SetupError> {
        Ok(member
            .tcb
            .set_priority(self.process.authority(), priority)?)
    }

    fn own_priority(&self, priority: u8) -> sandglass::error::Result<()> {
        let own = self.process.authority();
        own.set_priority(own, priority)
    }

    /// Lets all others run until none of them can: from `start` on, in ticks, or a moment behind that, always the same.
    pub fn settle_from(&self, start: u64) -> Result<(), SetupError> {
        spin_until(start);
        self.settle()
    }

    /// Lets all others run until none of them can.
    pub fn settle(&self) -> Result<(), SetupError> {
        self.lower()?;
        self.raise()
    }
}

/// Measures `operation`, against `size` attackers.
pub fn many<T>(name: &str, size: u64, cost: Cost, operation: impl FnOnce() -> T) -> T {
    measure("many", name, size, cost, operation)
}

/// Measures `operation`, whose size is not a number of attackers.
pub fn single<T>(name: &str, size: u64, cost: Cost, operation: impl FnOnce() -> T) -> T {
    measure("single", name, size, cost, operation)
}

/// Measures `operation` in capability spaces of `levels` levels.
pub fn deep<T>(name: &str, levels: u64, cost: Cost, operation: impl FnOnce() -> T) -> T {
    measure("deep", name, levels, cost, operation)
}

fn measure<T>(kind: &str, name: &str, size: u64, cost: Cost, operation: impl FnOnce() -> T) -> T {
    begin();
    let result = operation();
    end();
    println!("bounds {kind} {name} {size} {cost}");
    result
}
