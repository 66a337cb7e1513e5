//! What becomes of a request whose client or whose operation does not get to its end, and of contexts that others take away.

use super::super::kernel::{GateKernel, DONE, FAULTED, GONE, NOT_IN_CONTROL};
use super::super::sender::Control;
use super::{Answer, Gate};
use crate::marks::Mark;
use crate::protocol::{ClientId, Protocol};

impl<P: Protocol, K: GateKernel> Gate<'_, P, K> {
    /// The server's thread has a fault: its request ends with it, and its client is told. The server begins anew, with the
    /// next request if there is one. So a client that has requests fail costs others what one costs that is carried out.
    pub(super) async fn fail(&mut self) {
        // First: a blocked thread may not be given a context whose budget is used up.
        self.kernel.restart_server().await;
        if self.protocol.served().is_some() {
            self.shared.put_answer(FAULTED, &[]);
            self.finish().await;
        }
    }

    /// A client is gone for good. Whoever ended it may wait for its thread to come back from here, so that one is answered; and
    /// first, as above.
    pub(super) async fn is_gone(&mut self, client: ClientId) {
        if core::mem::replace(&mut self.clients[client.0].is_kept, false) {
            self.kernel.answer(client, GONE, &[]).await;
        }
        self.kernel.answer_refused(client, GONE).await;
        self.withdraw(client).await;
    }

    /// A client's context goes where it belongs. If it cannot, because it is gone or because who is to have it is, nobody
    /// has it, and its client has no budget for this gate, until there is news of it.
    pub(super) async fn place(&mut self, client: ClientId) {
        let home = self.home(client);
        let holder = self.clients[client.0].holder;
        if holder == home {
            return;
        }
        let mut is_there = true;
        if holder.is_some() {
            is_there = self.kernel.take(client).await.is_ok();
            self.clients[client.0].holder = None;
        }
        if let Some(home) = home {
            is_there = is_there && self.kernel.give(client, home, self.target).await.is_ok();
            if !is_there && holder.is_none() {
                // It was taken away, and is the client's again.
                is_there = self.kernel.take(client).await.is_ok()
                    && self.kernel.give(client, home, self.target).await.is_ok();
            }
            self.clients[client.0].holder = is_there.then_some(home);
        }
        if !is_there {
            self.lose_budget(client);
        }
    }

    /// Whoever controls a client says what has become of it.
    pub(super) async fn supervised(&mut self, client: ClientId, label: u64) -> Answer {
        if Control::of(label) != Some(Control::Withdraw) {
            return Answer::Now(NOT_IN_CONTROL);
        }
        self.is_gone(client).await;
        Answer::Now(DONE)
    }

    /// A client's request is given up. One that is in service is finished, and nobody is answered.
    pub(super) async fn withdraw(&mut self, client: ClientId) {
        self.kernel.mark(Mark::Withdraw(client));
        if core::mem::replace(&mut self.clients[client.0].is_kept, false) {
            self.kernel.forget(client);
        }
        if core::mem::replace(&mut self.clients[client.0].is_held, false) {
            let _ = self.shared.take_toll(client);
            self.place(client).await;
            return;
        }
        let is_in_service = self.protocol.withdraw(client);
        if !is_in_service {
            let state = &mut self.clients[client.0];
            state.is_present = false;
            state.is_exhausted = false;
            self.shared.set_exhausted(client, false);
            self.stop_paying(client);
            self.place(client).await;
        }
    }
}
