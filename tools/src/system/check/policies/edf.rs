//! `[[edf]]`: tasks that a scheduler at user level runs by their deadlines (`user/policies/edf`).
//!
//! The table stands for a component, the scheduler, with an endpoint that its tasks call and a timer
//! ([`expand`]); and it says on what time the tasks run, which is therefore not said at theirs.

use sandglass_description::policy::edf::{self as lowered, names, Edf, Overrun, Sender};
use sandglass_description::policy::Table;
use sandglass_description::{Handler, Object};
use toml::Spanned;

use super::super::super::document::{
    self, Component, Document, EdfMode, EdfTask, Endpoint, Interrupt, Memory, Ports, Text,
};
use super::super::super::findings::Finding;
use super::super::super::quantity::{Bytes, Micros};
use super::super::{text, Checker};
use super::demand;

/// Package of the scheduler.
const EXECUTABLE: &str = "edf-scheduler";
/// Under which a task finds its scheduler: `sandglass_edf::Task::SCHEDULER`.
const AT_TASKS: &str = "edf";
/// The only timer that there is a driver of.
const HPET: &str = "hpet";
const HPET_PHYSICAL: i64 = 0xfed0_0000;
/// Input of the I/O APIC that HPET and PIT share, and the PIT's ports.
const PIN: i64 = 2;
const PIT_PORTS: (i64, i64) = (0x40, 0x43);
/// What the scheduler itself runs on: all of the processor.
const SCHEDULER_SLICE_US: u64 = 10_000;
/// Longest period, µs: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Slice of a task whose budget nobody enforces, µs: a year. At its end the kernel would once put
/// the task behind the others of its priority.
const ENDLESS_US: u64 = 365 * 24 * LONGEST_US;

/// Adds to a description what its `[[edf]]` stand for. Returns what is wrong with that.
pub fn expand(document: &mut Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for edf in &document.edf {
        for task in edf.tasks.get_ref() {
            let component = document
                .components
                .iter_mut()
                .find(|component| text(&component.name) == text(&task.component));
            if let Some(component) = component {
                findings.extend(give_time(component, edf, task));
            }
        }
    }
    for edf in &document.edf {
        let known = |task: &&EdfTask| {
            let name = text(&task.component);
            document.components.iter().any(|c| text(&c.name) == name)
        };
        let tasks = edf.tasks.get_ref().iter().filter(known);
        let tasks: Vec<Text> = tasks.map(|task| task.component.clone()).collect();
        document.components.push(scheduler(edf, tasks));
        document.endpoints.push(endpoint(edf));
        let place = |text: &str| Spanned::new(edf.name.span(), text.to_owned());
        document.memory.push(Memory {
            name: place(names::REGISTERS),
            size: Spanned::new(edf.name.span(), Bytes(4096)),
            physical: Some(Spanned::new(edf.name.span(), HPET_PHYSICAL)),
            maps: vec![document::Map {
                component: edf.name.clone(),
                rights: document::MapRights::ReadWrite,
                address: None,
            }],
        });
        document.interrupts.push(Interrupt {
            name: place(names::TIMER),
            component: edf.name.clone(),
            pin: Spanned::new(edf.name.span(), PIN),
            trigger: document::Trigger::Edge,
            polarity: document::Polarity::High,
        });
        document.ports.push(Ports {
            name: place(names::PIT),
            component: edf.name.clone(),
            first: Spanned::new(edf.name.span(), PIT_PORTS.0),
            last: Spanned::new(edf.name.span(), PIT_PORTS.1),
        });
    }
    findings
}

/// Lets a task run on the time that `[[edf]]` says.
fn give_time(component: &mut Component, edf: &document::Edf, task: &EdfTask) -> Option<Finding> {
    let given = component.budget.as_ref().or(component.period.as_ref());
    let given = given.map(|given| given.span());
    let whole = || Spanned::new(task.period.span(), Micros(LONGEST_US));
    let (budget, period) = match edf.mode.get_ref() {
        EdfMode::Cooperative => (whole(), whole()),
        EdfMode::Preemptive => {
            let budget = task.budget.as_ref().unwrap_or(&task.period);
            (budget.clone(), task.period.clone())
        }
    };
    component.budget = Some(budget);
    component.period = Some(period);
    let name = text(&component.name);
    given.map(|given| {
        Finding::new(
            given,
            format!(
                "the time of `{name}` is given by the scheduler `{}`",
                text(&edf.name)
            ),
        )
        .label("must not be here")
        .related(task.component.span(), "its time is here")
        .help("a task of an `[[edf]]` has `period` there and, in preemptive mode, `budget`")
    })
}

