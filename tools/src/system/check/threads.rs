//! Threads: priorities, time, and who handles their faults and timeouts.

use std::collections::HashMap;

use crate::system::spanned::Spanned;
use sandglass_abi::object::MIN_SCHED_CONTEXT_BITS;
use sandglass_abi::sched::{MAX_PRIORITY, MIN_BUDGET_US, ROOT_TASK_SLICE_US};
use sandglass_description::{Handler, Object, Thread, ThreadId, Time};

use super::super::document::{self, Integer, Text};
use super::super::findings::Finding;
use super::super::quantity::{Bytes, Micros};
use super::names::ThreadIndex;
use super::{text, Checker};

/// Above the launcher nothing runs, so that it can always report.
pub(super) const HIGHEST: i64 = MAX_PRIORITY as i64 - 1;
/// Longest period, µs: an hour, far below the kernel's limit.
const MAX_PERIOD_US: u64 = 3_600_000_000;
/// The kernel uses at most 128 refills, of which two are not extra.
const MAX_EXTRA_REFILLS: i64 = 126;
const MAX_BADGE: i64 = i64::MAX;
const DEFAULT_STACK: u64 = 16 << 10;
const MAX_STACK: u64 = 16 << 20;
const PAGE: u64 = sandglass_description::archive::PAGE as u64;

/// The keys that main threads (in `[[component]]`) and others (in `[[component.thread]]`) share.
struct ThreadKeys<'d> {
    name: &'d Text,
    core: Option<&'d Integer>,
    priority: &'d Integer,
    mcp: Option<&'d Integer>,
    passive: Option<&'d Spanned<bool>>,
    ready: bool,
    budget: Option<&'d Spanned<Micros>>,
    period: Option<&'d Spanned<Micros>>,
    deadline: Option<&'d Spanned<Micros>>,
    interval: Option<&'d Spanned<Micros>>,
    sporadic: bool,
    extra_refills: Option<&'d Integer>,
    timeout_badge: Option<&'d Integer>,
    stack: Option<&'d Spanned<Bytes>>,
}

/// Makes the view from either kind of table.
macro_rules! thread_keys {
    ($table:expr, core: $core:expr, stack: $stack:expr) => {
        ThreadKeys {
            name: &$table.name,
            core: $core,
            priority: &$table.priority,
            mcp: $table.mcp.as_ref(),
            passive: $table.passive.as_ref(),
            ready: $table.ready,
            budget: $table.budget.as_ref(),
            period: $table.period.as_ref(),
            deadline: $table.deadline.as_ref(),
            interval: $table.interval.as_ref(),
            sporadic: $table.sporadic,
            extra_refills: $table.extra_refills.as_ref(),
            timeout_badge: $table.timeout_badge.as_ref(),
            stack: $stack,
        }
    };
}

impl ThreadKeys<'_> {
    fn is_passive(&self) -> bool {
        self.passive.is_some_and(|passive| *passive.get_ref())
    }
}

impl<'a> Checker<'a> {
    /// The threads of a component, without handlers.
    pub(super) fn component_threads(
        &mut self,
        index: usize,
        component: &'a document::Component,
    ) -> Vec<Thread> {
        let main = thread_keys!(component, core: component.core.as_ref(), stack: None);
        let signals = main.is_passive() || main.ready;
        if !signals && !component.threads.is_empty() {
            let name = text(&component.name);
            self.found(
                Finding::new(
                    component.threads[0].name.span(),
                    format!("this thread of `{name}` would never start"),
                )
                .label("it starts when the main thread signals that it is ready")
                .help("make the main thread `passive = true`, or let it signal with `ready = true`")
                .related(component.name.span(), "its main thread does not signal"),
            );
        }
        let mut threads = vec![self.thread(index, &main, true)];
        for thread in &component.threads {
            let core = thread.core.as_ref().or(component.core.as_ref());
            let keys = thread_keys!(thread, core: core, stack: thread.stack.as_ref());
            self.equipment[index].add_own_thread(
                text(&thread.name),
                &thread.name.span(),
                &mut self.findings,
            );
            threads.push(self.thread(index, &keys, false));
        }
        threads
    }

