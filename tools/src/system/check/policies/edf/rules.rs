//! What a scheduler wants of its tasks.

use super::super::super::super::document::{self, EdfMode, EdfTask};
use super::super::super::super::findings::Finding;
use super::super::super::{text, Checker};
use super::{deadline, HPET, LONGEST_US, SERVICE};

impl<'a> Checker<'a> {
    /// What is said once for all tasks.
    pub(super) fn edf_keys(&mut self, edf: &'a document::Edf) {
        let is_unknown = |timer: &&document::Text| ![HPET, SERVICE].contains(&text(timer));
        if let Some(timer) = edf.timer.as_ref().filter(is_unknown) {
            self.found(
                Finding::new(timer.span(), format!("unknown timer `{}`", text(timer)))
                    .label("must be \"hpet\" or \"service\"")
                    .help("without `timer`, a scheduler has the HPET for itself if nobody else uses a timer"),
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
                    Finding::new(task.component.span(), format!("`{name}` is listed twice as a task"))
                        .label("the second")
                        .related(first.component.span(), "the first")
                        .help("a component has one period: split work with two periods into two components"),
                );
            }
        }
        if let (EdfMode::Cooperative, Some(overrun)) = (edf.mode.get_ref(), &edf.overrun) {
            self.found(
                Finding::new(
                    overrun.span(),
                    "overruns are not detected in cooperative mode",
                )
                .label("must not be here")
                .help("budgets are enforced by `mode = \"preemptive\"`"),
            );
        }
    }

    /// Period, deadline and budget of a task.
    pub(super) fn edf_times(&mut self, edf: &'a document::Edf, task: &'a EdfTask) {
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
        self.edf_longest(edf, task, deadline);
        match (edf.mode.get_ref(), &task.budget) {
            (EdfMode::Preemptive, None) => self.found(
                Finding::new(task.component.span(), format!("`{name}` has no budget"))
                    .label("in preemptive mode every task has one")
                    .help(
                        "state how long a job may run, `budget = \"...\"`, or end jobs by calls only: \
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
                            format!("a job of {us} µs cannot finish within {deadline} µs"),
                        )
                        .label(format!("must be at most the deadline, {deadline} µs")),
                    );
                }
            }
        }
    }

    /// The longest job of a cooperative task.
    fn edf_longest(&mut self, edf: &'a document::Edf, task: &'a EdfTask, deadline: u64) {
        let Some(longest) = &task.longest else { return };
        let us = longest.get_ref().0;
        if *edf.mode.get_ref() == EdfMode::Preemptive {
            self.found(
                Finding::new(
                    longest.span(),
                    "`longest` has no effect in preemptive mode, where the budget ends a job",
                )
                .label("must not be here")
                .help("use `budget`; `longest` of a request to a server belongs to the client of the endpoint"),
            );
        } else if us == 0 || us > deadline {
            self.found(
                Finding::new(longest.span(), format!("a job of {us} µs"))
                    .label(format!("must be from 1 µs to the deadline, {deadline} µs")),
            );
        }
    }

    /// Where a task stands beside its scheduler.
    pub(super) fn edf_thread(
        &mut self,
        edf: &'a document::Edf,
        task: &'a EdfTask,
        component: usize,
    ) {
        let described = &self.document.components[component];
        let (name, scheduler) = (text(&task.component), text(&edf.name));
        let place = task.component.span();
        let priority = &described.priority;
        if priority.get_ref() >= edf.priority.get_ref() {
            self.found(
                Finding::new(
                    priority.span(),
                    format!("`{name}` would delay its scheduler `{scheduler}`"),
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
                        "must be {}, as that of the first task",
                        first.priority.get_ref()
                    ))
                    .related(first.priority.span(), "the first")
                    .help(
                        "all tasks need the same priority: their deadlines decide which one runs",
                    ),
                );
            }
        }
        if described.passive.as_ref().is_some_and(|p| *p.get_ref()) {
            self.found(
                Finding::new(place.clone(), format!("`{name}` is passive"))
                    .label("a task needs a reservation of its own")
                    .help(
                        "servers cannot be tasks: they run on the time of the tasks that call them",
                    ),
            );
        }
        let core = edf.core.as_ref().map_or(0, |core| *core.get_ref());
        if i64::from(self.threads[component][0].time.core) != core {
            self.found(
                Finding::new(
                    place,
                    format!("`{name}` and `{scheduler}` are on different cores"),
                )
                .label(format!("its `core` must be {core}")),
            );
        }
    }
}
