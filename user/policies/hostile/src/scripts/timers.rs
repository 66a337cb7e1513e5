//! The timer service (`sandglass-timers`): rogues arm and cancel whatever their capabilities let them name, as often as
//! they like; honest users arm one timer each, within their limits. Time passes, also between the decision and the
//! setting of the device, which may ring for a timer that is cancelled at that moment.
//!
//! - No timer expires before its time, and none that was cancelled, or that does not exist.
//! - From the instant at which an honest timer is due to its expiry, each other group has at most one expiry, however
//!   many of its timers are due.
//! - In any script, a group makes the service work at most `burst + 1 + t / every` times: by expiries and by rings of
//!   the device for nothing.
//! - An honest periodic timer expires on its grid; nothing that is refused changes anything.

use sandglass_timers::decide::{Armed, Described, Limit, Slot, Timers, Timing};

use crate::promise::promise;
use crate::{Held, Journal, Source};

pub const WHAT: &str = "groups with their limits, and what their users ask for while time passes";

const EXPIRED: &str = "expired";
const CANCELLED: &str = "cancelled";
const CANCELLED_DUE: &str = "cancelled when it was due";
const PASSED: &str = "armed for the past";
const REFUSED: &str = "refused";
const FOR_NOTHING: &str = "rang for nothing";
const LIMITED: &str = "held back by the limit";
const CROWD: &str = "an honest timer in a crowd";

pub const SITUATIONS: &[&str] = &[
    EXPIRED,
    CANCELLED,
    CANCELLED_DUE,
    PASSED,
    REFUSED,
    FOR_NOTHING,
    LIMITED,
    CROWD,
];

/// Groups of rogues come first.
const ROGUES: usize = 2;
const HONEST: usize = 2;
const MOST_TIMERS: u64 = 12;
/// Ticks that the service looks late at most.
const LATE: u64 = 30;

/// A rogue's timer that is armed.
#[derive(Clone, Copy, Debug)]
struct Armament {
    timing: Timing,
    /// Expiries that are known of.
    seen: u64,
}

/// An honest user's timer.
#[derive(Clone, Debug)]
struct Honest {
    /// When it is to expire.
    due: u64,
    period: u64,
    /// Expiries of each other group since it is due.
    others: Vec<u64>,
}

struct World {
    timers: Timers<'static>,
    described: Vec<Described>,
    /// Of each timer of the rogues.
    armed: Vec<Vec<Option<Armament>>>,
    /// Of each group of the rogues: when its timers expired.
    expiries: [Vec<u64>; ROGUES],
    honest: Vec<Honest>,
    now: u64,
    /// When the device will ring, and whether it has.
    device: Option<u64>,
    has_rung: bool,
    rings: u64,
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let mut world = World::new(source);
    journal.note(format_args!("{:?}", world.described));
    for index in 0..HONEST {
        world.arm_honest(index, source)?;
    }
    while !source.is_empty() {
        match source.number(0..=9) {
            0..=3 => world.arm_rogue(source, journal)?,
            4..=5 => world.cancel_rogue(source, journal)?,
            6..=7 => world.tease(source, journal)?,
            _ => world.pass(source, journal)?,
        }
        world.set(source.number(0..=2))?;
        // Rings that came while the service was busy.
        if world.has_rung {
            world.ring(source, journal)?;
        }
    }
    Ok(())
}

impl World {
    fn new(source: &mut Source) -> Self {
        let rogues = (0..ROGUES).map(|_| Described {
            timers: source.number(1..=MOST_TIMERS) as u32,
            limit: Limit {
                every: source.number(1..=200),
                burst: source.number(1..=6) as u32,
            },
        });
        let mut described: Vec<Described> = rogues.collect();
        let periods: Vec<u64> = (0..HONEST).map(|_| source.number(20..=100)).collect();
        described.extend(periods.iter().map(|&every| Described {
            timers: 1,
            limit: Limit { every, burst: 1 },
        }));
        let slots: u32 = described.iter().map(|group| group.timers).sum();
        // Tests are short; a script has a few hundred bytes of it.
        let slots = vec![Slot::default(); slots as usize].leak();
        Self {
            timers: Timers::new(&described, slots),
            armed: described
                .iter()
                .map(|group| vec![None; group.timers as usize])
                .collect(),
            described,
            expiries: [const { Vec::new() }; ROGUES],
            honest: periods
                .into_iter()
                .map(|period| Honest {
                    due: 0,
                    period,
                    others: vec![0; ROGUES + HONEST],
                })
                .collect(),
            now: 0,
            device: None,
            has_rung: false,
            rings: 0,
        }
    }

