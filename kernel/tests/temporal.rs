//! Random systems in the whole kernel, at the size of life: a clock of 1 GHz, up to all the refills
//! there are, threads that spin, wait, yield and call a passive server, a timeout handler, and a
//! manager that suspends, binds, configures and moves them. Kernel paths have any length up to the
//! longest that the ABI allows for.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::Refill;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::time::refills::Refills;
use sandglass_testkit::isa;
use sandglass_testkit::world::{Thread, World, US};

const SPORADIC: u64 = 1;
/// The longest path through the kernel, in ticks: half of the least budget (04, section 1).
const LONGEST_PATH: u64 = 10 * US;
/// Size of the contexts: room for more refills than are ever used.
const CONTEXT_BITS: u64 = 12;
const MANAGER_PRIORITY: u64 = 250;
const HANDLER_PRIORITY: u64 = 240;
const SERVER_PRIORITY: u64 = 220;

/// A thread that lives on a budget.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    priority: u64,
    /// Microseconds.
    budget: u64,
    period: u64,
    extra_refills: u64,
    sporadic: bool,
    /// Whether the handler is told when its budget is used up.
    has_handler: bool,
}

struct Worker {
    thread: Thread,
    parameters: Parameters,
    /// What it waits for.
    notification: u64,
}

impl Worker {
    /// Ticks that it may run in a window of its period. The least budget is twice the longest path,
    /// so that a path never goes on after the end of a refill; but a sporadic context starts late
    /// by the path that its release falls into, and does not start anew.
    fn allowed(&self) -> u64 {
        let late = if self.parameters.sporadic {
            LONGEST_PATH
        } else {
            0
        };
        self.parameters.budget * US + late
    }
}

/// A random system.
struct System {
    w: World,
    workers: Vec<Worker>,
    manager: Worker,
    server: Thread,
    handler: Thread,
    /// Endpoints of server and handler, with the reply objects that these use.
    service: (u64, u64),
    timeouts: (u64, u64),
    /// What the root task waits for.
    root_waits: u64,
    /// Number of interrupts that wake somebody: the manager, and each worker.
    vectors: u64,
    /// Who ran when, kernel paths included, by address of the context; whoever runs after a path
    /// pays for it.
    ran: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Threads that have run since this was last cleared.
    seen: BTreeSet<u64>,
    /// State of the generator of path lengths.
    path: u64,
}