    fn thread(&mut self, component: usize, keys: &ThreadKeys<'_>, is_main: bool) -> Thread {
        let priority = self.in_range("priority", Some(keys.priority), 0..=HIGHEST, 0);
        let mcp = self.in_range("maximum controlled priority", keys.mcp, 0..=HIGHEST, 0);
        let time = self.time(keys);
        let deadline_us = self.deadline(keys);
        self.interval(keys);
        let signals = keys.is_passive() || keys.ready;
        let ready = signals.then(|| self.ready_notification(component, keys, is_main));
        let stack_bytes = if is_main { 0 } else { self.stack(keys.stack) };
        Thread {
            name: keys.name.get_ref().clone(),
            priority: priority as u8,
            mcp: mcp as u8,
            time,
            passive: keys.is_passive(),
            deadline_us,
            ready,
            fault_handler: None,
            timeout_handler: None,
            end_signals: Vec::new(),
            stack_bytes,
        }
    }

    fn ready_notification(
        &mut self,
        component: usize,
        keys: &ThreadKeys<'_>,
        is_main: bool,
    ) -> u32 {
        let index = self.new_notification();
        let name = if is_main {
            "ready".to_owned()
        } else {
            format!("{}.ready", keys.name.get_ref())
        };
        self.equipment[component].add_capability(
            &name,
            Object::Notification(index),
            &keys.name.span(),
            &mut self.findings,
        );
        index
    }

    /// Bytes of a stack, whole pages.
    pub(super) fn stack(&mut self, stack: Option<&Spanned<Bytes>>) -> u64 {
        let Some(stack) = stack else {
            return DEFAULT_STACK;
        };
        let bytes = stack.get_ref().0;
        if (PAGE..=MAX_STACK).contains(&bytes) {
            return bytes.next_multiple_of(PAGE);
        }
        self.found(
            Finding::new(stack.span(), format!("a stack of {bytes} bytes"))
                .label(format!("must be from {PAGE} to {MAX_STACK} bytes")),
        );
        DEFAULT_STACK
    }

    /// What the thread runs on.
    fn time(&mut self, keys: &ThreadKeys<'_>) -> Time {
        let (budget_us, period_us) = self.budget_and_period(keys);
        let extra_refills = self.in_range(
            "number of extra refills",
            keys.extra_refills,
            0..=MAX_EXTRA_REFILLS,
            0,
        );
        let badge = self.in_range("badge", keys.timeout_badge, 0..=MAX_BADGE, 0);
        Time {
            core: self.core(keys.core),
            budget_us,
            period_us,
            sporadic: keys.sporadic,
            extra_refills: extra_refills as u64,
            badge: badge as u64,
        }
    }

