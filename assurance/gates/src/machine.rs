//! The driver's kernel, in simulated time: each function is a system call of the thread.

use std::cell::OnceCell;
use std::rc::Rc;

use sandglass_abi::invocation as label;
use sandglass_abi::syscall::Syscall;
use sandglass_mc_ipc::driver::{
    Control, GateKernel, Gone, Holder, Mark, Received, ServerKernel, SpinnerKernel, TableKernel,
    Target, Work, WORDS,
};
use sandglass_mc_ipc::ClientId;
use sandglass_parallel::{Entry, Made, Message, Path, Thread, Told};

use crate::costs::UserCosts;
use crate::history::Log;

/// The slots of a gate's capabilities.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    pub endpoint: u64,
    /// Control of the gate.
    pub control: u64,
    /// What the server waits for, and what it signals.
    pub job: u64,
    pub done: u64,
    pub server: Made,
    /// Where the server waits at another gate: its spinner there, and that gate's server.
    pub beyond: Option<(Made, Made)>,
    pub clients: Vec<Wired>,
    /// Whose maximum controlled priority allows the clients' priorities.
    pub authority: u64,
}

impl Wiring {
    /// The thread on which the server's work is done.
    fn thread_of(&self, target: Target) -> Option<u64> {
        match target {
            Target::Server => Some(self.server.tcb),
            Target::Waiting => self.beyond.map(|(spinner, _)| spinner.tcb),
            Target::Inner => self.beyond.map(|(_, server)| server.tcb),
            Target::Nobody => None,
        }
    }
}

/// A client's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wired {
    pub made: Made,
    pub priority: u8,
    pub spinner: Made,
    /// Its capability of the gate, and that of its spinner.
    pub gate: u64,
    pub ask: u64,
    /// What it waits for between slots, or jobs.
    pub start: u64,
    /// If it is another gate's server: control of that gate.
    pub outer: Option<u64>,
}

/// Known when all threads are made, which is before any of them runs.
pub(crate) type Later = Rc<OnceCell<Wiring>>;

/// An invocation of a kernel object; tells whether it was done.
async fn invoke(own: &Own, cap: u64, label: u64, caps: &[u64], path: Path) -> bool {
    let entry = Entry {
        label,
        caps: caps.to_vec(),
        ..Entry::new(Syscall::Call, cap, path)
    };
    own.enter(entry).await.label == 0
}

/// A call to an endpoint.
pub(crate) async fn call(thread: &Thread, cap: u64, label: u64, words: &[u64]) -> Told {
    let entry = Entry {
        label,
        message: Message::Words(words.to_vec()),
        ..Entry::new(Syscall::Call, cap, Path::Call)
    };
    thread.enter(entry).await
}

/// Waits for a notification.
pub(crate) async fn wait(thread: &Thread, cap: u64) {
    thread
        .enter(Entry::new(Syscall::Wait, cap, Path::Wait))
        .await;
}

/// Gives up the rest of the budget.
pub(crate) async fn yield_rest(thread: &Thread) {
    thread
        .enter(Entry::new(Syscall::Yield, 0, Path::Yield))
        .await;
}

pub(crate) async fn signal(thread: &Thread, cap: u64) {
    thread
        .enter(Entry::new(Syscall::Send, cap, Path::Signal))
        .await;
}

/// A thread of the gate's.
#[derive(Clone)]
pub(crate) struct Own {
    pub thread: Thread,
    pub wiring: Later,
    pub costs: UserCosts,
}

impl Own {
    /// A system call, and the way to it and back.
    async fn enter(&self, entry: Entry) -> Told {
        self.thread.compute(self.costs.enter).await;
        self.thread.enter(entry).await
    }

    pub fn wiring(&self) -> &Wiring {
        self.wiring.get().expect("all threads are made")
    }

    async fn work(&self, work: Work) {
        self.thread.compute(self.costs.of(work)).await;
    }
}

/// The gate's thread.
pub(crate) struct GateMachine {
    pub own: Own,
    pub log: Log,
    /// Reply objects that nobody waits at.
    pub free: Vec<u64>,
    /// What was received with last, unless its caller waits.
    pub receiving: Option<u64>,
    pub kept: Vec<Option<u64>>,
    /// Of each client: who is refused when it is answered.
    pub refused: Vec<Option<u64>>,
    /// Of the gate whose server calls this one.
    pub outer: Option<Later>,
}

