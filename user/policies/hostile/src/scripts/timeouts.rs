//! Timeout policies (`sandglass-timeouts`): a server whose clients' requests take as long as they like.
//!
//! Of a request that is made with budget B, the server's time is, whatever the client does, at most
//! - B, if the client is not to be helped, or has used up its help;
//! - with `extend`, the budgets from B on that are left up to the limit, one after the other;
//! - with `emergency`, B and the emergency's budget.
//!
//! Then it ends as the client's policy says, and the next one is served. So a client waits for at most one such time of
//! each other client. A request that keeps to what its client was promised is never ended, and nobody's help is
//! used up by others.

use sandglass_description::policy::timeouts::{Client, Last, Policy, Timeouts};
use sandglass_timeouts::decide::{Decision, Policies, Spare};

use crate::promise::promise;
use crate::{Held, Journal, Source};

pub const WHAT: &str = "requests to a server with timeout policies";

const DONE: &str = "done in time";
const EXTENDED: &str = "extended";
const EMERGENCY: &str = "an emergency";
const RAN_OUT: &str = "an emergency ran out";
const ROLLED_BACK: &str = "rolled back";
const RESET: &str = "reset";
const KILLED: &str = "killed";
const STRANGER: &str = "a stranger's time";
const REFILLED: &str = "the spare context is filled anew";

pub const SITUATIONS: &[&str] = &[
    DONE,
    EXTENDED,
    EMERGENCY,
    RAN_OUT,
    ROLLED_BACK,
    RESET,
    KILLED,
    STRANGER,
    REFILLED,
];

/// Badge of the time of an emergency; clients have lower ones.
const EMERGENCY_BADGE: u64 = 100;
/// The least that the builder takes, and more than any budget in µs.
const LEAST_US: u64 = 20;
const PERIOD_US: u64 = 10_000;

/// What a faithful handler has made of the spare context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpareIs {
    FilledForRestart,
    FilledForEmergency,
}

/// A client, and what it has had.
struct Caller {
    described: Client,
    is_honest: bool,
    budget_us: u64,
    extended: u32,
    emergencies: u32,
    is_suspended: bool,
}

struct World {
    policies: Policies,
    callers: Vec<Caller>,
    default: Last,
    spare: SpareIs,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Ended(Last),
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let mut world = World::new(source, journal);
    while !source.is_empty() {
        let caller = source.index(world.callers.len() + 1);
        match world.callers.get(caller) {
            None => world.stranger(source, journal)?,
            Some(caller) if caller.is_suspended => {}
            Some(_) => world.request(caller, source, journal)?,
        }
    }
    Ok(())
}

fn last(source: &mut Source) -> Last {
    source.one_of(&[Last::Rollback, Last::Reset, Last::Kill])
}

fn policy(source: &mut Source) -> Policy {
    let limit = source.number(1..=4) as u32;
    match source.number(0..=2) {
        0 => Policy::Last(last(source)),
        1 => Policy::Extend {
            by_us: source.number(1..=900),
            limit,
            then: last(source),
        },
        _ => Policy::Emergency {
            budget_us: source.number(LEAST_US..=900),
            limit,
            then: last(source),
        },
    }
}

impl World {
    fn new(source: &mut Source, journal: &mut Journal) -> Self {
        let default = last(source);
        let first_badge = source.number(0..=9);
        let count = source.number(1..=5);
        let callers: Vec<Caller> = (0..count)
            .map(|number| {
                let budget_us = source.number(LEAST_US..=1_000);
                let described = Client {
                    name: format!("client-{number}"),
                    badge: first_badge + 2 * number,
                    caller: None,
                    core: 0,
                    budget_us,
                    period_us: PERIOD_US,
                    extra_refills: 0,
                    sporadic: false,
                    policy: policy(source),
                };
                let is_honest = source.once_in(2);
                journal.note(format_args!(
                    "client {number}: budget {budget_us} µs, {:?}, honest: {is_honest}",
                    described.policy
                ));
                Caller {
                    described,
                    is_honest,
                    budget_us,
                    extended: 0,
                    emergencies: 0,
                    is_suspended: false,
                }
            })
            .collect();
        Self {
            policies: Policies::new(Timeouts {
                endpoint: "work".into(),
                restart_us: 5_000,
                core: 0,
                emergency_badge: EMERGENCY_BADGE,
                calls_servers: false,
                default,
                clients: callers.iter().map(|c| c.described.clone()).collect(),
            }),
            callers,
            default,
            spare: SpareIs::FilledForRestart,
        }
    }

    /// The longest time of the server that the next request of a client can take, and the longest that is sure not to
    /// be ended, µs.
    fn bound_us(&self, number: usize) -> u64 {
        let caller = &self.callers[number];
        let own = caller.budget_us;
        own + match caller.described.policy {
            Policy::Last(_) => 0,
            Policy::Extend { by_us, limit, .. } => (1..=u64::from(limit - caller.extended))
                .map(|times| own + times * by_us)
                .sum(),
            Policy::Emergency {
                budget_us, limit, ..
            } if caller.emergencies < limit => budget_us,
            Policy::Emergency { .. } => 0,
        }
    }

