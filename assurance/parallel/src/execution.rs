//! A script or a program on its way: what a thread does in user code.

use sandglass_abi::message::MessageInfo;
use sandglass_kernel::arch::Register;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;
use sandglass_testkit::{call, isa};

use crate::costs::Path;
use crate::program::{Program, Told};
use crate::script::{Script, Step, STEP};
use crate::system::{Course, Member};

/// What a thread in user code comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// A computation of so many ticks, at least one, of which nothing is done yet.
    Computation(u64),
    SystemCall,
    /// A job is completed.
    Done,
    /// A message that the script did not expect: its words.
    Surprise(Vec<u64>),
}

/// A task on its way.
pub struct Execution {
    thread: Ref<Tcb>,
    context: Option<Ref<SchedContext>>,
    way: Way,
    /// Ticks that are left of the computation that the thread is at.
    left: Option<u64>,
    /// Ticks of user code so far.
    computed: u64,
    /// The system call that the thread executed last, until it is known that it is over.
    called: Option<usize>,
}

/// What a task does, and how far it is.
enum Way {
    Script(ScriptWay),
    Program(ProgramWay),
}

struct ScriptWay {
    script: Script,
    random: fastrand::Rng,
    /// The step after which the round is over.
    end: usize,
    rounds_done: u64,
    /// The words of the message received last.
    received: Vec<u64>,
}

struct ProgramWay {
    program: Program,
    /// What the program waits for.
    step: Option<Step>,
    /// Its number.
    number: usize,
    /// How the thread stops itself when the program has ended.
    end: Step,
}

impl Execution {
    /// The beginning. A passive server has done its first step.
    pub fn new(member: Member, random: fastrand::Rng) -> Execution {
        let (way, called) = match member.course {
            Course::Script(script) => {
                let way = ScriptWay {
                    random,
                    end: script.steps.len() - usize::from(script.rounds.is_some()),
                    rounds_done: 0,
                    received: Vec::new(),
                    script,
                };
                let called = member.context.is_none().then_some(0);
                (Way::Script(way), called)
            }
            Course::Program(program, end) => {
                let way = ProgramWay {
                    program,
                    step: None,
                    number: 0,
                    end,
                };
                (Way::Program(way), None)
            }
        };
        Execution {
            thread: member.thread,
            context: member.context,
            way,
            left: None,
            computed: 0,
            called,
        }
    }

    /// The scheduling context that it was made with; `None` for a thread that was made without, or whose context was
    /// taken away before time began.
    pub fn context(&self) -> Option<Ref<SchedContext>> {
        self.context
    }

    /// The step that the thread is at.
    fn position(&self, k: &Kernel) -> usize {
        let next = self.thread.at(k).context().get(Register::NextIp);
        (next / STEP) as usize
    }

    /// The thread is in user code, at step `i`.
    fn go_to(&self, k: &Kernel, i: usize) {
        let context = self.thread.at(k).context();
        context.set(k, Register::FaultIp, i as u64 * STEP);
        context.set(k, Register::NextIp, i as u64 * STEP);
    }

    /// The thread goes on in user code, at `now` on `core`, to the first step that takes time or is worth telling.
    pub fn fetch(&mut self, k: &Kernel, now: u64, core: usize) -> Reached {
        loop {
            let step = match &self.way {
                Way::Script(_) => self.script_step(k),
                Way::Program(_) => self.program_step(k, now, core),
            };
            match step {
                Step::Enter(_) => return Reached::SystemCall,
                Step::Compute(ticks) => {
                    self.left.get_or_insert(ticks);
                }
                Step::ComputeUpTo(most) => self.compute_up_to(most),
                Step::Expect(words) => {
                    self.advance(k);
                    match &self.way {
                        Way::Script(way) if way.received != words => {
                            return Reached::Surprise(way.received.clone());
                        }
                        _ => continue,
                    }
                }
                Step::Done => {
                    self.advance(k);
                    return Reached::Done;
                }
            }
            match self.left {
                Some(0) | None => {
                    self.left = None;
                    self.advance(k);
                }
                Some(ticks) => return Reached::Computation(ticks),
            }
        }
    }

    /// The step of the script that the thread is at.
    fn script_step(&mut self, k: &Kernel) -> Step {
        let mut i = self.position(k);
        let is_over = self.called.take().is_some_and(|called| called != i);
        if let Way::Script(way) = &mut self.way {
            if is_over {
                way.received = call::received(k, self.thread);
            }
            i = next_round(&way.script, way.end, &mut way.rounds_done, i);
        }
        self.go_to(k, i);
        self.step_at(i).clone()
    }

