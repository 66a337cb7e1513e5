//! A device interrupts a thread whose budget, which is in pieces, is nearly used up: its turn is over, and it waits for its
//! release, as many places from others as can be. Who is told waits at an endpoint, among others, and gets the context of the
//! notification, which has no time, so it waits for its release, too. A thread is due by then, whose budget is in pieces: it
//! runs.

use super::*;

/// Budget of who is interrupted, µs: more than it takes to cut it into pieces, and little enough that all others have time, too.
const INTERRUPTED_BUDGET_US: u64 = 1_000;
/// Arrangements of the others that are tried.
pub(super) const SEEDS: u64 = 8;
/// So long before its budget ends it is interrupted, µs, with one arrangement of the others after the other: the kernel ends a
/// turn when less than 20 are left, and interrupts by itself when one is.
const BEFORE_END_US: [u64; 8] = [14, 12, 10, 8, 13, 11, 9, 7];

/// Priority of who is interrupted.
const RUNS: u8 = 160;
/// Those who are released when who is interrupted is.
const AFTER_INTERRUPTED: [Beside; 1] = [Beside {
    members: 289..338,
    priority: RUNS,
    bits: 0..BITS,
}];
/// And those just before and behind it.
const NEAR_INTERRUPTED: Range<usize> = 338..387;

/// A period that is short enough to be waited for, µs.
const SEEN_US: u64 = 20_000;
/// Between two looks at the counter, so many µs pass only if somebody else has run.
const PAUSE_US: u64 = 1;

impl Scene {
    pub(super) fn is_interrupted(&self, lab: &mut Lab, timer: Timer) -> Result<(), SetupError> {
        self.others_spend_their_time(lab)?;
        self.others_wait_for_time(lab, 0)?;
        self.others_wait_for_time(lab, 1)?;
        let release = lone_bit(lab, ticks());
        self.others_beside(lab, release, &BEFORE_CLIENT)?;
        self.notification_has_no_time(lab, release, timer)?;
        self.others_beside(lab, release, &AFTER_CLIENT)?;
        self.others_near(lab, release, NEAR_CLIENT, CALLS)?;
        self.others_beside(lab, release, &AFTER_INTERRUPTED)?;
        self.others_near(lab, release, NEAR_INTERRUPTED, RUNS)?;
        let later = self.pieces_later(lab, timer)?;
        self.driver_waits(lab, timer)?;
        let period_us = period_until(lab, release);
        let start = (release - lab.us_to_ticks(period_us)).saturating_add_signed(-later);
        let (pieces, left_us) = self.interrupted_has_pieces(lab, start, period_us)?;
        let (due, latest) = self.somebody_falls_due(lab)?;
        spin_until(latest);
        self.is_about_to_be_interrupted(lab, timer, left_us)?;
        single("vector", 1, Cost::Stretch, || lab.lower())?;
        lab.raise()?;
        self.nobody_is_interrupted(lab, timer)?;
        self.clear(lab, &[pieces, due])
    }

    /// The client's context has spent its time, which comes back about at `release`, in ticks, and is the notification's.
    fn notification_has_no_time(
        &self,
        lab: &mut Lab,
        release: u64,
        timer: Timer,
    ) -> Result<(), SetupError> {
        let client = self.client.dweller.member;
        self.spends_until(lab, client, CALLS, release)?;
        let Member { tcb, context } = client;
        tcb.suspend()?;
        context.unbind()?;
        Ok(context.bind_notification(timer.notification())?)
    }

    /// A thread without a context waits for a message among others, and hears the timer.
    fn driver_waits(&self, lab: &mut Lab, timer: Timer) -> Result<(), SetupError> {
        self.reply_object_is_used(lab)?;
        let driver = lab.visitors[WAITER];
        driver.context.unbind()?;
        // It has heard of all that was.
        timer.notification().poll();
        driver.tcb.bind_notification(timer.notification())?;
        lab.prioritise(driver, CALLS)
    }

