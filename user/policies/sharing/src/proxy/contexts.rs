//! Where the clients' scheduling contexts are.

use alloc::format;
use alloc::vec::Vec;

use sandglass::cap::{SchedContext, Tcb};
use sandglass::{Environment, Error};

use super::Server;

/// The contexts of all clients. A thread has at most one.
pub struct Contexts {
    clients: Vec<Client>,
    servers: Vec<Tcb>,
    /// A thread that waits for good, if there is one: a context without budget cannot be bound to it.
    probe: Option<Tcb>,
}

struct Client {
    tcb: Tcb,
    context: SchedContext,
    place: Place,
}

/// Which thread a context is bound to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Client,
    Server(usize),
    /// No thread: its client waits, and its server runs on another's, or it ran out.
    Nowhere,
}

impl Contexts {
    pub fn find(env: &Environment, clients: usize, servers: &[Server], probe: Option<Tcb>) -> Self {
        let client = |number| Client {
            tcb: env.capability(&format!("client.{number}.tcb")),
            context: env.capability(&format!("client.{number}.context")),
            place: Place::Client,
        };
        Self {
            clients: (0..clients).map(client).collect(),
            servers: servers.iter().map(|server| server.tcb).collect(),
            probe,
        }
    }

    /// Takes the client's context from where it is, and the server's, if it has one.
    pub fn free(&mut self, client: usize, server: usize) -> Result<(), Error> {
        self.take(client)?;
        self.free_server(server)
    }

    /// Takes the server's context, if it has one.
    fn free_server(&mut self, server: usize) -> Result<(), Error> {
        let holder = self
            .clients
            .iter()
            .position(|other| other.place == Place::Server(server));
        holder.map_or(Ok(()), |holder| self.take(holder))
    }

    /// Gives a server the context of a client instead of what it has, if there is budget in it. Else the server keeps what
    /// it has, and the client, which waits, gets its context when it is answered.
    pub fn help(&mut self, client: usize, server: usize) -> bool {
        if self.take(client).is_err() || !self.has_budget(client) {
            return false;
        }
        self.free_server(server).is_ok() && self.give(client, server).is_ok()
    }

    /// Whether there is budget in a context that is nowhere.
    fn has_budget(&self, client: usize) -> bool {
        let context = self.clients[client].context;
        self.probe.is_none_or(|probe| {
            // What was bound can be unbound.
            context.bind(probe).is_ok() && context.unbind_tcb(probe).is_ok()
        })
    }

    /// Gives a server without a context that of a client, which is nowhere.
    ///
    /// # Errors
    /// The server waits, and the context has no budget.
    pub fn give(&mut self, client: usize, server: usize) -> Result<(), Error> {
        let client = &mut self.clients[client];
        client.context.bind(self.servers[server])?;
        client.place = Place::Server(server);
        Ok(())
    }

    /// Gives a client that runs again its context, if that is where it was left, and the client has no other
    /// by now.
    pub fn give_back(&mut self, client: usize) {
        if self.clients[client].place == Place::Client || self.take(client).is_err() {
            return;
        }
        let client = &mut self.clients[client];
        if client.context.bind(client.tcb).is_ok() {
            client.place = Place::Client;
        }
    }

    fn take(&mut self, client: usize) -> Result<(), Error> {
        let client = &mut self.clients[client];
        match client.place {
            Place::Client => client.context.unbind_tcb(client.tcb)?,
            Place::Server(server) => client.context.unbind_tcb(self.servers[server])?,
            Place::Nowhere => {}
        }
        client.place = Place::Nowhere;
        Ok(())
    }
}
