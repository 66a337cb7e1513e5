//! `[[timer]]`: the timers of the timer service.
//!
//! [`expand`] says which component the tables stand for; here is what they must say, and how much time the service needs.

mod expand;

use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::policy::timers::{
    Group, Payer, Timers, EXPIRY_US, FINISH_US, HANDLE_US, MOST_GROUPS, MOST_TIMERS, SERVICE,
};
use sandglass_description::policy::Table;
use sandglass_description::Object;

use super::super::super::document;
use super::super::super::findings::Finding;
use super::super::names::ThreadIndex;
use super::super::{text, Checker};

pub use expand::expand;

/// The longest `every`, µs: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// The service's shortest and longest period, µs.
const PERIODS_US: [u64; 2] = [1_000, 128_000];
/// The service gets the shortest period in which its budget is no more than the first of these parts of the processor;
/// else the second.
const PARTS: [u64; 2] = [10, 2];

/// How many timers a table describes.
fn timers_of(timer: &document::Timer) -> u64 {
    let count = timer.count.as_ref().map_or(1, |count| *count.get_ref());
    u64::try_from(count).unwrap_or(1).clamp(1, MOST_TIMERS)
}

/// What the service needs in a period, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserve {
    pub period: u64,
    pub budget: u64,
    /// Of its handler.
    handler: u64,
}

