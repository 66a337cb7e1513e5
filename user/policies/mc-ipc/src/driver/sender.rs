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
    /// The time of whoever pays for the server is used up. The first word of the fault is that context's badge.
    ServerTimeout,
    /// The server's thread has a fault.
    ServerFault,
    /// Whoever may say what becomes of clients: a policy of modes, a supervisor, a scheduler of partitions. With a label of [`Control`].
    Control,
    /// Whoever controls a client says that it is gone, with the label of [`Control::Withdraw`].
    Supervisor(ClientId),
    /// Signals, which may come several at a time.
    Signals(Signals),
}

/// What signals of the gate's notification say: bits, because those that nobody has received yet come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals(u64);

/// Set in every badge of the gate's notification, and in none of its endpoint's.
const SIGNAL: u64 = 1 << 63;
const SERVER: u64 = 1 << 62;
const ENDS: u64 = 1 << 61;

impl Signals {
    /// The most cores that there can be tables of.
    pub const CORES: usize = 61;

    /// The badge with which the server says that it has done its job.
    pub const fn server() -> u64 {
        SIGNAL | SERVER
    }

    /// The badge with which whoever watches over clients says that one of them is gone, or more.
    pub const fn ends() -> u64 {
        SIGNAL | ENDS
    }

    /// The badge with which the table of a core, below [`Self::CORES`], says that its next period begins.
    pub const fn tick(core: usize) -> u64 {
        SIGNAL | 1 << core
    }

    /// The server has done its job.
    pub const fn is_server_done(self) -> bool {
        self.0 & SERVER != 0
    }

    /// Clients are gone: [`GateKernel::next_gone`](super::GateKernel::next_gone) says who.
    pub const fn are_clients_gone(self) -> bool {
        self.0 & ENDS != 0
    }

    /// The next period of a core's table begins.
    pub const fn is_tick_of(self, core: usize) -> bool {
        core < Self::CORES && self.0 & 1 << core != 0
    }
}

impl Sender {
    /// The badge of its capability of the gate's endpoint; of signals, of the notification.
    pub const fn badge(self) -> u64 {
        let (kind, number) = match self {
            Sender::Client(client) => (1, client.0),
            Sender::Spinner(client) => (2, client.0),
            Sender::SpinnerTimeout(client) => (3, client.0),
            Sender::ServerTimeout => (4, 0),
            Sender::Control => (5, 0),
            Sender::ServerFault => (6, 0),
            Sender::Supervisor(client) => (7, client.0),
            Sender::Signals(Signals(bits)) => return SIGNAL | bits,
        };
        kind << KIND | number as u64
    }

    /// Whose badge it is; `None` for one that the builder did not give.
    pub const fn of(badge: u64) -> Option<Sender> {
        if badge & SIGNAL != 0 {
            return Some(Sender::Signals(Signals(badge)));
        }
        let client = ClientId((badge & 0xffff_ffff) as usize);
        Some(match badge >> KIND {
            1 => Sender::Client(client),
            2 => Sender::Spinner(client),
            3 => Sender::SpinnerTimeout(client),
            4 => Sender::ServerTimeout,
            5 => Sender::Control,
            6 => Sender::ServerFault,
            7 => Sender::Supervisor(client),
            _ => return None,
        })
    }
}

/// What a spinner wants: the label of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Its client's context is to pay.
    Take,
    /// Its client has budget again.
    Replenished,
    /// It runs on the core that the word says, which is not its client's.
    Moved,
    /// Its client has paid its toll.
    TollPaid,
}

impl Request {
    /// The label.
    pub const fn label(self) -> u64 {
        match self {
            Request::Take => 1,
            Request::Replenished => 2,
            Request::Moved => 3,
            Request::TollPaid => 4,
        }
    }

    /// What a label means.
    pub const fn of(label: u64) -> Option<Request> {
        Some(match label {
            1 => Request::Take,
            2 => Request::Replenished,
            3 => Request::Moved,
            4 => Request::TollPaid,
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
    /// Its context is used up: from another gate, where it paid.
    Exhaust,
    /// From another gate, where the server is a client: on which thread its work is done ([`Target`](super::Target)). The
    /// first word is that, not a client.
    Retarget,
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
            Control::Exhaust => 6,
            Control::Retarget => 7,
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
            6 => Control::Exhaust,
            7 => Control::Retarget,
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
            Sender::ServerFault,
            Sender::Supervisor(client),
        ];
        for sender in senders {
            assert_eq!(Sender::of(sender.badge()), Some(sender));
        }
        let Some(Sender::Signals(both)) = Sender::of(Signals::server() | Signals::tick(3)) else {
            panic!("they are signals")
        };
        assert!(both.is_server_done() && both.is_tick_of(3) && !both.is_tick_of(2));
        let Some(Sender::Signals(tick)) = Sender::of(Signals::tick(0)) else {
            panic!("it is a signal")
        };
        assert!(tick.is_tick_of(0) && !tick.is_server_done() && !tick.are_clients_gone());
        let Some(Sender::Signals(ends)) = Sender::of(Signals::ends()) else {
            panic!("it is a signal")
        };
        assert!(ends.are_clients_gone() && !ends.is_server_done());
        assert!((0..64).all(|core| !ends.is_tick_of(core)), "of no core");
        assert_eq!(Sender::of(77), None, "no badge of ours");
        for label in 0..9 {
            let request = Request::of(label);
            assert!(request.is_none_or(|request| request.label() == label));
            let control = Control::of(label);
            assert!(control.is_none_or(|control| control.label() == label));
        }
    }
}
