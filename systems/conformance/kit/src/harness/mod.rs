//! Runs each check apart from all others.
//!
//! The root task's first thread is the conductor, of the highest priority. For each check it
//! makes a [`Fixture`] over an untyped and a range of slots that serve nothing else, and a thread
//! that runs the check; then it waits for the thread's verdict, its fault, its panic, a fault of
//! a thread that the check made, or the watchdog's signal, whichever comes first. Then it revokes
//! the untyped and empties the slots, and with them goes whatever the check has left.

mod options;
mod panic;
mod watchdog;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use sandglass::abi::boot::SlotRegion;
use sandglass::cap::{Endpoint, Reply, Rights, Slot, Untyped};
use sandglass::fault::Fault;
use sandglass::message::Received;
use sandglass::println;
use sandglass::testing::{Failure, Suite, TestResult};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{boot, heap, BootInfo, Message, Process, SetupError};

use crate::fixture::{Choice, Fixture, Share, FULL};
use options::Options;
use watchdog::Watchdog;

/// Priority of the thread that runs a check; the levels above it belong to the harness, except
/// for threads that a check puts there to preempt itself.
pub const PRIORITY: u8 = 254;
/// No check takes longer, µs of virtual time.
pub const LIMIT_US: u64 = 400_000;
/// Memory for one check, log2 bytes.
const ARENA_BITS: u32 = 26;
/// Slots for one check.
const SLOTS: u64 = 4096;
/// Stack of the thread that runs a check, bytes.
const STACK_BYTES: u64 = 0x1_0000;

/// Badges of what the conductor waits for.
mod badge {
    pub const DONE: u64 = 1;
    pub const FAULT: u64 = 2;
    pub const HELPER_FAULT: u64 = 3;
    pub const EXPIRED: u64 = 1 << 8;
}

/// What a check is.
pub type Body = fn(&mut Fixture) -> TestResult;

/// A check and its name: page/section/property.
#[derive(Clone, Copy)]
pub struct Check {
    name: &'static str,
    body: Body,
    makes_wrong_debug_calls: bool,
}

/// For the lists of checks.
pub const fn check(name: &'static str, body: Body) -> Check {
    Check {
        name,
        body,
        makes_wrong_debug_calls: false,
    }
}

impl Check {
    /// It makes debug calls with wrong arguments, at which a kernel may halt (ABI 01, section 7): then it
    /// must be left out for the suite to end.
    pub const fn with_wrong_debug_calls(self) -> Self {
        Self {
            makes_wrong_debug_calls: true,
            ..self
        }
    }
}

/// One run of a check, shared between the conductor and the check's thread, which never use it
/// at once.
struct Run {
    fixture: Fixture,
    result: Option<TestResult>,
}

/// Runs checks and counts.
pub struct Conductor {
    process: Process,
    boot: &'static BootInfo,
    options: Options,
    suite: Suite,
    arena: Untyped,
    slots: SlotRegion,
    /// Where reports arrive, and the badged capabilities of those who report.
    reports: Endpoint,
    done: Endpoint,
    faults: Endpoint,
    helper_faults: Endpoint,
    reply: Reply,
    watchdog: Watchdog,
}

impl Conductor {
    pub fn new(boot: &'static BootInfo) -> Result<Self, SetupError> {
        let mut process = Process::root_task(boot);
        process.use_serial_console()?;
        process.use_exit_port()?;
        let resources = &mut process.resources;
        heap::share(resources.notification()?);
        let reports = resources.endpoint()?;
        let expired = resources.notification()?;
        let expired_badged = resources.mint(expired, Rights::ALL, badge::EXPIRED)?;
        boot::TCB.bind_notification(expired)?;
        let done = resources.mint(reports, Rights::ALL, badge::DONE)?;
        let faults = resources.mint(reports, Rights::ALL, badge::FAULT)?;
        let helper_faults = resources.mint(reports, Rights::ALL, badge::HELPER_FAULT)?;
        let reply = resources.reply()?;
        let arena = resources.untyped(ARENA_BITS)?;
        let first = resources.allocate_slots(SLOTS)?.index();
        let slots = SlotRegion {
            start: first,
            end: first + SLOTS,
        };
        let watchdog = Watchdog::start(&mut process, boot, expired, expired_badged)?;
        panic::install();
        let mut conductor = Self {
            process,
            boot,
            options: Options::of_this_file(),
            suite: Suite::titled("conformance"),
            arena,
            slots,
            reports,
            done,
            faults,
            helper_faults,
            reply,
            watchdog,
        };
        conductor.find_out_about_the_kernel();
        Ok(conductor)
    }