    fn arm_honest(&mut self, index: usize, source: &mut Source) -> Held {
        let honest = &mut self.honest[index];
        honest.due = source.number(1..=50);
        let timing = Timing {
            first: honest.due,
            period: Some(honest.period),
        };
        let armed = self.timers.arm(self.now, ROGUES + index, 0, timing);
        promise!(
            armed == Ok(Armed::Set),
            "an honest request is answered {armed:?}"
        );
        self.set(0)
    }

    /// Whatever a capability lets one ask for.
    fn arm_rogue(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let group = source.index(ROGUES);
        let timer = source.number(0..=MOST_TIMERS);
        let near = (self.now + source.number(0..=60)).saturating_sub(20);
        // At the same time as an honest one, now or then.
        let honest = &self.honest[source.index(HONEST)];
        let with_honest = honest.due + source.number(0..=1) * honest.period;
        let first = source.one_of(&[near, near, with_honest, with_honest, self.now, u64::MAX]);
        let period = source.number(0..=60);
        let period = source.one_of(&[None, None, Some(period), Some(u64::MAX)]);
        let timing = Timing { first, period };
        let before = self.timers.next();
        let armed = self.timers.arm(self.now, group, timer, timing);
        journal.step(format_args!(
            "at {}: {group}.{timer} {timing:?}: {armed:?}",
            self.now
        ));
        let slot = self.armed[group].get_mut(timer as usize);
        match (armed, slot) {
            (Ok(Armed::Set), Some(slot)) => {
                let seen = self.timers.expiries(group, timer).unwrap_or(0);
                *slot = Some(Armament { timing, seen });
            }
            (Ok(Armed::Passed), Some(slot)) => {
                promise!(
                    first <= self.now && period.is_none(),
                    "{first} has not passed"
                );
                journal.saw(PASSED);
                *slot = None;
            }
            (Err(_), _) => {
                journal.saw(REFUSED);
                promise!(before == self.timers.next(), "a refusal changes something");
            }
            (Ok(_), None) => promise!(false, "there is no timer {group}.{timer}"),
        }
        Ok(())
    }

    fn cancel_rogue(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let group = source.index(ROGUES);
        let timer = source.number(0..=MOST_TIMERS);
        let cancelled = self.timers.cancel(group, timer);
        journal.step(format_args!(
            "at {}: cancel {group}.{timer}: {cancelled:?}",
            self.now
        ));
        let Some(slot) = self.armed[group].get_mut(timer as usize) else {
            promise!(cancelled.is_err(), "there is no timer {group}.{timer}");
            return Ok(());
        };
        let was_armed = slot.take();
        promise!(
            cancelled == Ok(was_armed.is_some()),
            "{group}.{timer} was {was_armed:?}, and is cancelled: {cancelled:?}"
        );
        if let Some(armed) = was_armed {
            journal.saw(match armed.timing.first <= self.now {
                true => CANCELLED_DUE,
                false => CANCELLED,
            });
        }
        Ok(())
    }

    /// A rogue arms a timer shortly ahead, and cancels it when the device rings, or just before.
    fn tease(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let group = source.index(ROGUES);
        let timing = Timing {
            first: self.now + 1,
            period: None,
        };
        let armed = self.timers.arm(self.now, group, 0, timing);
        promise!(
            armed == Ok(Armed::Set),
            "a request for the future is answered {armed:?}"
        );
        self.set(0)?;
        self.advance(source.number(0..=1));
        journal.step(format_args!("at {}: {group}.0 is armed and cancelled", self.now));
        self.armed[group][0] = None;
        let cancelled = self.timers.cancel(group, 0);
        promise!(cancelled == Ok(true), "it was armed: {cancelled:?}");
        Ok(())
    }

    fn pass(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let next = self.timers.next().and_then(|next| next.checked_sub(self.now));
        let some = source.number(0..=20);
        let time = source.one_of(&[some, some, next.filter(|&next| next < 1000).unwrap_or(some)]);
        journal.step(format_args!("{time} pass"));
        self.advance(time);
        Ok(())
    }

