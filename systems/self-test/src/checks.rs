//! What is measured, and what the kernel tells.

use sandglass::abi::boot::extra::{clock_flag, clock_source};
use sandglass::alarm::Alarm;
use sandglass::boot::SCHED_CONTEXT;
use sandglass::hpet::Hpet;
use sandglass::time::{self, Tsc};
use sandglass::timer::Timer;
use sandglass::{BootInfo, Process, SetupError};

use crate::{Report, Verdict};

/// How long the clock is compared, µs.
const COMPARED_US: u64 = 500_000;
/// The most that it may be off, ppm.
const OFF_PPM: u64 = 1_000;
/// An interrupt vector that nothing else has.
const VECTOR: u64 = 0;

/// What the kernel has measured.
pub fn clock(report: &mut Report, boot: &BootInfo) {
    let Some(clock) = boot.clock() else {
        report.line(
            "clock",
            Verdict::Skipped,
            format_args!("the kernel says nothing of it"),
        );
        return;
    };
    let said = |bit, name| if clock.sources & bit != 0 { name } else { "" };
    let is_quiet = clock.repeated == 0;
    report.line(
        "clock",
        Verdict::or_note(is_quiet),
        format_args!(
            "{} kHz, {} to {}, by{}{}{}{}; {} windows, repeated {} times",
            clock.hz / 1_000,
            clock.least_hz / 1_000,
            clock.most_hz / 1_000,
            said(clock_source::PROCESSOR, " processor"),
            said(clock_source::HPET, " HPET"),
            said(clock_source::POWER_TIMER, " ACPI-timer"),
            said(clock_source::PIT, " PIT"),
            clock.windows,
            clock.repeated
        ),
    );
}

/// The kernel's clock beside half a second of the HPET's.
pub fn clock_beside_hpet(report: &mut Report, boot: &BootInfo, process: &mut Process) {
    const NAME: &str = "clock and HPET";
    let Some(tsc) = boot.tsc() else {
        return report.line(NAME, Verdict::Wrong, format_args!("no frequency is told"));
    };
    let hpet = match Timer::new(process, VECTOR) {
        Ok(timer) => timer.clock(),
        Err(error) => return report.line(NAME, Verdict::Skipped, format_args!("{error}")),
    };
    let (khz, width_khz) = compare(&hpet, tsc);
    let off = khz.abs_diff(tsc.khz()) * 1_000_000 / tsc.khz();
    report.line(
        NAME,
        Verdict::or_wrong(off <= OFF_PPM + width_khz * 1_000_000 / tsc.khz()),
        format_args!(
            "{khz} kHz by the HPET, to {width_khz} kHz; {} kHz by the kernel",
            tsc.khz()
        ),
    );
}

/// The frequency of the time-stamp counter by the HPET, and how well that is known, in kHz.
fn compare(hpet: &Hpet, tsc: Tsc) -> (u64, u64) {
    let start = reading(hpet);
    while time::ticks() - start.0 < tsc.us_to_ticks(COMPARED_US) {
        time::nop();
    }
    let end = reading(hpet);
    let us = hpet.ticks_to_us(end.1 - start.1).max(1);
    let khz = (end.0 - start.0) * 1_000 / us;
    (khz, (start.2 + end.2) * 1_000 / us + 1)
}

/// The time-stamp counter and the HPET's at one time, and how long it took to read both: the shortest of many.
fn reading(hpet: &Hpet) -> (u64, u64, u64) {
    let mut best = (0, 0, u64::MAX);
    for _ in 0..1_000 {
        let before = time::ticks();
        let counter = hpet.now();
        let after = time::ticks();
        if after - before < best.2 {
            best = (before, counter, after - before);
        }
    }
    best
}

/// What the processor says of its clock and its timer.
pub fn promises_of_clock(report: &mut Report, boot: &BootInfo) {
    let flags = boot.clock().map_or(0, |clock| clock.flags);
    for (name, bit, is_so, is_not) in [
        (
            "invariant counter",
            clock_flag::INVARIANT,
            "it goes on at one rate",
            "an emulator or a hypervisor does not say so",
        ),
        (
            "deadline timer",
            clock_flag::DEADLINE,
            "the timer waits for values of the clock",
            "the timer counts by a clock of its own",
        ),
        (
            "lasting timer",
            clock_flag::LASTING_TIMER,
            "the timer goes on in deep sleep",
            "the processor does not say that the timer goes on in deep sleep: switch C-states off",
        ),
    ] {
        let is = flags & bit != 0;
        let text = if is { is_so } else { is_not };
        report.line(name, Verdict::or_note(is), format_args!("{text}"));
    }
}

/// How late the kernel's timer releases this thread.
pub fn timer(report: &mut Report, boot: &BootInfo) -> Result<(), SetupError> {
    const TIMES: u32 = 50;
    const EVERY_US: u64 = 5_000;
    /// Later is worth a note, µs.
    const LATE_US: u64 = 100;
    let (Some(tsc), Some(control)) = (boot.tsc(), boot.sched_control(0)) else {
        return Ok(());
    };
    let alarm = Alarm::new(SCHED_CONTEXT, control, tsc, EVERY_US);
    let mut latest = 0;
    for _ in 0..TIMES {
        let at = time::ticks() + tsc.us_to_ticks(EVERY_US);
        alarm.wait_until(at)?;
        latest = latest.max(tsc.ticks_to_us(time::ticks() - at));
    }
    report.line(
        "timer",
        Verdict::or_note(latest <= LATE_US),
        format_args!("{TIMES} releases, {latest} us late at most"),
    );
    Ok(())
}

/// The longest time that something took the processor away: firmware (SMI), or a host.
pub fn gaps(report: &mut Report, boot: &BootInfo) {
    const WATCHED_US: u64 = 500_000;
    /// Longer is worth a note, µs.
    const LONG_US: u64 = 50;
    let Some(tsc) = boot.tsc() else {
        return;
    };
    let start = time::ticks();
    let (mut last, mut longest) = (start, 0);
    while last - start < tsc.us_to_ticks(WATCHED_US) {
        let now = time::ticks();
        longest = longest.max(now - last);
        last = now;
    }
    let us = tsc.ticks_to_us(longest);
    report.line(
        "longest gap",
        Verdict::or_note(us <= LONG_US),
        format_args!("{us} us in which nothing ran here, of {WATCHED_US} us"),
    );
}

/// What there is to hand out.
pub fn memory(report: &mut Report, boot: &BootInfo) {
    let (mut bytes, mut pieces, mut devices) = (0u64, 0, 0);
    for untyped in boot.untypeds() {
        if untyped.is_device {
            devices += 1;
        } else {
            pieces += 1;
            bytes += 1 << untyped.size_bits;
        }
    }
    report.line(
        "memory",
        Verdict::or_wrong(bytes > 0),
        format_args!(
            "{} MiB in {pieces} pieces, {devices} pieces of devices",
            bytes >> 20
        ),
    );
}

/// The cores that the kernel has started.
pub fn cores(report: &mut Report, boot: &BootInfo) {
    let cores = boot.cores();
    report.line("cores", Verdict::Right, format_args!("{cores}"));
}

/// What the loader has told of a screen.
pub fn screen(report: &mut Report, boot: &BootInfo) {
    match boot.framebuffer() {
        Some(_) => report.line("screen", Verdict::Right, format_args!("a framebuffer")),
        None => report.line("screen", Verdict::Note, format_args!("none is told of")),
    }
}