impl GateMachine {
    /// Answers who called with this reply object, if there is one.
    async fn answer_at(&mut self, reply: Option<u64>, label: u64, words: &[u64]) {
        let Some(reply) = reply else {
            return;
        };
        self.free.push(reply);
        let entry = Entry {
            label,
            message: Message::Words(words.to_vec()),
            ..Entry::new(Syscall::Send, reply, Path::Send)
        };
        self.own.enter(entry).await;
    }

    /// Which client of the outer gate's has a context with this badge.
    fn outer_client_of(&self, badge: u64) -> Option<u64> {
        let outer = self.outer.as_ref()?.get()?;
        let mut clients = outer.clients.iter();
        let number = clients.position(|wired| wired.made.context == badge)?;
        Some(number as u64)
    }

    /// Tells the gate whose server this client is on which thread that one's work is done.
    async fn retarget(&self, control: u64, target: Target) {
        let label = Control::Retarget.label();
        call(&self.own.thread, control, label, &[target.raw()]).await;
    }
}

impl GateKernel for GateMachine {
    async fn receive(&mut self, answer: Option<(u64, &[u64])>) -> Received {
        let free = &mut self.free;
        let reply = *self
            .receiving
            .get_or_insert_with(|| free.pop().expect("a reply object is free"));
        let endpoint = self.own.wiring().endpoint;
        let entry = match answer {
            Some((label, words)) => Entry {
                reply,
                label,
                message: Message::Words(words.to_vec()),
                ..Entry::new(Syscall::ReplyRecv, endpoint, Path::ReplyRecv)
            },
            None => Entry {
                reply,
                ..Entry::new(Syscall::Recv, endpoint, Path::Recv)
            },
        };
        let told = self.own.enter(entry).await;
        let mut words = [0; WORDS];
        for (word, told) in words.iter_mut().zip(&told.words) {
            *word = *told;
        }
        Received {
            badge: told.badge,
            label: told.label,
            count: told.words.len(),
            words,
        }
    }

    fn keep(&mut self, client: ClientId) {
        self.kept[client.0] = self.receiving.take();
    }

    fn keep_refused(&mut self, client: ClientId) {
        let refused = &mut self.refused[client.0];
        self.free
            .extend(std::mem::replace(refused, self.receiving.take()));
    }

    async fn answer_refused(&mut self, client: ClientId, label: u64) {
        let reply = self.refused[client.0].take();
        self.answer_at(reply, label, &[]).await;
    }

    async fn answer(&mut self, client: ClientId, label: u64, words: &[u64]) {
        let reply = self.kept[client.0].take();
        self.answer_at(reply, label, words).await;
    }

    fn forget(&mut self, client: ClientId) {
        self.free.extend(self.kept[client.0].take());
    }

    async fn take(&mut self, client: ClientId) -> Result<(), Gone> {
        let wired = &self.own.wiring().clients[client.0];
        if let Some(control) = wired.outer {
            self.retarget(control, Target::Nobody).await;
            return Ok(());
        }
        let context = wired.made.context;
        let unbind = label::SCHED_CONTEXT_UNBIND;
        let is_done = invoke(&self.own, context, unbind, &[], Path::Unbind).await;
        is_done.then_some(()).ok_or(Gone)
    }

    async fn give(&mut self, client: ClientId, holder: Holder, target: Target) -> Result<(), Gone> {
        let wiring = self.own.wiring();
        let wired = &wiring.clients[client.0];
        if let Some(control) = wired.outer {
            let target = match holder {
                Holder::Client => Target::Server,
                Holder::Spinner => Target::Waiting,
                Holder::Server => Target::Inner,
            };
            self.retarget(control, target).await;
            return Ok(());
        }
        let tcb = match holder {
            Holder::Client => wired.made.tcb,
            Holder::Spinner => wired.spinner.tcb,
            Holder::Server => wiring.thread_of(target).ok_or(Gone)?,
        };
        let bind = label::SCHED_CONTEXT_BIND;
        let context = wired.made.context;
        let is_done = invoke(&self.own, context, bind, &[tcb], Path::Bind).await;
        is_done.then_some(()).ok_or(Gone)
    }

