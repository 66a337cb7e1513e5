//! The MC-IPC gate (paper, section IV and Figure 1).
//!
//! Requests pass through three levels. Within a cluster of m cores, the most urgent m wait in order of arrival, one of them
//! as the *local head*, the others in the *head queue*; those behind them wait by priority in the *tail queue*. The local
//! heads of all clusters, one each, wait in the *global queue*, in order of arrival. Whoever has no budget, or never had,
//! waits in the *background queue*, which is served when the global one is empty.
//!
//! While a request of the background queue is in service, or one whose client has lost its budget, its cluster has its turn
//! at the global level with that one: the cluster's local head has to wait (*local wait*).
//!
//! # Where it differs from the paper's Figure 1
//!
//! By its text, `mc_abort` first makes the first of the head queue the local head and then fills the head queue up, and does
//! not let the new local head into the global queue. With one core in a cluster the head queue is always empty, so whoever
//! waits in the tail queue would move to the head queue and stay there; with several, the new local head would never be
//! served. Here a cluster is always settled in one way ([`McIpc::settle`]): the head queue is filled up, then its first is
//! the local head, and that enters the global queue unless it has to wait. Tests explore both, and see the paper's stand
//! still.
//!
//! A request whose client has lost its budget moves to the background queue (paper, section V), and to its proper place
//! again when the client has budget.

use alloc::vec::Vec;

use sandglass_edf::queue::Queue;
use sandglass_edf::TaskId;

use crate::list::{Links, List};
use crate::protocol::{ClientId, Exhausted, Present, Protocol, Standing};

/// Where a client's request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Tail,
    Head,
    /// It is its cluster's local head, and has to wait.
    LocalHead,
    /// It is its cluster's local head.
    Global,
    Background,
    InService,
}

#[derive(Clone, Debug)]
struct Cluster {
    processors: usize,
    local_head: Option<ClientId>,
    /// At most one less than there are processors.
    head: List,
    tail: Queue,
    /// The local head has to wait.
    local_wait: bool,
}

/// A cluster, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterView {
    pub local_head: Option<ClientId>,
    pub head: Vec<ClientId>,
    pub local_wait: bool,
}

/// A gate, as others see it: for traces and tests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub served: Option<ClientId>,
    pub global: Vec<ClientId>,
    pub background: Vec<ClientId>,
    pub clusters: Vec<ClusterView>,
    /// Those in tail queues, by number.
    pub tails: Vec<ClientId>,
}

/// The gate of one server. All operations are O(log n) in the number of clients, those without a tail queue O(1).
#[derive(Clone, Debug)]
pub struct McIpc {
    clusters: Vec<Cluster>,
    /// Of each client: its cluster, and where its request is.
    clients: Vec<(usize, Place)>,
    links: Links,
    global: List,
    background: List,
    served: Option<ClientId>,
    /// Whose turn at the global level the request in service is.
    serving_cluster: usize,
}

impl McIpc {
    /// For clusters of so many cores, and clients by the number of their cluster.
    ///
    /// # Panics
    /// A cluster has no cores, or a client is in none of them.
    pub fn new(processors: &[usize], clusters: &[usize]) -> Self {
        assert!(
            processors.iter().all(|&count| count > 0),
            "a cluster has cores"
        );
        assert!(
            clusters.iter().all(|&cluster| cluster < processors.len()),
            "a client is in one of the clusters"
        );
        let count = clusters.len();
        let made = processors.iter().map(|&processors| Cluster {
            processors,
            local_head: None,
            head: List::default(),
            tail: Queue::new(count),
            local_wait: false,
        });
        Self {
            clusters: made.collect(),
            clients: clusters
                .iter()
                .map(|&cluster| (cluster, Place::Nowhere))
                .collect(),
            links: Links::new(count),
            global: List::default(),
            background: List::default(),
            served: None,
            serving_cluster: 0,
        }
    }

    /// Who waits where. O(n).
    pub fn view(&self) -> View {
        let clusters = self.clusters.iter().map(|cluster| ClusterView {
            local_head: cluster.local_head,
            head: cluster.head.iter(&self.links).collect(),
            local_wait: cluster.local_wait,
        });
        let numbers = (0..self.clients.len()).map(ClientId);
        View {
            served: self.served,
            global: self.global.iter(&self.links).collect(),
            background: self.background.iter(&self.links).collect(),
            clusters: clusters.collect(),
            tails: numbers
                .filter(|client| self.place(*client) == Place::Tail)
                .collect(),
        }
    }

    fn place(&self, client: ClientId) -> Place {
        self.clients[client.0].1
    }

    fn put(&mut self, client: ClientId, place: Place) {
        self.clients[client.0].1 = place;
    }

    /// A request with budget enters its cluster.
    fn enter(&mut self, client: ClientId, priority: u64) {
        let number = self.clients[client.0].0;
        let cluster = &mut self.clusters[number];
        cluster.tail.insert(priority, TaskId(client.0));
        self.put(client, Place::Tail);
        self.settle(number);
    }

    /// A request in the background queue.
    fn enter_background(&mut self, client: ClientId) {
        self.background.push(&mut self.links, client);
        self.put(client, Place::Background);
    }

