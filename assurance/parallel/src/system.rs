//! A system: tasks and what they share, before time begins.

use std::future::Future;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_kernel::arch::hosted::Machine;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::{CoreId, Kernel, CORES};
pub use sandglass_testkit::boot::US;
use sandglass_testkit::isa;
use sandglass_testkit::world::World;

use crate::costs::Costs;
use crate::program::{Program, Thread};
use crate::record::Task;
use crate::script::{Entry, Script, Step};
use crate::simulation::Simulation;

/// Bytes of memory of the machine: little, because sweeps look at all of it.
const MEMORY: usize = 16 << 20;
/// log2 of the size of a context with room for a few refills.
const CONTEXT_BITS: u64 = 9;
/// The highest maximum controlled priority.
const HIGHEST: u64 = 255;

/// Time that a task may use: `budget` in every `period`, both in microseconds; a slice of the
/// round robin if both are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Time {
    pub budget: u64,
    pub period: u64,
    pub extra_refills: u64,
    pub sporadic: bool,
}

impl Time {
    /// `budget` in every `period`, in microseconds.
    pub const fn new(budget: u64, period: u64) -> Time {
        Time {
            budget,
            period,
            extra_refills: 0,
            sporadic: false,
        }
    }
}

/// A task, with the slots of its capabilities. All tasks share one capability space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Made {
    pub task: Task,
    pub tcb: u64,
    pub context: u64,
}

/// A task and what it does.
pub(crate) struct Member {
    pub thread: Ref<Tcb>,
    /// `None` for a passive server, or a thread that somebody else gives time to.
    pub context: Option<Ref<SchedContext>>,
    pub course: Course,
}

/// What a task does.
pub(crate) enum Course {
    Script(Script),
    /// A program, and the step with which its thread stops itself.
    Program(Program, Step),
}

/// A system that is being made.
pub struct System {
    /// The kernel, while the root task runs: before time begins.
    root: World,
    cores: usize,
    members: Vec<Member>,
    to_start: Vec<u64>,
}

impl System {
    /// An empty system on `cores` cores.
    ///
    /// # Panics
    /// If the kernel is built for less.
    pub fn new(cores: usize) -> System {
        assert!(
            (1..=CORES).contains(&cores),
            "the kernel is built for {CORES} cores"
        );
        let machine = Machine::new(MEMORY, isa::TICKS_PER_UNIT);
        machine.set_cores(cores as u8);
        let mut root = World::on(machine);
        root.path = 0;
        System {
            root,
            cores,
            members: Vec::new(),
            to_start: Vec::new(),
        }
    }

    /// The kernel, while the root task runs.
    pub fn kernel(&self) -> &Kernel {
        &self.root.k
    }

    /// A new endpoint.
    pub fn endpoint(&mut self) -> u64 {
        self.root.make(types::ENDPOINT, 0)
    }

    /// A new notification.
    pub fn notification(&mut self) -> u64 {
        self.root.make(types::NOTIFICATION, 0)
    }

    /// A new reply object.
    pub fn reply(&mut self) -> u64 {
        self.root.make(types::REPLY, 0)
    }

    /// A new frame, which is mapped nowhere.
    pub fn frame(&mut self) -> u64 {
        self.root.make(isa::types::PAGE, 0)
    }

    /// Untyped memory of 2^`bits` bytes, of which half is used up: the next Retype zeroes that. Also a slot
    /// for a capability.
    pub fn used_memory(&mut self, bits: u64) -> (u64, u64) {
        let memory = self.root.make(types::UNTYPED, bits);
        let slot = self.root.fresh_slot();
        for step in [use_up(memory, slot, bits), delete(slot)] {
            let Step::Enter(entry) = step else {
                unreachable!("it is an invocation")
            };
            self.enter(&entry);
        }
        (memory, slot)
    }

    /// A slot for a capability.
    pub fn slot(&mut self) -> u64 {
        self.root.fresh_slot()
    }

