//! What the tests share: resources, threads that are stopped when their test is over, and ways
//! to look at what the kernel does not show directly.

use alloc::vec::Vec;

use sandglass::cap::{
    Endpoint, Notification, SchedArguments, SchedContext, SchedControl, SchedParams, Slot, Tcb,
};
use sandglass::context::UserContext;
use sandglass::error::LookupFailure;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::{self, Thread, ThreadParams};
use sandglass::time::Tsc;
use sandglass::{boot, heap, BootInfo, Error, ErrorKind, Process, SetupError};

use crate::arch::send_once;
use crate::watchdog;

/// Round robin: always has budget, never times out.
pub const FULL: SchedParams = SchedParams::new(5_000, 5_000);

/// Most time that any kernel path may take: the published worst case of the ABI, µs.
pub const KERNEL_PATH_US: u64 = sandglass::abi::sched::KERNEL_WCET_US;

/// What tests share. The root task runs at the highest priority: a test's threads run while the
/// test waits.
pub struct Fixture {
    pub process: Process,
    pub boot: &'static BootInfo,
    pub control: SchedControl,
    pub tsc: Tsc,
    /// Signalled by a test's threads when they are done, with a bit each where it matters.
    pub done: Notification,
    /// Never signalled.
    park: Notification,
    /// Asks the thread of priority 0 for a sign, and its sign.
    settle: Notification,
    settled: Notification,
    /// Threads of the current test.
    threads: Vec<Tcb>,
}

/// A test.
pub type Test = fn(&mut Fixture) -> TestResult;

impl Fixture {
    pub fn new(boot: &'static BootInfo) -> Result<Self, SetupError> {
        let mut process = Process::root_task(boot);
        process.use_serial_console()?;
        process.use_exit_port()?;
        heap::share(process.resources.notification()?);
        let mut fixture = Self {
            boot,
            control: boot.sched_control(0).expect("there is a first core"),
            tsc: boot.tsc().expect("the kernel reports the TSC's frequency"),
            done: process.resources.notification()?,
            park: process.resources.notification()?,
            settle: process.resources.notification()?,
            settled: process.resources.notification()?,
            threads: Vec::new(),
            process,
        };
        fixture.start_idler()?;
        watchdog::start(&mut fixture)?;
        Ok(fixture)
    }

    /// Starts the thread that [`Self::settle`] asks.
    fn start_idler(&mut self) -> Result<(), SetupError> {
        let (settle, settled) = (self.settle, self.settled);
        let context = self.context(FULL)?;
        Thread::spawn(
            &mut self.process,
            ThreadParams::new(0, context),
            move || loop {
                settle.wait();
                settled.signal();
            },
        )?;
        Ok(())
    }

    /// Runs `tests`, each under `module::name`.
    pub fn run(&mut self, suite: &mut Suite, module: &str, tests: &[(&str, Test)]) {
        for (name, test) in tests {
            let name = alloc::format!("{module}::{name}");
            watchdog::begin(&name);
            suite.run(&name, || test(self));
            self.clear();
        }
    }

    /// Stops the threads of the last test and takes its last signals.
    fn clear(&mut self) {
        for tcb in self.threads.drain(..) {
            // One that is gone needs no stopping.
            let _ = tcb.suspend();
        }
        self.done.poll();
    }

    /// A configured scheduling context.
    pub fn context(&mut self, params: SchedParams) -> Result<SchedContext, SetupError> {
        self.context_on(self.control, params)
    }

    /// A scheduling context configured by `control`, for that core.
    pub fn context_on(
        &mut self,
        control: SchedControl,
        params: SchedParams,
    ) -> Result<SchedContext, SetupError> {
        let context = self.process.resources.sched_context(params.size_bits())?;
        control.configure(context, params)?;
        Ok(context)
    }

    /// Starts a thread, which stays parked after `body`.
    pub fn spawn(
        &mut self,
        params: ThreadParams,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Tcb, SetupError> {
        let tcb = self.prepare(params, body)?;
        tcb.resume()?;
        Ok(tcb)
    }

    /// As [`Self::spawn`], without starting the thread.
    pub fn prepare(
        &mut self,
        params: ThreadParams,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Tcb, SetupError> {
        let park = self.park;
        let tcb = Thread::new(&mut self.process, params, move || {
            body();
            loop {
                park.wait();
            }
        })?
        .tcb();
        self.threads.push(tcb);
        Ok(tcb)
    }

    /// Starts a thread on a round-robin context of its own.
    pub fn spawn_full(
        &mut self,
        priority: u8,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Tcb, SetupError> {
        let context = self.context(FULL)?;
        self.spawn(ThreadParams::new(priority, context), body)
    }

    /// Prepares a thread without a stack that sends once and then spins: the cheap way to many.
    pub fn prepare_sender(&mut self, priority: u8, endpoint: Endpoint) -> Result<Tcb, SetupError> {
        let context = self.context(FULL)?;
        let tcb = self.process.resources.tcb()?;
        let params = ThreadParams::new(priority, context);
        thread::configure(&self.process, tcb, params, None)?;
        let start = send_once();
        let registers = UserContext::start(start, 0, endpoint.address(), 0);
        tcb.write_registers(&registers, false)?;
        self.threads.push(tcb);
        Ok(tcb)
    }

    /// Lets all other threads run until they wait or have no budget.
    pub fn settle(&self) {
        self.settle.signal();
        self.settled.wait();
    }

    /// Ticks of `us` µs.
    pub fn ticks(&self, us: u64) -> u64 {
        self.tsc.us_to_ticks(us)
    }

    /// Whether the slot is empty. The probe copies the capability to an empty slot and back out;
    /// one that cannot be copied shows by the error.
    pub fn is_empty(&mut self, slot: Slot) -> Result<bool, SetupError> {
        let probe = self.process.resources.allocate_slot()?;
        let copied = probe.copy_from(slot, sandglass::cap::Rights::ALL);
        probe.delete()?;
        self.process.resources.free_slot(probe);
        Ok(matches!(
            copied,
            Err(Error {
                kind: ErrorKind::FailedLookup {
                    source: true,
                    failure: LookupFailure::MissingCapability { .. },
                },
                ..
            })
        ))
    }
}

/// Whether `tcb`, of priority `priority` and without a fault handler, runs on `context`, which
/// must be bound to some thread and have budget. TCB_SetSchedParams tells: it accepts the
/// context that the thread has, and none that another has (ABI 03, section 4.6).
pub fn runs_on(tcb: Tcb, priority: u8, context: SchedContext) -> bool {
    let arguments = SchedArguments {
        mcp: 0,
        priority,
        sched_context: Some(context),
        fault_handler: None,
    };
    tcb.set_sched_params(boot::TCB, arguments).is_ok()
}
