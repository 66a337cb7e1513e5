//! A passive server that partitions share, and a partition whose requests are in service when its window ends.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{
    Capability, Endpoint, Notification, Reply, Rights, SchedContext, SchedControl, SchedParams,
};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::time;
use sandglass::timer::Timer;
use sandglass::{Message, Process, SetupError};
use sandglass_partitions::driver::{watch, Sender, Servers, FULL_US};
use sandglass_partitions::Member;

/// Above the threads of partitions: first the watcher, then the server.
const WATCHER: u8 = 101;
const SERVER: u8 = 102;
/// Longer than the server takes until it waits, µs.
const STARTING_US: u64 = 1_000;

/// Where the server is asked.
static ENDPOINT: AtomicU64 = AtomicU64::new(0);
/// What a request takes, in ticks, and how many have ended.
static REQUEST: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

/// The server and the watcher.
pub struct Service {
    control: SchedControl,
    watcher: Notification,
}

impl Service {
    /// Starts both; the scheduler waits at `scheduler`.
    pub fn start(
        process: &mut Process,
        control: SchedControl,
        timer: Timer,
        scheduler: Endpoint,
    ) -> Result<Self, SetupError> {
        let (endpoint, reply) = (process.resources.endpoint()?, process.resources.reply()?);
        ENDPOINT.store(endpoint.cptr().raw(), Relaxed);
        let context = full(process, control)?;
        let server = ThreadParams::new(SERVER, context);
        let server = Thread::spawn(process, server, move || serve(endpoint, reply))?;
        timer.sleep_us(STARTING_US)?;
        // It waits, and works on the time of who asks from now on.
        context.unbind_tcb(server.tcb())?;

        let watcher = process.resources.notification()?;
        let badge = Sender::Idle.badge();
        let idle = process.resources.mint(scheduler, Rights::ALL, badge)?;
        let context = full(process, control)?;
        let params = ThreadParams::new(WATCHER, context);
        Thread::spawn(process, params, move || watch(watcher, idle))?;
        Ok(Self { control, watcher })
    }

    /// What the driver is told, with this bound.
    pub const fn servers(&self, bound_us: u64) -> Servers {
        Servers {
            control: self.control,
            bound_us,
            watcher: self.watcher,
        }
    }
}

fn full(process: &mut Process, control: SchedControl) -> Result<SchedContext, SetupError> {
    let params = SchedParams::new(FULL_US, FULL_US);
    let context = process.resources.sched_context(params.size_bits())?;
    control.configure(context, params)?;
    Ok(context)
}

fn serve(endpoint: Endpoint, reply: Reply) {
    let mut received = endpoint.recv(reply);
    loop {
        let mut left = received.message.word(0);
        let mut before = time::ticks();
        while left > 0 {
            let now = time::ticks();
            // Longer ones are those of others.
            left = left.saturating_sub((now - before).min(64));
            before = now;
        }
        ENDED.fetch_add(1, Relaxed);
        received = reply.reply_recv(endpoint, Message::EMPTY);
    }
}

/// What a request takes from now on, in ticks.
pub fn set_request(ticks: u64) {
    REQUEST.store(ticks, Relaxed);
    ENDED.store(0, Relaxed);
}

/// Requests that have ended since then.
pub fn ended() -> u64 {
    ENDED.load(Relaxed)
}

/// Makes requests for good.
pub fn ask(member: Member) -> ! {
    let server = Endpoint::at(ENDPOINT.load(Relaxed));
    member.run(|| loop {
        server.call(Message::new(0, [REQUEST.load(Relaxed)]));
    })
}