    /// The page tables for a frame at `vaddr`.
    pub fn map_tables(&mut self, vaddr: u64) {
        let levels = isa::types::TABLES.into_iter().zip(isa::label::TABLE_MAP);
        for (object, map) in levels {
            let table = self.root.make(object, 0);
            // Some are there already.
            self.root
                .call_once(table, map, &[vaddr, 0], &[slot::VSPACE]);
        }
    }

    /// A task of `priority`, below the highest, with `time` on `core`, that does what `script`
    /// makes of its own capabilities. It runs from the beginning.
    pub fn task(
        &mut self,
        priority: u8,
        core: usize,
        time: Time,
        script: impl FnOnce(Made) -> Script,
    ) -> Made {
        let made = self.thread(priority, core, time);
        self.run(made, script(made));
        made
    }

    /// `made`, which does nothing so far, does `script` from the beginning.
    pub fn run(&mut self, made: Made, script: Script) {
        self.run_script(made, true, script);
        self.to_start.push(made.tcb);
    }

    /// `made`, which does nothing so far, runs the program that `body` makes of its thread. It stops itself when that
    /// ends.
    pub fn run_program<F: Future<Output = ()> + 'static>(
        &mut self,
        made: Made,
        body: impl FnOnce(Thread) -> F,
    ) {
        let course = Course::Program(Program::new(body), Step::suspend(made.tcb));
        self.add(made, true, course);
        self.to_start.push(made.tcb);
    }

    /// As [`Self::run_program`], but the context of `made` is bound to nobody: it runs when somebody binds it.
    pub fn run_program_without_time<F: Future<Output = ()> + 'static>(
        &mut self,
        made: Made,
        body: impl FnOnce(Thread) -> F,
    ) {
        self.invoke(made.context, label::SCHED_CONTEXT_UNBIND, &[], &[]);
        self.run_program(made, body);
    }

    /// As [`Self::run_program`], for a new thread of `priority` that runs on contexts of others alone.
    pub fn idle_program<F: Future<Output = ()> + 'static>(
        &mut self,
        priority: u8,
        body: impl FnOnce(Made, Thread) -> F,
    ) -> Made {
        let made = self.thread(priority, 0, Time::new(1_000, 1_000));
        self.run_program_without_time(made, |thread| body(made, thread));
        made
    }

    /// A capability of what is in `source`, with this badge.
    pub fn minted(&mut self, source: u64, badge: u64) -> u64 {
        let slot = self.slot();
        let words = [slot, 64, source, 64, u64::MAX, badge];
        self.invoke(slot::CNODE, label::CNODE_MINT, &words, &[slot::CNODE]);
        slot
    }

    /// An invocation before time begins, which must succeed: how objects are set up that have no function here.
    pub fn set_up(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        self.invoke(cap, label, words, caps);
    }

    /// A passive server of `priority` that waits at `endpoint` with a reply object of its own, before
    /// it does what `script` makes of that.
    pub fn server(
        &mut self,
        priority: u8,
        endpoint: u64,
        script: impl FnOnce(Made, u64) -> Script,
    ) -> Made {
        let reply = self.reply();
        let is_ready = self.notification();
        let made = self.thread(priority, 0, Time::new(1_000, 1_000));
        let Step::Enter(first) = Step::signal_recv(is_ready, endpoint, reply) else {
            unreachable!("it is an entry")
        };
        self.invoke(made.tcb, label::TCB_RESUME, &[], &[]);
        self.root.wait(is_ready);
        self.enter(&first);
        let unbind = label::SCHED_CONTEXT_UNBIND;
        self.invoke(made.context, unbind, &[], &[]);
        let script = script(made, reply).after(vec![Step::Enter(first)]);
        self.run_script(made, false, script);
        made
    }

    /// A task of `priority`, below the highest, with `time` on `core`; [`Self::run`] tells what it
    /// does, before another one is made.
    pub fn thread(&mut self, priority: u8, core: usize, time: Time) -> Made {
        let thread = self.root.make_thread(priority.into(), CONTEXT_BITS);
        let (tcb, context) = (thread.tcb, thread.context);
        self.invoke(tcb, label::TCB_SET_MC_PRIORITY, &[HIGHEST], &[slot::TCB]);
        let made = Made {
            task: Task(self.members.len()),
            tcb,
            context,
        };
        let (control, label, words, caps) = configuration(made, core, time);
        self.invoke(control, label, &words, &caps);
        self.root.bind(thread);
        made
    }

    /// An invocation by the root task, which must succeed.
    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        if let Err(refused) = self.root.invoke(cap, label, words, caps) {
            panic!("invocation {label} of {cap} with {words:?} and {caps:?}: {refused:?}");
        }
    }

    /// Whoever runs does `entry`, of which it has received nothing.
    fn enter(&mut self, entry: &Entry) {
        let thread = self.root.running().expect("a thread runs");
        self.root.perform(thread, &entry.call(&[]));
    }

    fn run_script(&mut self, made: Made, is_active: bool, script: Script) {
        let mut script = script;
        if script.rounds.is_some() {
            script.steps.push(Step::suspend(made.tcb));
        }
        self.add(made, is_active, Course::Script(script));
    }

    fn add(&mut self, made: Made, is_active: bool, course: Course) {
        let thread = self.root.cap(made.tcb).word().get();
        let context = self.root.cap(made.context).word().get();
        self.members.push(Member {
            thread: thread.expect("a thread"),
            context: context.filter(|_| is_active),
            course,
        });
    }

    /// Time begins. The random numbers of scripts follow from `seed`.
    pub fn start(mut self, costs: Costs, seed: u64) -> Simulation {
        for tcb in std::mem::take(&mut self.to_start) {
            self.invoke(tcb, label::TCB_RESUME, &[], &[]);
        }
        self.root.call_once(slot::TCB, label::TCB_SUSPEND, &[], &[]);
        Simulation::new(self.root.k, self.cores, self.members, costs, seed)
    }
}

