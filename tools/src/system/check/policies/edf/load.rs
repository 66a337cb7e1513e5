//! What keeps the tasks of an `[[edf]]` from running: threads above them, and servers that work for
//! somebody else.

use std::collections::BTreeSet;

use sandglass_description::policy::timers;

use super::super::super::super::document::{self, PolicyName};
use super::super::super::super::findings::Finding;
use super::super::super::calls::{Request, Waits};
use super::super::super::names::ThreadIndex;
use super::super::super::{text, Checker};
use super::super::sharing::{highest_priority, is_proxy, proxied};
use super::admission::{Site, Trust};
use super::demand::{Load, Reservation};

/// What would make a finding right that trust can settle too.
const OR_TRUST: &str =
    "or, if its time is negligible, accept it: `trusted = [...]` in the `[[edf]]`";

impl<'a> Checker<'a> {
    /// The load without the tasks' own jobs. Finds what cannot be counted.
    pub(super) fn edf_load(
        &mut self,
        edf: &'a document::Edf,
        site: &Site,
        trust: &mut Trust<'a>,
    ) -> Load {
        let mut load = Load::default();
        self.threads_above(site, trust, &mut load);
        self.timer_service(site, &mut load);
        self.extensions_of_tasks(site, &mut load);
        let mut servers = BTreeSet::new();
        for &task in &site.tasks {
            servers.extend(self.servers_on_time_of(task));
        }
        self.unended_requests(edf, &servers, trust);
        let callers = site.tasks.iter().copied();
        let mut callers: BTreeSet<usize> = callers.chain(servers.iter().copied()).collect();
        for caller in self.callers_below(site) {
            let above = self.requests_below(site, caller, trust, &mut load);
            callers.extend(above.iter().copied());
            servers.extend(above);
        }
        self.waiting_requests(site, &callers, &servers, trust);
        self.requests_from_elsewhere(site, &servers, trust);
        self.raised_servers(site, trust);
        self.emergencies_above(site, trust);
        load
    }

    /// The threads that run before the tasks, or in turns with them.
    fn threads_above(&mut self, site: &Site, trust: &mut Trust<'a>, load: &mut Load) {
        let components = 0..self.threads.len();
        let threads: Vec<ThreadIndex> = components
            .flat_map(|component| self.active_threads(component))
            .filter(|&thread| self.is_here(site, thread) && !site.is_task(thread))
            .filter(|&thread| self.edf_thread_of(thread).priority >= site.priority)
            .collect();
        for thread in threads {
            if thread.thread == 0 {
                self.shares_of_proxy(thread.component, trust, load);
            }
            let time = self.edf_thread_of(thread).time;
            if time.budget_us < time.period_us {
                load.above.push(self.reservation(thread));
            } else if !self.is_of_the_system(thread) && !trust.covers(thread) {
                self.full_reservation(site, thread);
            }
        }
    }

    /// The timer service, which expires timers on time of its own.
    fn timer_service(&self, site: &Site, load: &mut Load) {
        let service = self.names.component(timers::SERVICE);
        let here = service.filter(|&service| self.threads[service][0].time.core == site.core);
        if let Some(reserve) = here.and_then(|_| self.timer_reserve()) {
            load.above.push(Reservation {
                budget: reserve.budget,
                period: reserve.period,
                once: 0,
            });
        }
    }

    /// A proxy works for each client as long as the client may run, in a period of the client's that begins when it is asked:
    /// so twice that in a row.
    fn shares_of_proxy(&mut self, proxy: usize, trust: &mut Trust<'a>, load: &mut Load) {
        let name = text(&self.document.components[proxy].name);
        for client in self.clients_of_proxy(name) {
            let thread = ThreadIndex {
                component: client,
                thread: 0,
            };
            let time = self.edf_thread_of(thread).time;
            if time.budget_us < time.period_us {
                load.above.push(Reservation {
                    budget: time.budget_us,
                    period: time.period_us,
                    once: time.budget_us,
                });
            } else if !trust.covers(thread) {
                self.full_share(name, thread);
            }
        }
    }

    fn full_share(&mut self, proxy: &str, client: ThreadIndex) {
        let path = self.path(client);
        let described = &self.document.components[client.component];
        self.found(
            Finding::new(
                described.name.span(),
                format!("`{proxy}` may work for `{path}` without limit, above the tasks"),
            )
            .label("its budget never runs out, and limits what the proxy does for it")
            .help(format!(
                "give it a budget below its period, or its resources a protocol without a proxy, {OR_TRUST}"
            )),
        );
    }