    /// A client's request: the server works for it until it is done or ended.
    fn request(&mut self, number: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let bound_us = self.bound_us(number);
        let needs_us = match self.callers[number].is_honest {
            true => source.number(1..=bound_us),
            false => source.number(1..=4 * PERIOD_US),
        };
        journal.note(format_args!(
            "client {number} wants {needs_us} µs; at most {bound_us} µs are its"
        ));
        let (outcome, used_us) = self.serve(number, needs_us, journal)?;
        promise!(
            used_us <= bound_us,
            "client {number} had {used_us} µs of the server, of {bound_us} µs"
        );
        let should_be_done = needs_us <= bound_us;
        promise!(
            should_be_done == (outcome == Outcome::Done),
            "client {number} needed {needs_us} of {bound_us} µs: {outcome:?}"
        );
        Ok(())
    }

    /// The server works for a client for `needs_us`; returns how it ended, and the time it took, µs.
    fn serve(
        &mut self,
        number: usize,
        needs_us: u64,
        journal: &mut Journal,
    ) -> Result<(Outcome, u64), crate::Broken> {
        let mut used_us = 0;
        let mut left_us = self.callers[number].budget_us;
        let mut in_emergency = false;
        while used_us + left_us < needs_us {
            used_us += left_us;
            let badge = match in_emergency {
                true => EMERGENCY_BADGE,
                false => self.callers[number].described.badge,
            };
            let decision = self.policies.timeout(badge);
            journal.step(format_args!("its time runs out: {decision:?}"));
            match decision {
                Decision::Extend { client, budget_us } => {
                    self.extended(client, number, budget_us)?;
                    journal.saw(EXTENDED);
                    left_us = budget_us;
                }
                Decision::Emergency {
                    client, budget_us, ..
                } => {
                    promise!(!in_emergency, "an emergency in an emergency");
                    self.emergency(client, number, budget_us)?;
                    journal.saw(EMERGENCY);
                    (in_emergency, left_us) = (true, budget_us);
                }
                Decision::Recover { client, how, spare } => {
                    promise!(
                        client == Some(number),
                        "the request of client {number} ends as that of {client:?}"
                    );
                    if in_emergency {
                        journal.saw(RAN_OUT);
                    }
                    self.recover(client, how, spare, in_emergency, journal)?;
                    return Ok((Outcome::Ended(how), used_us));
                }
            }
        }
        journal.saw(DONE);
        Ok((Outcome::Done, needs_us))
    }

    /// Somebody's time runs out whom the table does not have.
    fn stranger(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let badge = source.number(50..=99);
        let decision = self.policies.timeout(badge);
        journal.step(format_args!("time with badge {badge} runs out: {decision:?}"));
        let Decision::Recover { client, how, spare } = decision else {
            return Err(crate::Broken(format!("a stranger is helped: {decision:?}")));
        };
        promise!(client.is_none(), "a stranger is taken for client {client:?}");
        journal.saw(STRANGER);
        self.recover(client, how, spare, false, journal)
    }

    fn extended(&mut self, client: usize, number: usize, budget_us: u64) -> Held {
        promise!(client == number, "client {client} is helped for {number}");
        let caller = &mut self.callers[number];
        let Policy::Extend { by_us, limit, .. } = caller.described.policy else {
            return Err(crate::Broken(format!("client {number} is extended")));
        };
        caller.extended += 1;
        promise!(
            caller.extended <= limit,
            "client {number} is extended {} times, of {limit}",
            caller.extended
        );
        promise!(
            budget_us == caller.budget_us + by_us,
            "client {number} gets {budget_us} µs after {} µs, not {by_us} µs more",
            caller.budget_us
        );
        caller.budget_us = budget_us;
        Ok(())
    }

    fn emergency(&mut self, client: usize, number: usize, given_us: u64) -> Held {
        promise!(client == number, "client {client} is helped for {number}");
        let caller = &mut self.callers[number];
        let Policy::Emergency {
            budget_us, limit, ..
        } = caller.described.policy
        else {
            return Err(crate::Broken(format!("client {number} has no emergencies")));
        };
        caller.emergencies += 1;
        promise!(
            caller.emergencies <= limit,
            "client {number} has {} emergencies, of {limit}",
            caller.emergencies
        );
        promise!(
            given_us == budget_us,
            "an emergency of {given_us} µs, described as {budget_us} µs"
        );
        self.spare = SpareIs::FilledForEmergency;
        Ok(())
    }

    fn recover(
        &mut self,
        client: Option<usize>,
        how: Last,
        spare: Spare,
        in_emergency: bool,
        journal: &mut Journal,
    ) -> Held {
        let described = match client {
            Some(client) => self.callers[client].described.policy.last(),
            None => self.default,
        };
        promise!(how == described, "{how:?}, described as {described:?}");
        let is = match (in_emergency, self.spare) {
            (true, _) => Spare::InUse,
            (false, SpareIs::FilledForEmergency) => Spare::Refill,
            (false, SpareIs::FilledForRestart) => Spare::Ready,
        };
        promise!(spare == is, "the spare context is {is:?}, not {spare:?}");
        if spare == Spare::Refill {
            journal.saw(REFILLED);
        }
        self.spare = SpareIs::FilledForRestart;
        journal.saw(match how {
            Last::Rollback => ROLLED_BACK,
            Last::Reset => RESET,
            Last::Kill => KILLED,
        });
        if let (Last::Kill, Some(client)) = (how, client) {
            self.callers[client].is_suspended = true;
        }
        Ok(())
    }
}
