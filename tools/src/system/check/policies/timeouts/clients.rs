//! What happens to clients: their own policies.

use std::collections::BTreeMap;

use crate::system::spanned::Spanned;
use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::policy::timeouts::{Last, Policy};
use sandglass_description::Time;

use super::super::super::super::document::{self, ClientPolicy, Integer, PolicyName};
use super::super::super::super::findings::{Finding, Span};
use super::super::super::super::quantity::Micros;
use super::super::super::names::ThreadIndex;
use super::super::super::{text, Checker};
use super::{Placed, Users};

/// Most extensions or emergencies of a client.
const MAX_LIMIT: i64 = 1_000_000;

impl Checker<'_> {
    /// The policies that clients have of their own.
    pub(super) fn client_policies(
        &mut self,
        described: &document::TimeoutPolicy,
        users: &Users,
    ) -> BTreeMap<ThreadIndex, Placed> {
        let mut policies: BTreeMap<ThreadIndex, Placed> = BTreeMap::new();
        for client in &described.clients {
            let Some(thread) = self.find_thread(&client.component) else {
                continue;
            };
            let name = text(&client.component);
            let span = client.component.span();
            if let Some((_, first)) = policies.get(&thread) {
                let first = first.span();
                self.found(
                    Finding::new(span, format!("two policies for `{name}`"))
                        .label("the second")
                        .related(first, "the first"),
                );
                continue;
            }
            if !users.direct.contains(&thread.component)
                && !users.others.contains(&thread.component)
            {
                let server = text(&described.server);
                self.found(
                    Finding::new(span, format!("`{name}` is not a client of `{server}`"))
                        .label("its budget cannot run out there")
                        .help("make it a client of the server's endpoint, or of one that calls it"),
                );
                continue;
            }
            let time = self.time_of(thread);
            if self.threads[thread.component][thread.thread].passive
                || time.budget_us == time.period_us
            {
                self.found(
                    Finding::new(span, format!("the budget of `{name}` never runs out"))
                        .label("so no policy ever ends its requests")
                        .help("give it a budget below its period, so that the policy can act"),
                );
                continue;
            }
            if let Some(policy) = self.policy(client, &time) {
                policies.insert(thread, (policy, client.component.clone()));
            }
        }
        policies
    }

    /// The policy for a client that has `time`.
    fn policy(&mut self, client: &ClientPolicy, time: &Time) -> Option<Policy> {
        let before = self.findings.len();
        let then = client
            .then
            .as_ref()
            .map_or(Last::Rollback, |then| (*then.get_ref()).into());
        let name = *client.policy.get_ref();
        let policy = match name {
            PolicyName::Rollback | PolicyName::Reset | PolicyName::Kill => {
                self.superfluous(client, client.then.as_ref().map(Spanned::span), "then");
                self.superfluous(client, client.limit.as_ref().map(Integer::span), "limit");
                self.superfluous(client, client.by.as_ref().map(Spanned::span), "by");
                self.superfluous(client, client.budget.as_ref().map(Spanned::span), "budget");
                Policy::Last(match name {
                    PolicyName::Reset => Last::Reset,
                    PolicyName::Kill => Last::Kill,
                    _ => Last::Rollback,
                })
            }
            PolicyName::Extend => {
                self.superfluous(client, client.budget.as_ref().map(Spanned::span), "budget");
                let by_us = self.required(client, client.by.as_ref(), "by");
                let limit = self.limit(client, None);
                self.longest_extension(client, by_us, limit, time);
                Policy::Extend { by_us, limit, then }
            }
            PolicyName::Emergency => {
                self.superfluous(client, client.by.as_ref().map(Spanned::span), "by");
                let budget_us = self.required(client, client.budget.as_ref(), "budget");
                let limit = self.limit(client, Some(u32::MAX));
                self.emergency_budget(client, budget_us, time);
                Policy::Emergency {
                    budget_us,
                    limit,
                    then,
                }
            }
        };
        (self.findings.len() == before).then_some(policy)
    }

    fn superfluous(&mut self, client: &ClientPolicy, given: Option<Span>, key: &str) {
        if let Some(span) = given {
            self.found(
                Finding::new(span, format!("`{key}` is not a key of this policy"))
                    .label("has no effect here")
                    .related(client.policy.span(), "the policy")
                    .help(
                        "`extend` has `by`, `limit`, `then`; `emergency` has `budget`, `limit`, \
                         `then`",
                    ),
            );
        }
    }

    fn required(
        &mut self,
        client: &ClientPolicy,
        given: Option<&Spanned<Micros>>,
        key: &str,
    ) -> u64 {
        let Some(given) = given else {
            self.found(
                Finding::new(client.policy.span(), format!("this policy needs `{key}`"))
                    .label("it says by how much the client's time is extended")
                    .help(format!("for example, `{key} = \"1ms\"`")),
            );
            return 0;
        };
        given.get_ref().0
    }

    fn limit(&mut self, client: &ClientPolicy, default: Option<u32>) -> u32 {
        if let (None, None) = (&client.limit, default) {
            self.found(
                Finding::new(client.policy.span(), "this policy needs `limit`")
                    .label("it says how often the client is helped")
                    .help("for example, `limit = 3`"),
            );
        }
        match (&client.limit, default) {
            (None, Some(default)) => default,
            (limit, _) => self.in_range("limit", limit.as_ref(), 1..=MAX_LIMIT, 1) as u32,
        }
    }

    fn longest_extension(&mut self, client: &ClientPolicy, by_us: u64, limit: u32, time: &Time) {
        let Some(by) = &client.by else { return };
        let longest = time
            .budget_us
            .saturating_add(by_us.saturating_mul(u64::from(limit)));
        if by_us == 0 {
            self.found(Finding::new(by.span(), "an extension of 0 µs").label("must be above 0"));
        } else if longest >= time.period_us {
            self.found(
                Finding::new(
                    by.span(),
                    format!(
                        "after {limit} extensions, the budget is {longest} µs of {} µs",
                        time.period_us
                    ),
                )
                .label("must stay below the period")
                .help("a budget equal to the period never runs out; extend by less, or less often"),
            );
        }
    }

    fn emergency_budget(&mut self, client: &ClientPolicy, budget_us: u64, time: &Time) {
        let Some(budget) = &client.budget else { return };
        if !(MIN_BUDGET_US..time.period_us).contains(&budget_us) {
            self.found(
                Finding::new(
                    budget.span(),
                    format!("an emergency budget of {budget_us} µs"),
                )
                .label(format!(
                    "must be from {MIN_BUDGET_US} µs to below the client's period, {} µs",
                    time.period_us
                )),
            );
        }
    }
}
