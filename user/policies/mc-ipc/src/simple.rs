//! Gates for comparison (paper, section VI): one queue for all clusters, in order of arrival or of priority. Requests of
//! clients without budget stay where they are.

use alloc::vec;
use alloc::vec::Vec;

use sandglass_edf::queue::Queue;
use sandglass_edf::TaskId;

use crate::list::{Links, List};
use crate::protocol::{ClientId, Exhausted, Present, Protocol, Standing};

/// Where a client's request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Waiting,
    InService,
}

/// What both have in common: where requests are.
#[derive(Clone, Debug)]
struct Places {
    clients: Vec<Place>,
    served: Option<ClientId>,
}

impl Places {
    fn new(clients: usize) -> Self {
        Self {
            clients: vec![Place::Nowhere; clients],
            served: None,
        }
    }

    fn enter(&mut self, client: ClientId) -> Result<(), Present> {
        let place = &mut self.clients[client.0];
        if *place != Place::Nowhere {
            return Err(Present);
        }
        *place = Place::Waiting;
        Ok(())
    }

    fn serve(&mut self, next: Option<ClientId>) -> Option<ClientId> {
        self.served = next;
        if let Some(client) = next {
            self.clients[client.0] = Place::InService;
        }
        next
    }

    fn finish(&mut self) -> Option<ClientId> {
        let client = self.served.take()?;
        self.clients[client.0] = Place::Nowhere;
        Some(client)
    }

    fn exhausted(&self, client: ClientId) -> Exhausted {
        match self.clients[client.0] {
            Place::Nowhere => Exhausted::Absent,
            Place::Waiting => Exhausted::Kept,
            Place::InService => Exhausted::InService,
        }
    }

    /// Whether it waited.
    fn leave(&mut self, client: ClientId) -> bool {
        let place = &mut self.clients[client.0];
        let waited = *place == Place::Waiting;
        if waited {
            *place = Place::Nowhere;
        }
        waited
    }
}

/// First in, first out, as the multiprocessor bandwidth inheritance protocol has it.
#[derive(Clone, Debug)]
pub struct Fifo {
    places: Places,
    links: Links,
    queue: List,
}

impl Fifo {
    pub fn new(clients: usize) -> Self {
        Self {
            places: Places::new(clients),
            links: Links::new(clients),
            queue: List::default(),
        }
    }
}

impl Protocol for Fifo {
    fn invoke(&mut self, client: ClientId, _standing: Standing) -> Result<(), Present> {
        self.places.enter(client)?;
        self.queue.push(&mut self.links, client);
        Ok(())
    }

    fn next(&mut self) -> Option<ClientId> {
        if self.places.served.is_some() {
            return None;
        }
        let first = self.queue.pop(&mut self.links);
        self.places.serve(first)
    }

    fn finish(&mut self) -> Option<ClientId> {
        self.places.finish()
    }

    fn exhaust(&mut self, client: ClientId) -> Exhausted {
        self.places.exhausted(client)
    }

    fn replenish(&mut self, _client: ClientId, _priority: u64) -> bool {
        false
    }

    fn withdraw(&mut self, client: ClientId) -> bool {
        if self.places.leave(client) {
            self.queue.remove(&mut self.links, client);
        }
        self.places.served == Some(client)
    }

    fn served(&self) -> Option<ClientId> {
        self.places.served
    }
}

/// By priority, whatever the cluster; of equal ones, the client with the lower number. Whoever has no reservation comes
/// last.
#[derive(Clone, Debug)]
pub struct Prio {
    places: Places,
    queue: Queue,
}

impl Prio {
    pub fn new(clients: usize) -> Self {
        Self {
            places: Places::new(clients),
            queue: Queue::new(clients),
        }
    }
}

impl Protocol for Prio {
    fn invoke(&mut self, client: ClientId, standing: Standing) -> Result<(), Present> {
        self.places.enter(client)?;
        let priority = match standing {
            Standing::RealTime(priority) => priority,
            Standing::BestEffort => u64::MAX,
        };
        self.queue.insert(priority, TaskId(client.0));
        Ok(())
    }

    fn next(&mut self) -> Option<ClientId> {
        if self.places.served.is_some() {
            return None;
        }
        let first = self.queue.first().map(|(_, task)| task);
        if let Some(task) = first {
            self.queue.remove(task);
        }
        self.places.serve(first.map(|task| ClientId(task.0)))
    }

    fn finish(&mut self) -> Option<ClientId> {
        self.places.finish()
    }

    fn exhaust(&mut self, client: ClientId) -> Exhausted {
        self.places.exhausted(client)
    }

    fn replenish(&mut self, _client: ClientId, _priority: u64) -> bool {
        false
    }

    fn withdraw(&mut self, client: ClientId) -> bool {
        if self.places.leave(client) {
            self.queue.remove(TaskId(client.0));
        }
        self.places.served == Some(client)
    }

    fn served(&self) -> Option<ClientId> {
        self.places.served
    }
}