impl System {
    fn new(parameters: &[Parameters]) -> Self {
        let mut w = World::new();
        w.path = 0;
        let service = (w.make(types::ENDPOINT, 0), w.make(types::REPLY, 0));
        let timeouts = (w.make(types::ENDPOINT, 0), w.make(types::REPLY, 0));
        let root_waits = w.make(types::NOTIFICATION, 0);
        let serve = |w: &mut World, priority, (endpoint, reply): (u64, u64)| {
            let thread = w.make_thread(priority, CONTEXT_BITS);
            w.configure(thread.context, 500, 2000, 0, 0);
            w.bind(thread);
            w.resume(thread);
            w.wait(root_waits);
            assert_eq!(w.running(), Some(thread.handle));
            w.recv(endpoint, reply);
            w.wake(root_waits);
            thread
        };
        let server = serve(&mut w, SERVER_PRIORITY, service);
        w.invoke(server.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
            .expect("a passive server");
        let handler = serve(&mut w, HANDLER_PRIORITY, timeouts);
        let mut vectors = 0;
        let mut start = |w: &mut World, parameters: Parameters| {
            let thread = w.make_thread(parameters.priority, CONTEXT_BITS);
            let Parameters {
                budget,
                period,
                extra_refills,
                sporadic,
                ..
            } = parameters;
            let flags = if sporadic { SPORADIC } else { 0 };
            w.configure(thread.context, budget, period, extra_refills, flags);
            if parameters.has_handler {
                let handler = [timeouts.0];
                w.invoke(thread.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &handler)
                    .expect("a timeout handler");
            }
            w.bind(thread);
            w.resume(thread);
            let notification = w.make(types::NOTIFICATION, 0);
            let irq = w.issue_irq(vectors).expect("an interrupt");
            let set = label::IRQ_HANDLER_SET_NOTIFICATION;
            w.invoke(irq, set, &[], &[notification])
                .expect("its notification");
            vectors += 1;
            Worker {
                thread,
                parameters,
                notification,
            }
        };
        let manager = start(
            &mut w,
            Parameters {
                priority: MANAGER_PRIORITY,
                budget: 300,
                period: 1500,
                extra_refills: 3,
                sporadic: false,
                has_handler: false,
            },
        );
        let workers = parameters.iter().map(|&p| start(&mut w, p)).collect();
        w.wait(root_waits);
        System {
            w,
            workers,
            manager,
            server,
            handler,
            service,
            timeouts,
            root_waits,
            vectors,
            ran: BTreeMap::new(),
            seen: BTreeSet::new(),
            path: 1,
        }
    }

    /// Time passes for whoever runs.
    fn run(&mut self, ticks: u64) {
        let now = self.w.now();
        if let Some(context) = self.w.k.core().context() {
            let spans = self.ran.entry(context.address().get()).or_default();
            match spans.last_mut() {
                Some(last) if last.1 == now => last.1 = now + ticks,
                _ => spans.push((now, now + ticks)),
            }
        }
        if let Some(thread) = self.w.running() {
            self.seen.insert(thread.address().get());
        }
        self.w.k.machine.advance(ticks);
    }

    /// The kernel was entered; its path takes its time, often a short one.
    fn entered(&mut self) {
        self.path = self.path.wrapping_mul(6364136223846793005).wrapping_add(1);
        let random = self.path >> 33;
        let longest = if random.is_multiple_of(16) {
            LONGEST_PATH
        } else {
            LONGEST_PATH / 20
        };
        self.run(random / 16 % (longest + 1));
    }

    fn event(&mut self, event: Event) {
        self.w.event(event);
        self.entered();
    }

    /// Lets `ticks` pass in user code; the timer fires when its time has come.
    fn pass(&mut self, ticks: u64) {
        let end = self.w.now() + ticks;
        while self.w.now() < end {
            let deadline = self.w.k.machine.deadline().max(self.w.now());
            self.run(deadline.min(end) - self.w.now());
            if self.w.now() == deadline {
                self.event(Event::Trap(Trap::Timer));
            }
        }
    }

    fn syscall(&mut self, call: Syscall, cap: u64, reply: u64, info: MessageInfo, words: &[u64]) {
        self.w.syscall(call, cap, reply, info, words);
        self.entered();
    }

    /// An invocation by whoever runs, with whatever result.
    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        self.w.set_extra_caps(caps);
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        self.syscall(Syscall::Call, cap, 0, info, words);
    }

    /// Whoever runs does something, by the choice of `what`.
    fn act(&mut self, what: u64) {
        let none = MessageInfo::default();
        if what % 2 == 1 {
            let irq = isa::irq(what / 2 % self.vectors);
            return self.event(Event::Trap(Trap::Interrupt { irq }));
        }
        let Some(running) = self.w.running() else {
            return;
        };
        let what = what / 2;
        if running == self.server.handle {
            let (endpoint, reply) = self.service;
            self.syscall(Syscall::ReplyRecv, endpoint, reply, none, &[]);
        } else if running == self.handler.handle {
            let (endpoint, reply) = self.timeouts;
            self.syscall(Syscall::ReplyRecv, endpoint, reply, none, &[]);
        } else if running == self.manager.thread.handle {
            self.manage(what);
            if self.w.running() == Some(running) {
                let notification = self.manager.notification;
                self.syscall(Syscall::Wait, notification, 0, none, &[]);
            }
        } else {
            self.work(running, what);
        }
    }

