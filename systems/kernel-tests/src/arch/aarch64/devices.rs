//! Interrupt lines: what the kernel does with its own masks.

use sandglass::cap::IrqHandler;
use sandglass::testing::{Suite, TestResult};
use sandglass::{boot, ensure, time, SetupError};

use super::Timer;
use crate::fixture::Fixture;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "devices",
        &[
            (
                "a_line_without_a_handler_interrupts_nobody",
                without_handler,
            ),
            (
                "a_deadline_is_kept_although_an_earlier_one_has_interrupted",
                keeps_deadline,
            ),
        ],
    );
}

/// A deadline that has passed interrupts at once, and nobody waits for that: its signal is found by whoever waits for the next.
fn keeps_deadline(fixture: &mut Fixture) -> TestResult {
    const AWAY_US: u64 = 500;
    const LATEST_US: u64 = 500;
    let timer = sandglass::timer::Timer::new(&mut fixture.process, 0).map_err(SetupError::from)?;
    let wait = |deadline| timer.wait_until(deadline).map_err(SetupError::from);
    wait(timer.clock().now())?;
    let deadline = timer.clock().now() + fixture.ticks(AWAY_US);
    wait(deadline)?;
    let late = timer.clock().now().checked_sub(deadline);
    ensure!(
        late.is_some_and(|late| late < fixture.ticks(LATEST_US)),
        "{late:?} ticks"
    );
    Ok(())
}

/// A level-triggered line that is asserted for good, with a handler that nobody acknowledges, and without one any more: it must not
/// interrupt as long as it is asserted (ABI 03, section 7.6: inactive interrupts are masked).
fn without_handler(fixture: &mut Fixture) -> TestResult {
    const WATCHED_US: u64 = 20_000;
    const LONGEST_GAP_US: u64 = 1_000;
    for keeps_handler in [true, false] {
        let resources = &mut fixture.process.resources;
        let handler: IrqHandler =
            resources.fill_slot(|slot| boot::IRQ_CONTROL.get(Timer::IRQ, slot))?;
        handler.ack()?;
        if !keeps_handler {
            fixture.process.resources.delete(handler)?;
        }
        Timer::start(fixture.ticks(100));
        let start = time::ticks();
        let (mut last, mut longest) = (start, 0);
        while last - start < fixture.ticks(WATCHED_US) {
            let now = time::ticks();
            longest = longest.max(now - last);
            last = now;
        }
        Timer::stop();
        if keeps_handler {
            fixture.process.resources.delete(handler)?;
        }
        ensure!(longest < fixture.ticks(LONGEST_GAP_US), "{longest} ticks");
    }
    Ok(())
}
