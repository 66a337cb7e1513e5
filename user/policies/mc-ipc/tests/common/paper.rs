//! The pseudo-code of the paper's Figure 1, in its order and with its names; with the moves to and from the background
//! queue of section V.

use std::collections::VecDeque;

use sandglass_mc_ipc::mc_ipc::{ClusterView, View};
use sandglass_mc_ipc::{ClientId, Exhausted, Present, Protocol, Standing};

use super::{Explored, System};

/// A rule that is broken, by the line of Figure 1 that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// Lines 53 to 59 as they stand: see `mc_ipc`.
    AsPrinted,
    /// 13: the local head enters the global queue whether it has to wait or not.
    EntersRegardless,
    /// 15: everybody enters the head queue.
    HeadQueueOfAnyLength,
    /// 17: the tail queue is first in, first out.
    TailQueueInOrderOfArrival,
    /// 24: the background queue comes first.
    BackgroundFirst,
    /// 27: a best-effort request does not let the local head wait.
    BackgroundBesideLocalHead,
    /// 29: last in, first out.
    GlobalQueueBackwards,
    /// 35: the local head waits on.
    WaitsOn,
    /// 36: the local head is replaced even if it is another.
    ReplacesAnother,
    /// 37: nobody moves up from the tail queue.
    TailStays,
    /// 38: there is no new local head.
    NoNewLocalHead,
    /// 40: the new local head does not enter the global queue.
    LocalHeadStays,
    /// 50: nobody moves up from the tail queue when a request leaves the head queue.
    HeadQueueNotFilled,
    /// 54: the request stays in the global queue.
    StaysInGlobalQueue,
    /// 56: a client that has lost its budget in service does not let the next local head wait.
    InServiceBesideLocalHead,
}

impl Breach {
    pub const ALL: [Self; 15] = [
        Self::AsPrinted,
        Self::EntersRegardless,
        Self::HeadQueueOfAnyLength,
        Self::TailQueueInOrderOfArrival,
        Self::BackgroundFirst,
        Self::BackgroundBesideLocalHead,
        Self::GlobalQueueBackwards,
        Self::WaitsOn,
        Self::ReplacesAnother,
        Self::TailStays,
        Self::NoNewLocalHead,
        Self::LocalHeadStays,
        Self::HeadQueueNotFilled,
        Self::StaysInGlobalQueue,
        Self::InServiceBesideLocalHead,
    ];
}

#[derive(Clone, Debug)]
pub struct Paper {
    breach: Option<Breach>,
    processors: Vec<usize>,
    cluster_of: Vec<usize>,
    priority: Vec<u64>,
    currently_served: Option<ClientId>,
    local_head: Vec<Option<ClientId>>,
    global_queue: VecDeque<ClientId>,
    background_queue: VecDeque<ClientId>,
    head_queue: Vec<VecDeque<ClientId>>,
    tail_queue: Vec<Vec<ClientId>>,
    local_wait: Vec<bool>,
}

impl Paper {
    pub fn new(system: &System, breach: Option<Breach>) -> Self {
        let count = system.clusters.len();
        Self {
            breach,
            processors: system.processors(),
            cluster_of: system.numbers(),
            priority: vec![0; system.clients.len()],
            currently_served: None,
            local_head: vec![None; count],
            global_queue: VecDeque::new(),
            background_queue: VecDeque::new(),
            head_queue: vec![VecDeque::new(); count],
            tail_queue: vec![Vec::new(); count],
            local_wait: vec![false; count],
        }
    }

    fn is(&self, breach: Breach) -> bool {
        self.breach == Some(breach)
    }

    fn waits(&self, client: ClientId) -> bool {
        let k = self.cluster_of[client.0];
        self.local_head[k] == Some(client)
            || self.global_queue.contains(&client)
            || self.background_queue.contains(&client)
            || self.head_queue[k].contains(&client)
            || self.tail_queue[k].contains(&client)
    }

    fn mc_invoke(&mut self, client: ClientId) {
        let k = self.cluster_of[client.0];
        if self.local_head[k].is_none() {
            self.local_head[k] = Some(client);
            if !self.local_wait[k] || self.is(Breach::EntersRegardless) {
                self.global_queue.push_back(client);
            }
        } else if self.head_queue[k].len() < self.processors[k] - 1
            || self.is(Breach::HeadQueueOfAnyLength)
        {
            self.head_queue[k].push_back(client);
        } else {
            self.tail_queue[k].push(client);
            if !self.is(Breach::TailQueueInOrderOfArrival) {
                let priority = &self.priority;
                self.tail_queue[k].sort_by_key(|client| (priority[client.0], *client));
            }
        }
    }

    fn move_head_to_tail(&mut self, k: usize) {
        if !self.tail_queue[k].is_empty() {
            let first = self.tail_queue[k].remove(0);
            self.head_queue[k].push_back(first);
        }
    }