    /// A worker does something.
    fn work(&mut self, running: Ref<Tcb>, what: u64) {
        let none = MessageInfo::default();
        let worker = self
            .workers
            .iter()
            .find(|worker| worker.thread.handle == running)
            .expect("the root task waits for ever");
        let (endpoint, _) = self.service;
        let notification = worker.notification;
        // A server on the time of a sporadic client could be kept from running by others.
        match what % 8 {
            0 => self.syscall(Syscall::Yield, 0, 0, none, &[]),
            1..=3 => self.syscall(Syscall::Wait, notification, 0, none, &[]),
            4 if !worker.parameters.sporadic => {
                self.syscall(Syscall::Call, endpoint, 0, none, &[]);
            }
            _ => {}
        }
    }

    /// The manager does something to a worker.
    fn manage(&mut self, what: u64) {
        let worker = &self.workers[(what / 8) as usize % self.workers.len()];
        let Parameters {
            priority,
            budget,
            period,
            extra_refills,
            sporadic,
            ..
        } = worker.parameters;
        let Thread { tcb, context, .. } = worker.thread;
        let runnable = self.w.context(context).at(&self.w.k).thread();
        let runnable = runnable.is_some_and(|thread| thread.at(&self.w.k).is_runnable());
        match what % 8 {
            0 => self.invoke(tcb, label::TCB_SUSPEND, &[], &[]),
            1 | 2 => self.invoke(tcb, label::TCB_RESUME, &[], &[]),
            3 => self.invoke(context, label::SCHED_CONTEXT_UNBIND, &[], &[]),
            4 => self.invoke(context, label::SCHED_CONTEXT_BIND, &[], &[tcb]),
            // The context of a thread that cannot run would get a new budget (04, section 5.2).
            5 if runnable => {
                let flags = if sporadic { SPORADIC } else { 0 };
                let words = [budget, period, extra_refills, 0, flags];
                let configure = label::SCHED_CONTROL_CONFIGURE_FLAGS;
                self.invoke(isa::SCHED_CONTROL, configure, &words, &[context]);
            }
            6 if !sporadic => {
                let priority = [1 + (priority + what / 64) % 200];
                self.invoke(tcb, label::TCB_SET_PRIORITY, &priority, &[slot::TCB]);
            }
            7 => self.invoke(slot::DOMAIN, label::DOMAIN_SET, &[0], &[tcb]),
            _ => {}
        }
    }

    /// The most that the context of `worker` ran in any window of its period. Windows that start
    /// or end with a run are enough: any other contains no more than one of these.
    fn most_in_any_window(&self, worker: &Worker) -> u64 {
        let context = self.w.context(worker.thread.context).address().get();
        let Some(spans) = self.ran.get(&context) else {
            return 0;
        };
        let length = worker.parameters.period * US;
        let mut before = vec![0];
        for (from, to) in spans {
            before.push(before[before.len() - 1] + to - from);
        }
        // What ran up to `time`.
        let up_to = |time: u64| {
            let i = spans.partition_point(|span| span.0 < time);
            let last = i.checked_sub(1).map(|i| spans[i].1.saturating_sub(time));
            before[i] - last.unwrap_or(0)
        };
        let starts = spans.iter().map(|span| span.0);
        let ends = spans.iter().map(|span| span.1.saturating_sub(length));
        let windows = starts
            .chain(ends)
            .map(|from| up_to(from + length) - up_to(from));
        windows.max().unwrap_or(0)
    }

    /// Lets everybody who is able to run, in turn; returns who should have but did not.
    fn lost(&mut self) -> Vec<u64> {
        let workers = self.workers.iter().map(|worker| worker.thread);
        let threads: Vec<_> = workers.chain([self.manager.thread, self.handler]).collect();
        self.seen.clear();
        let able: Vec<_> = threads
            .iter()
            .filter(|thread| {
                let tcb = thread.handle.at(&self.w.k);
                tcb.is_runnable() && tcb.sched_context().is_some()
            })
            .map(|thread| thread.handle.address().get())
            .collect();
        // Whoever has run for a moment is stopped, by the root task: of a budget of little more than
        // the least not every thread could stop itself. A server that runs is stopped too. Between
        // them nobody has to wait for longer than the longest of the periods.
        for _ in 0..2 * threads.len() {
            let mut waited = 0;
            while self.w.running().is_none() && waited < 25_000 {
                self.pass(100 * US);
                waited += 100;
            }
            let Some(running) = self.w.running() else {
                break;
            };
            self.pass(1);
            let mut all = threads.iter().chain([&self.server]);
            let stopped = all.find(|thread| thread.handle == running);
            let tcb = stopped.expect("a known thread").tcb;
            drop(all);
            self.w.wake(self.root_waits);
            self.invoke(tcb, label::TCB_SUSPEND, &[], &[]);
            self.w.wait(self.root_waits);
        }
        able.into_iter()
            .filter(|thread| !self.seen.contains(thread))
            .collect()
    }
}

