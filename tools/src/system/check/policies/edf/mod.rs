//! `[[edf]]`: tasks that a scheduler at user level runs by their deadlines (`user/policies/edf`).
//!
//! The table stands for a component, the scheduler, with an endpoint that its tasks call and a timer
//! ([`expand`]); and it says on what time the tasks run, which is therefore not said at theirs.
//!
//! - [`expand`] adds the scheduler to the description;
//! - [`rules`] are what a scheduler wants of its tasks, [`servers`] of the servers that they call;
//! - [`admission`] finds deadlines that cannot be met: [`load`] is what keeps tasks from running, as far as
//!   [`super::super::calls`] tells which server works for whom, and [`demand`] the criterion.

mod admission;
mod demand;
mod expand;
mod load;
mod rules;
mod servers;

use sandglass_description::policy::edf::{self as lowered, names, Edf, Overrun, Sender};
use sandglass_description::policy::Table;
use sandglass_description::{Handler, Object};

use super::super::super::document::{self, EdfMode, EdfTask};
use super::super::{text, Checker};

pub use expand::expand;

/// Where a scheduler's time comes from: the device, or the timer service.
const HPET: &str = "hpet";
const SERVICE: &str = "service";
/// Longest period, µs: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Slice of a task whose budget is not enforced, µs: 24 days, which a kernel whose clock has 1 GHz counts on every
/// architecture. At its end the kernel would once put the task behind the others of its priority.
const ENDLESS_US: u64 = 24 * 24 * LONGEST_US;

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
            self.edf_servers(edf);
            self.edf_admission(edf);
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
            late: edf.late.into(),
            overrun: edf
                .overrun
                .as_ref()
                .map_or(Overrun::default(), |o| (*o.get_ref()).into()),
            tasks: tasks.collect(),
        }
    }
}
