//! Random events that mean something.
//!
//! The generator looks at the state, picks a capability that the current thread can name, and an
//! operation that this capability has, with arguments that it might well have; and then, now and
//! then, spoils something: so every operation is done, and refused for every reason.

mod cores;
mod delays;
mod exchange;
mod invoke;
mod life;
mod long;
mod messages;
mod slots;
mod view;

pub(crate) use invoke::Arguments;

use fastrand::Rng;
use sandglass_abi::invocation::{
    INVALID, TCB_CONFIGURE_SINGLE_STEPPING, TCB_GET_BREAKPOINT, TCB_SET_BREAKPOINT,
    TCB_UNSET_BREAKPOINT,
};
use sandglass_abi::message::MessageInfo;
use sandglass_abi::sched::domain::DOMAINS;
use sandglass_abi::syscall::Syscall;
use sandglass_abi::trace;
use sandglass_model::isa::IrqNumber;
use sandglass_model::state::{Cap, Signals, State, ThreadState};

use crate::isa;
use crate::operations::{Kind, Operation, OPERATIONS};
use crate::script::{Action, Call};
pub use view::View;

/// `label`, or none of any object if it is of the hardware-debug API, which is not specified.
fn specified(label: u64) -> u64 {
    match label {
        TCB_SET_BREAKPOINT
        | TCB_GET_BREAKPOINT
        | TCB_UNSET_BREAKPOINT
        | TCB_CONFIGURE_SINGLE_STEPPING => INVALID,
        _ => label,
    }
}

/// Makes actions from a seed: the same from the same seed and the same states.
pub struct Generator {
    pub(crate) rng: Rng,
    /// Sum of the weights of all operations.
    weights: u32,
    /// Whether preemption points may see an interrupt.
    preempts: bool,
    /// Whether time passes when the kernel reads the clock.
    delays: bool,
    /// Whether it has just been said how much, so that something long is to come.
    is_slow: bool,
    /// The long deletion that is being prepared.
    plan: Option<long::Plan>,
    /// Number of cores on which something happens, the first ones.
    cores: usize,
    /// Number of actions since somebody ran.
    idle: u32,
    /// Whether a core waits for its turn since the last action.
    is_late: bool,
    /// Whether exchanges of messages are most of what happens.
    serves: bool,
}

/// Actions while nobody runs, after which nobody is expected to any more.
const MOST_IDLE: u32 = 12;

/// An invocation before it is sent.
#[derive(Clone, Default, Debug)]
struct Invocation {
    cap: u64,
    label: u64,
    words: Vec<u64>,
    caps: Vec<u64>,
}

/// Values at which something changes.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    3,
    7,
    8,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    257,
    4095,
    4096,
    1 << 32,
    0x7fff_ffff_ffff,
    0x8000_0000_0000,
    u64::MAX,
];

/// Whether a thread can name the paging structure of `cap` twice: then it cannot unmap it.
fn is_copied(view: &View, cap: &Cap) -> bool {
    let Cap::Paging { object, .. } = cap else {
        return false;
    };
    let same = |entry: &&view::Entry| matches!(entry.cap, Cap::Paging { object: other, .. } if other == *object);
    view.entries.iter().filter(same).count() > 1
}

/// User addresses at which scripts map things: in each of several tables.
pub(crate) const ADDRESSES: [u64; 8] = [
    0x0100_0000_0000,
    0x0100_0000_1000,
    0x0100_0020_0000,
    0x0100_4000_0000,
    0x0180_0000_0000,
    0x7000_0000,
    0x40_1000,
    0x7fff_ffff_f000,
];

impl Generator {
    /// With `preempts`, long operations are preempted now and then; with `delays`, time passes inside
    /// events. Something happens on the first `cores` only, of however many the kernel is for.
    pub fn new(seed: u64, preempts: bool, delays: bool, cores: usize) -> Generator {
        Generator {
            rng: Rng::with_seed(seed),
            weights: OPERATIONS.iter().map(|operation| operation.weight).sum(),
            preempts,
            delays,
            is_slow: false,
            plan: None,
            cores,
            idle: 0,
            is_late: false,
            serves: false,
        }
    }

    /// What happens next; `None` if nothing of interest ever will.
    pub fn next(&mut self, state: &State) -> Option<Action> {
        let action = self.on_time(state)?;
        Some(self.maybe_late(action))
    }

