//! A device interrupts a thread whose budget, which is in pieces, is nearly used up: its turn is over, and it waits for its
//! release, as many places from others as can be. Who is told waits at an endpoint, among others, and gets the context of the
//! notification, which has no time, so it waits for its release, too. A thread is due by then, whose budget is in pieces: it
//! runs.

use super::*;

/// Budget of who is interrupted, µs: more than it takes to cut it into pieces, and little enough that all others have time, too.
const INTERRUPTED_BUDGET_US: u64 = 1_000;
/// So long before its budget ends it is interrupted, µs, with each arrangement of the others: the kernel ends a turn when less
/// than 20 are left, and interrupts by itself when one is.
const BEFORE_END_US: [u64; SEEDS as usize] = [14, 12, 10, 8];

/// Priority of who is interrupted.
const RUNS: u8 = 160;
/// Those who are released when who is interrupted is.
const AFTER_INTERRUPTED: [Beside; 1] = [Beside {
    members: 240..289,
    priority: RUNS,
    bits: 0..BITS,
}];
/// And just after the client and after that.
const NEAR_CLIENT: Range<usize> = 289..339;
const NEAR_INTERRUPTED: Range<usize> = 339..389;

impl Scene {
    pub(super) fn is_interrupted(&self, lab: &mut Lab, timer: Timer) -> Result<(), SetupError> {
        self.others_spend_their_time(lab)?;
        self.others_wait_for_time(lab, 0)?;
        self.others_wait_for_time(lab, 1)?;
        let release = lone_bit(lab, ticks());
        self.others_beside(lab, release, &BEFORE_CLIENT)?;
        self.notification_has_no_time(lab, release, timer)?;
        self.others_beside(lab, release, &AFTER_CLIENT)?;
        self.others_beside(lab, release, &AFTER_INTERRUPTED)?;
        self.others_near(lab, release, NEAR_CLIENT, CALLS)?;
        self.others_near(lab, release, NEAR_INTERRUPTED, RUNS)?;
        self.driver_waits(lab, timer)?;
        let (pieces, left_us) = self.interrupted_has_pieces(lab, release)?;
        let (due, latest) = self.somebody_falls_due(lab)?;
        spin_until(latest);
        let interrupted = lab.visitors[HOLDER];
        lab.prioritise(interrupted, RUNS)?;
        interrupted.start(&spinning_measured())?;
        let clock = timer.clock();
        let after_us = left_us - BEFORE_END_US[self.seed as usize];
        timer.arm(clock.now() + clock.us_to_ticks(after_us));
        single("vector", 1, Cost::Stretch, || lab.lower())?;
        lab.raise()?;
        self.nobody_is_interrupted(lab, timer)?;
        self.clear(lab, &[pieces, due])
    }

    /// Others wait to be released just after `release`: they differ from that in the bits that are not sure.
    fn others_near(
        &self,
        lab: &Lab,
        release: u64,
        which: Range<usize>,
        priority: u8,
    ) -> Result<(), SetupError> {
        for (member, i) in lab.crowd.members()[which].iter().zip(0..) {
            let period_us = lab.ticks_to_us(release - ticks()) + i % UNSURE_US;
            self.spends(lab, *member, priority, period_us)?;
            lab.settle()?;
        }
        Ok(())
    }

    /// The client's context has spent its time, which comes back about at `release`, in ticks, and is the notification's.
    fn notification_has_no_time(
        &self,
        lab: &mut Lab,
        release: u64,
        timer: Timer,
    ) -> Result<(), SetupError> {
        let Member { tcb, context } = self.client.dweller.member;
        let period_us = lab.ticks_to_us(release - ticks()) - PREPARING_US;
        spin_until(release - lab.us_to_ticks(period_us) - lab.us_to_ticks(STARTING_US));
        self.spends(lab, self.client.dweller.member, CALLS, period_us)?;
        lab.settle()?;
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

    /// The budget of who will be interrupted is in pieces that come back from about `release` on, in ticks. Returns what is left
    /// in one piece, in µs.
    fn interrupted_has_pieces(
        &self,
        lab: &mut Lab,
        release: u64,
    ) -> Result<(SchedContext, u64), SetupError> {
        let period_us = lab.ticks_to_us(release - ticks()) - PREPARING_US;
        let start = release - lab.us_to_ticks(period_us);
        let pieces = refills::fragmented_from(lab, start, INTERRUPTED_BUDGET_US, period_us)?;
        let left_us = INTERRUPTED_BUDGET_US - pieces.consumed_us()?;
        let interrupted = lab.visitors[HOLDER];
        interrupted.context.unbind()?;
        pieces.bind(interrupted.tcb)?;
        Ok((pieces, left_us))
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