/// The scheduler as a component that controls `tasks`.
fn scheduler(edf: &document::Edf, tasks: Vec<Text>) -> Component {
    let span = edf.name.span();
    let slice = || Some(Spanned::new(span.clone(), Micros(SCHEDULER_SLICE_US)));
    let core = edf.core.clone();
    let own_core = core.clone().unwrap_or(Spanned::new(span.clone(), 0));
    let mut controls = tasks;
    controls.push(edf.name.clone());
    Component {
        name: edf.name.clone(),
        executable: Spanned::new(span.clone(), EXECUTABLE.to_owned()),
        criticality: None,
        core,
        priority: edf.priority.clone(),
        // It yields to its tasks.
        mcp: Some(edf.priority.clone()),
        passive: None,
        ready: true,
        budget: slice(),
        period: slice(),
        deadline: None,
        sporadic: false,
        extra_refills: None,
        timeout_badge: None,
        fault_handler: None,
        timeout_handler: None,
        console: true,
        exit: false,
        parameters: Default::default(),
        controls,
        scheduling_control: vec![own_core],
        cspace_bits: None,
        spawns: None,
        threads: Vec::new(),
    }
}

/// Where the tasks call.
fn endpoint(edf: &document::Edf) -> Endpoint {
    let clients = edf.tasks.get_ref().iter().enumerate();
    let clients = clients.map(|(index, task)| {
        let span = task.component.span();
        document::Client {
            component: task.component.clone(),
            badge: Some(Spanned::new(
                span.clone(),
                Sender::Call(index).badge() as i64,
            )),
            rights: document::ClientRights::Call,
            alias: Some(Spanned::new(span, AT_TASKS.to_owned())),
        }
    });
    Endpoint {
        name: edf.name.clone(),
        server: Some(edf.name.clone()),
        clients: clients.collect(),
    }
}

impl<'a> Checker<'a> {
    /// Checks every `[[edf]]`, and gives its scheduler the table.
    pub(super) fn edf(&mut self) {
        for edf in &self.document.edf {
            self.edf_keys(edf);
            let Some(scheduler) = self.names.component(text(&edf.name)) else {
                continue;
            };
            for (index, task) in edf.tasks.get_ref().iter().enumerate() {
                self.edf_times(edf, task);
                if let Some(component) = self.names.component(text(&task.component)) {
                    self.edf_thread(edf, task, component);
                    self.edf_handlers(edf, scheduler, component, index);
                }
            }
            self.edf_demand(edf);
            for index in 0..=edf.tasks.get_ref().len() {
                // A reply object comes with an endpoint; this one's endpoint stays unused.
                let reply = Object::Reply(self.new_endpoint());
                self.equipment[scheduler].add_capability(
                    &names::reply(index),
                    reply,
                    &edf.name.span(),
                    &mut self.findings,
                );
            }
            let table = self.edf_table(edf, scheduler);
            self.give_table(scheduler, Edf::NAME, &table, &edf.name.span());
        }
    }

    /// What is said once for all tasks.
    fn edf_keys(&mut self, edf: &'a document::Edf) {
        if let Some(timer) = edf.timer.as_ref().filter(|timer| text(timer) != HPET) {
            self.found(
                Finding::new(timer.span(), format!("there is no timer `{}`", text(timer)))
                    .label("must be \"hpet\", which is the default"),
            );
        }
        let tasks = edf.tasks.get_ref();
        if tasks.is_empty() {
            self.found(
                Finding::new(edf.tasks.span(), "the scheduler has no tasks")
                    .help("name them: `tasks = [{ component = \"...\", period = \"10ms\" }]`"),
            );
        }
        for (index, task) in tasks.iter().enumerate() {
            let name = text(&task.component);
            let first = tasks[..index].iter().find(|t| text(&t.component) == name);
            if let Some(first) = first {
                self.found(
                    Finding::new(task.component.span(), format!("`{name}` is a task twice"))
                        .label("the second")
                        .related(first.component.span(), "the first")
                        .help("work with two periods is two tasks: divide it into two components"),
                );
            }
        }
        if let (EdfMode::Cooperative, Some(overrun)) = (edf.mode.get_ref(), &edf.overrun) {
            self.found(
                Finding::new(
                    overrun.span(),
                    "nobody notices an overrun in cooperative mode",
                )
                .label("must not be here")
                .help("budgets are enforced by `mode = \"preemptive\"`"),
            );
        }
    }

