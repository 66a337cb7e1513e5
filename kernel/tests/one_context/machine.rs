//! The kernel as a system of these states.

use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::abi::clock::{PRECISION_US, UNIT_US};
use sandglass_kernel::arch::Platform;
use sandglass_kernel::cores::CoreId;
use sandglass_kernel::event::{Event as Entry, Trap};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::notification::Notification;
use sandglass_kernel::object::sched_context::Parameters;
use sandglass_kernel::object::sched_context::Refill;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::{Place, State as ThreadState, Tcb};
use sandglass_kernel::object::Constants;
use sandglass_kernel::time::context;
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::time::turn::Turn;
use sandglass_kernel::time::{account, schedule};

use super::state::{Event, Life, Queued, Relative, State, Who, MOST};
use crate::explore::{explore, Extent, History, System};
use sandglass_testkit::isa;
use sandglass_testkit::refills;
use sandglass_testkit::world::{Thread, World};

/// Vectors of interrupts: one wakes the root task, one the thread, one nobody.
const ROOT_VECTOR: u8 = 1;
const THREAD_VECTOR: u8 = 2;
const NO_VECTOR: u8 = 3;

/// What is explored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting {
    /// Ticks.
    pub min: u64,
    pub budget: u64,
    pub period: u64,
    pub max: u8,
    pub sporadic: bool,
    /// Ticks by which the kernel may learn late of an expired timer.
    pub late: i8,
}

pub struct Machine {
    w: World,
    root: Ref<Tcb>,
    root_context: Ref<SchedContext>,
    thread: Thread,
    context: Ref<SchedContext>,
    /// What the root task and the thread wait for, with their capabilities.
    waits: [(u64, Ref<Notification>); 2],
    setting: Setting,
    first: u8,
}

/// A notification that the interrupt of `vector` signals.
fn notification_of(w: &mut World, vector: u8) -> (u64, Ref<Notification>) {
    let notification = w.make(types::NOTIFICATION, 0);
    let handler = w.issue_irq(vector.into()).expect("an interrupt handler");
    w.invoke(
        handler,
        label::IRQ_HANDLER_SET_NOTIFICATION,
        &[],
        &[notification],
    )
    .expect("a notification for it");
    let object = w.cap(notification).word().get().expect("a notification");
    (notification, object)
}

impl Machine {
    /// The thread is inactive, and its context not configured.
    pub fn new() -> Self {
        let mut w = World::new();
        w.path = 0;
        // Times before now are to be times.
        w.k.machine.advance(1000);
        let root = w.running().expect("the root task");
        let root_context = root.at(&w.k).sched_context().expect("its context");
        let thread = w.make_thread(100, 8);
        let context = w.context(thread.context);
        let waits = [ROOT_VECTOR, THREAD_VECTOR].map(|vector| notification_of(&mut w, vector));
        Machine {
            w,
            root,
            root_context,
            thread,
            context,
            waits,
            setting: Setting::default(),
            first: 0,
        }
    }

    /// Configures the context by `setting`, starts the thread and explores.
    pub fn explore(&mut self, setting: Setting) -> Extent {
        self.setting = setting;
        self.w.k.constants =
            Constants::for_clock(UNIT_US, MIN_BUDGET_US).with_min_budget(setting.min);
        let mut refills = [Relative::default(); MOST];
        refills[0].amount = setting.budget as u8;
        let first = State {
            runs: Who::Root,
            life: Life::Runnable,
            bound: true,
            queued: Queued::Ready,
            refills,
            count: 1,
            unpaid: 0,
            deadline: None,
            used: History::default(),
        };
        let extent = explore(self, first);
        println!("{setting:?}: {extent}");
        extent
    }

    fn tcb(&self) -> &Tcb {
        self.thread.handle.at(&self.w.k)
    }

