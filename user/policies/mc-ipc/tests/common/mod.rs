//! What the tests explore: the gate, and the paper's Figure 1 written down as it stands, mended, or broken on purpose.

pub mod paper;

use sandglass_mc_ipc::mc_ipc::View;
use sandglass_mc_ipc::{ClientId, McIpc, Protocol};

/// A gate that can be looked into.
pub trait Explored: Protocol + Clone {
    fn look(&self) -> View;
}

impl Explored for McIpc {
    fn look(&self) -> View {
        self.view()
    }
}

/// A cluster: its cores, and how many clients with and without a reservation it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cluster {
    pub processors: usize,
    pub real_time: usize,
    pub best_effort: usize,
}

/// Clients are numbered cluster by cluster, those with a reservation first, by priority.
#[derive(Clone, Debug)]
pub struct System {
    pub clusters: Vec<Cluster>,
    /// Of each client: its cluster, and its priority there if it has a reservation.
    pub clients: Vec<(usize, Option<u64>)>,
}

impl System {
    pub fn new(clusters: &[Cluster]) -> Self {
        let of = |(number, cluster): (usize, &Cluster)| {
            let real_time = (0..cluster.real_time as u64).map(Some);
            let best_effort = std::iter::repeat_n(None, cluster.best_effort);
            real_time
                .chain(best_effort)
                .map(move |priority| (number, priority))
                .collect::<Vec<_>>()
        };
        Self {
            clusters: clusters.to_vec(),
            clients: clusters.iter().enumerate().flat_map(of).collect(),
        }
    }

    pub fn gate(&self) -> McIpc {
        McIpc::new(&self.processors(), &self.numbers())
    }

    pub fn processors(&self) -> Vec<usize> {
        self.clusters.iter().map(|of| of.processors).collect()
    }

    pub fn numbers(&self) -> Vec<usize> {
        self.clients.iter().map(|of| of.0).collect()
    }

    pub fn all(&self) -> impl Iterator<Item = ClientId> {
        (0..self.clients.len()).map(ClientId)
    }

    /// All systems of up to so many clusters and clients, without those that differ in the order of clusters only, or in
    /// cores that no client with a reservation is there for.
    pub fn up_to(clusters: usize, clients: usize) -> Vec<Self> {
        let mut found = Vec::new();
        extend(&mut Vec::new(), clusters, clients, &mut found);
        found
    }
}

fn extend(chosen: &mut Vec<Cluster>, clusters: usize, clients: usize, found: &mut Vec<System>) {
    if !chosen.is_empty() {
        found.push(System::new(chosen));
    }
    if clusters == 0 {
        return;
    }
    for real_time in 0..=clients {
        for best_effort in 0..=clients - real_time {
            for processors in 1..=real_time.max(1) {
                let next = Cluster {
                    processors,
                    real_time,
                    best_effort,
                };
                let in_order = chosen.last().is_none_or(|last| *last <= next);
                if real_time + best_effort > 0 && in_order {
                    chosen.push(next);
                    extend(
                        chosen,
                        clusters - 1,
                        clients - real_time - best_effort,
                        found,
                    );
                    chosen.pop();
                }
            }
        }
    }
}
