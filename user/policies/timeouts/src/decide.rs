//! Which policy applies to a timeout, as a pure state machine: what it remembers is how often each
//! client was helped, and what the server's spare context holds.

use alloc::vec::Vec;

use sandglass_description::policy::timeouts::{Last, Policy, Timeouts};

/// What is to be done about a timeout. Clients are numbered as in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// The client's budget becomes `budget_us`, and the server continues.
    Extend { client: usize, budget_us: u64 },
    /// The server continues on the spare context, filled with `budget_us` in `period_us`.
    Emergency {
        client: usize,
        budget_us: u64,
        period_us: u64,
    },
    /// The request ends; the server restarts on the spare context. `client` is `None` for time of
    /// a client that is not in the table.
    Recover {
        client: Option<usize>,
        how: Last,
        spare: Spare,
    },
}

/// What the spare context needs before a server can restart on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// Nothing: it is filled for a restart, and free.
    Ready,
    /// It is free, and filled for an emergency that has ended.
    Refill,
    /// The server runs on it: an emergency ran out.
    InUse,
    /// The server may run on it, or not: it was stopped by a fault.
    Unknown,
}

/// How often a client was helped.
#[derive(Clone, Copy, Debug, Default)]
struct Helped {
    extended: u32,
    emergencies: u32,
}

/// The policies of one server.
#[derive(Clone, Debug)]
pub struct Policies {
    table: Timeouts,
    helped: Vec<Helped>,
    /// The client for which the spare context was filled last, if that was for an emergency.
    emergency: Option<usize>,
}

impl Policies {
    pub fn new(table: Timeouts) -> Self {
        Self {
            helped: alloc::vec![Helped::default(); table.clients.len()],
            emergency: None,
            table,
        }
    }

    pub const fn table(&self) -> &Timeouts {
        &self.table
    }

    /// The server timed out on a scheduling context with `badge`.
    pub fn timeout(&mut self, badge: u64) -> Decision {
        if badge == self.table.emergency_badge {
            return self.emergency_ran_out();
        }
        let Some(client) = self.client(badge) else {
            return self.recover(None, self.table.default);
        };
        let policy = self.table.clients[client].policy;
        self.help(client, policy)
            .unwrap_or_else(|| self.recover(Some(client), policy.last()))
    }

    fn client(&self, badge: u64) -> Option<usize> {
        let mut clients = self.table.clients.iter();
        clients.position(|client| client.badge == badge)
    }

    /// The request continues, if the client's policy has this help, and has it left.
    fn help(&mut self, client: usize, policy: Policy) -> Option<Decision> {
        let helped = &mut self.helped[client];
        let described = &self.table.clients[client];
        match policy {
            Policy::Extend { by_us, limit, .. } if helped.extended < limit => {
                helped.extended += 1;
                Some(Decision::Extend {
                    client,
                    budget_us: described.budget_us + by_us * u64::from(helped.extended),
                })
            }
            Policy::Emergency {
                budget_us, limit, ..
            } if helped.emergencies < limit => {
                helped.emergencies += 1;
                self.emergency = Some(client);
                Some(Decision::Emergency {
                    client,
                    budget_us,
                    period_us: described.period_us,
                })
            }
            _ => None,
        }
    }

    /// A fault has stopped the server in a request; it does not say whose.
    pub fn faulted(&mut self) -> Decision {
        self.emergency = None;
        Decision::Recover {
            client: None,
            how: Last::Reset,
            spare: Spare::Unknown,
        }
    }

    /// The request ends on its client's time.
    fn recover(&mut self, client: Option<usize>, how: Last) -> Decision {
        let spare = match self.emergency.take() {
            Some(_) => Spare::Refill,
            None => Spare::Ready,
        };
        Decision::Recover { client, how, spare }
    }