    async fn rank(&mut self, client: ClientId, target: Target) {
        let wiring = self.own.wiring();
        let wired = &wiring.clients[client.0];
        let Some(tcb) = wiring.thread_of(target).filter(|_| wired.outer.is_none()) else {
            return;
        };
        let entry = Entry {
            label: label::TCB_SET_PRIORITY,
            message: Message::Words(vec![u64::from(wired.priority) + 1]),
            caps: vec![wiring.authority],
            ..Entry::new(Syscall::Call, tcb, Path::SetPriority)
        };
        self.own.enter(entry).await;
    }

    async fn client_of(&mut self, badge: u64) -> Option<ClientId> {
        // A context has the slot in which it was made for a badge.
        let wiring = self.own.wiring();
        let is_its = |wired: &Wired| wired.made.context == badge && wired.outer.is_none();
        let number = wiring.clients.iter().position(is_its);
        if number.is_none() {
            let outer = wiring.clients.iter().find_map(|wired| wired.outer);
            if let (Some(control), Some(client)) = (outer, self.outer_client_of(badge)) {
                let label = Control::Exhaust.label();
                call(&self.own.thread, control, label, &[client]).await;
            }
        }
        number.map(ClientId)
    }

    async fn wake_server(&mut self) {
        let job = self.own.wiring().job;
        // It has no context yet.
        let entry = Entry::new(Syscall::Send, job, Path::SignalOnly);
        self.own.enter(entry).await;
    }

    async fn release(&mut self, client: ClientId) {
        signal(&self.own.thread, self.own.wiring().clients[client.0].start).await;
    }

    fn now(&self) -> u64 {
        self.own.thread.now()
    }

    async fn work(&mut self, work: Work) {
        self.own.work(work).await;
    }

    fn mark(&mut self, mark: Mark) {
        self.log.mark(self.own.thread.now(), mark);
    }
}

/// The server's thread.
pub(crate) struct ServerMachine {
    pub own: Own,
    /// What it signals when it next waits: in one system call.
    pub tells: Option<u64>,
}

impl ServerKernel for ServerMachine {
    async fn wait(&mut self) {
        let job = self.own.wiring().job;
        let entry = match self.tells.take() {
            // The reply register holds what is sent to.
            Some(told) => Entry {
                reply: told,
                ..Entry::new(Syscall::NBSendWait, job, Path::SignalWait)
            },
            None => Entry::new(Syscall::Wait, job, Path::Wait),
        };
        self.own.enter(entry).await;
    }

    async fn done(&mut self) {
        self.tells = Some(self.own.wiring().done);
    }

    async fn work(&mut self, work: Work) {
        self.own.work(work).await;
    }
}

/// A spinner's thread.
pub(crate) struct SpinnerMachine {
    pub own: Own,
    pub client: ClientId,
}

impl SpinnerKernel for SpinnerMachine {
    async fn ask(&mut self, label: u64, word: u64) {
        let gate = self.own.wiring().clients[self.client.0].ask;
        call(&self.own.thread, gate, label, &[word]).await;
    }

    async fn look_at(&mut self, target: Target) -> u64 {
        let Some(tcb) = self.own.wiring().thread_of(target) else {
            return 0;
        };
        // The first four registers: of a computation here, the fourth one says how far it is.
        let entry = Entry {
            label: label::TCB_READ_REGISTERS,
            message: Message::Words(vec![0, 4]),
            ..Entry::new(Syscall::Call, tcb, Path::ReadRegisters)
        };
        let told = self.own.enter(entry).await;
        let all = told.words.iter();
        all.fold(0, |hash, word| {
            (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
        })
    }

    async fn pause(&mut self) {
        self.own.work(Work::Look).await;
        self.own.thread.compute(self.own.costs.pause).await;
    }

    fn now(&self) -> u64 {
        self.own.thread.now()
    }

    fn core(&self) -> Option<usize> {
        Some(self.own.thread.core())
    }
}

/// The thread of a table.
pub(crate) struct TableMachine {
    pub own: Own,
    /// The capability that it signals.
    pub tick: u64,
}

impl TableKernel for TableMachine {
    async fn next_period(&mut self) {
        yield_rest(&self.own.thread).await;
    }

    async fn tick(&mut self) {
        signal(&self.own.thread, self.tick).await;
    }
}