    /// Period, deadline and budget of a task.
    fn edf_times(&mut self, edf: &'a document::Edf, task: &'a EdfTask) {
        let name = text(&task.component);
        let period = task.period.get_ref().0;
        if period == 0 || period > LONGEST_US {
            // In preemptive mode it is the period of the reservation too, and found wrong as that.
            if *edf.mode.get_ref() == EdfMode::Cooperative {
                self.found(
                    Finding::new(task.period.span(), format!("a period of {period} µs"))
                        .label(format!("must be from 1 to {LONGEST_US} µs")),
                );
            }
            return;
        }
        let deadline = deadline(task);
        if deadline == 0 || deadline > period {
            if let Some(given) = task.deadline.as_ref() {
                self.found(
                    Finding::new(
                        given.span(),
                        format!("a deadline of {deadline} µs after the release"),
                    )
                    .label(format!("must be from 1 µs to the period, {period} µs"))
                    .related(task.period.span(), "the period")
                    .help("a job must end before the next one of its task is released"),
                );
            }
            return;
        }
        match (edf.mode.get_ref(), &task.budget) {
            (EdfMode::Preemptive, None) => self.found(
                Finding::new(task.component.span(), format!("`{name}` has no budget"))
                    .label("in preemptive mode every task has one")
                    .help(
                        "say how long a job may run, `budget = \"...\"`, or end jobs by calls only: \
                         `mode = \"cooperative\"`",
                    ),
            ),
            (EdfMode::Cooperative, Some(budget)) => self.found(
                Finding::new(budget.span(), "no budget is enforced in cooperative mode")
                    .label("must not be here")
                    .help("budgets are enforced by `mode = \"preemptive\"`"),
            ),
            (EdfMode::Cooperative, None) => {}
            (EdfMode::Preemptive, Some(budget)) => {
                let us = budget.get_ref().0;
                if us == period {
                    self.found(
                        Finding::new(budget.span(), "a budget equal to the period never runs out")
                            .label(format!("must be below {period} µs"))
                            .related(task.period.span(), "the period"),
                    );
                } else if us > deadline && us < period {
                    self.found(
                        Finding::new(
                            budget.span(),
                            format!("a job of {us} µs cannot end within {deadline} µs"),
                        )
                        .label(format!("must be at most the deadline, {deadline} µs")),
                    );
                }
            }
        }
    }

    /// Where a task stands beside its scheduler.
    fn edf_thread(&mut self, edf: &'a document::Edf, task: &'a EdfTask, component: usize) {
        let described = &self.document.components[component];
        let (name, scheduler) = (text(&task.component), text(&edf.name));
        let place = task.component.span();
        let priority = &described.priority;
        if priority.get_ref() >= edf.priority.get_ref() {
            self.found(
                Finding::new(
                    priority.span(),
                    format!("`{name}` would keep its scheduler `{scheduler}` from running"),
                )
                .label(format!("must be below {}", edf.priority.get_ref()))
                .related(edf.priority.span(), "the scheduler's priority"),
            );
        }
        let first = edf.tasks.get_ref().first();
        let first = first.and_then(|first| self.names.component(text(&first.component)));
        if let Some(first) = first.map(|first| &self.document.components[first]) {
            if first.priority.get_ref() != priority.get_ref() {
                self.found(
                    Finding::new(
                        priority.span(),
                        format!("the tasks of `{scheduler}` have different priorities"),
                    )
                    .label(format!(
                        "must be {}, as that of the first",
                        first.priority.get_ref()
                    ))
                    .related(first.priority.span(), "the first")
                    .help("deadlines decide among them, so the kernel must not"),
                );
            }
        }
        if described.passive.as_ref().is_some_and(|p| *p.get_ref()) {
            self.found(
                Finding::new(place.clone(), format!("`{name}` is passive"))
                    .label("a task has time of its own")
                    .help("servers are not scheduled: they run on the time of the tasks that call"),
            );
        }
        let handler = [&described.fault_handler, &described.timeout_handler];
        for handler in handler.into_iter().flatten() {
            self.found(
                Finding::new(
                    handler.span(),
                    format!("faults and timeouts of `{name}` are its scheduler's"),
                )
                .label("must not be here")
                .related(place.clone(), "scheduled here")
                .help("its scheduler must know when it will not go on"),
            );
        }
        let core = edf.core.as_ref().map_or(0, |core| *core.get_ref());
        if i64::from(self.threads[component][0].time.core) != core {
            self.found(
                Finding::new(
                    place,
                    format!("`{name}` runs on another core than `{scheduler}`"),
                )
                .label(format!("its `core` must be {core}")),
            );
        }
    }

