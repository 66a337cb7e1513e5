//! What a gate did, for traces: each change of the protocol's state, in order, and whose context the server has. Whoever has
//! the marks can do the same with a protocol of his own, and compares who was served next.
//!
//! # Order
//!
//! A gate marks what it has just told the protocol, before it does anything else. That somebody pays, it marks before the
//! context is bound to the server; and that somebody does not any more, before the context is taken away.
//!
//! # Whom a mark is about
//!
//! Its subject is the client's context, so that it is shown beside what that pays for. Of a context that has been destroyed, there is
//! no capability any more, and the kernel takes the gate's thread for the subject. Then the number in the mark says whom it is
//! about ([`named`]).

use crate::protocol::{ClientId, Standing};

/// Something that a gate did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A client makes a request.
    Request(ClientId, Standing),
    /// The server, which is free, begins with a client's request.
    Serve(ClientId),
    /// The server has answered.
    Finish(ClientId),
    /// A client has no budget any more, or counts as one without.
    Exhaust(ClientId),
    /// A client has budget again, and this priority.
    Replenish(ClientId, u64),
    /// A client gives its request up.
    Withdraw(ClientId),
    /// A client is in this cluster from now on, with this priority.
    Move(ClientId, usize, u64),
    /// Whose context the server has from now on.
    Pay(Option<ClientId>),
}

/// Above the number of a cluster in the second word: that of the client, and one.
const CLIENT_SHIFT: u32 = 32;
const CLUSTER_MASK: u64 = (1 << CLIENT_SHIFT) - 1;

/// Whom the words of a mark name.
pub const fn named(words: [u64; 2]) -> Option<ClientId> {
    match (words[1] >> CLIENT_SHIFT).checked_sub(1) {
        Some(number) => Some(ClientId(number as usize)),
        None => None,
    }
}

const REQUEST: u8 = 1;
const BEST_EFFORT_REQUEST: u8 = 2;
const SERVE: u8 = 3;
const FINISH: u8 = 4;
const EXHAUST: u8 = 5;
const REPLENISH: u8 = 6;
const WITHDRAW: u8 = 7;
const MOVE: u8 = 8;
const PAY: u8 = 9;
const NOBODY_PAYS: u8 = 10;

impl Mark {
    /// Whom it is about: the mark's subject is the context of this client, or, if there is no client or no context, the gate's
    /// thread.
    pub const fn client(self) -> Option<ClientId> {
        match self {
            Mark::Request(client, _)
            | Mark::Serve(client)
            | Mark::Finish(client)
            | Mark::Exhaust(client)
            | Mark::Replenish(client, _)
            | Mark::Withdraw(client)
            | Mark::Move(client, ..) => Some(client),
            Mark::Pay(client) => client,
        }
    }

    /// The rest of it: what happened, and two words that say more.
    pub const fn encode(self) -> (u8, [u64; 2]) {
        let client = match self.client() {
            Some(ClientId(number)) => number as u64 + 1,
            None => 0,
        };
        let (what, [first, second]) = self.what();
        (what, [first, second | client << CLIENT_SHIFT])
    }

    /// What happened, without whom it is about.
    const fn what(self) -> (u8, [u64; 2]) {
        match self {
            Mark::Request(_, Standing::RealTime(priority)) => (REQUEST, [priority, 0]),
            Mark::Request(_, Standing::BestEffort) => (BEST_EFFORT_REQUEST, [0; 2]),
            Mark::Serve(_) => (SERVE, [0; 2]),
            Mark::Finish(_) => (FINISH, [0; 2]),
            Mark::Exhaust(_) => (EXHAUST, [0; 2]),
            Mark::Replenish(_, priority) => (REPLENISH, [priority, 0]),
            Mark::Withdraw(_) => (WITHDRAW, [0; 2]),
            Mark::Move(_, cluster, priority) => (MOVE, [priority, cluster as u64]),
            Mark::Pay(Some(_)) => (PAY, [0; 2]),
            Mark::Pay(None) => (NOBODY_PAYS, [0; 2]),
        }
    }

    /// What [`Self::encode`] wrote, about this client; which says nothing if it is about none. `None`: no gate wrote this.
    pub const fn decode(client: ClientId, what: u8, words: [u64; 2]) -> Option<Self> {
        let [priority, second] = words;
        let cluster = second & CLUSTER_MASK;
        Some(match what {
            REQUEST => Mark::Request(client, Standing::RealTime(priority)),
            BEST_EFFORT_REQUEST => Mark::Request(client, Standing::BestEffort),
            SERVE => Mark::Serve(client),
            FINISH => Mark::Finish(client),
            EXHAUST => Mark::Exhaust(client),
            REPLENISH => Mark::Replenish(client, priority),
            WITHDRAW => Mark::Withdraw(client),
            MOVE => Mark::Move(client, cluster as usize, priority),
            PAY => Mark::Pay(Some(client)),
            NOBODY_PAYS => Mark::Pay(None),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written() {
        let client = ClientId(7);
        let marks = [
            Mark::Request(client, Standing::RealTime(u64::MAX)),
            Mark::Request(client, Standing::BestEffort),
            Mark::Serve(client),
            Mark::Finish(client),
            Mark::Exhaust(client),
            Mark::Replenish(client, 9),
            Mark::Withdraw(client),
            Mark::Move(client, 3, 9),
            Mark::Pay(Some(client)),
            Mark::Pay(None),
        ];
        for mark in marks {
            let (what, words) = mark.encode();
            assert_eq!(Mark::decode(client, what, words), Some(mark));
            assert_eq!(named(words), mark.client());
            assert_eq!(mark.client(), (mark != Mark::Pay(None)).then_some(client));
        }
        let known = |&what: &u8| Mark::decode(client, what, [0; 2]).is_some();
        assert_eq!((0..=u8::MAX).filter(known).count(), marks.len());
    }
}
