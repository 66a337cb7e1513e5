//! Who sends a message to a gate, by its badge, and what it wants, by its label.

use crate::protocol::ClientId;

const KIND: u32 = 32;

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A client makes a request. Any label is the operation's.
    Client(ClientId),
    /// A spinner calls, with a label of [`Request`].
    Spinner(ClientId),
    /// A spinner's time is used up.
    SpinnerTimeout(ClientId),
    /// The time of whoever pays for the server is used up. The first word of the fault is that context's badge, which is
    /// its client's number.
    ServerTimeout,
    /// Whoever may say what becomes of clients: a table, a policy of modes, a supervisor. With a label of [`Control`].
    Control,
    /// The server's signal: it has done its job.
    Server,
}

impl Sender {
    /// The badge of its capability of the gate's endpoint, or notification.
    pub const fn badge(self) -> u64 {
        let (kind, number) = match self {
            Sender::Client(client) => (1, client.0),
            Sender::Spinner(client) => (2, client.0),
            Sender::SpinnerTimeout(client) => (3, client.0),
            Sender::ServerTimeout => (4, 0),
            Sender::Control => (5, 0),
            Sender::Server => (6, 0),
        };
        kind << KIND | number as u64
    }

    /// Whose badge it is; `None` for one that the builder did not give.
    pub const fn of(badge: u64) -> Option<Sender> {
        let client = ClientId((badge & 0xffff_ffff) as usize);
        Some(match badge >> KIND {
            1 => Sender::Client(client),
            2 => Sender::Spinner(client),
            3 => Sender::SpinnerTimeout(client),
            4 => Sender::ServerTimeout,
            5 => Sender::Control,
            6 => Sender::Server,
            _ => return None,
        })
    }
}

/// What a spinner wants: the label of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Its client's context is to pay. The word is the state of the payment that it saw ([`crate::driver::Payer::raw`]).
    Take,
    /// Its client has budget again.
    Replenished,
    /// It runs on the core that the word says, which is not its client's.
    Moved,
}

impl Request {
    /// The label.
    pub const fn label(self) -> u64 {
        match self {
            Request::Take => 1,
            Request::Replenished => 2,
            Request::Moved => 3,
        }
    }

    /// What a label means.
    pub const fn of(label: u64) -> Option<Request> {
        Some(match label {
            1 => Request::Take,
            2 => Request::Replenished,
            3 => Request::Moved,
            _ => return None,
        })
    }
}

/// What is to become of a client, whose number is the first word: the label of a control call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Its slot ends: it has no processor time.
    Suspend,
    /// Its slot begins.
    Resume,
    /// It counts as one without a reservation from now on, whatever budget it has: a mode of higher criticality.
    Demote,
    /// It counts as before.
    Promote,
    /// It gives up its request, or is gone. Nobody is answered.
    Withdraw,
}

impl Control {
    /// The label.
    pub const fn label(self) -> u64 {
        match self {
            Control::Suspend => 1,
            Control::Resume => 2,
            Control::Demote => 3,
            Control::Promote => 4,
            Control::Withdraw => 5,
        }
    }

    /// What a label means.
    pub const fn of(label: u64) -> Option<Control> {
        Some(match label {
            1 => Control::Suspend,
            2 => Control::Resume,
            3 => Control::Demote,
            4 => Control::Promote,
            5 => Control::Withdraw,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_and_labels_say_who_and_what() {
        let client = ClientId(77);
        let senders = [
            Sender::Client(client),
            Sender::Spinner(client),
            Sender::SpinnerTimeout(client),
            Sender::ServerTimeout,
            Sender::Control,
            Sender::Server,
        ];
        for sender in senders {
            assert_eq!(Sender::of(sender.badge()), Some(sender));
        }
        assert_eq!(Sender::of(77), None, "no badge of ours");
        for label in 0..9 {
            let request = Request::of(label);
            assert!(request.is_none_or(|request| request.label() == label));
            let control = Control::of(label);
            assert!(control.is_none_or(|control| control.label() == label));
        }
    }
}