    fn mc_abort(&mut self, client: ClientId) {
        let k = self.cluster_of[client.0];
        self.background_queue.retain(|of| *of != client);
        if self.tail_queue[k].contains(&client) {
            self.tail_queue[k].retain(|of| *of != client);
            return;
        }
        if self.head_queue[k].contains(&client) {
            self.head_queue[k].retain(|of| *of != client);
            if !self.is(Breach::HeadQueueNotFilled) {
                self.move_head_to_tail(k);
            }
            return;
        }
        if self.global_queue.contains(&client) {
            if !self.is(Breach::StaysInGlobalQueue) {
                self.global_queue.retain(|of| *of != client);
            }
        } else if self.currently_served == Some(client)
            && !self.is(Breach::InServiceBesideLocalHead)
        {
            self.local_wait[k] = true;
        }
        if self.local_head[k] == Some(client) {
            if self.is(Breach::AsPrinted) {
                self.local_head[k] = self.head_queue[k].pop_front();
                self.move_head_to_tail(k);
                return;
            }
            self.move_head_to_tail(k);
            self.local_head[k] = self.head_queue[k].pop_front();
            let head = self.local_head[k].filter(|_| !self.local_wait[k]);
            self.global_queue.extend(head);
        }
    }
}

impl Protocol for Paper {
    fn invoke(&mut self, client: ClientId, standing: Standing) -> Result<(), Present> {
        if self.waits(client) || self.currently_served == Some(client) {
            return Err(Present);
        }
        match standing {
            Standing::RealTime(priority) => {
                self.priority[client.0] = priority;
                self.mc_invoke(client);
            }
            Standing::BestEffort => self.background_queue.push_back(client),
        }
        Ok(())
    }

    fn next(&mut self) -> Option<ClientId> {
        if self.currently_served.is_some() {
            return None;
        }
        let background = match self.is(Breach::BackgroundFirst) {
            true => !self.background_queue.is_empty(),
            false => self.global_queue.is_empty(),
        };
        if background {
            self.currently_served = self.background_queue.pop_front();
            if let Some(client) = self.currently_served {
                let k = self.cluster_of[client.0];
                self.local_wait[k] = !self.is(Breach::BackgroundBesideLocalHead);
            }
        } else if self.is(Breach::GlobalQueueBackwards) {
            self.currently_served = self.global_queue.pop_back();
        } else {
            self.currently_served = self.global_queue.pop_front();
        }
        self.currently_served
    }

    fn finish(&mut self) -> Option<ClientId> {
        let client = self.currently_served.take()?;
        let k = self.cluster_of[client.0];
        self.local_wait[k] = self.local_wait[k] && self.is(Breach::WaitsOn);
        if self.local_head[k] == Some(client) || self.is(Breach::ReplacesAnother) {
            if !self.is(Breach::TailStays) {
                self.move_head_to_tail(k);
            }
            self.local_head[k] = match self.is(Breach::NoNewLocalHead) {
                true => None,
                false => self.head_queue[k].pop_front(),
            };
        }
        let head = self.local_head[k].filter(|head| !self.global_queue.contains(head));
        if !self.local_wait[k] && !self.is(Breach::LocalHeadStays) {
            self.global_queue.extend(head);
        }
        Some(client)
    }

    fn exhaust(&mut self, client: ClientId) -> Exhausted {
        if self.currently_served == Some(client) {
            self.mc_abort(client);
            return Exhausted::InService;
        }
        if !self.waits(client) {
            return Exhausted::Absent;
        }
        if self.background_queue.contains(&client) {
            return Exhausted::Demoted;
        }
        self.mc_abort(client);
        self.background_queue.push_back(client);
        Exhausted::Demoted
    }

    fn replenish(&mut self, client: ClientId, priority: u64) -> bool {
        if !self.background_queue.contains(&client) {
            return false;
        }
        self.background_queue.retain(|of| *of != client);
        self.priority[client.0] = priority;
        self.mc_invoke(client);
        true
    }

    fn withdraw(&mut self, client: ClientId) -> bool {
        self.mc_abort(client);
        self.currently_served == Some(client)
    }

    fn served(&self) -> Option<ClientId> {
        self.currently_served
    }
}

impl Explored for Paper {
    fn look(&self) -> View {
        let clusters = (0..self.processors.len()).map(|k| ClusterView {
            local_head: self.local_head[k],
            head: self.head_queue[k].iter().copied().collect(),
            local_wait: self.local_wait[k],
        });
        let mut tails: Vec<ClientId> = self.tail_queue.iter().flatten().copied().collect();
        if !self.is(Breach::TailQueueInOrderOfArrival) {
            tails.sort();
        }
        View {
            served: self.currently_served,
            global: self.global_queue.iter().copied().collect(),
            background: self.background_queue.iter().copied().collect(),
            clusters: clusters.collect(),
            tails,
        }
    }
}