    fn advance(&mut self, time: u64) {
        self.now += time;
        if self.device.take_if(|at| *at <= self.now).is_some() {
            self.has_rung = true;
        }
    }

    /// The service sets the device, which takes time.
    fn set(&mut self, time: u64) -> Held {
        let Some(at) = self.timers.setting() else {
            return Ok(());
        };
        self.advance(time);
        self.device = at;
        self.advance(0);
        self.timers.was_set(self.now);
        promise!(
            self.timers.setting().is_none(),
            "the device is to be set again"
        );
        Ok(())
    }

    /// The service looks what is due.
    fn ring(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        self.has_rung = false;
        self.rings += 1;
        self.timers.rang();
        let mut expiries = 0;
        while let Some(group) = self.timers.expire(self.now) {
            journal.step(format_args!("at {}: {group} expires", self.now));
            expiries += 1;
            self.expired(group, journal)?;
            self.advance(source.number(0..=1));
        }
        journal.saw(if expiries > 0 { EXPIRED } else { FOR_NOTHING });
        let overdue = |armed: &Armament| armed.timing.first <= self.now && armed.seen == 0;
        if self.armed.iter().flatten().flatten().any(overdue) {
            journal.saw(LIMITED);
        }
        self.bounded()?;
        self.set(0)
    }

    fn expired(&mut self, group: usize, journal: &mut Journal) -> Held {
        match group.checked_sub(ROGUES) {
            None => {
                self.limited(group)?;
                self.rogue_expired(group)?;
            }
            Some(index) => self.honest_expired(index, journal)?,
        }
        for (index, honest) in self.honest.iter_mut().enumerate() {
            if honest.due > self.now || index + ROGUES == group {
                continue;
            }
            honest.others[group] += 1;
            promise!(
                honest.others[group] <= 1,
                "group {group} expires twice before {}, which is due",
                index + ROGUES
            );
        }
        Ok(())
    }

    /// The group expires no more often than its limit says, but for how late its turns come.
    fn limited(&mut self, group: usize) -> Held {
        let (now, limit) = (self.now, self.described[group].limit);
        self.expiries[group].push(now);
        for (before, &since) in self.expiries[group].iter().rev().enumerate() {
            let most = u64::from(limit.burst) + (now - since + LATE) / limit.every;
            promise!(
                (before as u64) < most,
                "{group} expires {} times from {since} to {now}",
                before + 1
            );
        }
        Ok(())
    }

    /// The timer that has expired, as its count tells, was due, and is counted right.
    fn rogue_expired(&mut self, group: usize) -> Held {
        let mut changed = None;
        for (timer, slot) in self.armed[group].iter_mut().enumerate() {
            let expiries = self.timers.expiries(group, timer as u64).unwrap_or(0);
            let Some(armed) = slot.as_mut().filter(|armed| armed.seen != expiries) else {
                continue;
            };
            let due = self.now.checked_sub(armed.timing.first);
            let expected = due.map_or(0, |past| armed.timing.period.map_or(1, |p| past / p + 1));
            promise!(
                changed.replace(timer).is_none() && expiries == expected,
                "{group}.{timer} expires at {}, {expiries} times: {armed:?}",
                self.now
            );
            armed.seen = expiries;
            slot.take_if(|armed| armed.timing.period.is_none());
        }
        promise!(changed.is_some(), "{group} expires, but no timer of it");
        Ok(())
    }

    fn honest_expired(&mut self, index: usize, journal: &mut Journal) -> Held {
        let now = self.now;
        let honest = &mut self.honest[index];
        promise!(
            honest.due <= now,
            "{index} expires at {now}, before {}",
            honest.due
        );
        if honest.others.iter().sum::<u64>() > 1 {
            journal.saw(CROWD);
        }
        honest.others.fill(0);
        honest.due += ((now - honest.due) / honest.period + 1) * honest.period;
        Ok(())
    }

    /// The device has rung no more often than the limits say.
    fn bounded(&self) -> Held {
        let most = |group: &Described| {
            u64::from(group.limit.burst) + 1 + self.now / group.limit.every
        };
        let most: u64 = self.described.iter().map(most).sum();
        promise!(
            self.rings <= most,
            "the device has rung {} times by {}, more than {most}",
            self.rings,
            self.now
        );
        Ok(())
    }
}
