//! `[modes]`: who gives way when a critical task needs more time.

use std::collections::HashMap;

use crate::system::spanned::Spanned;
use sandglass_abi::rights::Rights;
use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::policy::modes::{badge, Below, Modes, Task, SUSPENDED};
use sandglass_description::policy::Table;
use sandglass_description::{Grant, Object, Signal};

use super::super::super::document::{self, BelowPolicy};
use super::super::super::findings::{Finding, Span};
use super::super::super::quantity::Micros;
use super::super::names::ThreadIndex;
use super::super::{text, Checker};

/// Name of the manager's thread that waits for the processor to idle.
const IDLE: &str = "idle";

impl Checker<'_> {
    pub(super) fn modes(&mut self) {
        let document = self.document;
        let Some(modes) = &document.modes else {
            return;
        };
        let before = self.findings.len();
        let Some(manager) = self.find_component(&modes.manager) else {
            return;
        };
        let mut tasks: Vec<Task> = Vec::new();
        let mut threads = Vec::new();
        let mut seen: HashMap<ThreadIndex, Span> = HashMap::new();
        for described in &modes.tasks {
            let Some(thread) = self.find_thread(&described.component) else {
                continue;
            };
            let span = described.component.span();
            if let Some(first) = seen.insert(thread, span.clone()) {
                let name = text(&described.component);
                self.found(
                    Finding::new(span, format!("`{name}` is listed twice in `tasks`"))
                        .label("the second")
                        .related(first, "the first"),
                );
                continue;
            }
            tasks.extend(self.task(described, thread, manager));
            threads.push(thread);
        }
        self.managing_threads(&modes.manager, manager, &seen);
        if self.findings.len() > before {
            return;
        }
        let place = &modes.manager;
        let watch = Object::Notification(self.new_notification());
        self.give_once(manager, "modes.watch", watch, place);
        let idle = self.new_notification();
        self.give_idle(manager, idle, &place.span());
        for (number, thread) in threads.into_iter().enumerate() {
            let signal = Signal {
                notification: idle,
                badge: badge::END | badge::bit(number),
            };
            self.tell_of_end(thread, signal);
        }
        let own = ThreadIndex {
            component: manager,
            thread: 0,
        };
        let name = self.path(own);
        let tcb = Object::Tcb(self.id(own));
        self.give_once(manager, &format!("{name}.tcb"), tcb, place);
        let table = Modes {
            manager: name,
            levels: self.levels().into_iter().map(str::to_owned).collect(),
            tasks,
        };
        self.give_table(manager, Modes::NAME, &table, &place.span());
    }

    /// Gives the manager what its idle thread signals, and what its main thread is bound to.
    fn give_idle(&mut self, manager: usize, idle: u32, span: &Span) {
        let grant = Grant {
            name: "modes.idle".to_owned(),
            object: Object::Notification(idle),
            rights: Rights::ALL.raw(),
            badge: badge::IDLE,
            calls_only: false,
        };
        self.equipment[manager].add_grant(grant, span, &mut self.findings);
    }

    /// What the manager is told of a task, and what it gets of it.
    fn task(
        &mut self,
        described: &document::ModeTask,
        thread: ThreadIndex,
        manager: usize,
    ) -> Option<Task> {
        let before = self.findings.len();
        let name = text(&described.component);
        let span = described.component.span();
        let made = &self.threads[thread.component][thread.thread];
        let (time, priority, passive) = (made.time, made.priority, made.passive);
        if passive {
            self.found(
                Finding::new(span.clone(), format!("`{name}` has no time of its own"))
                    .label("a passive server runs at its own priority on its clients' time")
                    .help("list its clients instead"),
            );
        }
        let component = &self.document.components[thread.component];
        // One that is unknown has been found to be.
        let criticality = self.level(component.criticality.as_ref());
        let budgets_us = match criticality {
            Some(criticality) => self.budgets(described, component, criticality, &time),
            None => vec![time.budget_us],
        };
        let criticality = criticality.unwrap_or(0);
        let below = self.below(described, priority);
        let raises = budgets_us.len() > 1 && !self.scheduled_by_edf(described, thread);
        let fault_badge = self.goes_to_manager(described, thread, raises);
        if self.findings.len() > before {
            return None;
        }
        let (path, id) = (self.path(thread), self.id(thread));
        let place = &described.component;
        let hears = fault_badge != 0;
        let calls_servers = self.calls_servers(thread.component, None);
        if below != Below::Keep || hears && calls_servers {
            self.give_once(manager, &format!("{path}.tcb"), Object::Tcb(id), place);
        }
        if raises {
            let context = Object::SchedContext(id);
            self.give_once(manager, &format!("{path}.context"), context, place);
            let control = format!("sched-control.{}", time.core);
            self.give_once(manager, &control, Object::SchedControl(time.core), place);
        }
        Some(Task {
            name: path,
            criticality: criticality as u32,
            fault_badge,
            priority,
            below,
            budgets_us,
            period_us: time.period_us,
            core: time.core,
            extra_refills: time.extra_refills,
            sporadic: time.sporadic,
            badge: time.badge,
            calls_servers,
        })
    }

    /// The budgets of a task by mode, µs.
    fn budgets(
        &mut self,
        described: &document::ModeTask,
        component: &document::Component,
        criticality: usize,
        time: &sandglass_description::Time,
    ) -> Vec<u64> {
        let Some(given) = &described.budgets else {
            return vec![time.budget_us];
        };
        let span = given.span();
        let budgets: Vec<u64> = given.get_ref().iter().map(|budget| budget.0).collect();
        if budgets.len() > criticality + 1 {
            self.too_many_budgets(given, component, criticality);
            return budgets;
        }
        let mut refuse = |what: String, label: String| {
            self.found(Finding::new(span.clone(), what).label(label));
        };
        if budgets.is_empty() {
            refuse(
                "no budget for any mode".to_owned(),
                "give one for each mode up to the task's criticality, from the lowest; the last one also applies above"
                    .to_owned(),
            );
        } else if budgets[0] != time.budget_us {
            refuse(
                format!(
                    "the first budget, {} µs, differs from the task's",
                    budgets[0]
                ),
                format!("the task starts with `budget`, {} µs", time.budget_us),
            );
        } else if !budgets.is_sorted() {
            refuse(
                "a budget is below that of a lower mode".to_owned(),
                "a task's budgets must not decrease with the mode".to_owned(),
            );
        } else if budgets
            .iter()
            .any(|budget| !(MIN_BUDGET_US..=time.period_us).contains(budget))
        {
            refuse(
                "a budget is out of range".to_owned(),
                format!(
                    "must be from {MIN_BUDGET_US} µs to the period, {} µs",
                    time.period_us
                ),
            );
        }
        budgets
    }

    /// A task has a budget for each mode up to its criticality.
    fn too_many_budgets(
        &mut self,
        given: &Spanned<Vec<Micros>>,
        component: &document::Component,
        criticality: usize,
    ) {
        let levels = self.levels();
        let (name, count) = (text(&component.name), given.get_ref().len());
        let modes = match criticality {
            0 => "1 mode".to_owned(),
            _ => format!("{} modes", criticality + 1),
        };
        let finding = Finding::new(
            given.span(),
            format!("`{name}` has {count} budgets for {modes}"),
        )
        .label("give one for each mode up to the task's criticality, from the lowest; the last one also applies above")
        .help(match levels.get(count - 1) {
            Some(needed) => format!(
                "give `{name}` the criticality for which it has the last: `criticality = \"{needed}\"`"
            ),
            None => format!(
                "the system has {} modes: {}; `criticalities = [...]` sets them",
                levels.len(),
                levels.join(", ")
            ),
        });
        let (place, whose) = match &component.criticality {
            Some(criticality) => (criticality.span(), "its criticality".to_owned()),
            None => {
                let lowest = levels.first().copied().unwrap_or_default();
                (
                    component.name.span(),
                    format!("without one it is `{lowest}`"),
                )
            }
        };
        self.found(finding.related(place, whose));
    }

    /// Whether a task that has budgets is scheduled by an `[[edf]]`, which is wrong.
    fn scheduled_by_edf(&mut self, described: &document::ModeTask, thread: ThreadIndex) -> bool {
        let document = self.document;
        let name = text(&document.components[thread.component].name);
        let mut tasks = document.edf.iter().flat_map(|edf| edf.tasks.get_ref());
        let task = tasks.find(|task| thread.thread == 0 && text(&task.component) == name);
        let (Some(task), Some(budgets)) = (task, &described.budgets) else {
            return false;
        };
        self.found(
            Finding::new(
                budgets.span(),
                format!("the reservation of `{name}` is set by its EDF scheduler in all modes"),
            )
            .label("must not be here")
            .related(task.component.span(), "scheduled here")
            .help(
                "leave `budgets` out: a task of an `[[edf]]` can give way (`below`), and others \
                 raise the mode",
            ),
        );
        true
    }

    fn below(&mut self, described: &document::ModeTask, priority: u8) -> Below {
        let name = text(&described.component);
        match (described.below, &described.priority) {
            (BelowPolicy::Demote, None) => {
                self.found(
                    Finding::new(
                        described.component.span(),
                        format!("`{name}` has no demoted priority"),
                    )
                    .label("needs `priority`")
                    .help("a priority below its own, and above the idle thread's"),
                );
                Below::Keep
            }
            (BelowPolicy::Demote, Some(demoted)) => {
                let most = i64::from(priority) - 1;
                let least = i64::from(SUSPENDED) + 2;
                let to = self.in_range("demoted priority", Some(demoted), least..=most, least);
                Below::Demote(to as u8)
            }
            (other, given) => {
                if let Some(given) = given {
                    self.found(
                        Finding::new(given.span(), "only `below = \"demote\"` has a priority")
                            .label("has no effect here"),
                    );
                }
                match other {
                    BelowPolicy::Suspend => Below::Suspend,
                    _ => Below::Keep,
                }
            }
        }
    }

    /// The badge under which the timeouts of a task arrive at the manager; 0 if they do not, which
    /// is wrong for tasks that can raise the mode.
    fn goes_to_manager(
        &mut self,
        described: &document::ModeTask,
        thread: ThreadIndex,
        raises: bool,
    ) -> u64 {
        let component = &self.document.components[thread.component];
        let handler = match thread.thread.checked_sub(1) {
            None => component.timeout_handler.as_ref(),
            Some(index) => component.threads[index].timeout_handler.as_ref(),
        };
        let manager = self
            .document
            .modes
            .as_ref()
            .map(|modes| text(&modes.manager));
        if handler.map(text) == manager && manager.is_some() {
            return self.badge_of(thread);
        }
        if raises {
            let name = text(&described.component);
            self.found(
                Finding::new(
                    described.component.span(),
                    format!("the manager is not told when the budget of `{name}` runs out"),
                )
                .label("so it never raises the mode")
                .help(format!(
                    "send its timeouts to the manager: `timeout-handler = \"{}\"`",
                    manager.unwrap_or("")
                )),
            );
        }
        0
    }

    /// The manager above its tasks, and its idle thread below everybody.
    fn managing_threads(
        &mut self,
        place: &document::Text,
        manager: usize,
        tasks: &HashMap<ThreadIndex, Span>,
    ) {
        let priority_of =
            |thread: &ThreadIndex| self.threads[thread.component][thread.thread].priority;
        let highest = tasks.keys().map(priority_of).max().unwrap_or(0);
        let main = &self.threads[manager][0];
        let (priority, mcp, signals) = (main.priority, main.mcp, main.ready.is_some());
        let name = text(place);
        let mut findings = Vec::new();
        if main.passive || !signals {
            findings.push(
                Finding::new(
                    place.span(),
                    format!(
                        "`{name}` needs a reservation of its own, and must signal when it is ready"
                    ),
                )
                .label("give it `budget`, `period`, `ready = true`"),
            );
        }
        if priority <= highest {
            findings.push(
                Finding::new(
                    place.span(),
                    format!("the priority of `{name}`, {priority}, is too low"),
                )
                .label(format!("must be above its tasks': above {highest}")),
            );
        }
        if mcp < highest {
            findings.push(
                Finding::new(
                    place.span(),
                    format!("`{name}` cannot restore its tasks' priorities"),
                )
                .label(format!("give it `mcp = {highest}`")),
            );
        }
        let threads = &self.document.components[manager].threads;
        let idle = threads.iter().position(|thread| text(&thread.name) == IDLE);
        let others = self.threads.iter().enumerate().flat_map(|(component, of)| {
            let threads = of.iter().enumerate();
            threads.map(move |(thread, made)| (ThreadIndex { component, thread }, made.priority))
        });
        match idle {
            None => findings.push(
                Finding::new(place.span(), format!("`{name}` has no thread `{IDLE}`"))
                    .label("so the mode never falls")
                    .help(format!(
                        "add a `[[component.thread]]` with `name = \"{IDLE}\"`, `priority = 1`, a \
                         budget and a period"
                    )),
            ),
            Some(index) => {
                let idle = ThreadIndex {
                    component: manager,
                    thread: index + 1,
                };
                let lowest = others
                    .filter(|(thread, _)| *thread != idle)
                    .map(|(_, priority)| priority)
                    .min()
                    .unwrap_or(u8::MAX);
                let own = priority_of(&idle);
                if own == SUSPENDED || own >= lowest {
                    findings.push(
                        Finding::new(
                            threads[index].priority.span(),
                            format!("the idle thread has priority {own}"),
                        )
                        .label(format!(
                            "must be above {SUSPENDED}, where suspended tasks are, and below all \
                             others', of which the lowest is {lowest}"
                        )),
                    );
                }
            }
        }
        findings.into_iter().for_each(|finding| self.found(finding));
    }
}