    fn on_time(&mut self, state: &State) -> Option<Action> {
        if self.delays && self.chance(6) {
            return Some(self.slow_kernel(state));
        }
        if let Some(action) = self.of_cores(state) {
            return Some(action);
        }
        let Some(thread) = state.core().thread else {
            self.idle += 1;
            return self.while_idle(state).filter(|_| self.idle <= MOST_IDLE);
        };
        self.idle = 0;
        let view = View::of(state, thread);
        if let Some(action) = self.while_slow(&view) {
            return Some(action);
        }
        if let Some(action) = self.long_deletion(&view) {
            return Some(action);
        }
        if let Some(action) = self.enliven(&view) {
            return Some(action);
        }
        if let Some(action) = self.exchange(&view) {
            return Some(action);
        }
        Some(match self.rng.u32(0..100) {
            0..54 => self.invocation(&view),
            54..80 => self.message(&view),
            80..90 => Action::Pass(self.interesting_time(state)),
            90..93 => self.interrupt(state),
            93 => isa::odd_event(&mut self.rng),
            94 => isa::exception_event(&mut self.rng),
            95 => Action::PageFault(self.edge(), isa::fault_code(&mut self.rng)),
            96 => self.receive_slot(&view),
            _ => self.plain_call(),
        })
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    pub(crate) fn choose<T: Copy>(&mut self, among: &[T]) -> Option<T> {
        if among.is_empty() {
            None
        } else {
            Some(among[self.rng.usize(0..among.len())])
        }
    }

    pub(crate) fn edge(&mut self) -> u64 {
        EDGES[self.rng.usize(0..EDGES.len())]
    }

    /// A capability of the view that is `wanted`.
    fn pick(&mut self, view: &View, wanted: impl Fn(&Cap) -> bool) -> Option<u64> {
        let suiting = view.entries.iter().filter(|entry| wanted(&entry.cap));
        let count = suiting.clone().count();
        if count == 0 {
            return None;
        }
        let nth = self.rng.usize(0..count);
        suiting.clone().nth(nth).map(|entry| entry.cptr)
    }

    /// A capability of any kind; sometimes an address that names none.
    fn any(&mut self, view: &View) -> u64 {
        if self.chance(20) {
            self.edge()
        } else {
            self.pick(view, |_| true).unwrap_or(0)
        }
    }

    /// Nobody runs: only time and devices can change that.
    fn while_idle(&mut self, state: &State) -> Option<Action> {
        let wakes = state.notifications.values().any(|notification| {
            matches!(notification.state, Signals::Waiting(_)) || notification.thread.is_some()
        });
        let turn_ends = Self::turn_ends(state);
        let waits = state.cores.iter().any(|core| {
            // Of other domains, those who are ready wait, too.
            let is_current = |domain: usize| domain == usize::from(state.domains.current);
            let mut of_domains = core.queues.iter().enumerate();
            of_domains.any(|(domain, queues)| {
                let waits = !queues.release.is_empty() || !queues.ready.is_empty();
                waits && (is_current(domain) || turn_ends)
            })
        });
        match (waits, wakes && !state.irqs.is_empty()) {
            (true, true) if self.chance(50) => Some(self.interrupt(state)),
            (true, _) => Some(Action::Pass(self.interesting_time(state))),
            (false, true) => Some(self.interrupt(state)),
            (false, false) => None,
        }
    }

    fn interrupt(&mut self, state: &State) -> Action {
        let issued: Vec<IrqNumber> = state.irqs.keys().copied().collect();
        match self.choose(&issued) {
            Some(irq) if self.chance(95) => Action::Interrupt(irq),
            _ => Action::Interrupt(isa::any_irq(&mut self.rng)),
        }
    }

    /// When the budget of the current context ends, if there is one.
    fn budget_end(state: &State) -> Option<u64> {
        let core = state.core();
        let context = state.contexts.get(&core.context?)?;
        let head = context.refills.first()?;
        Some(core.now - core.consumed.min(core.now) + head.amount)
    }

    /// So many `ticks`, or a few more or less. The entry before took some.
    fn about(&mut self, ticks: u64) -> u64 {
        (ticks + self.rng.u64(0..3))
            .saturating_sub(701)
            .min(1 << 40)
    }

    /// Whether the turn of the domain that runs ends in a time that a run lasts.
    fn turn_ends(state: &State) -> bool {
        DOMAINS > 1 && state.domains.end < state.core().now + (1 << 40)
    }

    /// To just before, at, and just after what comes next, or less, or much more.
    fn interesting_time(&mut self, state: &State) -> u64 {
        let core = state.core();
        let now = core.now;
        let least = state.clock.min_budget();
        let budget_end = Self::budget_end(state);
        let releases: Vec<u64> = state
            .cores
            .iter()
            .flat_map(|core| &core.queues)
            .flat_map(|queues| queues.release.iter().map(|&(time, _)| time))
            .collect();
        let release = self.choose(&releases);
        let target = match self.rng.u32(0..10) {
            0 | 1 => budget_end,
            2 => budget_end.map(|end| end.saturating_sub(least)),
            3 | 4 => release,
            5 if Self::turn_ends(state) && self.rng.bool() => Some(state.domains.end),
            5 if core.deadline != u64::MAX => Some(core.deadline),
            _ => None,
        };
        match target.and_then(|target| target.checked_sub(now)) {
            Some(ticks) => self.about(ticks),
            None => match self.rng.u32(0..8) {
                0 => 0,
                1 => 1,
                2..=4 => self.rng.u64(0..30_000),
                5 | 6 => self.rng.u64(0..2_000_000),
                _ => self.rng.u64(0..100_000_000),
            },
        }
    }

    /// The thread says where it wants to receive a capability.
    fn receive_slot(&mut self, view: &View) -> Action {
        match self.empty_slot(view) {
            Some((cptr, index, depth)) => Action::ReceiveSlot(cptr, index, depth),
            None => Action::ReceiveSlot(self.edge(), self.edge(), self.edge()),
        }
    }

    /// A system call without capability: Yield, SetTLSBase, unknown ones.
    fn plain_call(&mut self) -> Action {
        let number = match self.rng.u32(0..10) {
            0..6 => Syscall::Yield as i64,
            6..8 => Syscall::SetTLSBase as i64,
            8 => self.rng.i64(-40..40),
            _ => self.rng.i64(..),
        };
        // What the debug kernel prints is not specified, nor what a kernel with traces writes.
        let is_debug = Syscall::from_raw(number as u64).is_some_and(Syscall::is_debug);
        let is_trace = cfg!(feature = "trace") && trace::Call::from_raw(number as u64).is_some();
        let number = if is_debug || is_trace {
            Syscall::Yield as i64
        } else {
            number
        };
        let cap = self.edge();
        Action::Call(Call {
            number,
            cap,
            ..Call::default()
        })
    }

    fn operation(&mut self) -> &'static Operation {
        let mut at = self.rng.u32(0..self.weights);
        let mut operations = OPERATIONS.iter();
        loop {
            let operation = operations.next().expect("the weights add up");
            match at.checked_sub(operation.weight) {
                None => return operation,
                Some(rest) => at = rest,
            }
        }
    }

