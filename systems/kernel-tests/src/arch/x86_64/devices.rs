//! Interrupt lines: what the kernel does with its own masks.

use sandglass::cap::IoApicPin;
use sandglass::testing::{Suite, TestResult};
use sandglass::{ensure, time};

use crate::fixture::Fixture;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "devices",
        &[("a_pin_obeys_its_last_handler_alone", shared_pin)],
    );
}

/// A pin issued under two vectors, level-triggered: once the second handler is gone, the first
/// one's acknowledgement must not open the pin for a vector that nobody handles, which would
/// interrupt as long as the line is asserted (ABI 03, section 7.6: inactive interrupts are masked). The
/// line is the interval timer's, which is asserted for milliseconds in each of its periods.
fn shared_pin(fixture: &mut Fixture) -> TestResult {
    const PERIOD_US: u64 = 55_000;
    const LONGEST_GAP_US: u64 = 1_000;
    let issue = |fixture: &mut Fixture, vector| {
        fixture.process.resources.ioapic_irq(IoApicPin {
            ioapic: 0,
            pin: 2,
            level: true,
            active_low: false,
            vector,
        })
    };
    let first = issue(fixture, 90)?;
    let second = issue(fixture, 91)?;
    fixture.process.resources.delete(second)?;
    first.ack()?;
    let start = time::ticks();
    let (mut last, mut longest) = (start, 0);
    while last - start < fixture.ticks(2 * PERIOD_US) {
        let now = time::ticks();
        longest = longest.max(now - last);
        last = now;
    }
    fixture.process.resources.delete(first)?;
    ensure!(longest < fixture.ticks(LONGEST_GAP_US), "{longest} ticks");
    Ok(())
}
