//! A scheduler of partitions that is a client of the time manager: what then differs.

use sandglass_allocations::Rate;
use sandglass_description::policy::partitions::{Form, Partitions, Sender, MOST_WINDOWS};
use sandglass_description::policy::timers::SERVICE;
use sandglass_description::Handler;

use super::super::super::super::document::{
    Frame, PartitionOrder, PartitionThread, Partitioning, Text, TimeClient,
};
use super::super::super::super::findings::Finding;
use super::super::super::names::help_with;
use super::super::super::{text, Checker};
use super::super::allocations::{share, shortest_us, turn_priority};
use super::threads_of;

impl<'a> Checker<'a> {
    /// The keys, if time is supplied.
    pub(super) fn supply_rules(&mut self, partitioning: &'a Partitioning) {
        let Some(time) = &partitioning.time else {
            return;
        };
        let Some(client) = self.supplier_of(partitioning, time) else {
            return;
        };
        if client.share.is_none() {
            self.found(
                Finding::new(client.component.span(), "a frame needs a share of its own")
                    .label("has none")
                    .related(time.span(), "its time is supplied")
                    .help("give it one that is enough for all windows: `share = \"1/3\"`"),
            );
        }
        let order = &partitioning.order;
        if *order.get_ref() != PartitionOrder::Frames {
            self.found(
                Finding::new(order.span(), "windows are made from periods and budgets")
                    .label("must be \"frames\"")
                    .related(time.span(), "its time is supplied in turns")
                    .help("a frame is laid over each turn; periods of partitions would need all of the core"),
            );
        }
        if let Some(finish) = &partitioning.finish {
            self.found(
                Finding::new(
                    finish.span(),
                    "no request may be in service when a window ends",
                )
                .label("must not be here")
                .related(time.span(), "its time is supplied")
                .help("remove it, and let threads of these partitions call no servers"),
            );
        }
        self.supply_priorities(partitioning);
        for frame in &self.document.frames {
            self.supply_windows(time, frame);
            self.supply_period(frame);
        }
        for thread in threads_of(&self.document.partitions) {
            self.supply_arrivals(time, thread);
            self.supply_calls(partitioning, time, thread);
            self.supply_service(time, thread);
            self.supply_handler(time, thread);
        }
    }

    /// In each window, the manager may have to say once that nobody runs.
    fn supply_windows(&mut self, time: &Text, frame: &Frame) {
        let windows = frame.windows.get_ref();
        if let Some(more) = windows.get(MOST_WINDOWS) {
            self.found(
                Finding::new(more.partition.span(), format!("{} windows", windows.len()))
                    .label(format!("a frame can have {MOST_WINDOWS}"))
                    .related(time.span(), "its time is supplied")
                    .help("join windows of a partition, or make the frame shorter"),
            );
        }
    }

    /// The frame's length is the period of a reservation.
    fn supply_period(&mut self, frame: &Frame) {
        let Some(manager) = &self.document.time_manager else {
            return;
        };
        let (shortest, length) = (shortest_us(manager), frame.length.get_ref().0);
        if length < shortest {
            self.found(
                Finding::new(frame.length.span(), format!("a frame of {length} µs"))
                    .label(format!(
                        "must be at least {shortest} µs, the shortest period of a reservation"
                    ))
                    .related(manager.name.span(), "supplies its time")
                    .help("make the frame longer, or say `shortest-period` in `[time-manager]`"),
            );
        }
    }

    /// A server that works on the context when a window ends would stand still with it, for everybody: the timer service,
    /// too, which knows nothing of windows.
    fn supply_calls(&mut self, partitioning: &Partitioning, time: &Text, thread: &PartitionThread) {
        let name = text(&thread.component);
        let called = self
            .servers_of(name)
            .find(|server| *server != text(&partitioning.name));
        let Some(server) = called.map(str::to_owned) else {
            return;
        };
        let help = if server == SERVICE {
            "a window ends where its budget does, also in the timer service: remove its `[[timer]]`, and let a periodic \
             thread be released"
        } else {
            "a window ends where its budget does, also in a server"
        };
        self.found(
            Finding::new(
                thread.component.span(),
                format!("`{name}` calls `{server}`"),
            )
            .label("must call no servers")
            .related(time.span(), "the time of its partition is supplied")
            .help(help),
        );
    }

    /// A thread that serves is lent the time of those who call, between its windows: then it runs outside of them, and
    /// cannot be given the context in them.
    fn supply_service(&mut self, time: &Text, thread: &PartitionThread) {
        let name = text(&thread.component);
        let mut endpoints = self.document.endpoints.iter();
        let serves = |server: &Text| text(server) == name;
        let Some(endpoint) = endpoints.find(|of| of.server.as_ref().is_some_and(serves)) else {
            return;
        };
        self.found(
            Finding::new(endpoint.name.span(), format!("`{name}` serves, and is a thread of a partition"))
                .label("must not be here")
                .related(time.span(), "the time of its partition is supplied")
                .help("it would run on the time of those who call, outside its windows: let them share memory, and signal"),
        );
    }