    /// A thread that a policy brings, or wants, and that is trusted to take little time: of a scheduler, a manager of
    /// modes, a proxy; the handler of a timeout policy.
    fn is_of_the_system(&self, thread: ThreadIndex) -> bool {
        let name = text(&self.document.components[thread.component].name);
        let modes = self.document.modes.as_ref();
        let mut schedulers = self.document.edf.iter();
        schedulers.any(|edf| text(&edf.name) == name)
            || modes.is_some_and(|modes| text(&modes.manager) == name)
            || is_proxy(self.document, name)
            || self.handles_timeouts(thread)
    }

    /// What tasks get beside the budgets of their jobs, a number of times.
    fn extensions_of_tasks(&self, site: &Site, load: &mut Load) {
        let tasks = site.tasks.iter().map(|&component| ThreadIndex {
            component,
            thread: 0,
        });
        load.above.extend(tasks.map(|task| {
            let time = self.edf_thread_of(task).time;
            Reservation {
                budget: 0,
                period: time.period_us,
                once: self.most_help(task).once(time.budget_us),
            }
        }));
    }

    /// What a thread with a budget may take.
    fn reservation(&self, thread: ThreadIndex) -> Reservation {
        let time = self.edf_thread_of(thread).time;
        let path = self.path(thread);
        let modes = self.document.modes.iter().flat_map(|modes| &modes.tasks);
        let own = modes.filter(|task| text(&task.component) == path);
        let budgets = own.filter_map(|task| task.budgets.as_ref());
        let budgets: Vec<u64> = budgets
            .flat_map(|budgets| budgets.get_ref())
            .map(|budget| budget.0)
            .collect();
        let most = budgets.iter().copied().fold(time.budget_us, u64::max);
        // Each time that the mode rises, the budget is filled anew; it falls when the processor idles.
        let rises = (budgets.len() as u64).saturating_sub(1);
        let help = self.most_help(thread);
        let budget = most.saturating_add(help.raise);
        // A job of another scheduler's task may run late, and the next right after it.
        let carried = match self.is_edf_task(thread) {
            true => budget,
            false => 0,
        };
        let once = budget.saturating_mul(rises).saturating_add(carried);
        Reservation {
            budget,
            period: time.period_us,
            once: once.saturating_add(help.once(most)),
        }
    }

    /// Whether a thread has the jobs of a task, of whichever scheduler.
    fn is_edf_task(&self, thread: ThreadIndex) -> bool {
        let name = text(&self.document.components[thread.component].name);
        let mut tasks = self.document.edf.iter().flat_map(|edf| edf.tasks.get_ref());
        thread.thread == 0 && tasks.any(|task| text(&task.component) == name)
    }

    fn full_reservation(&mut self, site: &Site, thread: ThreadIndex) {
        let component = &self.document.components[thread.component];
        let priority = match thread.thread.checked_sub(1) {
            None => &component.priority,
            Some(other) => &component.threads[other].priority,
        };
        let path = self.path(thread);
        self.found(
            Finding::new(
                priority.span(),
                format!("`{path}` may use all of the tasks' processor time"),
            )
            .label(format!("must be below {}, the tasks' priority", site.priority))
            .help(format!(
                "its budget is its period, so it never runs out: give it a budget below its period, {OR_TRUST}"
            )),
        );
    }

    /// A server that works for a task must not keep a request that there is no time left for: who calls it would wait
    /// for a period, and it would continue in the middle of another task's job.
    fn unended_requests(
        &mut self,
        edf: &'a document::Edf,
        servers: &BTreeSet<usize>,
        trust: &mut Trust<'a>,
    ) {
        let calls = self.calls();
        // Who waits for a proxy is found to do so.
        let by_proxy = |server: usize| {
            let mut calls = calls.iter().filter(|call| call.server == server);
            calls.any(|call| call.waits == Some(Waits::Proxy))
        };
        for &server in servers.iter().filter(|&&server| !by_proxy(server)) {
            let payers = self.payers_of(server).into_iter();
            let limited = |payer: &ThreadIndex| {
                let time = self.edf_thread_of(*payer).time;
                time.budget_us < time.period_us
            };
            let Some(payer) = payers.clone().find(limited) else {
                continue;
            };
            if self.ends_requests(server) || trust.covers_server(server) {
                continue;
            }
            let (path, described) = (self.path(payer), &self.document.components[server]);
            let name = text(&described.name);
            self.found(
                Finding::new(
                    described.name.span(),
                    format!(
                        "when the budget of `{path}` runs out in `{name}`, nothing ends the request"
                    ),
                )
                .label(format!("tasks of `{}` would wait for it", text(&edf.name)))
                .help(format!(
                    "give the server a `[[timeout-policy]]`; {OR_TRUST}"
                )),
            );
        }
    }