    fn refills(&self) -> Refills<'_> {
        Refills::of(&self.w.k, self.context)
    }

    /// Puts the kernel into `state`, which it is in already up to when it is.
    fn restore(&mut self, state: &State) {
        let k = &*self.w.k;
        let now = self.w.now();
        let core = k.core();
        let thread = self.thread.handle;
        for (waiting, blocked, (_, notification)) in [
            (self.root, state.runs != Who::Root, self.waits[0]),
            (thread, state.life == Life::Waits, self.waits[1]),
        ] {
            sandglass_kernel::ipc::cancel::cancel_ipc(k, waiting);
            schedule::unqueue(k, waiting);
            waiting.at(k).set_state(k, ThreadState::Running);
            if blocked {
                let state = ThreadState::BlockedOnNotification { notification };
                waiting.at(k).set_state(k, state);
                notification.at(k).queue().insert(k, waiting, 0);
            }
        }
        if state.life == Life::Stopped {
            self.tcb().set_state(k, ThreadState::Inactive);
        }
        let context = self.context.at(k);
        let absolute = |refill: &Relative| Refill {
            amount: u64::from(refill.amount),
            time: now.wrapping_add_signed(i64::from(refill.time)),
        };
        context.configure(k, self.setting.period, self.setting.max);
        context.set_sporadic(k, self.setting.sporadic);
        self.first = (self.first + 1) % context.capacity();
        let queue = state.queue().iter().map(absolute);
        refills::put(k, self.context, self.first, queue);
        context.set_thread(k, state.bound.then_some(thread));
        self.tcb()
            .set_sched_context(k, state.bound.then_some(self.context));
        match state.queued {
            Queued::Not => {}
            Queued::Ready => core.ready().append(k, thread, core.now()),
            Queued::Release => core.release().insert(k, thread, context.head().time),
        }
        core.set_now(k, now - u64::from(state.unpaid));
        core.set_paid(k);
        core.set_thread(
            k,
            match state.runs {
                Who::Root => Some(self.root),
                Who::Thread => Some(thread),
                Who::Nobody => None,
            },
        );
        core.set_context(
            k,
            match state.runs {
                Who::Root => Some((self.root_context, self.root_context.at(k).head().amount)),
                Who::Thread => Some((self.context, context.head().amount)),
                Who::Nobody => None,
            },
        );
        core.set_now(k, now);
        core.rest(k);
        let deadline = state.deadline.map(|at| now.wrapping_add_signed(at.into()));
        core.set_armed(k, deadline.unwrap_or(u64::MAX));
        k.machine.set_deadline(core.armed());
    }

    /// Reads what the kernel made of `state`.
    fn read(&self, state: &mut State) -> Result<(), String> {
        let core = self.w.k.core();
        let now = self.w.now();
        let relative = |time: u64| {
            let distance = time.wrapping_sub(now) as i64;
            i8::try_from(distance).map_err(|_| format!("a time {distance} ticks away"))
        };
        state.runs = match core.thread() {
            Some(root) if root == self.root => Who::Root,
            Some(_) => Who::Thread,
            None => Who::Nobody,
        };
        state.life = match self.tcb().state() {
            ThreadState::BlockedOnNotification { .. } => Life::Waits,
            _ if self.tcb().is_runnable() => Life::Runnable,
            _ => Life::Stopped,
        };
        state.bound = self.tcb().sched_context().is_some();
        state.queued = match self.tcb().place() {
            Place::None => Queued::Not,
            Place::Ready => Queued::Ready,
            Place::Release => Queued::Release,
        };
        state.count = self.refills().count();
        state.refills = Default::default();
        if state.count > self.setting.max {
            return Err(format!("{} refills", state.count));
        }
        for (place, refill) in state.refills.iter_mut().zip(self.refills().iter()) {
            *place = Relative {
                amount: refill.amount as u8,
                time: relative(refill.time)?,
            };
        }
        state.unpaid = 0;
        if state.runs == Who::Thread {
            state.unpaid = core.consumed() as u8;
        }
        // What is next to the end of time is never.
        let deadline = self.w.k.machine.deadline();
        let is_theirs = state.runs != Who::Root && deadline < u64::MAX / 2;
        state.deadline = is_theirs.then(|| relative(deadline)).transpose()?;
        Ok(())
    }

    fn entry(&mut self, entry: Entry) {
        self.w.event(entry);
    }

    fn interrupt(&mut self, vector: u8) {
        let irq = isa::irq(vector.into());
        self.entry(Entry::Trap(Trap::Interrupt { irq }));
    }

    /// Configures the context as the invocation does, whose range of budgets is that of a real
    /// kernel. The history is one of the budget that there is from now on.
    fn configure(&mut self, state: &mut State) {
        let parameters = Parameters {
            budget: self.setting.budget,
            period: self.setting.period,
            max_refills: self.setting.max,
            badge: 0,
            sporadic: self.setting.sporadic,
        };
        account::update_time(&self.w.k, self.w.k.core());
        let turn = Turn::new();
        context::configure(&self.w.k, &turn, self.context, CoreId::BOOT, parameters);
        if state.life != Life::Runnable || !state.bound {
            state.used = History::default();
        }
        // Ends the turn as an invocation does.
        let irq = isa::irq(NO_VECTOR.into());
        self.w.trap_in(&turn, Trap::Interrupt { irq });
    }

    fn invoke(&mut self, cap: u64, label: u64, caps: &[u64]) {
        self.w.invoke(cap, label, &[], caps).expect("an invocation");
    }

    /// What holds in every state that the kernel leaves.
    fn check(&self, state: &State) -> Result<(), String> {
        let Setting {
            min,
            budget,
            period,
            sporadic,
            late,
            ..
        } = self.setting;
        let queue = state.queue();
        let sum: u64 = queue.iter().map(|refill| u64::from(refill.amount)).sum();
        if sum != budget {
            return Err(format!("{sum} ticks of {budget}"));
        }
        if u64::from(state.head().amount) < min {
            return Err("a head below the least budget".to_owned());
        }
        let end = |refill: Relative| i64::from(refill.time) + i64::from(refill.amount);
        let overlap = |pair: &[Relative]| end(pair[0]) > i64::from(pair[1].time);
        // Where refills that are ready start anew when they are used, their times are not kept.
        let has_times = state.runs == Who::Thread || state.head().time > 0;
        if has_times && queue.windows(2).any(overlap) {
            return Err("refills overlap".to_owned());
        }
        // Never lost: who may run does, or is to be released within a period, and the timer knows.
        let in_order = match (state.runs, state.queued) {
            _ if state.life != Life::Runnable || !state.bound => {
                state.runs != Who::Thread && state.queued == Queued::Not
            }
            (Who::Thread, Queued::Not) => {
                let unpaid = state.unpaid as i8;
                let late = if sporadic { late } else { 0 };
                (-late..=0).contains(&(state.head().time + unpaid))
                    && state.deadline
                        == Some(state.head().amount as i8 - unpaid - PRECISION_US as i8)
            }
            (Who::Root, Queued::Ready) => state.could_run(),
            (Who::Root, Queued::Release) => i64::from(state.head().time) <= period as i64,
            (Who::Nobody, Queued::Release) => state.deadline == Some(state.head().time),
            _ => false,
        };
        if !in_order {
            return Err("the thread is lost".to_owned());
        }
        Ok(())
    }
}

