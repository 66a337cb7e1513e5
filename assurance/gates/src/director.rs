//! Who tells clients when to begin.

use sandglass_mc_ipc::driver::Control;
use sandglass_mc_ipc::ClientId;
use sandglass_parallel::{Step, Thread};

use crate::machine::{call, signal, yield_rest, Own};

/// A director's thread.
pub struct Director(pub(crate) Own);

impl Director {
    /// Waits for the beginning of its next period.
    pub async fn next_period(&self) {
        yield_rest(&self.0.thread).await;
    }

    /// A client that waits for its start goes on ([`ClientThread::started`](crate::ClientThread::started)).
    pub async fn start(&self, client: ClientId) {
        signal(&self.0.thread, self.0.wiring().clients[client.0].start).await;
    }

    /// Says what is to become of a client.
    pub async fn control(&self, control: Control, client: ClientId) {
        let gate = self.0.wiring().control;
        call(&self.0.thread, gate, control.label(), &[client.0 as u64]).await;
    }

    /// Any system call, such as one that takes something away from somebody; tells whether an invocation was done.
    ///
    /// # Panics
    /// `step` is something else.
    pub async fn enter(&self, step: Step) -> bool {
        let Step::Enter(entry) = step else {
            panic!("{step:?} is no system call")
        };
        self.0.thread.enter(entry).await.label == 0
    }

    /// Its thread.
    pub const fn thread(&self) -> &Thread {
        &self.0.thread
    }
}