    /// How much later than others that start when it does, and wait for as long, who is interrupted runs again, in ticks: the
    /// first pieces of its budget are joined, as each is less than the least budget. Below zero if earlier.
    fn pieces_later(&self, lab: &mut Lab, timer: Timer) -> Result<i64, SetupError> {
        let release = ticks() + lab.us_to_ticks(SEEN_US);
        self.spends_until(lab, lab.crowd.members()[0], RUNS, release)?;
        let usual = self.sees_release(lab)? - release;
        // The timer may have interrupted when it was taken.
        timer.expired(0)?;
        let start = ticks() + lab.us_to_ticks(PREPARING_US);
        let (pieces, left_us) = self.interrupted_has_pieces(lab, start, SEEN_US)?;
        self.is_about_to_be_interrupted(lab, timer, left_us)?;
        let release = self.sees_release(lab)?;
        let interrupted = lab.visitors[HOLDER];
        interrupted.tcb.suspend()?;
        timer.expired(0)?;
        lab.process.resources.delete(pieces)?;
        interrupted.context.bind(interrupted.tcb)?;
        let expected = start + lab.us_to_ticks(SEEN_US) + usual;
        Ok(release.cast_signed() - expected.cast_signed())
    }

    /// Lets others run, until one that waits for its release does: when that was, in ticks.
    fn sees_release(&self, lab: &Lab) -> Result<u64, SetupError> {
        lab.lower()?;
        let release = last_before_pause(lab.us_to_ticks(PAUSE_US));
        lab.raise()?;
        Ok(release)
    }

    /// The budget of who will be interrupted is in pieces that come back one period after `start`, in ticks, and behind that. Returns
    /// what is left in one piece, in µs.
    fn interrupted_has_pieces(
        &self,
        lab: &mut Lab,
        start: u64,
        period_us: u64,
    ) -> Result<(SchedContext, u64), SetupError> {
        let pieces = refills::fragmented_from(lab, start, INTERRUPTED_BUDGET_US, period_us)?;
        let left_us = INTERRUPTED_BUDGET_US - pieces.consumed_us()?;
        let interrupted = lab.visitors[HOLDER];
        interrupted.context.unbind()?;
        pieces.bind(interrupted.tcb)?;
        Ok((pieces, left_us))
    }

    /// Who is to be interrupted runs once this thread does not, and is interrupted when nearly all of `left_us` is used up.
    fn is_about_to_be_interrupted(
        &self,
        lab: &Lab,
        timer: Timer,
        left_us: u64,
    ) -> Result<(), SetupError> {
        let interrupted = lab.visitors[HOLDER];
        lab.prioritise(interrupted, RUNS)?;
        interrupted.start(&spinning_measured())?;
        let clock = timer.clock();
        let after_us = left_us - BEFORE_END_US[self.seed as usize % BEFORE_END_US.len()];
        timer.arm(clock.now() + clock.us_to_ticks(after_us));
        Ok(())
    }

    /// The timer is silent, and the driver has its own context again.
    fn nobody_is_interrupted(&self, lab: &mut Lab, timer: Timer) -> Result<(), SetupError> {
        timer.expired(0)?;
        let driver = lab.visitors[WAITER];
        driver.tcb.suspend()?;
        driver.tcb.unbind_notification()?;
        let lent = self.client.dweller.member.context;
        lent.unbind()?;
        driver.context.bind(driver.tcb)?;
        for i in [HOLDER, DUE] {
            lab.visitors[i].tcb.suspend()?;
        }
        Ok(())
    }
}

/// When this thread, which only looks at the counter, last ran before a pause of so many ticks at least.
fn last_before_pause(pause: u64) -> u64 {
    let mut last = ticks();
    loop {
        let now = ticks();
        if now - last > pause {
            return last;
        }
        last = now;
    }
}