    /// The threads below the tasks, on their core, for which servers above them work.
    fn callers_below(&self, site: &Site) -> Vec<ThreadIndex> {
        let components = 0..self.threads.len();
        let threads = components.flat_map(|component| self.calling_threads(component));
        let below = threads.filter(|&thread| {
            self.is_here(site, thread) && self.edf_thread_of(thread).priority < site.priority
        });
        below
            .filter(|thread| {
                self.request_above(thread.component, site.priority)
                    .is_some()
            })
            .collect()
    }

    /// Counts what servers do for a thread below the tasks. Returns them.
    fn requests_below(
        &mut self,
        site: &Site,
        caller: ThreadIndex,
        trust: &mut Trust<'a>,
        load: &mut Load,
    ) -> BTreeSet<usize> {
        let servers = self.servers_on_time_of(caller.component);
        let time = self.edf_thread_of(caller).time;
        let runs_out = time.budget_us < time.period_us;
        let is_ended = servers.iter().all(|&server| self.ends_requests(server));
        if runs_out && !is_ended {
            // A server continues the request whenever there is budget again.
            load.above.push(self.reservation(caller));
            return servers;
        }
        let request = self.request_above(caller.component, site.priority);
        let budget = match runs_out {
            true => {
                let Reservation { budget, once, .. } = self.reservation(caller);
                Some(budget.saturating_add(once))
            }
            false => None,
        };
        let longest = match (request, budget) {
            (None, _) => 0,
            (Some(request), Some(budget)) => request.at_most(budget),
            (Some(Request::Longest(us)), None) => us,
            (Some(Request::Unknown), None) => {
                if !trust.covers(caller) {
                    self.endless_request(site, caller);
                }
                0
            }
        };
        let longest = longest.saturating_add(self.most_help(caller).emergency);
        load.below = load.below.max(longest);
        servers
    }

    fn endless_request(&mut self, site: &Site, caller: ThreadIndex) {
        let calls = self.calls().into_iter();
        let mut unknown = calls
            .filter(|call| call.client == caller.component && call.described.longest.is_none());
        let Some(call) = unknown.next() else { return };
        let (path, server) = (self.path(caller), &self.document.components[call.server]);
        self.found(
            Finding::new(
                call.described.component.span(),
                format!(
                    "how long `{}` works for one request of `{path}` is not known",
                    text(&server.name)
                ),
            )
            .label("needs `longest`")
            .related(server.priority.span(), "it works above the tasks")
            .help(format!(
                "no task runs meanwhile, and the budget of `{path}` never runs out: say what a request takes at most, \
                 `longest = \"...\"`; give it a budget below its period, and the server a priority below {} or a \
                 `[[timeout-policy]]`; {OR_TRUST}",
                site.priority
            )),
        );
    }

    /// A server that works for a task, or above the tasks for a thread below them, must not wait for anything except the
    /// processor; nor must a task. Who calls is one of `callers`, who works one of `servers`.
    fn waiting_requests(
        &mut self,
        site: &Site,
        callers: &BTreeSet<usize>,
        servers: &BTreeSet<usize>,
        trust: &mut Trust<'a>,
    ) {
        for call in self.calls() {
            let at_device = call.waits == Some(Waits::Device) && servers.contains(&call.server);
            let concerned = at_device || callers.contains(&call.client);
            let concerned = concerned && call.server != site.scheduler;
            let Some(waits) = call.waits.filter(|_| concerned) else {
                continue;
            };
            if trust.covers_server(call.server) {
                continue;
            }
            let client = text(&self.document.components[call.client].name);
            let server = text(&self.document.components[call.server].name);
            let why = match waits {
                Waits::Active => "the server runs on its own reservation and at its own priority",
                Waits::Proxy => "its protocol may serve other requests first",
                Waits::Device => "the server waits for its device",
            };
            self.found(
                Finding::new(
                    call.described.component.span(),
                    format!("how long `{client}` waits for `{server}` is not known"),
                )
                .label(why)
                .help(format!(
                    "make the server `passive` with a ceiling: `protocol = \"ceiling\"`, or an `[[endpoint]]`; \
                     {OR_TRUST}"
                )),
            );
        }
    }

