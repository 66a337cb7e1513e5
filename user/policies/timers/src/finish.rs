//! What happens when a caller's time runs out in the service: its request ends on the service's own time.
//!
//! A request takes a few µs, so ending it costs less than undoing it, and nobody else waits until the caller has time
//! again. How often a caller's time can run out is described: once for each piece of its budget. When the service's own
//! time runs out, it continues when it has time again: the builder gives it as much as its timers can take.

use alloc::format;
use alloc::vec::Vec;

use sandglass::cap::{
    nb_send_recv, Endpoint, Notification, Reply, SchedContext, SchedControl, SchedParams, Tcb,
};
use sandglass::fault::Fault;
use sandglass::{Environment, Error, Message, Received};
use sandglass_description::policy::timers::{Timers, EXTRA_REFILLS, SERVICE};

/// The handler of the service's timeouts.
pub struct Finisher {
    server: Tcb,
    /// The service's own time, and the notification that it is bound to.
    own: SchedContext,
    home: Notification,
    /// What it gets, and the authority to give it.
    params: SchedParams,
    control: SchedControl,
    /// By the badge that timeouts report.
    payers: Vec<(u64, SchedContext)>,
    timeouts: Endpoint,
    fault: Reply,
}

impl Finisher {
    /// Looks up what the handler of the service needs; `home` is what the device signals.
    ///
    /// # Panics
    /// The component was not given it.
    pub fn new(env: &'static Environment, table: &Timers, home: Notification) -> Self {
        let payers = table.payers.iter();
        let payers = payers.map(|payer| (payer.badge, env.context_of(&payer.name)));
        Self {
            server: env.capability(&format!("{SERVICE}.tcb")),
            own: env.context_of(SERVICE),
            home,
            params: SchedParams::new(table.budget_us, table.period_us)
                .extra_refills(EXTRA_REFILLS)
                .badge(table.badge),
            control: env.capability(&format!("sched-control.{}", table.core)),
            payers: payers.collect(),
            timeouts: env.capability("timeouts"),
            fault: env.capability("timeouts.reply"),
        }
    }

    /// Makes the service passive, with time of its own when the device rings, and handles its timeouts for good.
    ///
    /// # Panics
    /// The service does not wait, or the description did not give its time.
    pub fn serve(self, ready: Notification) -> ! {
        self.begin()
            .expect("the service waits for its first request");
        let mut received = nb_send_recv(ready, Message::EMPTY, self.timeouts, self.fault);
        loop {
            if let Some(Fault::Timeout { badge, .. }) = Fault::decode(&received.message) {
                self.lend(badge);
                self.fault.send(Message::EMPTY);
            }
            received = self.receive();
        }
    }

    fn begin(&self) -> Result<(), Error> {
        // It has started on more.
        self.control.configure(self.own, self.params)?;
        self.server.bind_notification(self.home)?;
        self.own.bind_notification(self.home)
    }

    fn receive(&self) -> Received {
        self.timeouts.recv(self.fault)
    }

    /// Takes the caller's context away from the service and gives it its own, until it waits again. The caller gets its
    /// context back with its answer: the reply object knows it. Where the kernel refuses, the caller has gone with its
    /// context, or the service runs on its own already: it continues when that has time.
    fn lend(&self, badge: u64) {
        let payer = self.payers.iter().find(|(own, _)| *own == badge);
        let Some((_, context)) = payer else { return };
        if context.unbind_tcb(self.server).is_ok() {
            let _ = self.own.bind(self.server);
        }
    }
}