    /// The step of the program that the thread is at. If the one before was a system call, the kernel has told it
    /// something; a system call that is to be repeated is not over.
    fn program_step(&mut self, k: &Kernel, now: u64, core: usize) -> Step {
        let position = self.position(k);
        let is_repeated = self.called.take() == Some(position);
        let thread = self.thread;
        let Way::Program(way) = &mut self.way else {
            unreachable!("it is a program")
        };
        let is_over = way.step.is_none() || position != way.number;
        if is_over && !is_repeated {
            let told = match &way.step {
                Some(Step::Enter(_)) => told(k, thread),
                _ => Told::default(),
            };
            way.number = position;
            let next = way.program.next(now, core, told);
            way.step = Some(next.unwrap_or_else(|| way.end.clone()));
        }
        self.go_to(k, position);
        self.step_at(position).clone()
    }

    fn compute_up_to(&mut self, most: u64) {
        if let Way::Script(way) = &mut self.way {
            let random = &mut way.random;
            self.left.get_or_insert_with(|| random.u64(..=most));
        }
    }

    /// The step that takes no time, or is over, is behind the thread.
    fn advance(&self, k: &Kernel) {
        self.go_to(k, self.position(k) + 1);
    }

    fn step_at(&self, i: usize) -> &Step {
        match &self.way {
            Way::Script(way) => &way.script.steps[i],
            Way::Program(way) => way.step.as_ref().expect("a step"),
        }
    }

    /// Whether what it does next depends on what happens meanwhile.
    pub const fn is_program(&self) -> bool {
        matches!(self.way, Way::Program(_))
    }

    /// Ticks of user code until the system call that the thread comes to, from where it was last
    /// fetched, if nobody stops it; `None` if it comes to none, or nobody can tell: what a program does after a
    /// computation depends on what happens meanwhile.
    pub fn ticks_to_system_call(&self, k: &Kernel) -> Option<u64> {
        let Way::Script(way) = &self.way else {
            return None;
        };
        let mut random = way.random.clone();
        let mut left = self.left;
        let mut rounds_done = way.rounds_done;
        let mut i = self.position(k);
        let mut ticks = 0;
        // Without a system call in two rounds there is none at all.
        for _ in 0..2 * way.script.steps.len() {
            i = next_round(&way.script, way.end, &mut rounds_done, i);
            ticks += match &way.script.steps[i] {
                Step::Enter(_) => return Some(ticks),
                Step::Compute(length) => left.take().unwrap_or(*length),
                Step::ComputeUpTo(most) => left.take().unwrap_or_else(|| random.u64(..=*most)),
                Step::Expect(_) | Step::Done => 0,
            };
            i += 1;
        }
        None
    }

    /// The thread was in user code for `ticks`, at most what is left of its computation.
    pub fn compute(&mut self, ticks: u64) {
        self.computed += ticks;
        if let Some(left) = &mut self.left {
            *left -= ticks;
        }
    }

    /// The thread has been in user code for `ticks` since [`Self::compute`] was last told: a register says how far its
    /// computations are, as registers do. Whoever reads them twice sees whether it has run.
    pub fn show_progress(&self, k: &Kernel, ticks: u64) {
        let context = self.thread.at(k).context();
        context.set(k, isa::FOURTH, self.computed + ticks);
    }

    /// The thread executes the system call that it is at; returns the way through the kernel.
    ///
    /// # Panics
    /// If it is at none.
    pub fn call(&mut self, k: &Kernel) -> Path {
        let i = self.position(k);
        let Step::Enter(entry) = self.step_at(i) else {
            panic!("{:?} is no system call", self.step_at(i))
        };
        let received = match &self.way {
            Way::Script(way) => &way.received[..],
            Way::Program(_) => &[],
        };
        entry.call(received).issue(k, self.thread);
        let path = entry.path;
        self.called = Some(i);
        path
    }
}

/// What the system call of a thread told it.
fn told(k: &Kernel, thread: Ref<Tcb>) -> Told {
    let context = thread.at(k).context();
    Told {
        badge: context.get(isa::CAP),
        label: MessageInfo::from_raw(context.info()).label(),
        words: call::received(k, thread),
    }
}

/// The step of `script` to do at the place of step `i`, if `rounds_done` are done: behind `end`, the next
/// round begins. After the last round the task stops itself, and again if somebody lets it go on.
fn next_round(script: &Script, end: usize, rounds_done: &mut u64, i: usize) -> usize {
    let is_over = script.rounds == Some(*rounds_done);
    if i < end || (i == end && is_over) {
        return i;
    }
    if is_over {
        return end;
    }
    *rounds_done += 1;
    if script.rounds == Some(*rounds_done) {
        end
    } else {
        script.again
    }
}