    /// Lets the scheduler know when a task's budget runs out, or when it has another fault.
    fn edf_handlers(
        &mut self,
        edf: &'a document::Edf,
        scheduler: usize,
        component: usize,
        index: usize,
    ) {
        let served = self.served[scheduler].first();
        let Some(&(endpoint, _)) = served else { return };
        let handler = Some(Handler {
            endpoint,
            badge: Sender::Fault(index).badge(),
        });
        let thread = &mut self.threads[component][0];
        thread.fault_handler = handler;
        match edf.mode.get_ref() {
            EdfMode::Preemptive => thread.timeout_handler = handler,
            EdfMode::Cooperative => {
                thread.time.budget_us = ENDLESS_US;
                thread.time.period_us = ENDLESS_US;
            }
        }
    }

    /// In preemptive mode, where it is known. A budget that is wrong by itself does not count.
    fn edf_demand(&mut self, edf: &'a document::Edf) {
        if *edf.mode.get_ref() != EdfMode::Preemptive {
            return;
        }
        let of = |task: &EdfTask| {
            let demanding = demand::Task {
                budget: task.budget.as_ref()?.get_ref().0,
                period: task.period.get_ref().0,
                deadline: deadline(task),
            };
            let in_order = demanding.budget <= demanding.deadline
                && demanding.deadline <= demanding.period
                && demanding.budget < demanding.period;
            (in_order && demanding.budget > 0).then_some(demanding)
        };
        let tasks: Vec<demand::Task> = edf.tasks.get_ref().iter().filter_map(of).collect();
        let share = |task: &demand::Task| task.budget as f64 / task.period as f64;
        let utilisation: f64 = tasks.iter().map(share).sum();
        if utilisation > 1.0 {
            self.found(
                Finding::new(
                    edf.tasks.span(),
                    format!(
                        "the tasks want {:.1} % of the processor",
                        utilisation * 100.0
                    ),
                )
                .label("their budgets, each by its period, must add up to less than 100 %")
                .help("the scheduler itself needs some of it too: see `sandglass experiment edf`"),
            );
        } else if let Some(overload) = demand::overload(&tasks) {
            self.edf_overload(edf, overload);
        }
    }

    /// Deadlines that cannot all be met. Tasks with offsets may never be released at once.
    fn edf_overload(&mut self, edf: &'a document::Edf, overload: demand::Overload) {
        let offset = |task: &EdfTask| task.offset.as_ref().map_or(0, |offset| offset.get_ref().0);
        let mut offsets = edf.tasks.get_ref().iter().map(offset);
        let first = offsets.next();
        if !offsets.all(|offset| Some(offset) == first) {
            return;
        }
        let demand::Overload { at, demand } = overload;
        self.found(
            Finding::new(
                edf.tasks.span(),
                format!("{demand} µs of budgets are due within {at} µs of a release of all tasks"),
            )
            .label("some deadline cannot be met")
            .help(
                "give the tasks later deadlines, smaller budgets, or offsets that keep them apart",
            ),
        );
    }
}

/// Deadline after the release, µs.
fn deadline(task: &EdfTask) -> u64 {
    let deadline = task.deadline.as_ref().unwrap_or(&task.period);
    deadline.get_ref().0
}

impl Checker<'_> {
    /// The table of a scheduler. Handlers of timeouts have given badges by now.
    fn edf_table(&self, edf: &document::Edf, scheduler: usize) -> Edf {
        let lower = |task: &EdfTask, component: usize| lowered::Task {
            name: text(&task.component).to_owned(),
            period_us: task.period.get_ref().0,
            deadline_us: deadline(task),
            offset_us: task.offset.as_ref().map_or(0, |offset| offset.get_ref().0),
            budget_us: task.budget.as_ref().map(|budget| budget.get_ref().0),
            timeout_badge: self.threads[component][0].time.badge,
            calls_servers: self.calls_servers(component, Some(text(&edf.name))),
        };
        let tasks = edf.tasks.get_ref().iter().filter_map(|task| {
            // One that is not there has been found to be missing.
            let component = self.names.component(text(&task.component))?;
            Some(lower(task, component))
        });
        Edf {
            core: self.threads[scheduler][0].time.core,
            late: edf.late,
            overrun: edf
                .overrun
                .as_ref()
                .map_or(Overrun::default(), |o| *o.get_ref()),
            tasks: tasks.collect(),
        }
    }
}
