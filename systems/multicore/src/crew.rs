//! The threads of a window: clients, each on its core, and passive servers.

use alloc::vec::Vec;

use sandglass::cap::{nb_send_recv, Endpoint, Notification, Reply, Rights, SchedParams, Tcb};
use sandglass::message::Received;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{boot, heap, BootInfo, Message, Process, SetupError};

use crate::marks;

/// Round robin with slices that no window uses up: no timer interrupt is measured.
const LONG: SchedParams = SchedParams::new(3_600_000_000, 3_600_000_000);
/// Clients and their servers have the same priority (thesis 8.5.1).
const PRIORITY: u8 = 100;

/// Makes threads, and lets those of a window begin at once.
pub struct Crew {
    pub process: Process,
    boot: &'static BootInfo,
    /// Signalled by a server that waits for its first request.
    ready: Notification,
    /// Signalled by a client that is done: bit `n` of client `n`.
    done: Notification,
    /// Never signalled.
    park: Notification,
    /// The threads of this window, and what lets each client begin.
    threads: Vec<Tcb>,
    starts: Vec<Notification>,
}

impl Crew {
    pub fn new(boot: &'static BootInfo) -> Result<Self, SetupError> {
        let mut process = Process::root_task(boot);
        process.use_serial_console()?;
        process.use_exit_port()?;
        heap::share(process.resources.notification()?);
        // The root task's own slice must not end within a window either.
        let control = boot.sched_control(0).expect("there is a first core");
        control.configure(boot::SCHED_CONTEXT, LONG)?;
        let resources = &mut process.resources;
        Ok(Self {
            ready: resources.notification()?,
            done: resources.notification()?,
            park: resources.notification()?,
            threads: Vec::new(),
            starts: Vec::new(),
            process,
            boot,
        })
    }

    /// Cores that run, of which each gets a client.
    pub fn cores(&self) -> usize {
        self.boot.cores() as usize
    }

    /// Starts a passive server at a new endpoint: it answers each request by `serve`.
    pub fn server(
        &mut self,
        mut serve: impl FnMut(Received) -> Message + Send + 'static,
    ) -> Result<Endpoint, SetupError> {
        let resources = &mut self.process.resources;
        let (endpoint, reply): (Endpoint, Reply) = (resources.endpoint()?, resources.reply()?);
        let context = resources.sched_context(LONG.size_bits())?;
        let control = self.boot.sched_control(0).expect("there is a first core");
        control.configure(context, LONG)?;
        let ready = self.ready;
        let params = ThreadParams::new(PRIORITY, context);
        let thread = Thread::spawn(&mut self.process, params, move || {
            let mut received = nb_send_recv(ready, Message::EMPTY, endpoint, reply);
            loop {
                let answer = serve(received);
                received = reply.reply_recv(endpoint, answer);
            }
        })?;
        self.ready.wait();
        context.unbind_tcb(thread.tcb())?;
        self.threads.push(thread.tcb());
        Ok(endpoint)
    }

    /// Makes the client of core `core`, which does `work` once the window has begun.
    pub fn client(
        &mut self,
        core: usize,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), SetupError> {
        let resources = &mut self.process.resources;
        let start = resources.notification()?;
        let done = resources.mint(self.done, Rights::WRITE, 1 << core)?;
        let context = resources.sched_context(LONG.size_bits())?;
        let control = self.boot.sched_control(core as u64);
        let control = control.expect("there is an authority for every core that runs");
        control.configure(context, LONG)?;
        let park = self.park;
        let params = ThreadParams::new(PRIORITY, context);
        let thread = Thread::spawn(&mut self.process, params, move || {
            start.wait();
            work();
            done.signal();
            park.wait();
        })?;
        self.threads.push(thread.tcb());
        self.starts.push(start);
        Ok(())
    }

    /// The window: lets all clients begin, and waits until all are done. Then all threads are
    /// stopped for good.
    pub fn run(&mut self) -> Result<(), SetupError> {
        let all = (1 << self.starts.len()) - 1;
        let mut done = 0;
        marks::begin();
        for start in self.starts.drain(..) {
            start.signal();
        }
        while done != all {
            done |= self.done.wait();
        }
        marks::end();
        for thread in self.threads.drain(..) {
            thread.suspend()?;
        }
        Ok(())
    }
}
