//! What a request costs its client at most, and the budgets that follow from it (paper, theorem 1 and section VII). Times
//! are in whatever unit the caller has.

/// Requests, its own included, that a client pays for at most until its own is answered, each with at most the longest
/// operation's time: 1 + 2 · m_k · K. The client is in a cluster of `processors` cores, and requests come from at most
/// `clusters` clusters. It is about a client that keeps its budget meanwhile; one that does not begins anew.
///
/// This is for the most urgent client of its cluster: see [`requests_behind`].
pub const fn requests(processors: u64, clusters: u64) -> u64 {
    2u64.saturating_mul(processors)
        .saturating_mul(clusters)
        .saturating_add(1)
}

/// The same for a client in whose cluster others are more urgent, and may lose their budgets: one request more.
///
/// The paper has no difference here (lemma 4): a client that loses its budget in service would have been paid for by those
/// behind it anyway. But those behind it do not pay while it has budget, if it is more urgent and they have no core beside
/// it; and it can pass somebody in the tail queue, enter service, and lose its budget then. The rest of its request is on
/// who was passed, who is local head from then on, so that happens once. `tests/exploration.rs` finds nothing worse in any
/// state, and `tests/scenarios.rs` has the case.
pub const fn requests_behind(processors: u64, clusters: u64) -> u64 {
    requests(processors, clusters).saturating_add(1)
}

/// A server that a client calls, with what is assumed of it at one level of criticality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Of one job, at most.
    pub count: u64,
    /// The longest operation.
    pub longest: u64,
    /// Clusters that requests come from.
    pub clusters: u64,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Cores of its cluster.
    pub processors: u64,
    /// No client of its cluster is more urgent.
    pub is_first: bool,
}

impl Calls {
    /// What all of these calls of one job take of the client's budget at most.
    pub const fn delay(self, caller: Caller) -> u64 {
        let requests = if caller.is_first {
            requests(caller.processors, self.clusters)
        } else {
            requests_behind(caller.processors, self.clusters)
        };
        requests
            .saturating_mul(self.longest)
            .saturating_mul(self.count)
    }
}

/// The longest operation of a server that calls another one up to `count` times in it, and needs `own` beside that; the other
/// one's longest operation is `longest`, and its requests come from `clusters` clusters, of which this server is one of its own.
///
/// Being alone in its cluster, it enters the global queue at once, and is there at most once: so each request waits for at
/// most one of every other cluster, in whatever order, and for itself. Nobody of its cluster can lose a budget in service
/// before it (lemma 3), and it does not lose its place when whoever pays for it loses theirs: others do who wait at its own
/// gate, or, when it is served, at the other one's. Its clients' bound follows with this length: (1 + 2·m·K) times it.
pub const fn longest_with_calls(own: u64, count: u64, longest: u64, clusters: u64) -> u64 {
    own.saturating_add(count.saturating_mul(clusters).saturating_mul(longest))
}

/// The budget of a client that needs `own` for itself and calls these servers.
pub fn budget(own: u64, caller: Caller, calls: impl IntoIterator<Item = Calls>) -> u64 {
    calls
        .into_iter()
        .map(|calls| calls.delay(caller))
        .fold(own, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's case study: 4 cores, 2 ms, 18 ms.
    #[test]
    fn a_request_to_the_key_server_takes_18_ms_at_most() {
        let key = Calls {
            count: 1,
            longest: 2_000,
            clusters: 4,
        };
        let first = Caller {
            processors: 1,
            is_first: true,
        };
        assert_eq!(key.delay(first), 18_000);
        assert_eq!(budget(5_000, first, [key, key]), 41_000);
        let behind = Caller {
            is_first: false,
            ..first
        };
        assert_eq!(key.delay(behind), 20_000);
    }

    /// By assuming that less criticality means shorter operations and fewer clusters, budgets are shorter, too.
    #[test]
    fn what_is_assumed_depends_on_criticality() {
        let high = Calls {
            count: 2,
            longest: 300,
            clusters: 3,
        };
        let low = Calls {
            longest: 200,
            clusters: 2,
            ..high
        };
        let caller = Caller {
            processors: 2,
            is_first: true,
        };
        assert_eq!(high.delay(caller), 2 * 13 * 300);
        assert_eq!(low.delay(caller), 2 * 9 * 200);
    }

    /// Four cores and the server itself are five clusters.
    #[test]
    fn an_operation_waits_for_one_request_of_every_cluster_at_each_call() {
        assert_eq!(longest_with_calls(300, 2, 100, 5), 1_300);
        assert_eq!(longest_with_calls(300, 0, 100, 5), 300);
    }

    #[test]
    fn what_is_too_much_to_say_saturates() {
        assert_eq!(requests(u64::MAX, 2), u64::MAX);
    }
}
