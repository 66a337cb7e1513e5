//! What a client can do.

use sandglass_abi::syscall::Syscall;
use sandglass_mc_ipc::ClientId;
use sandglass_parallel::{Entry, Message, Path, Thread};

use crate::history::{Log, Served};
use crate::machine::{call, signal, wait, yield_rest, Later, Wired};

/// A client's thread, which its program works with.
#[derive(Clone, Debug)]
pub struct ClientThread {
    pub(crate) thread: Thread,
    pub(crate) wiring: Later,
    pub(crate) client: ClientId,
    pub(crate) log: Log,
    /// Ticks of user code for a request.
    pub(crate) cost: u64,
}

impl ClientThread {
    /// User code for so many ticks.
    pub async fn compute(&self, ticks: u64) {
        self.thread.compute(ticks).await;
    }

    /// Makes a request, and waits for the answer, whose label and words this returns.
    pub async fn request(&self, words: &[u64]) -> (u64, Vec<u64>) {
        let called = self.thread.now();
        self.thread.compute(self.cost).await;
        let told = call(&self.thread, self.wired().gate, 0, words).await;
        self.log.served(Served {
            client: self.client,
            called,
            answered: self.thread.now(),
            label: told.label,
            words: told.words.clone(),
        });
        (told.label, told.words)
    }

    /// Sends the gate a message that is not a call.
    pub async fn send(&self, label: u64, words: &[u64]) {
        let entry = Entry {
            label,
            message: Message::Words(words.to_vec()),
            ..Entry::new(Syscall::Send, self.wired().gate, Path::Send)
        };
        self.thread.enter(entry).await;
    }

    /// Lets another client go on that waits for its start.
    pub async fn start(&self, client: ClientId) {
        signal(&self.thread, self.start_of(client)).await;
    }

    /// The capability with which that is done.
    pub fn start_of(&self, client: ClientId) -> u64 {
        let wiring = self.wiring.get().expect("all threads are made");
        wiring.clients[client.0].start
    }

    /// Gives up the rest of its budget: goes on when it is replenished.
    pub async fn next_period(&self) {
        yield_rest(&self.thread).await;
    }

    /// Waits for the beginning of its slot, or for a signal of a [`Director`](crate::Director).
    pub async fn started(&self) {
        wait(&self.thread, self.wired().start).await;
    }

    /// The clock, in ticks.
    pub fn now(&self) -> u64 {
        self.thread.now()
    }

    /// Which client it is.
    pub const fn id(&self) -> ClientId {
        self.client
    }

    /// Its thread, for system calls that clients of a gate have no use for.
    pub const fn thread(&self) -> &Thread {
        &self.thread
    }

    fn wired(&self) -> &Wired {
        let wiring = self.wiring.get().expect("all threads are made");
        &wiring.clients[self.client.0]
    }
}
