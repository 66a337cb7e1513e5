//! Admission: whether the deadlines of an `[[edf]]` can be met, as far as its description tells, and what is said when
//! they cannot, or when it does not tell.
//!
//! What cannot be decided is not admitted: the description then says so itself, by `trusted` (for a thread or a server
//! whose time is not counted) or by `admission = "none"`.

use std::collections::BTreeSet;

use super::super::super::super::document::{self, Admission, EdfMode, EdfTask, Text};
use super::super::super::super::findings::Finding;
use super::super::super::names::ThreadIndex;
use super::super::super::{text, Checker};
use super::demand::{self, Overload, Verdict};
use super::{deadline, LONGEST_US};

/// Where the tasks of an `[[edf]]` run.
pub(super) struct Site {
    pub core: u32,
    /// Of all tasks.
    pub priority: u8,
    /// Components.
    pub tasks: Vec<usize>,
    pub scheduler: usize,
}

impl Site {
    /// Whether a thread is the one that has the jobs of a task.
    pub fn is_task(&self, thread: ThreadIndex) -> bool {
        thread.thread == 0 && self.tasks.contains(&thread.component)
    }
}

/// The threads whose time is described not to be counted.
pub(super) struct Trust<'a> {
    given: Vec<(ThreadIndex, &'a Text)>,
    used: BTreeSet<ThreadIndex>,
}

impl Trust<'_> {
    /// Whether a thread is trusted. To be asked only where that is needed.
    pub fn covers(&mut self, thread: ThreadIndex) -> bool {
        let is_given = self.given.iter().any(|(given, _)| *given == thread);
        if is_given {
            self.used.insert(thread);
        }
        is_given
    }

    /// As [`Self::covers`], of a server.
    pub fn covers_server(&mut self, component: usize) -> bool {
        self.covers(ThreadIndex {
            component,
            thread: 0,
        })
    }
}

impl<'a> Checker<'a> {
    /// Finds deadlines that cannot all be met, or of which that is not known. Is asked of a description in which nothing
    /// else is wrong.
    pub(super) fn edf_admission(&mut self, edf: &'a document::Edf) {
        if !self.findings.is_empty() {
            return;
        }
        let mut trust = self.edf_trust(edf);
        if edf.admission == Admission::None {
            if let Some((_, first)) = trust.given.first() {
                self.found(
                    Finding::new(
                        first.span(),
                        "no time is counted with `admission = \"none\"`",
                    )
                    .label("so `trusted` has no effect")
                    .help("leave `trusted` out, or `admission`"),
                );
            }
            return;
        }
        let Some(site) = self.edf_site(edf) else {
            return;
        };
        let load = demand::Load {
            tasks: self.edf_tasks(edf, &site),
            ..self.edf_load(edf, &site, &mut trust)
        };
        match load.analyse() {
            Verdict::InTime => {}
            Verdict::TooMuch { share } => self.edf_excess(edf, share),
            Verdict::Overload(overload) => self.edf_overload(edf, overload),
            Verdict::Undecided => self.edf_undecided(edf),
        }
        for (thread, name) in &trust.given {
            if !trust.used.contains(thread) {
                let message = format!("`{}` does not need to be trusted", text(name));
                self.found(
                    Finding::new(name.span(), message)
                        .label("its time is already counted, or does not affect these tasks")
                        .help("remove it from `trusted`"),
                );
            }
        }
    }