    /// Budget and period, µs.
    fn budget_and_period(&mut self, keys: &ThreadKeys<'_>) -> (u64, u64) {
        let default = (ROOT_TASK_SLICE_US, ROOT_TASK_SLICE_US);
        let (budget, period) = match (keys.budget, keys.period) {
            (Some(budget), Some(period)) => (budget, period),
            (None, None) if keys.is_passive() => return default,
            (given, other) => {
                let name = text(keys.name);
                let (missing, span) = match (given, other) {
                    (None, None) => ("budget and no period", keys.name.span()),
                    (None, Some(period)) => ("budget", period.span()),
                    (Some(budget), _) => ("period", budget.span()),
                };
                self.found(
                    Finding::new(span, format!("`{name}` has no {missing}"))
                        .label("never runs without processor time")
                        .help(format!(
                            "give it `budget` and `period`, or make it a server that runs on its \
                             clients' time: `passive = true`{}",
                            match self.document.edf.first() {
                                None => String::new(),
                                Some(edf) => format!(
                                    "; or let `{}` schedule it: name it among the `tasks` of that \
                                     `[[edf]]`",
                                    text(&edf.name)
                                ),
                            }
                        )),
                );
                return default;
            }
        };
        let (budget_us, period_us) = (budget.get_ref().0, period.get_ref().0);
        if period_us > MAX_PERIOD_US {
            self.found(
                Finding::new(period.span(), format!("a period of {period_us} µs"))
                    .label(format!("must be at most {MAX_PERIOD_US} µs")),
            );
        }
        if budget_us < MIN_BUDGET_US {
            self.found(
                Finding::new(
                    budget.span(),
                    format!("the budget of {budget_us} µs is below the kernel's minimum"),
                )
                .label(format!("must be at least {MIN_BUDGET_US} µs"))
                .help("the minimum is twice the kernel's worst-case execution time"),
            );
        }
        if budget_us > period_us {
            self.found(
                Finding::new(
                    budget.span(),
                    format!("the budget of {budget_us} µs is above the period"),
                )
                .label(format!("must be at most the period, {period_us} µs"))
                .related(period.span(), "the period")
                .help("a budget equal to the period means round robin, without a limit"),
            );
        }
        (budget_us, period_us)
    }

    /// By when a job of the thread is to end, µs after its release.
    fn deadline(&mut self, keys: &ThreadKeys<'_>) -> Option<u64> {
        let deadline = keys.deadline?;
        let deadline_us = deadline.get_ref().0;
        if keys.is_passive() {
            self.found(
                Finding::new(deadline.span(), "a passive server cannot have a deadline")
                    .label("it has no jobs of its own: give deadlines to its clients"),
            );
            return None;
        }
        let period = keys
            .period
            .map(|period| (period.get_ref().0, period.span()));
        if deadline_us == 0 {
            self.found(
                Finding::new(deadline.span(), "a deadline of 0 µs")
                    .label("must be after the release of a job"),
            );
        } else if let Some((period_us, span)) = period.filter(|(us, _)| deadline_us > *us) {
            self.found(
                Finding::new(
                    deadline.span(),
                    format!("the deadline of {deadline_us} µs is after the period"),
                )
                .label(format!("must be at most the period, {period_us} µs"))
                .related(span, "the period")
                .help("a job ends before the next is released"),
            );
        }
        Some(deadline_us)
    }

    /// How often there is a job: said of threads whose jobs are checked.
    fn interval(&mut self, keys: &ThreadKeys<'_>) {
        if let (Some(interval), None) = (keys.interval, keys.deadline) {
            self.found(
                Finding::new(interval.span(), "an `interval` without a `deadline`")
                    .label("nothing is checked of jobs without a deadline")
                    .help("add `deadline`, by when each job is to end; or remove `interval`"),
            );
        }
    }

    /// Who handles whose faults and timeouts.
    pub(super) fn handlers(&mut self) {
        let mut faults = Handlers::new("faults");
        let mut timeouts = Handlers::new("timeouts");
        let document = self.document;
        for (index, component) in document.components.iter().enumerate() {
            let main = (
                component.fault_handler.as_ref(),
                component.timeout_handler.as_ref(),
            );
            let others = component.threads.iter().map(|thread| {
                (
                    thread.fault_handler.as_ref(),
                    thread.timeout_handler.as_ref(),
                )
            });
            for (thread, (fault, timeout)) in std::iter::once(main).chain(others).enumerate() {
                let handled = ThreadIndex {
                    component: index,
                    thread,
                };
                if let Some(name) = fault {
                    let handler = self.handler(&mut faults, handled, name);
                    self.threads[index][thread].fault_handler = handler;
                }
                if let Some(name) = timeout {
                    let handler = self.handler(&mut timeouts, handled, name);
                    self.threads[index][thread].timeout_handler = handler;
                }
            }
        }
    }

