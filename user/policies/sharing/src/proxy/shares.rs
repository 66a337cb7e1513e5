//! How long the proxy works for each client: no longer than the client may run itself.
//!
//! The proxy is above all who share, and works on time of its own. A request costs it several times what it costs who makes
//! it, and a refusal twice that. So a client that has had as much of the proxy's time in a period of its own as it has
//! budget is not heard before the next; it waits for its answer meanwhile, and others do not notice.

use alloc::vec::Vec;

/// The clients, by number; all times are in ticks of one clock.
#[derive(Clone, Debug)]
pub struct Shares(Vec<Share>);

#[derive(Clone, Copy, Debug)]
struct Share {
    budget: u64,
    period: u64,
    /// When the current period began: with the first request behind the end of the one before.
    begun: u64,
    /// Of the proxy's time, since then.
    used: u64,
}

impl Shares {
    /// Of each client, its budget and its period.
    pub fn new(reservations: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let share = |(budget, period)| Share {
            budget,
            period,
            begun: 0,
            used: 0,
        };
        Self(reservations.into_iter().map(share).collect())
    }

    /// Whether the proxy works for a client at the time `now`. With this a period begins, if the one before is over.
    pub fn admits(&mut self, client: usize, now: u64) -> bool {
        let Some(share) = self.0.get_mut(client) else {
            return true;
        };
        if now.saturating_sub(share.begun) >= share.period {
            share.begun = now;
            share.used = 0;
        }
        share.used < share.budget
    }

    /// The proxy has worked for a client.
    pub fn charge(&mut self, client: usize, ticks: u64) {
        if let Some(share) = self.0.get_mut(client) {
            share.used = share.used.saturating_add(ticks);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_has_used_its_share_waits_for_its_next_period() {
        let mut shares = Shares::new([(10, 100), (10, 100)]);
        assert!(shares.admits(0, 1_000));
        shares.charge(0, 9);
        assert!(shares.admits(0, 1_050));
        shares.charge(0, 1);
        assert!(!shares.admits(0, 1_099));
        assert!(shares.admits(1, 1_099), "the other has its own");
        assert!(shares.admits(0, 1_100));
    }

    proptest! {
        /// In any window of a period, a client has at most twice its budget and what two requests cost; and one that costs less
        /// than its budget in any period is never kept waiting.
        #[test]
        fn shares_are_kept(
            requests in prop::collection::vec((0..150u64, 1..20u64), 1..200),
            budget in 1..100u64,
        ) {
            const PERIOD: u64 = 100;
            let mut shares = Shares::new([(budget, PERIOD)]);
            let (mut now, mut served, mut asked) = (1_000, Vec::new(), Vec::new());
            for (wait, cost) in requests {
                now += wait;
                asked.push((now, cost));
                let window = |list: &[(u64, u64)]| {
                    let recent = list.iter().filter(|(at, _)| now - at < PERIOD);
                    recent.map(|(_, cost)| cost).sum::<u64>()
                };
                if shares.admits(0, now) {
                    shares.charge(0, cost);
                    served.push((now, cost));
                    prop_assert!(window(&served) <= 2 * budget + 2 * 20);
                } else {
                    prop_assert!(window(&asked) >= budget);
                }
            }
        }
    }
}