    /// Reports are handled on the scheduler's time: who makes them without end in a window would make it longer for all
    /// others.
    fn supply_arrivals(&mut self, time: &Text, thread: &PartitionThread) {
        let partitions = &self.document.partitions;
        let is_member = |name: &str| threads_of(partitions).any(|of| text(&of.component) == name);
        let found = thread.arrivals.iter().find(|of| is_member(text(of)));
        if let Some(reporter) = found {
            let name = text(reporter);
            self.found(
                Finding::new(reporter.span(), format!("`{name}` reports arrivals in a window"))
                    .label("must not be here")
                    .related(time.span(), "the time of its partition is supplied")
                    .help("handling a report is nobody's supplied time: let a component report that has time of its own"),
            );
        }
    }

    /// Faults lend time as calls do (ABI 05, section 3).
    fn supply_handler(&mut self, time: &Text, thread: &PartitionThread) {
        let name = text(&thread.component);
        let components = self.document.components.iter();
        let mut handlers = components.flat_map(|component| {
            let others = component.threads.iter();
            let others = others.filter_map(|thread| thread.fault_handler.as_ref());
            component.fault_handler.iter().chain(others)
        });
        let Some(handler) = handlers.find(|handler| text(handler) == name) else {
            return;
        };
        self.found(
            Finding::new(
                handler.span(),
                format!("`{name}` handles faults, and is a thread of a partition"),
            )
            .label("must be another")
            .related(time.span(), "the time of its partition is supplied")
            .help("it would run on the time of the threads that fault, outside its windows"),
        );
    }

    /// The scheduler as the manager's client; says what is wrong if it is none.
    fn supplier_of(
        &mut self,
        partitioning: &'a Partitioning,
        time: &'a Text,
    ) -> Option<&'a TimeClient> {
        let manager = self.document.time_manager.as_ref();
        let Some(manager) = manager.filter(|manager| text(&manager.name) == text(time)) else {
            let known = manager.map(|manager| text(&manager.name));
            self.found(
                Finding::new(
                    time.span(),
                    format!("no time manager is called `{}`", text(time)),
                )
                .label("unknown time manager")
                .help(help_with("time manager", text(time), known.into_iter())),
            );
            return None;
        };
        let name = text(&partitioning.name);
        let mut clients = manager.clients.get_ref().iter();
        let client = clients.find(|client| text(&client.component) == name);
        if client.is_none() {
            self.found(
                Finding::new(time.span(), format!("`{name}` is no client of it"))
                    .label("gets no time")
                    .related(manager.clients.span(), "the clients")
                    .help(format!(
                        "add it: `{{ component = \"{name}\", share = \"1/3\" }}`"
                    )),
            );
        }
        client
    }

    fn supply_priorities(&mut self, partitioning: &'a Partitioning) {
        let Some(manager) = &self.document.time_manager else {
            return;
        };
        let highest = *manager.priority.get_ref();
        if *partitioning.priority.get_ref() <= highest {
            self.found(
                Finding::new(
                    partitioning.priority.span(),
                    "its switches would wait for the time manager",
                )
                .label(format!("must be above {highest}"))
                .related(manager.priority.span(), "the time manager's priority"),
            );
        }
        let turns = turn_priority(manager);
        for thread in threads_of(&self.document.partitions) {
            let name = text(&thread.component);
            let Some(index) = self.names.component(name) else {
                continue;
            };
            let own = &self.document.components[index].priority;
            if *own.get_ref() != turns {
                self.found(
                    Finding::new(
                        own.span(),
                        format!("`{name}` runs in the time manager's turns"),
                    )
                    .label(format!("must be {turns}, the priority of turns"))
                    .related(manager.priority.span(), "turns are one below this"),
                );
            }
        }
    }

    /// Tells the scheduler when a window ends, with whichever thread.
    pub(super) fn end_windows(&mut self, partitioning: &Partitioning, scheduler: usize) {
        let mut served = self.served[scheduler].iter();
        let Some(&(endpoint, _)) = served.find(|(_, name)| *name == text(&partitioning.name))
        else {
            return;
        };
        let handler = |number| {
            let badge = Sender::Ended(number).badge();
            Some(Handler { endpoint, badge })
        };
        let document = self.document;
        let mut count = 0;
        for (number, thread) in threads_of(&document.partitions).enumerate() {
            if let Some(component) = self.names.component(text(&thread.component)) {
                self.threads[component][0].timeout_handler = handler(number);
            }
            count = number + 1;
        }
        // The main thread, the scheduler's own, and the filler.
        self.threads[scheduler][2].timeout_handler = handler(count);
    }

    /// Whether the share is enough for the frame.
    pub(super) fn supply_admission(&mut self, partitioning: &'a Partitioning, table: &Partitions) {
        let (Some(time), Form::Frames(frames)) = (&partitioning.time, &table.form) else {
            return;
        };
        let (Some(client), Some(frame)) = (self.supplier_of(partitioning, time), frames.first())
        else {
            return;
        };
        let Some(written) = &client.share else {
            return;
        };
        let needed = Rate::at_most(frame.supply_us(), frame.length_us);
        let has = share(text(written));
        if needed
            .zip(has)
            .is_none_or(|(needed, has)| needed.parts() > has.parts())
        {
            self.found(
                Finding::new(
                    written.span(),
                    format!("the frame needs {} µs in {} µs", frame.supply_us(), frame.length_us),
                )
                .label("is less")
                .related(partitioning.name.span(), "its scheduler")
                .help("what all windows take counts, and 100 µs for the scheduler: give it more, or make windows shorter"),
            );
        }
    }
}
