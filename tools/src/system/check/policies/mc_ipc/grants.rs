//! What the component of a gate gets: its table, power over its clients' time, and what its threads talk by.

use sandglass_abi::rights::Rights;
use sandglass_description::policy::mc_ipc::{
    names, threads, Client, Gate, Kind, Protocol, Slot, Slots,
};
use sandglass_description::policy::partitions::granule;
use sandglass_description::policy::Table;
use sandglass_description::{Grant, Handler, Object, Signal, ThreadId};
use sandglass_mc_ipc::driver::{Sender, Signals};
use sandglass_mc_ipc::ClientId;

use super::super::super::super::document::{ClientKind, Resource};
use super::super::super::super::findings::{Finding, Span};
use super::super::super::names::ThreadIndex;
use super::super::super::{text, Checker};
use super::budgets::{is_first, PROCESSORS};
use super::{gated, kind, requests, Member};
use crate::trace::check::gates;

/// A client that waits lets the server stand still for this part of the longest operation before it pays: little against what
/// it waits for others, and long against what a look at the server takes.
const POLL_PART: u64 = 32;
/// Shortest and longest time between two looks, µs.
const SHORTEST_POLL_US: u64 = 50;
const LONGEST_POLL_US: u64 = 1_000;

impl<'a> Checker<'a> {
    /// Gives the server of a gate in which nothing is wrong what it works with.
    pub(super) fn equip_gate(&mut self, gate: &'a Resource, members: &[Member<'a>]) {
        let server = gate.server.as_ref();
        let Some(server) = server.and_then(|name| self.names.component(text(name))) else {
            return;
        };
        if self.served[server].len() > 1 {
            // It serves two, as has been found.
            return;
        }
        let mut served = self.served[server].iter();
        let Some(&(endpoint, _)) = served.find(|(_, name)| *name == text(&gate.name)) else {
            return;
        };
        let Some(table) = self.gate_table(gate, server, members) else {
            return;
        };
        let span = gate.name.span();
        let place = Place {
            server,
            endpoint,
            span: span.clone(),
        };
        let highest = members.iter().map(|member| member.priority).max();
        let main = &mut self.threads[server][0];
        // The server works at the priority above that of whoever pays.
        main.mcp = main.mcp.max(highest.unwrap_or(0).saturating_add(1));
        self.give_clients(&place, members);
        self.give_spinners(&place, members.len());
        let replies = (0..table.replies()).map(|_| Object::Reply(self.new_endpoint()));
        let replies: Vec<Object> = replies.collect();
        self.give_all(&place, names::REPLIES, replies.into_iter().map(all_rights));
        let signals = self.give_server_thread(&place);
        self.tell_of_clients(&place, members, signals);
        self.give_supervisors(&place, gate, members);
        for slots in &table.tables {
            self.give_table_thread(&place, signals, slots.core);
        }
        for (number, member) in members.iter().enumerate() {
            if kind(member.described) == ClientKind::TableDriven {
                self.give_slot(&place, gate, number, member);
            }
        }
        self.give_table(server, Gate::NAME, &table, &span);
        let plan = self.gate_plan(gate, server, &table, members);
        self.gates.push(plan);
    }

    fn gate_table(
        &mut self,
        gate: &Resource,
        server: usize,
        members: &[Member<'_>],
    ) -> Option<Gate> {
        let length = gate.length.as_ref()?;
        let longest_us = self.at_level(length.get_ref(), None)?.0;
        let clients = members
            .iter()
            .map(|member| self.lower_client(gate, member))
            .collect();
        self.badges_differ(members);
        Some(Gate {
            name: text(&gate.name).to_owned(),
            protocol: gated(*gate.protocol.get_ref())?,
            core: self.threads[server][0].time.core,
            longest_us,
            clusters: self.clusters_at(gate, members, None) as u32,
            poll_us: (longest_us / POLL_PART).clamp(SHORTEST_POLL_US, LONGEST_POLL_US),
            clients,
            tables: tables(gate, members),
        })
    }

    /// How many requests a client makes, and in which time, µs. One without budget has no time that would do for them.
    fn allowance(&self, gate: &Resource, member: &Member<'_>) -> (u64, u64) {
        let asked = requests(member.described);
        let period_us = self.threads[member.index][0].time.period_us;
        match (kind(member.described), &member.described.slots, &gate.cycle) {
            (ClientKind::TableDriven, Some(slots), Some(cycle)) => {
                let jobs = slots.get_ref().len() as u64;
                (asked.saturating_mul(jobs), cycle.get_ref().0)
            }
            _ => (asked, period_us),
        }
    }

    fn lower_client(&mut self, gate: &Resource, member: &Member<'_>) -> Client {
        let (requests, every_us) = self.allowance(gate, member);
        let badge = self.badge_of_time(ThreadIndex {
            component: member.index,
            thread: 0,
        });
        let time = self.threads[member.index][0].time;
        Client {
            name: member.name().to_owned(),
            core: member.core,
            priority: member.priority,
            badge,
            requests,
            every_us,
            kind: match kind(member.described) {
                ClientKind::Sporadic => Kind::Sporadic {
                    budget_us: time.budget_us,
                    period_us: time.period_us,
                },
                ClientKind::TableDriven => Kind::TableDriven,
                ClientKind::BestEffort => Kind::BestEffort,
            },
        }
    }

    /// What a trace is to show.
    fn gate_plan(
        &self,
        gate: &Resource,
        server: usize,
        table: &Gate,
        members: &[Member<'_>],
    ) -> gates::Plan {
        let name = text(&self.document.components[server].name);
        let cores = table.clients.iter().map(|client| client.core + 1).max();
        let clients = members.iter().map(|member| gates::Client {
            name: member.name().to_owned(),
            cluster: member.core as usize,
            is_first: is_first(member, members),
            assumed: member
                .is_real_time()
                .then(|| self.assumed(gate, members, member)),
        });
        gates::Plan {
            resource: table.name.clone(),
            gate: name.to_owned(),
            server: format!("{name}/{}", threads::SERVER),
            protocol: match table.protocol {
                Protocol::McIpc => gates::Protocol::McIpc,
                Protocol::Fifo => gates::Protocol::Fifo,
                Protocol::Priority => gates::Protocol::Priority,
            },
            clusters: vec![PROCESSORS as usize; cores.unwrap_or(0) as usize],
            longest_us: table.longest_us,
            clients: clients.collect(),
        }
    }

    /// By the badge of its time, a gate knows whose has run out.
    fn badges_differ(&mut self, members: &[Member<'_>]) {
        let badge = |member: &Member<'_>| self.threads[member.index][0].time.badge;
        let same = members.iter().enumerate().find_map(|(number, member)| {
            let mut earlier = members[..number].iter();
            let first = earlier.find(|first| badge(first) == badge(member))?;
            let place = member.component.timeout_badge.as_ref()?.span();
            Some((place, first.component.name.span(), badge(member)))
        });
        if let Some((place, first, badge)) = same {
            self.found(
                Finding::new(
                    place,
                    format!("two clients of a gate have the timeout badge {badge}"),
                )
                .label("the gate could not tell whose time has run out")
                .related(first, "the other")
                .help("give them different ones, or none: the builder chooses"),
            );
        }
    }

    /// Threads and contexts of clients, which the gate moves.
    fn give_clients(&mut self, place: &Place, members: &[Member<'_>]) {
        let main = |member: &Member<'_>| ThreadId {
            component: self.position[member.index],
            thread: 0,
        };
        let mains: Vec<ThreadId> = members.iter().map(main).collect();
        let tcbs = mains.iter().map(|main| all_rights(Object::Tcb(*main)));
        self.give_all(place, names::CLIENT_TCBS, tcbs);
        let contexts = mains.iter();
        let contexts = contexts.map(|main| all_rights(Object::SchedContext(*main)));
        self.give_all(place, names::CLIENT_CONTEXTS, contexts);
    }

    /// Spinners call the gate, and the gate hears when their time runs out.
    fn give_spinners(&mut self, place: &Place, count: usize) {
        let numbers = || (0..count).map(ClientId);
        let spinners = numbers().filter_map(|client| self.own(place, &threads::spinner(client.0)));
        let spinners: Vec<(usize, ThreadId)> = spinners.collect();
        let tcbs = spinners.iter().map(|(_, id)| all_rights(Object::Tcb(*id)));
        self.give_all(place, names::SPINNER_TCBS, tcbs);
        let gates = numbers().map(|client| calls(place.endpoint, Sender::Spinner(client)));
        self.give_all(place, names::SPINNER_GATES, gates);
        let starts = numbers().map(|_| all_rights(Object::Notification(self.new_notification())));
        let starts: Vec<Grant> = starts.collect();
        self.give_all(place, names::SPINNER_STARTS, starts);
        for (client, (thread, _)) in numbers().zip(spinners) {
            let badge = Sender::SpinnerTimeout(client).badge();
            self.hears_timeouts(place, thread, badge);
        }
    }

    /// The thread that performs operations. Returns the gate's notification.
    fn give_server_thread(&mut self, place: &Place) -> u32 {
        let wake = Object::Notification(self.new_notification());
        self.give_all(place, names::SERVER_WAKE, [all_rights(wake)]);
        let signals = self.new_notification();
        let all = all_rights(Object::Notification(signals));
        self.give_all(place, names::SIGNALS, [all]);
        self.give_all(place, names::DONE, [signal(signals, Signals::server())]);
        if let Some((thread, id)) = self.own(place, threads::SERVER) {
            self.give_all(place, names::SERVER_TCB, [all_rights(Object::Tcb(id))]);
            self.hears_timeouts(place, thread, Sender::ServerTimeout.badge());
            self.threads[place.server][thread].fault_handler = Some(Handler {
                endpoint: place.endpoint,
                badge: Sender::ServerFault.badge(),
            });
        }
        let own = ThreadId {
            component: self.position[place.server],
            thread: 0,
        };
        self.give_all(place, names::GATE_TCB, [all_rights(Object::Tcb(own))]);
        signals
    }

    /// Lets the launcher tell when clients are gone: first which ones, and then that there are some.
    fn tell_of_clients(&mut self, place: &Place, members: &[Member<'_>], signals: u32) {
        let mut ends = Vec::new();
        for some in members.chunks(Gate::ENDS_EACH) {
            let end = self.new_notification();
            ends.push(all_rights(Object::Notification(end)));
            for (bit, member) in some.iter().enumerate() {
                let main = ThreadIndex {
                    component: member.index,
                    thread: 0,
                };
                for (notification, badge) in [(end, 1 << bit), (signals, Signals::ends())] {
                    let signal = Signal {
                        notification,
                        badge,
                    };
                    self.tell_of_end(main, signal);
                }
            }
        }
        self.give_all(place, names::ENDS, ends);
    }

    /// The context of a table thread, by which it waits for the edges of slots, and what it signals then.
    fn give_table_thread(&mut self, place: &Place, signals: u32, core: u32) {
        let tick = signal(signals, Signals::tick(core as usize));
        self.give_all(place, &names::table_tick(core), [tick]);
        if let Some((_, id)) = self.own(place, &threads::table(core)) {
            let context = all_rights(Object::SchedContext(id));
            self.give_all(place, &names::table_context(core), [context]);
        }
    }

    /// What a client with slots waits for, until the next one begins.
    fn give_slot(&mut self, place: &Place, gate: &Resource, number: usize, member: &Member<'_>) {
        let slot = Object::Notification(self.new_notification());
        self.give_all(place, &names::slot(number), [all_rights(slot)]);
        let wait = Grant {
            name: names::own_slot(text(&gate.name)),
            rights: Rights::READ.raw(),
            ..all_rights(slot)
        };
        let span = member.described.component.span();
        self.equipment[member.index].add_grant(wait, &span, &mut self.findings);
    }

    /// Lets whoever controls a client tell that it is gone.
    fn give_supervisors(&mut self, place: &Place, gate: &'a Resource, members: &[Member<'a>]) {
        for (number, member) in members.iter().enumerate() {
            let name = names::supervised(member.name(), text(&gate.name));
            for (index, component) in self.document.components.iter().enumerate() {
                let mut controls = component.controls.iter();
                let Some(path) = controls.find(|path| text(path) == member.name()) else {
                    continue;
                };
                let tells = Grant {
                    name: name.clone(),
                    ..calls(place.endpoint, Sender::Supervisor(ClientId(number)))
                };
                self.equipment[index].add_grant(tells, &path.span(), &mut self.findings);
            }
        }
    }

    /// Gives capabilities under the name of the first.
    fn give_all(&mut self, place: &Place, name: &str, grants: impl IntoIterator<Item = Grant>) {
        let grants = grants.into_iter();
        self.equipment[place.server].add_all(name, grants, &place.span, &mut self.findings);
    }

    /// Lets the gate handle the timeouts of one of its threads.
    fn hears_timeouts(&mut self, place: &Place, thread: usize, badge: u64) {
        self.threads[place.server][thread].timeout_handler = Some(Handler {
            endpoint: place.endpoint,
            badge,
        });
    }

    /// A thread that was added to the gate's component.
    fn own(&self, place: &Place, name: &str) -> Option<(usize, ThreadId)> {
        let threads = &self.document.components[place.server].threads;
        let thread = 1 + threads
            .iter()
            .position(|thread| text(&thread.name) == name)?;
        let id = ThreadId {
            component: self.position[place.server],
            thread: thread as u32,
        };
        Some((thread, id))
    }
}

/// A gate's component and endpoint, and what is to be blamed.
struct Place {
    server: usize,
    endpoint: u32,
    span: Span,
}

fn all_rights(object: Object) -> Grant {
    Grant {
        name: String::new(),
        object,
        rights: Rights::ALL.raw(),
        badge: 0,
        calls_only: false,
    }
}

fn signal(notification: u32, badge: u64) -> Grant {
    Grant {
        rights: Rights::WRITE.raw(),
        badge,
        ..all_rights(Object::Notification(notification))
    }
}

/// To call the gate.
fn calls(endpoint: u32, sender: Sender) -> Grant {
    Grant {
        rights: Rights::WRITE.union(Rights::GRANT_REPLY).raw(),
        badge: sender.badge(),
        calls_only: true,
        ..all_rights(Object::Endpoint(endpoint))
    }
}

/// The slots of each core that has some.
fn tables(gate: &Resource, members: &[Member<'_>]) -> Vec<Slots> {
    let Some(cycle) = &gate.cycle else {
        return Vec::new();
    };
    let cycle_us = cycle.get_ref().0;
    let mut tables: Vec<Slots> = Vec::new();
    for (client, member) in (0..).zip(members) {
        let slots = member.described.slots.iter().flat_map(|of| of.get_ref());
        for slot in slots {
            let known = tables.iter().position(|table| table.core == member.core);
            let index = known.unwrap_or_else(|| {
                tables.push(Slots {
                    core: member.core,
                    cycle_us,
                    granule_us: cycle_us,
                    slots: Vec::new(),
                });
                tables.len() - 1
            });
            tables[index].slots.push(Slot {
                client,
                at_us: slot.at.get_ref().0,
                length_us: slot.length.get_ref().0,
            });
        }
    }
    for table in &mut tables {
        table.slots.sort_by_key(|slot| slot.at_us);
        let edges = table.slots.iter();
        let edges = edges.flat_map(|slot| [slot.at_us, slot.at_us + slot.length_us]);
        table.granule_us = granule(edges.chain([cycle_us]));
    }
    tables.sort_by_key(|table| table.core);
    tables
}