    /// Makes a first check, of which nothing is told: which kernel this is.
    fn find_out_about_the_kernel(&mut self) {
        let body: Body = Fixture::find_out_about_the_kernel;
        let mut run = None;
        let result = self.try_run(body, &mut run);
        self.watchdog.disarm();
        let result = self.clean_up(self.slots.end).and(result);
        if result.is_err() {
            self.suite.record("which-kernel-this-is", result);
        }
    }

    /// Prints the closing line and returns the status to exit with.
    pub fn finish(self) -> u8 {
        self.suite.finish()
    }

    /// Runs a check, unless it is left out, and prints its verdict; and behind it which behaviour
    /// the kernel has chosen, if the check accepts several.
    pub fn run(&mut self, check: &Check) {
        if let Some(reason) = self.options.leave_out(check) {
            return self.suite.record(check.name, Err(Failure::skip(reason)));
        }
        let mut run = None;
        let result = self.try_run(check.body, &mut run);
        self.watchdog.disarm();
        // The thread that used it is gone, or will be when the arena is revoked: the slots are
        // emptied as far as it had allocated them.
        let (used, choice) = run.map_or((self.slots.end, None), |run| {
            // SAFETY: made by `try_run`; the check's thread does not run while this one does.
            let fixture = unsafe { &(*run).fixture };
            (fixture.slots_used(), fixture.choice)
        });
        let result = self.clean_up(used).and(result);
        self.suite.record(check.name, result);
        match choice {
            Some(Choice::Ours(what)) => println!("note {}: Sandglass's way: {what}", check.name),
            Some(Choice::Reference(what)) => {
                println!("note {}: the reference's way: {what}", check.name);
            }
            None => {}
        }
    }

    /// Runs a check to its end, whatever this is. `run` is left to be looked at afterwards.
    fn try_run(&mut self, body: Body, run: &mut Option<*mut Run>) -> TestResult {
        let mut fixture = Fixture::new(self.share())?;
        let context = fixture.context(FULL)?;
        let mut process = fixture.process.clone();
        let pointer = Box::into_raw(Box::new(Run {
            fixture,
            result: None,
        }));
        *run = Some(pointer);
        let (address, done) = (pointer as usize, self.done);
        let params = ThreadParams {
            mcp: u8::MAX,
            fault_handler: Some(self.faults),
            stack_bytes: STACK_BYTES,
            ..ThreadParams::new(PRIORITY, context)
        };
        let thread = Thread::new(&mut process, params, move || {
            // SAFETY: the conductor keeps it, and looks at it only after the message.
            let run = unsafe { &mut *(address as *mut Run) };
            run.result = Some(body(&mut run.fixture));
            done.call(Message::EMPTY);
        })?;
        // SAFETY: the thread does not run yet.
        let fixture = unsafe { &mut (*pointer).fixture };
        fixture.process = process;
        fixture.set_own_thread(thread.tcb(), context);
        panic::expect(self.done);
        self.watchdog.arm()?;
        thread.start()?;
        let report = self.reports.recv(self.reply);
        self.judge(report, pointer)
    }

    /// What a report says of the check.
    fn judge(&self, report: Received, run: *mut Run) -> TestResult {
        match report.badge {
            badge::DONE => match panic::take() {
                Some(message) => Err(Failure::from(format!("panicked: {message}"))),
                // SAFETY: the thread has left it and waits for an answer.
                None => unsafe { (*run).result.take() }
                    .unwrap_or_else(|| Err(Failure::from("ended without a result"))),
            },
            badge::FAULT => Err(Failure::from(format!(
                "the check's thread faulted: {}",
                describe(&report.message)
            ))),
            badge::HELPER_FAULT => Err(Failure::from(format!(
                "a thread of the check faulted: {}",
                describe(&report.message)
            ))),
            badge::EXPIRED => Err(Failure::from(format!(
                "no end within {LIMIT_US} µs of virtual time"
            ))),
            other => Err(Failure::from(format!("a report with the badge {other}"))),
        }
    }

    /// What a check may use.
    fn share(&self) -> Share {
        Share {
            boot: self.boot,
            arena: self.arena,
            arena_bits: ARENA_BITS,
            slots: self.slots,
            unexpected_faults: self.helper_faults,
        }
    }

    /// Takes back everything that was made of the arena, and every capability in the slots below
    /// `used`.
    fn clean_up(&mut self, used: u64) -> TestResult {
        let failed = |what, error| Failure::from(format!("the harness cannot {what}: {error}"));
        self.process
            .resources
            .slot_of(self.arena)
            .revoke()
            .map_err(|error| failed("revoke the check's memory", error))?;
        for index in self.slots.start..used {
            let slot: Slot = boot::CNODE.slot(index);
            slot.delete()
                .map_err(|error| failed("empty a slot of the check", error))?;
        }
        Ok(())
    }
}

fn describe(message: &Message) -> String {
    match Fault::decode(message) {
        Some(fault) => format!("{fault:x?}"),
        None => format!("a message with label {:#x}", message.label()),
    }
}
