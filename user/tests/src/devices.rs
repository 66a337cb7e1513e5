//! The timer.

use sandglass::testing::{Suite, TestResult};
use sandglass::timer::Timer;
use sandglass::{ensure, time};

use crate::Bench;

pub fn run(suite: &mut Suite, bench: &mut Bench) {
    suite.run("devices::the_timer_waits_as_long_as_asked", || timer(bench));
}

fn timer(bench: &mut Bench) -> TestResult {
    let tsc = bench
        .boot
        .tsc()
        .ok_or("the kernel reports no TSC frequency")?;
    let timer = Timer::new(&mut bench.process, 0)?;
    for us in [1, 50, 700] {
        let start = timer.clock().now();
        timer.sleep_us(us)?;
        let slept = timer.clock().ticks_to_us(timer.clock().now() - start);
        ensure!(slept >= us, "asked for {us} µs, slept {slept}");
    }
    let mut releases = timer.every_us(300);
    let first = releases.wait()?;
    for number in 1..=5 {
        let release = releases.wait()?;
        let expected = first + number * timer.clock().us_to_ticks(300);
        ensure!(release == expected, "release {number} drifts");
        ensure!(timer.clock().now() >= release, "release {number} is early");
    }
    // The two clocks agree within one in a hundred.
    let (hpet, ticks) = (timer.clock().now(), time::ticks());
    timer.sleep_us(5_000)?;
    let by_hpet = timer.clock().ticks_to_us(timer.clock().now() - hpet);
    let by_tsc = tsc.ticks_to_us(time::ticks() - ticks);
    ensure!(
        by_hpet.abs_diff(by_tsc) <= by_hpet / 100,
        "{by_hpet} µs and {by_tsc} µs"
    );
    Ok(())
}