impl Checker<'_> {
    /// Checks the timers, and equips the service.
    pub(super) fn timers(&mut self) {
        let document = self.document;
        let Some(first) = document.timers.first() else {
            return;
        };
        let Some(service) = self.names.component(SERVICE) else {
            return;
        };
        let before = self.findings.len();
        for timer in &document.timers {
            self.timer_keys(timer);
        }
        self.timer_numbers();
        if self.findings.len() > before {
            return;
        }
        let payers = self.payers_of_timers(service);
        let Some(reserve) = self.timer_reserve() else {
            self.found(
                Finding::new(
                    first.name.span(),
                    "the timers need more than half of the processor",
                )
                .label(format!(
                    "an expiry takes up to {EXPIRY_US} µs of the service's time"
                ))
                .help("give the timers a longer `every`, or a smaller `burst`"),
            );
            return;
        };
        let handler = &mut self.threads[service][1].time;
        (handler.budget_us, handler.period_us) = (reserve.handler, reserve.period);
        let main = ThreadIndex {
            component: service,
            thread: 0,
        };
        let badge = self.badge_of_time(main);
        let table = Timers {
            groups: document.timers.iter().map(group).collect(),
            payers,
            budget_us: reserve.budget,
            period_us: reserve.period,
            core: self.threads[service][0].time.core,
            badge,
        };
        self.give_table(service, Timers::NAME, &table, &first.name.span());
    }

    /// One table.
    fn timer_keys(&mut self, timer: &document::Timer) {
        let every = timer.every.get_ref().0;
        if !(EXPIRY_US..=LONGEST_US).contains(&every) {
            self.found(
                Finding::new(timer.every.span(), format!("an expiry every {every} µs"))
                    .label(format!("must be from {EXPIRY_US} to {LONGEST_US} µs"))
                    .help("`every` is the shortest period of the timer, and the mean time between its expiries"),
            );
        }
        let most = MOST_TIMERS as i64;
        self.in_range("`count`", timer.count.as_ref(), 1..=most, 1);
        self.in_range("`burst`", timer.burst.as_ref(), 1..=most, 1);
        if let (Some(badge), None) = (&timer.badge, &timer.notification) {
            self.found(
                Finding::new(
                    badge.span(),
                    "the badge of a notification that is not named",
                )
                .label("has no effect")
                .help("name the notification, `notification = \"...\"`, or remove `badge`"),
            );
        }
        let Some(name) = &timer.notification else {
            return;
        };
        let mut notifications = self.document.notifications.iter();
        let named = notifications.find(|notification| text(&notification.name) == text(name));
        if let Some(named) = named.filter(|named| text(&named.waiter) != text(&timer.component)) {
            let message = format!(
                "`{}` would be signalled for timers of `{}`",
                text(&named.waiter),
                text(&timer.component)
            );
            self.found(
                Finding::new(name.span(), message)
                    .label("must be a notification that the timer's component waits for")
                    .related(named.waiter.span(), "the waiter")
                    .help("name another, or none: the timer then has one of its own"),
            );
        }
    }

    /// All tables together.
    fn timer_numbers(&mut self) {
        let timers = &self.document.timers;
        if let Some(more) = timers.get(MOST_GROUPS) {
            self.found(
                Finding::new(
                    more.name.span(),
                    format!("{} `[[timer]]` tables", timers.len()),
                )
                .label(format!("a system can have {MOST_GROUPS}"))
                .help("a component's timers can have one table: `count = N`"),
            );
        }
        let total: u64 = timers.iter().map(timers_of).sum();
        if let Some(last) = timers.last().filter(|_| total > MOST_TIMERS) {
            self.found(
                Finding::new(last.name.span(), format!("{total} timers"))
                    .label(format!("a system can have {MOST_TIMERS}")),
            );
        }
    }

    /// The threads on whose time the service may work, and that can run out of it. Gives the service what it takes to let
    /// their requests end.
    fn payers_of_timers(&mut self, service: usize) -> Vec<Payer> {
        let mut payers = Vec::new();
        for thread in self.limited_payers(service) {
            let (path, id) = (self.path(thread), self.id(thread));
            let place = &self.document.components[thread.component].name;
            self.give_once(
                service,
                &format!("{path}.context"),
                Object::SchedContext(id),
                place,
            );
            let badge = self.badge_of_time(thread);
            payers.push(Payer { name: path, badge });
        }
        payers
    }

    fn limited_payers(&self, service: usize) -> Vec<ThreadIndex> {
        let payers = self.payers_of(service).into_iter();
        let limited = payers.filter(|payer| {
            let time = self.threads[payer.component][payer.thread].time;
            time.budget_us < time.period_us
        });
        limited.collect()
    }

    /// What the service of this description needs, if there is one and it can have that.
    pub(super) fn timer_reserve(&self) -> Option<Reserve> {
        let service = self.names.component(SERVICE)?;
        let [shortest, longest] = PERIODS_US;
        let periods = std::iter::successors(Some(shortest), |period| Some(period * 2));
        let reserves: Vec<Reserve> = periods
            .take_while(|&period| period <= longest)
            .map(|period| self.reserve_in(service, period))
            .collect();
        let fitting = |part: u64| {
            let mut reserves = reserves.iter().copied();
            reserves.find(|reserve| {
                (reserve.budget.saturating_add(reserve.handler)).saturating_mul(part)
                    <= reserve.period
            })
        };
        PARTS.into_iter().find_map(fitting)
    }

    /// What the service needs in any `period`, µs: for each group its burst, once more for rings for nothing, and what
    /// follows at its mean rate; and for each piece of a payer's budget the end of a request.
    fn reserve_in(&self, service: usize, period: u64) -> Reserve {
        let expiries = self.document.timers.iter().map(|timer| {
            let Group {
                every_us, burst, ..
            } = group(timer);
            u64::from(burst) + 1 + period.div_ceil(every_us.max(1))
        });
        let expiries: u64 = expiries.sum();
        let ends = self.limited_payers(service).into_iter().map(|payer| {
            let time = self.threads[payer.component][payer.thread].time;
            (2 + time.extra_refills) * (period / time.period_us.max(1) + 1)
        });
        let ends: u64 = ends.sum();
        Reserve {
            period,
            budget: MIN_BUDGET_US + expiries * EXPIRY_US + ends * FINISH_US,
            handler: 2 * MIN_BUDGET_US + ends * HANDLE_US,
        }
    }
}

fn group(timer: &document::Timer) -> Group {
    let burst = timer.burst.as_ref().map_or(1, |burst| *burst.get_ref());
    Group {
        timers: timers_of(timer) as u32,
        every_us: timer.every.get_ref().0,
        burst: u32::try_from(burst).unwrap_or(1),
    }
}
