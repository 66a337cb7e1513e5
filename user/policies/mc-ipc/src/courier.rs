//! A courier: a client of a gate that asks for others.
//!
//! A gate moves its clients' contexts, and the budget of a context is what its client's bound is about. Threads of
//! [partitions](sandglass_description::policy::partitions) and clients of a time manager have no context that would do: somebody
//! else moves it, gives it new budgets, and takes its timeouts for the ends of windows or turns. So they leave their requests
//! with a component that has a reservation of its own, and go on; whatever becomes of a request, their windows and turns stay
//! what they are.
//!
//! The courier takes one request of each in turn, so that a thread waits for one of each of the others at most, however many
//! these post. More of them than the courier's budget is for pay the gate's toll, as those of any client do.

use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::{Endpoint, Notification};
use sandglass::{Environment, Message};
use sandglass_description::policy::mc_ipc::{names, Courier as Described};
use sandglass_description::policy::partitions::names as partitions;
use sandglass_description::policy::Table;

use crate::driver::WORDS;
use crate::mail::{Mail, Receiver};

/// A component that the courier asks for.
struct Client {
    mail: Receiver<'static>,
    /// Where the courier says that there is an answer, if the description names it among those who report arrivals for this
    /// thread of a partition.
    arrivals: Option<Endpoint>,
}

/// Asks at the gate of the component's table, for good.
///
/// # Panics
/// The component has no table, or lacks what the builder gives with it.
pub fn run(env: &'static Environment) -> Infallible {
    // SAFETY: the builder packs the table as a file, which nobody writes.
    let bytes = unsafe { env.memory(Described::NAME).as_bytes() };
    let table = Described::decode(bytes).expect("the builder made the table");
    let gate: Endpoint = env.capability(&table.endpoint);
    let posted: Notification = env.capability(names::POSTED);
    let clients = table.threads.iter().map(|thread| Client {
        mail: Receiver::new(Mail::described(env, &table.gate, thread)),
        arrivals: env.find_capability(&partitions::arrivals(thread)),
    });
    let mut clients: Vec<Client> = clients.collect();
    loop {
        let mut is_idle = true;
        for client in &mut clients {
            is_idle &= !client.ask(gate);
        }
        if is_idle {
            // Who has posted since it was looked at has signalled since then.
            posted.wait();
        }
    }
}

impl Client {
    /// Asks what this one has posted; tells whether it had.
    fn ask(&mut self, gate: Endpoint) -> bool {
        let Some(request) = self.mail.collect() else {
            return false;
        };
        let words = &request.words[..request.count];
        let answered = gate.call(Message::long(request.label, words));
        let mut answer = [0; WORDS];
        let count = answered.copy_words(&mut answer);
        self.mail.deliver(answered.label(), &answer[..count]);
        if let Some(arrivals) = self.arrivals {
            arrivals.call(Message::EMPTY);
        }
        true
    }
}