impl System for Machine {
    type State = State;
    type Event = Event;

    fn visit(&mut self, state: &State) -> Result<(), String> {
        let Setting {
            budget,
            period,
            sporadic,
            late,
            ..
        } = self.setting;
        // The timer fires as early before the end of a budget as the architecture has it. A release that is noticed late makes a
        // sporadic context run late.
        let late = u64::from(late.unsigned_abs());
        let overrun = if sporadic {
            late
        } else {
            late.saturating_sub(PRECISION_US)
        };
        // So what a charge uses up is the head at most, which the bound of its loops relies on.
        let is_in_time = late.saturating_sub(PRECISION_US) == 0 && state.runs == Who::Thread;
        if is_in_time && state.unpaid > state.head().amount {
            return Err(format!("{} used of the head", state.unpaid));
        }
        let used = state.used.used(period);
        if used > budget + overrun {
            return Err(format!("{used} of {budget} used in {period} ticks"));
        }
        Ok(())
    }

    fn events(&self, state: &State) -> Vec<Event> {
        let mut events = Vec::new();
        let due = state.deadline.is_some_and(|deadline| deadline <= 0);
        let has_to_fire = state
            .deadline
            .is_some_and(|deadline| deadline <= -self.setting.late);
        // A sporadic context that others keep from running uses its refills late: see `refills`.
        let is_kept = self.setting.sporadic && state.runs == Who::Root && state.could_run();
        if !has_to_fire && !is_kept {
            events.push(Event::Pass);
        }
        if due {
            events.push(Event::Timer);
        }
        if state.life == Life::Waits {
            events.push(Event::WakeThread);
        }
        if state.runs != Who::Root {
            events.extend([Event::Interrupt, Event::WakeRoot]);
        }
        match state.runs {
            Who::Nobody => {}
            Who::Thread => events.extend([Event::Yield, Event::Wait]),
            Who::Root => {
                let bind = if state.bound {
                    Event::Unbind
                } else {
                    Event::Bind
                };
                events.extend([Event::Wait, bind, Event::Configure]);
                events.push(if state.life != Life::Runnable {
                    Event::Resume
                } else {
                    Event::Suspend
                });
            }
        }
        events
    }

    fn step(&mut self, state: &State, event: Event) -> Result<State, String> {
        let mut after = *state;
        if event == Event::Pass {
            after = state.passed();
        } else {
            self.restore(state);
            match event {
                Event::Pass => {}
                Event::Timer => self.entry(Entry::Trap(Trap::Timer)),
                Event::Interrupt => self.interrupt(NO_VECTOR),
                Event::WakeRoot => self.interrupt(ROOT_VECTOR),
                Event::WakeThread => self.interrupt(THREAD_VECTOR),
                Event::Yield => {
                    let info = MessageInfo::default();
                    self.w.syscall(Syscall::Yield, 0, 0, info, &[]);
                }
                Event::Wait => {
                    let waits = usize::from(state.runs == Who::Thread);
                    self.w.wait(self.waits[waits].0);
                }
                Event::Suspend => self.invoke(self.thread.tcb, label::TCB_SUSPEND, &[]),
                Event::Resume => self.invoke(self.thread.tcb, label::TCB_RESUME, &[]),
                Event::Unbind => self.invoke(self.thread.context, label::SCHED_CONTEXT_UNBIND, &[]),
                Event::Bind => {
                    let thread = [self.thread.tcb];
                    self.w.set_extra_caps(&thread);
                    let info = MessageInfo::new(label::SCHED_CONTEXT_BIND, 0, 1, 0);
                    // Refused while the thread is blocked and the context is not ready.
                    self.w
                        .syscall(Syscall::Call, self.thread.context, 0, info, &[]);
                }
                Event::Configure => self.configure(&mut after),
            }
            self.read(&mut after)?;
        }
        after.used = after.used.last(self.setting.period);
        let starts_anew = !after.could_run() || !self.setting.sporadic;
        if event != Event::Pass {
            self.check(&after)?;
        }
        if after.runs != Who::Thread && starts_anew {
            for refill in &mut after.refills {
                refill.time = refill.time.max(0);
            }
        }
        Ok(after)
    }
}