    /// An invocation of a capability that the kernel implements.
    fn invocation(&mut self, view: &View) -> Action {
        for _ in 0..8 {
            let operation = self.operation();
            let of_kind = |cap: &Cap| Kind::of(*cap) == Some(operation.kind);
            let copied = |cap: &Cap| of_kind(cap) && is_copied(view, cap);
            let cap = if self.chance(30) {
                self.pick(view, copied)
            } else {
                None
            };
            let Some(cap) = cap.or_else(|| self.pick(view, of_kind)) else {
                continue;
            };
            if let Some((words, caps)) = self.arguments(view, operation, cap) {
                let invocation = Invocation {
                    cap,
                    label: operation.label,
                    words,
                    caps,
                };
                return self.send(view, invocation);
            }
        }
        self.message(view)
    }

    /// Sends `invocation`, spoiled now and then, by one of the system calls.
    fn send(&mut self, view: &View, mut invocation: Invocation) -> Action {
        let mut number = Syscall::Call;
        let mut length = None;
        if self.chance(14) {
            length = self.spoil(view, &mut invocation);
        }
        if self.chance(10) {
            number = self
                .choose(&[
                    Syscall::Send,
                    Syscall::NBSend,
                    Syscall::NBSendRecv,
                    Syscall::NBSendWait,
                    Syscall::ReplyRecv,
                ])
                .unwrap_or(number);
        }
        let Invocation {
            cap,
            label,
            words,
            caps,
        } = invocation;
        let length = length.unwrap_or(words.len());
        let info = MessageInfo::new(label, self.rng.u64(0..8), caps.len(), length);
        let mut call = Call {
            number: number as i64,
            cap,
            info: info.raw(),
            words,
            caps,
            ..Call::default()
        };
        if number != Syscall::Call {
            self.address(view, number, &mut call);
        }
        if self.preempts && self.chance(20) {
            return Action::Preempted(self.rng.u64(0..3), call);
        }
        Action::Call(call)
    }

    /// Spoils an invocation; returns another length of the message, if it is to have one.
    fn spoil(&mut self, view: &View, invocation: &mut Invocation) -> Option<usize> {
        let Invocation {
            cap,
            label,
            words,
            caps,
        } = invocation;
        match self.rng.u32(0..10) {
            0 | 8 | 9 => words.truncate(self.rng.usize(0..=words.len())),
            1 | 2 => {
                if let Some(i) = (!words.is_empty()).then(|| self.rng.usize(0..words.len())) {
                    words[i] = self.edge();
                }
            }
            3 => caps.truncate(self.rng.usize(0..=caps.len())),
            4 | 5 => {
                if let Some(i) = (!caps.is_empty()).then(|| self.rng.usize(0..caps.len())) {
                    caps[i] = self.any(view);
                }
            }
            6 => *label = specified(self.rng.u64(0..62)),
            _ => {
                if self.chance(50) {
                    *cap = self.any(view);
                } else {
                    return Some(self.rng.usize(0..128));
                }
            }
        }
        None
    }

    /// Whether the thread of a capability does not run and could be started.
    fn is_stopped(view: &View, cap: Cap) -> bool {
        view.thread_of(cap).is_some_and(|thread| {
            thread.state == ThreadState::Inactive && Cap::Thread(view.thread) != cap
        })
    }
}