/// The invocation that gives the context of `made` this `time` on `core`: capability, label, words
/// and capabilities.
fn configuration(made: Made, core: usize, time: Time) -> (u64, u64, [u64; 5], [u64; 1]) {
    let words = [
        time.budget,
        time.period,
        time.extra_refills,
        made.context,
        u64::from(time.sporadic),
    ];
    (
        isa::SCHED_CONTROL + core as u64,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        words,
        [made.context],
    )
}

/// A step that makes half of the untyped memory in `memory`, of 2^`bits` bytes, an object in `target`. What
/// was used of it, and is not any more, is zeroed first: a long operation.
pub fn use_up(memory: u64, target: u64, bits: u64) -> Step {
    let words = [types::UNTYPED, bits - 1, 0, 0, target, 1];
    Step::invoke(memory, label::UNTYPED_RETYPE, &words, &[slot::CNODE])
}

/// A step that makes `copy` another capability of what is in `source`.
pub fn copy(source: u64, copy: u64) -> Step {
    let words = [copy, 64, source, 64, u64::MAX];
    Step::invoke(slot::CNODE, label::CNODE_COPY, &words, &[slot::CNODE])
}

/// A step that deletes what is in `target`.
pub fn delete(target: u64) -> Step {
    Step::invoke(slot::CNODE, label::CNODE_DELETE, &[target, 64], &[])
}

/// A step that deletes all that was derived from what is in `parent`: a long operation.
pub fn revoke(parent: u64) -> Step {
    Step::invoke(slot::CNODE, label::CNODE_REVOKE, &[parent, 64], &[])
}

/// A step that moves `made` to `core`, with this `time` from now on.
pub fn migrate(made: Made, core: usize, time: Time) -> Step {
    let (control, label, words, caps) = configuration(made, core, time);
    Step::invoke(control, label, &words, &caps)
}

/// The core of that number.
pub(crate) fn core_id(core: usize) -> CoreId {
    CoreId::new(core as u64).expect("the kernel is built for it")
}