    fn emergency_ran_out(&mut self) -> Decision {
        let client = self.emergency.take();
        let how = client.map_or(self.table.default, |client| {
            self.table.clients[client].policy.last()
        });
        Decision::Recover {
            client,
            how,
            spare: Spare::InUse,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sandglass_description::policy::timeouts::Client;

    use super::*;

    const EMERGENCY: u64 = 99;

    fn policies(of_clients: &[Policy]) -> Policies {
        let client = |(index, policy): (usize, &Policy)| Client {
            name: format!("client-{index}"),
            badge: index as u64 + 1,
            caller: None,
            core: 0,
            budget_us: 1_000,
            period_us: 10_000,
            extra_refills: 0,
            sporadic: false,
            policy: *policy,
        };
        Policies::new(Timeouts {
            endpoint: "work".into(),
            restart_us: 5_000,
            core: 0,
            emergency_badge: EMERGENCY,
            calls_servers: false,
            default: Last::Reset,
            clients: of_clients.iter().enumerate().map(client).collect(),
        })
    }

    const fn recover(client: usize, how: Last, spare: Spare) -> Decision {
        Decision::Recover {
            client: Some(client),
            how,
            spare,
        }
    }

    #[test]
    fn budgets_grow_up_to_the_limit() {
        let mut policies = policies(&[Policy::Extend {
            by_us: 300,
            limit: 2,
            then: Last::Kill,
        }]);
        for budget_us in [1_300, 1_600] {
            let extended = Decision::Extend {
                client: 0,
                budget_us,
            };
            assert_eq!(policies.timeout(1), extended);
        }
        assert_eq!(policies.timeout(1), recover(0, Last::Kill, Spare::Ready));
    }

    #[test]
    fn an_emergency_that_runs_out_ends_the_request_of_the_one_who_was_helped() {
        let mut policies = policies(&[
            Policy::Last(Last::Rollback),
            Policy::Emergency {
                budget_us: 500,
                limit: 2,
                then: Last::Reset,
            },
        ]);
        let emergency = Decision::Emergency {
            client: 1,
            budget_us: 500,
            period_us: 10_000,
        };
        assert_eq!(policies.timeout(2), emergency);
        let out = recover(1, Last::Reset, Spare::InUse);
        assert_eq!(policies.timeout(EMERGENCY), out);
        // It is filled for a restart again.
        assert_eq!(
            policies.timeout(1),
            recover(0, Last::Rollback, Spare::Ready)
        );
        assert_eq!(policies.timeout(2), emergency);
        // The emergency ended well, and the spare context is still filled for it.
        assert_eq!(policies.timeout(2), recover(1, Last::Reset, Spare::Refill));
        assert_eq!(
            policies.timeout(1),
            recover(0, Last::Rollback, Spare::Ready)
        );
    }

    #[test]
    fn a_strangers_time_gets_the_default() {
        let decision = policies(&[]).timeout(7);
        let expected = Decision::Recover {
            client: None,
            how: Last::Reset,
            spare: Spare::Ready,
        };
        assert_eq!(decision, expected);
    }

    fn last() -> impl Strategy<Value = Last> {
        prop_oneof![Just(Last::Rollback), Just(Last::Reset), Just(Last::Kill)]
    }

    fn policy() -> impl Strategy<Value = Policy> {
        prop_oneof![
            last().prop_map(Policy::Last),
            (1..900u64, 0..4u32, last()).prop_map(|(by_us, limit, then)| Policy::Extend {
                by_us,
                limit,
                then
            }),
            (20..900u64, 0..4u32, last()).prop_map(|(budget_us, limit, then)| {
                Policy::Emergency {
                    budget_us,
                    limit,
                    then,
                }
            }),
        ]
    }

    proptest! {
        /// Whatever times out in whatever order: no client is helped more often than it may be, each
        /// request ends as its client's policy says, and the spare context is used only as it is
        /// filled.
        #[test]
        fn help_is_bounded_and_the_spare_context_is_known(
            of_clients in prop::collection::vec(policy(), 1..5),
            timeouts in prop::collection::vec((0..6u64, any::<bool>()), 0..60),
        ) {
            let mut policies = policies(&of_clients);
            let mut helped = vec![0; of_clients.len()];
            // What a faithful driver has made of the spare context.
            let (mut filled_for_emergency, mut in_emergency) = (false, false);
            for (badge, runs_out) in timeouts {
                // In an emergency, the next timeout is the emergency's, unless it ended well.
                let badge = if in_emergency && runs_out { EMERGENCY } else { badge };
                match policies.timeout(badge) {
                    Decision::Extend { client, budget_us } => {
                        helped[client] += 1;
                        let Policy::Extend { by_us, limit, .. } = of_clients[client] else {
                            panic!("{client} is not to be extended");
                        };
                        prop_assert!(helped[client] <= limit);
                        prop_assert_eq!(budget_us, 1_000 + by_us * u64::from(helped[client]));
                        in_emergency = false;
                    }
                    Decision::Emergency { client, .. } => {
                        helped[client] += 1;
                        let Policy::Emergency { limit, .. } = of_clients[client] else {
                            panic!("{client} has no emergencies");
                        };
                        prop_assert!(helped[client] <= limit);
                        (filled_for_emergency, in_emergency) = (true, true);
                    }
                    Decision::Recover { client, how, spare } => {
                        let expected = client.map_or(Last::Reset, |client| of_clients[client].last());
                        prop_assert_eq!(how, expected);
                        let state = match (badge == EMERGENCY, filled_for_emergency) {
                            (true, _) => Spare::InUse,
                            (false, true) => Spare::Refill,
                            (false, false) => Spare::Ready,
                        };
                        prop_assert_eq!(spare, state);
                        (filled_for_emergency, in_emergency) = (false, false);
                    }
                }
            }
        }
    }
}