    /// Lets the component called `name` handle what happens to a thread.
    fn handler(
        &mut self,
        handlers: &mut Handlers,
        handled: ThreadIndex,
        name: &Text,
    ) -> Option<Handler> {
        let handler = self.find_component(name)?;
        let endpoint = match handlers.endpoints.get(&handler) {
            Some(endpoint) => *endpoint,
            None => {
                let endpoint = self.new_endpoint();
                self.give_served_endpoint(handler, handlers.name, endpoint, name);
                handlers.endpoints.insert(handler, endpoint);
                endpoint
            }
        };
        let badge = self.badge_of(handled);
        self.give_thread(handler, handled, name);
        self.give_what_rolls_back(handler, handled, name);
        Some(Handler { endpoint, badge })
    }

    /// The badge under which a thread's faults and timeouts arrive: unique in the system.
    pub(super) fn badge_of(&self, thread: ThreadIndex) -> u64 {
        let before: usize = self.threads[..thread.component].iter().map(Vec::len).sum();
        (before + thread.thread + 1) as u64
    }

    /// Gives a component what it needs to control a thread: `T.tcb` and `T.context`.
    pub(super) fn give_thread(&mut self, component: usize, thread: ThreadIndex, place: &Text) {
        let path = self.path(thread);
        let id = self.id(thread);
        let things = [
            ("tcb", Object::Tcb(id)),
            ("context", Object::SchedContext(id)),
        ];
        for (what, object) in things {
            self.give_once(component, &format!("{path}.{what}"), object, place);
        }
    }

    /// Gives the handler of a thread what it needs to send the thread back to where it waited.
    fn give_what_rolls_back(&mut self, handler: usize, handled: ThreadIndex, place: &Text) {
        let path = self.path(handled);
        if let Some(ready) = self.threads[handled.component][handled.thread].ready {
            let object = Object::Notification(ready);
            self.give_once(handler, &format!("{path}.ready"), object, place);
        }
        for (endpoint, name) in self.served[handled.component].clone() {
            self.give_once(
                handler,
                &format!("{name}.reply"),
                Object::Reply(endpoint),
                place,
            );
        }
        let badge = self.badge_of(handled);
        let equipment = &mut self.equipment[handler];
        let name = format!("{path}.badge");
        if !equipment
            .parameters
            .iter()
            .any(|parameter| parameter.name == name)
        {
            equipment.add_parameter(&name, badge, &place.span(), &mut self.findings);
        }
    }

    /// Gives a component a capability that it may have under that name already.
    pub(super) fn give_once(&mut self, component: usize, name: &str, object: Object, place: &Text) {
        let equipment = &mut self.equipment[component];
        let has_it =
            |grant: &sandglass_description::Grant| grant.name == name && grant.object == object;
        if !equipment.grants.iter().any(has_it) {
            equipment.add_capability(name, object, &place.span(), &mut self.findings);
        }
    }

    /// The thread as it is packed.
    pub(super) fn id(&self, thread: ThreadIndex) -> ThreadId {
        ThreadId {
            component: self.position[thread.component],
            thread: thread.thread as u32,
        }
    }

    pub(super) fn path(&self, thread: ThreadIndex) -> String {
        let component = &self.document.components[thread.component];
        let name = text(&component.name);
        match thread.thread.checked_sub(1) {
            None => name.to_owned(),
            Some(index) => format!("{name}/{}", text(&component.threads[index].name)),
        }
    }
}

/// The handlers of one kind of message.
struct Handlers {
    /// Under which a component finds the endpoint where they arrive.
    name: &'static str,
    /// By component.
    endpoints: HashMap<usize, u32>,
}

impl Handlers {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            endpoints: HashMap::new(),
        }
    }
}

// More refills need a larger object, never one that a description could not ask for.
const _: () = assert!(
    sandglass_abi::sched::max_extra_refills(MIN_SCHED_CONTEXT_BITS + 5) >= MAX_EXTRA_REFILLS as u64
);
