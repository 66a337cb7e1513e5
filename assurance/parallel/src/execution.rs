//! A script on its way: what a thread does in user code.

use sandglass_kernel::arch::Register;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::Kernel;
use sandglass_testkit::call;

use crate::costs::Path;
use crate::script::{Script, Step, STEP};
use crate::system::Member;

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

/// A task on its way through its script.
pub struct Execution {
    thread: Ref<Tcb>,
    context: Option<Ref<SchedContext>>,
    script: Script,
    random: fastrand::Rng,
    /// The step after which the round is over.
    end: usize,
    rounds_done: u64,
    /// Ticks that are left of the computation that the thread is at.
    left: Option<u64>,
    /// The system call that the thread executed last, until it is known that it is over.
    called: Option<usize>,
    /// The words of the message received last.
    received: Vec<u64>,
}

impl Execution {
    /// The beginning. A passive server has done its first step.
    pub fn new(member: Member, random: fastrand::Rng) -> Execution {
        let script = member.script;
        Execution {
            thread: member.thread,
            context: member.context,
            random,
            end: script.steps.len() - usize::from(script.rounds.is_some()),
            rounds_done: 0,
            left: None,
            called: member.context.is_none().then_some(0),
            received: Vec::new(),
            script,
        }
    }

    /// The scheduling context that it was made with; `None` for a passive server.
    pub fn context(&self) -> Option<Ref<SchedContext>> {
        self.context
    }

    /// The step that the thread is at.
    fn position(&self, k: &Kernel) -> usize {
        let next = self.thread.at(k).context().get(Register::NextIp);
        (next / STEP) as usize
    }

    /// The thread is in user code, at step `i`.
    fn go_to(&mut self, k: &Kernel, i: usize) {
        let context = self.thread.at(k).context();
        context.set(k, Register::FaultIp, i as u64 * STEP);
        context.set(k, Register::NextIp, i as u64 * STEP);
    }

    /// The thread goes on in user code, to the first step that takes time or is worth telling.
    pub fn fetch(&mut self, k: &Kernel) -> Reached {
        loop {
            let i = self.position(k);
            if let Some(called) = self.called.take() {
                if called != i {
                    self.received = call::received(k, self.thread);
                }
            }
            let i = next_round(&self.script, self.end, &mut self.rounds_done, i);
            self.go_to(k, i);
            match &self.script.steps[i] {
                Step::Enter(_) => return Reached::SystemCall,
                Step::Compute(ticks) => {
                    self.left.get_or_insert(*ticks);
                }
                Step::ComputeUpTo(most) => {
                    let most = *most;
                    let random = &mut self.random;
                    self.left.get_or_insert_with(|| random.u64(..=most));
                }
                Step::Expect(words) => {
                    let surprise = (*words != self.received).then(|| self.received.clone());
                    self.go_to(k, i + 1);
                    if let Some(words) = surprise {
                        return Reached::Surprise(words);
                    }
                    continue;
                }
                Step::Done => {
                    self.go_to(k, i + 1);
                    return Reached::Done;
                }
            }
            match self.left {
                Some(0) | None => {
                    self.left = None;
                    self.go_to(k, i + 1);
                }
                Some(ticks) => return Reached::Computation(ticks),
            }
        }
    }

    /// Ticks of user code until the system call that the thread comes to, from where it was last
    /// fetched, if nobody stops it; `None` if it comes to none.
    pub fn ticks_to_system_call(&self, k: &Kernel) -> Option<u64> {
        let mut random = self.random.clone();
        let mut left = self.left;
        let mut rounds_done = self.rounds_done;
        let mut i = self.position(k);
        let mut ticks = 0;
        // Without a system call in two rounds there is none at all.
        for _ in 0..2 * self.script.steps.len() {
            i = next_round(&self.script, self.end, &mut rounds_done, i);
            ticks += match &self.script.steps[i] {
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
        if let Some(left) = &mut self.left {
            *left -= ticks;
        }
    }

    /// The thread executes the system call that it is at; returns the way through the kernel.
    ///
    /// # Panics
    /// If it is at none.
    pub fn call(&mut self, k: &Kernel) -> Path {
        let i = self.position(k);
        let Step::Enter(entry) = &self.script.steps[i] else {
            panic!("{:?} is no system call", self.script.steps[i])
        };
        entry.call(&self.received).issue(k, self.thread);
        self.called = Some(i);
        entry.path
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
