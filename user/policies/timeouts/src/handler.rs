//! The timeout handler: receives the timeouts of one passive server, and does what was decided.
//!
//! # How a server becomes passive again
//!
//! The thesis's handler lets the server run on a spare context until it waits again, waits for
//! that itself, and takes the context away. Here the kernel takes it away: the spare context is
//! bound to a notification, and the notification to the server; a server that runs on the
//! context of its notification gives it back at the moment when it waits for a request, even if
//! one is there already (ABI 04, section 7.6, 01, section 5.4). So
//!
//! - the handler never waits for the server, and hears of an emergency that runs out;
//! - a request that came meanwhile is served on its own client's time.

use alloc::format;
use alloc::vec::Vec;

use sandglass::cap::{
    nb_send_recv, Endpoint, Notification, Reply, SchedContext, SchedControl, SchedParams, Tcb,
};
use sandglass::fault::Fault;
use sandglass::timeout::{self, Checkpoint};
use sandglass::{Environment, Error, Message, Received};
use sandglass_description::policy::timeouts::{Client, Last, Timeouts};
use sandglass_description::policy::Table;

use crate::decide::{Decision, Policies, Spare};

/// Label of the answer to a client whose request was given up, unless the server has a better one.
pub const TIMED_OUT: u64 = 0x7130;

/// What clients are told when their request ends early. `caller` is the badge under which the
/// server got the request, if the description tells. The server stands still meanwhile.
pub trait Answers {
    /// The request ended after what the last clean state says.
    fn rolled_back(&mut self, caller: Option<u64>) -> Message;

    /// The request failed. Makes the server's data what they were before the first request, if
    /// that is not what the server does for each request anyway.
    fn reset(&mut self, _caller: Option<u64>) -> Message {
        Message::new(TIMED_OUT, [])
    }

    /// The client is suspended before it can read this; who resumes it lets it do so.
    fn killed(&mut self, _caller: Option<u64>) -> Message {
        Message::new(TIMED_OUT, [])
    }
}

/// What a handler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    RolledBack,
    Reset,
    Killed,
    /// The server finishes on this budget, µs.
    Emergency {
        budget_us: u64,
    },
    /// The client's budget is this now, µs.
    Extended {
        budget_us: u64,
    },
}

/// What a handler received, and did about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A context with `badge` ran out, having consumed so much since the last report.
    Timeout {
        badge: u64,
        consumed_us: u64,
        action: Action,
    },
    /// A fault has stopped the server: its request ended, and it is where it waits again, reset.
    Fault { fault: Fault },
    /// What arrived is nothing of this server's. Nothing was done: who sent it, waits.
    Other(Received),
}

/// What the handler has of a client.
struct Objects {
    context: SchedContext,
    /// To extend its budget.
    control: Option<SchedControl>,
    /// To suspend it.
    tcb: Option<Tcb>,
}

/// The policies of one server, and what it takes to carry them out.
pub struct Handler {
    policies: Policies,
    clients: Vec<Objects>,
    server: Tcb,
    /// Under which the server's timeouts arrive.
    server_badge: u64,
    /// Until [`Self::begin`].
    checkpoint: Option<Checkpoint>,
    /// The server's reply object: stands for its client.
    client: Reply,
    spare: SchedContext,
    /// To fill the spare context for emergencies, if there are any.
    control: Option<SchedControl>,
    /// Binds the spare context to the server.
    home: Notification,
    timeouts: Endpoint,
    fault: Reply,
}