    fn edf_trust(&mut self, edf: &'a document::Edf) -> Trust<'a> {
        let mut given: Vec<(ThreadIndex, &'a Text)> = Vec::new();
        for name in &edf.trusted {
            let Some(thread) = self.find_thread(name) else {
                continue;
            };
            match given.iter().find(|(other, _)| *other == thread) {
                Some((_, first)) => self.found(
                    Finding::new(name.span(), format!("`{}` is trusted twice", text(name)))
                        .label("the second")
                        .related(first.span(), "the first"),
                ),
                None => given.push((thread, name)),
            }
        }
        Trust {
            given,
            used: BTreeSet::new(),
        }
    }

    /// `None` if there is no task, which was found wrong.
    fn edf_site(&self, edf: &document::Edf) -> Option<Site> {
        let tasks = edf.tasks.get_ref().iter();
        let tasks: Vec<usize> = tasks
            .filter_map(|task| self.names.component(text(&task.component)))
            .collect();
        let scheduler = self.names.component(text(&edf.name))?;
        Some(Site {
            core: self.threads[scheduler][0].time.core,
            priority: self.threads[*tasks.first()?][0].priority,
            tasks,
            scheduler,
        })
    }

    /// What the jobs want. A task that is wrong by itself does not count.
    fn edf_tasks(&mut self, edf: &'a document::Edf, site: &Site) -> Vec<demand::Task> {
        let tasks = edf.tasks.get_ref().iter();
        tasks
            .filter_map(|task| {
                let component = self.names.component(text(&task.component))?;
                let longest = match edf.mode.get_ref() {
                    EdfMode::Preemptive => task.budget.as_ref()?.get_ref().0,
                    EdfMode::Cooperative => self.longest_job(task)?,
                };
                let (period, deadline) = (task.period.get_ref().0, deadline(task));
                let in_order = (1..=deadline).contains(&longest)
                    && deadline <= period
                    && period <= LONGEST_US
                    && (longest < period || *edf.mode.get_ref() == EdfMode::Cooperative);
                if !in_order {
                    return None;
                }
                let thread = ThreadIndex {
                    component,
                    thread: 0,
                };
                let budget = longest.saturating_add(self.most_help(thread).emergency);
                let request = self.request_above(component, site.priority);
                Some(demand::Task {
                    budget,
                    period,
                    deadline,
                    offset: task.offset.as_ref().map_or(0, |offset| offset.get_ref().0),
                    request: request.map_or(0, |request| request.at_most(budget)),
                })
            })
            .collect()
    }

    /// The longest job of a cooperative task, µs, which must be described.
    fn longest_job(&mut self, task: &'a EdfTask) -> Option<u64> {
        if task.longest.is_none() {
            let name = text(&task.component);
            self.found(
                Finding::new(
                    task.component.span(),
                    format!("the length of a job of `{name}` is not known"),
                )
                .label("needs `longest`, because no budget ends its jobs")
                .help(
                    "state the longest time of a job, `longest = \"...\"`, or that no deadline is promised: \
                     `admission = \"none\"` in the `[[edf]]`",
                ),
            );
        }
        task.longest.as_ref().map(|longest| longest.get_ref().0)
    }

    /// More than the processor has, in millionths of it.
    fn edf_excess(&mut self, edf: &'a document::Edf, share: u64) {
        let (percent, tenth) = (share / 10_000, share / 1_000 % 10);
        self.found(
            Finding::new(
                edf.tasks.span(),
                format!(
                    "the tasks and the reservations above them need {percent}.{tenth} % of the processor"
                ),
            )
            .label("their budgets, each by its period, must add up to less than 100 %")
            .help("the scheduler itself needs some time too: see `sandglass experiment edf`"),
        );
    }

    /// Deadlines that cannot all be met.
    fn edf_overload(&mut self, edf: &'a document::Edf, overload: Overload) {
        let Overload {
            within,
            jobs,
            above,
            blocking,
        } = overload;
        let offsets = edf.tasks.get_ref().iter();
        let mut offsets = offsets.filter_map(|task| task.offset.as_ref());
        let release = match offsets.any(|offset| offset.get_ref().0 > 0) {
            true => "a release",
            false => "a release of all tasks",
        };
        self.found(
            Finding::new(
                edf.tasks.span(),
                format!(
                    "{} µs are wanted within {within} µs of {release}: {jobs} by jobs that are due, {above} above \
                     them, {blocking} by a request to a server",
                    overload.demand()
                ),
            )
            .label("some deadline cannot be met")
            .help(
                "give the tasks later deadlines, smaller budgets, or offsets that keep them apart; threads above them \
                 smaller budgets; requests to servers a `longest`",
            ),
        );
    }

    fn edf_undecided(&mut self, edf: &'a document::Edf) {
        self.found(
            Finding::new(
                edf.tasks.span(),
                "the admission test found no result in a million steps",
            )
            .label("the budgets use nearly all of the processor, or the offsets rarely repeat")
            .help("make a budget smaller, or periods that are multiples of each other"),
        );
    }
}