    /// A server that works for the tasks' core must not be at work on another.
    fn requests_from_elsewhere(
        &mut self,
        site: &Site,
        servers: &BTreeSet<usize>,
        trust: &mut Trust<'a>,
    ) {
        for &server in servers {
            let mut payers = self.payers_of(server).into_iter();
            let Some(payer) = payers.find(|&payer| !self.is_here(site, payer)) else {
                continue;
            };
            if trust.covers_server(server) {
                continue;
            }
            let (path, described) = (self.path(payer), &self.document.components[server]);
            let core = self.edf_thread_of(payer).time.core;
            let name = text(&described.name);
            self.found(
                Finding::new(
                    described.name.span(),
                    format!("`{name}` also works for `{path}`, on core {core}"),
                )
                .label(format!(
                    "requests from core {} would wait for that",
                    site.core
                ))
                .help(format!("give each core a server of its own; {OR_TRUST}")),
            );
        }
    }

    /// A proxy may raise a server above the tasks while it works for a thread below them.
    fn raised_servers(&mut self, site: &Site, trust: &mut Trust<'a>) {
        let resources = &self.document.resources;
        let calls = self.calls();
        for resource in resources {
            let protocol = *resource.protocol.get_ref();
            let server = resource.server.as_ref();
            let server = server.and_then(|server| self.names.component(text(server)));
            let (Some(_), Some(server)) = (proxied(protocol), server) else {
                continue;
            };
            let same: Vec<&document::Resource> = resources
                .iter()
                .filter(|other| *other.protocol.get_ref() == protocol)
                .collect();
            let is_raised = highest_priority(self.document, &same) >= i64::from(site.priority);
            let by_proxy = calls
                .iter()
                .filter(|call| call.server == server && call.waits == Some(Waits::Proxy));
            let payers: Vec<ThreadIndex> = by_proxy
                .flat_map(|call| {
                    let own = self.calling_threads(call.client);
                    own.chain(self.payers_of(call.client))
                })
                .collect();
            let below = payers.into_iter().find(|&payer| {
                self.is_here(site, payer) && self.edf_thread_of(payer).priority < site.priority
            });
            let Some(below) = below.filter(|_| is_raised) else {
                continue;
            };
            if trust.covers_server(server) {
                continue;
            }
            let (path, name) = (self.path(below), &self.document.components[server].name);
            self.found(
                Finding::new(
                    resource.protocol.span(),
                    format!(
                        "how long `{}` works for `{path}` above the tasks is not known",
                        text(name)
                    ),
                )
                .label("it inherits the priority of waiting clients")
                .help(format!("choose `ceiling`, and state `longest`; {OR_TRUST}")),
            );
        }
    }

    /// Emergencies of others than tasks and threads below them: their number in a period is not known.
    fn emergencies_above(&mut self, site: &Site, trust: &mut Trust<'a>) {
        for policy in &self.document.timeout_policies {
            let server = self.names.component(text(&policy.server));
            let Some(server) = server.filter(|&server| {
                self.threads[server][0].time.core == site.core
                    && self.level_of(server) >= site.priority
            }) else {
                continue;
            };
            for client in &policy.clients {
                if *client.policy.get_ref() != PolicyName::Emergency {
                    continue;
                }
                let Some(thread) = self.thread_at(&client.component) else {
                    continue;
                };
                let is_below = self.is_here(site, thread)
                    && self.edf_thread_of(thread).priority < site.priority;
                if site.is_task(thread) || is_below || trust.covers(thread) {
                    continue;
                }
                let name = text(&self.document.components[server].name);
                self.found(
                    Finding::new(
                        client.policy.span(),
                        format!(
                            "how often `{name}` works for `{}` on its own time is not known",
                            text(&client.component)
                        ),
                    )
                    .label("tasks would wait meanwhile")
                    .help(format!(
                        "choose `extend`, `rollback` or `reset`; {OR_TRUST}"
                    )),
                );
            }
        }
    }

    /// Whether a thread's time is of the tasks' core.
    fn is_here(&self, site: &Site, thread: ThreadIndex) -> bool {
        self.edf_thread_of(thread).time.core == site.core
    }

    fn edf_thread_of(&self, thread: ThreadIndex) -> &sandglass_description::Thread {
        &self.threads[thread.component][thread.thread]
    }
}