/// A worker; only the first of a system may be sporadic, and is above all others then: the refills
/// of one that is kept from running keep their times (04, section 5.4).
fn worker() -> impl Strategy<Value = Parameters> {
    let extra = prop_oneof![0u64..8, 0u64..249];
    let budget = prop_oneof![20u64..400, 1000u64..5000];
    (1u64..200, budget, 1u64..20, extra, any::<bool>()).prop_map(
        |(priority, budget, factor, extra_refills, has_handler)| Parameters {
            priority,
            budget,
            // At most 20 ms, so that there are many periods; never all of the time.
            period: (budget * factor).min(20_000) + u64::from(factor == 1),
            extra_refills,
            sporadic: false,
            has_handler,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if crate::explore::long() { 1000 } else { 48 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nobody_exceeds_its_budget_in_any_window_and_nobody_is_lost(
        mut workers in prop::collection::vec(worker(), 1..7),
        has_sporadic: bool,
        steps in prop::collection::vec((0u64..120, any::<u64>()), 1..2000),
    ) {
        if has_sporadic {
            workers[0] = Parameters {
                priority: 254,
                sporadic: true,
                has_handler: false,
                ..workers[0]
            };
        }
        let mut system = System::new(&workers);
        for &(ticks, what) in &steps {
            system.pass(ticks * US / 2);
            system.act(what);
        }
        for worker in &system.workers {
            let most = system.most_in_any_window(worker);
            let allowed = worker.allowed();
            prop_assert!(most <= allowed, "{most} ticks of {allowed}: {:?}", worker.parameters);
        }
        let lost = system.lost();
        prop_assert!(lost.is_empty(), "lost: {lost:x?}");
    }
}

/// A thread that runs for moments until it is out of refills, and after that.
#[test]
fn a_budget_in_as_many_pieces_as_there_may_be_keeps_to_its_windows() {
    for (sporadic, extra_refills) in [(false, 248), (true, 248), (false, 60)] {
        let parameters = Parameters {
            priority: 254,
            budget: 4_000,
            period: 20_000,
            extra_refills,
            sporadic,
            has_handler: false,
        };
        let mut system = System::new(&[parameters]);
        let worker = system.workers[0].thread.handle;
        let context = system.w.context(system.workers[0].thread.context);
        let all = (extra_refills + 2).min(u64::from(Refill::MAX)) as u8;
        let mut most = 0;
        // Ten periods: it runs 1 to 16 µs (the kernel's paths take the most of it), and waits.
        for i in 0..10_000 {
            if system.w.running() == Some(worker) {
                system.pass((1 + i % 16) * US);
                if system.w.running() == Some(worker) {
                    let notification = system.workers[0].notification;
                    let none = MessageInfo::default();
                    system.syscall(Syscall::Wait, notification, 0, none, &[]);
                }
            }
            system.pass((1 + i % 13) * US);
            let irq = isa::irq(1);
            system.event(Event::Trap(Trap::Interrupt { irq }));
            most = most.max(Refills::of(&system.w.k, context).count());
        }
        assert_eq!(most, all, "refills in use at once");
        let most = system.most_in_any_window(&system.workers[0]);
        let allowed = system.workers[0].allowed();
        assert!(most <= allowed, "{most} ticks of {allowed}");
        assert!(most >= 3_500 * US, "it runs for only {most} ticks");
    }
}