impl Handler {
    /// Looks up all that belongs to the policies of the thread `server`. To be called before
    /// the server serves, since it uses the heap.
    ///
    /// # Panics
    /// The component was not given the policies of this server.
    pub fn new(env: &'static Environment, server: &str) -> Self {
        let table = table(env, &format!("{server}.{}", Timeouts::NAME));
        let find = |client: &Client| Objects {
            context: env.context_of(&client.name),
            control: env.find_capability(&format!("sched-control.{}", client.core)),
            tcb: env.find_capability(&format!("{}.tcb", client.name)),
        };
        Self {
            clients: table.clients.iter().map(find).collect(),
            server: env.capability(&format!("{server}.tcb")),
            server_badge: env.parameter(&format!("{server}.badge")),
            checkpoint: None,
            client: env.capability(&format!("{}.reply", table.endpoint)),
            spare: env.context_of(server),
            control: env.find_capability(&format!("sched-control.{}", table.core)),
            home: env.capability(&format!("{server}.home")),
            timeouts: env.capability("timeouts"),
            fault: env.capability("timeouts.reply"),
            policies: Policies::new(table),
        }
    }

    /// The clients, as the system describes them.
    pub fn clients(&self) -> &[Client] {
        &self.policies.table().clients
    }

    /// Remembers how the server waits for its first request, and prepares its restart. The server
    /// must wait: so it does when the launcher starts the handler's thread.
    ///
    /// # Errors
    /// The kernel refuses: the server does not wait, or another handler has begun.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.checkpoint = Some(Checkpoint::take(self.server)?);
        self.server.bind_notification(self.home)?;
        self.spare.bind_notification(self.home)
    }

    /// Handles timeouts for good, and reports each to `observe`. `ready` is signalled when the
    /// handler waits for the first.
    ///
    /// # Panics
    /// The kernel refuses something, which the description rules out.
    pub fn serve(
        mut self,
        ready: Notification,
        mut answers: impl Answers,
        mut observe: impl FnMut(&Self, Event),
    ) -> ! {
        self.begin()
            .expect("the server waits for its first request");
        let mut received = nb_send_recv(ready, Message::EMPTY, self.timeouts, self.fault);
        loop {
            let event = self
                .handle(&received, &mut answers)
                .expect("the handler has what its policies take");
            observe(&self, event);
            received = self.receive();
        }
    }

    /// Waits for what [`Self::handle`] handles.
    #[inline]
    pub fn receive(&self) -> Received {
        self.timeouts.recv(self.fault)
    }

    /// Handles what was received. Afterwards the server runs again, or will when its client's
    /// next budget comes.
    ///
    /// # Errors
    /// The kernel refuses; the server is blocked. This happens if the context belongs to a client
    /// that is not in the table, and has been suspended since it called.
    pub fn handle(
        &mut self,
        received: &Received,
        answers: &mut impl Answers,
    ) -> Result<Event, Error> {
        let fault = Fault::decode(&received.message);
        let (badge, consumed_us) = match fault.filter(|_| received.badge == self.server_badge) {
            Some(Fault::Timeout { badge, consumed_us }) => (badge, consumed_us),
            Some(fault) if !fault.is_end() => return self.handle_fault(fault, answers),
            _ => return Ok(Event::Other(*received)),
        };
        let action = match self.policies.timeout(badge) {
            Decision::Extend { client, budget_us } => self.extend(client, budget_us)?,
            Decision::Emergency {
                client,
                budget_us,
                period_us,
            } => self.help(client, budget_us, period_us)?,
            Decision::Recover { client, how, spare } => {
                self.recover(client, how, spare, answers)?
            }
        };
        self.fault.send(self.go_on(action)?);
        Ok(Event::Timeout {
            badge,
            consumed_us,
            action,
        })
    }

    /// The request fails, as when its client's time runs out and the policy is [`Last::Reset`].
    fn handle_fault(&mut self, fault: Fault, answers: &mut impl Answers) -> Result<Event, Error> {
        if let Decision::Recover { client, how, spare } = self.policies.faulted() {
            let _ = self.recover(client, how, spare, answers)?;
        }
        self.fault.send(Message::EMPTY);
        Ok(Event::Fault { fault })
    }

    /// What the server is answered: with label 0, it continues with its registers. Those of the
    /// checkpoint are right as they are.
    fn go_on(&self, action: Action) -> Result<Message, Error> {
        match action {
            Action::Extended { .. } | Action::Emergency { .. }
                if self.policies.table().calls_servers =>
            {
                timeout::go_on(self.server)
            }
            _ => Ok(Message::EMPTY),
        }
    }

    /// Fills the client's context, on which the server runs, anew with more.
    fn extend(&self, client: usize, budget_us: u64) -> Result<Action, Error> {
        let described = &self.policies.table().clients[client];
        let params = SchedParams {
            extra_refills: described.extra_refills,
            badge: described.badge,
            sporadic: described.sporadic,
            ..SchedParams::new(budget_us, described.period_us)
        };
        let objects = &self.clients[client];
        fill(objects.control, objects.context, params)?;
        Ok(Action::Extended { budget_us })
    }

    /// Takes the client's context away from the server, and gives it the spare one. With the
    /// server's answer, the client's goes home: the reply object knows it.
    fn help(&self, client: usize, budget_us: u64, period_us: u64) -> Result<Action, Error> {
        let badge = self.policies.table().emergency_badge;
        self.clients[client].context.unbind_tcb(self.server)?;
        let params = SchedParams::new(budget_us, period_us).badge(badge);
        fill(self.control, self.spare, params)?;
        self.spare.bind(self.server)?;
        Ok(Action::Emergency { budget_us })
    }

    /// Ends the request: answers in the server's place, and sends the server back to where it
    /// waits for requests.
    fn recover(
        &self,
        client: Option<usize>,
        how: Last,
        spare: Spare,
        answers: &mut impl Answers,
    ) -> Result<Action, Error> {
        let objects = client.map(|client| &self.clients[client]);
        let caller = client.and_then(|client| self.clients()[client].caller);
        let (answer, action) = match how {
            Last::Rollback => (answers.rolled_back(caller), Action::RolledBack),
            Last::Reset => (answers.reset(caller), Action::Reset),
            Last::Kill => (answers.killed(caller), Action::Killed),
        };
        // Returns the client's context too. It does nothing if the client has gone.
        self.client.send(answer);
        if let (Last::Kill, Some(tcb)) = (how, objects.and_then(|objects| objects.tcb)) {
            tcb.suspend()?;
        }
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.restore(self.server)?;
        }
        self.restart(spare, objects)?;
        Ok(action)
    }

    /// Gives the server the spare context, filled so that it can wait for requests again.
    fn restart(&self, spare: Spare, client: Option<&Objects>) -> Result<(), Error> {
        if spare == Spare::Unknown {
            let slice = self.policies.table().restart_us;
            if let Some(control) = self.control {
                control.configure(self.spare, SchedParams::new(slice, slice))?;
            }
            // Refused if the server already has a context: then it continues on that.
            let _ = self.spare.bind(self.server);
            return Ok(());
        }
        if spare != Spare::Ready {
            let slice = self.policies.table().restart_us;
            fill(self.control, self.spare, SchedParams::new(slice, slice))?;
        }
        if spare == Spare::InUse {
            return Ok(());
        }
        match (self.spare.bind(self.server), client) {
            // The client has gone, and its context was not returned: the server still has it.
            (Err(_), Some(client)) => {
                client.context.unbind_tcb(self.server)?;
                self.spare.bind(self.server)
            }
            (result, _) => result,
        }
    }
}

/// Fills a context. The builder gives the authority to handlers whose policies need it.
fn fill(
    control: Option<SchedControl>,
    context: SchedContext,
    params: SchedParams,
) -> Result<(), Error> {
    control
        .expect("the policy comes with authority over time")
        .configure(context, params)
}

/// Reads the table that the component has under `name`.
fn table(env: &Environment, name: &str) -> Timeouts {
    // SAFETY: the builder packs the table as a file, which nobody writes.
    let bytes = unsafe { env.memory(name).as_bytes() };
    Timeouts::decode(bytes).expect("the table is one of timeout policies")
}