    /// Takes a request that waits out of its queue.
    fn leave(&mut self, client: ClientId) {
        let (number, place) = self.clients[client.0];
        let cluster = &mut self.clusters[number];
        match place {
            Place::Nowhere | Place::InService => return,
            Place::Tail => cluster.tail.remove(TaskId(client.0)),
            Place::Head => cluster.head.remove(&mut self.links, client),
            Place::LocalHead => cluster.local_head = None,
            Place::Global => {
                cluster.local_head = None;
                self.global.remove(&mut self.links, client);
            }
            Place::Background => self.background.remove(&mut self.links, client),
        }
        self.put(client, Place::Nowhere);
        self.settle(number);
    }

    /// Restores a cluster's rules: the head queue is full if there is anybody behind it; there is a local head if anybody
    /// waits; and that is at the global level unless it has to wait.
    fn settle(&mut self, number: usize) {
        loop {
            let cluster = &mut self.clusters[number];
            let ahead = cluster.head.len() + usize::from(cluster.local_head.is_some());
            let first = cluster.tail.first().filter(|_| ahead < cluster.processors);
            let Some((_, task)) = first else {
                break;
            };
            cluster.tail.remove(task);
            let client = ClientId(task.0);
            cluster.head.push(&mut self.links, client);
            self.put(client, Place::Head);
            self.promote(number);
        }
        self.promote(number);
    }

    fn promote(&mut self, number: usize) {
        let cluster = &mut self.clusters[number];
        if cluster.local_head.is_none() {
            cluster.local_head = cluster.head.pop(&mut self.links);
            if let Some(head) = cluster.local_head {
                self.put(head, Place::LocalHead);
            }
        }
        let cluster = &self.clusters[number];
        let ready = cluster.local_head.filter(|_| !cluster.local_wait);
        if let Some(head) = ready.filter(|head| self.place(*head) == Place::LocalHead) {
            self.global.push(&mut self.links, head);
            self.put(head, Place::Global);
        }
    }

    fn serve(&mut self, client: ClientId) {
        self.put(client, Place::InService);
        self.served = Some(client);
        self.serving_cluster = self.clients[client.0].0;
    }

    /// The request in service is the cluster's turn at the global level, though not by its local head.
    fn block(&mut self, client: ClientId) {
        let number = self.serving_cluster;
        let cluster = &mut self.clusters[number];
        cluster.local_wait = true;
        cluster.local_head.take_if(|head| *head == client);
        self.settle(number);
    }
}

impl Protocol for McIpc {
    fn invoke(&mut self, client: ClientId, standing: Standing) -> Result<(), Present> {
        if self.place(client) != Place::Nowhere {
            return Err(Present);
        }
        match standing {
            Standing::RealTime(priority) => self.enter(client, priority),
            Standing::BestEffort => self.enter_background(client),
        }
        Ok(())
    }

    fn next(&mut self) -> Option<ClientId> {
        if self.served.is_some() {
            return None;
        }
        if let Some(first) = self.global.pop(&mut self.links) {
            // It stays its cluster's local head until it is finished.
            self.serve(first);
        } else if let Some(first) = self.background.pop(&mut self.links) {
            self.serve(first);
            self.block(first);
        }
        self.served
    }

    fn finish(&mut self) -> Option<ClientId> {
        let client = self.served.take()?;
        let number = self.serving_cluster;
        self.put(client, Place::Nowhere);
        let cluster = &mut self.clusters[number];
        cluster.local_wait = false;
        cluster.local_head.take_if(|head| *head == client);
        self.settle(number);
        Some(client)
    }

    fn exhaust(&mut self, client: ClientId) -> Exhausted {
        match self.place(client) {
            Place::Nowhere => Exhausted::Absent,
            Place::InService => {
                self.block(client);
                Exhausted::InService
            }
            Place::Background => Exhausted::Demoted,
            Place::Tail | Place::Head | Place::LocalHead | Place::Global => {
                self.leave(client);
                self.enter_background(client);
                Exhausted::Demoted
            }
        }
    }

    fn replenish(&mut self, client: ClientId, priority: u64) -> bool {
        if self.place(client) != Place::Background {
            return false;
        }
        self.leave(client);
        self.enter(client, priority);
        true
    }

    fn withdraw(&mut self, client: ClientId) -> bool {
        if self.place(client) == Place::InService {
            self.block(client);
            return true;
        }
        self.leave(client);
        false
    }

    fn relocate(&mut self, client: ClientId, cluster: usize, priority: u64) {
        let (before, place) = self.clients[client.0];
        if cluster == before || cluster >= self.clusters.len() {
            return;
        }
        match place {
            Place::Nowhere | Place::Background | Place::InService => {
                self.clients[client.0].0 = cluster;
            }
            Place::Tail | Place::Head | Place::LocalHead | Place::Global => {
                self.leave(client);
                self.clients[client.0].0 = cluster;
                self.enter(client, priority);
            }
        }
    }

    fn served(&self) -> Option<ClientId> {
        self.served
    }
}
