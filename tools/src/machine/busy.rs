//! `sandglass machine busy`: boots on a host that is kept busy on purpose. The clock is within 0.1 % of the
//! emulator's, or the machine is refused, each time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use crate::cores::Cores;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::{self, Boot, End, Machine};

/// The root task, which measures the clock itself, for longer.
const PACKAGE: &str = "self-test";
/// The clocks that machines have, in turn.
const MODELS: [&str; 4] = ["pc", "q35,hpet=off", "q35,hpet=off,pit=off", "microvm"];
const CPU: &str = "Nehalem,+pdpe1gb";
/// Threads that keep each of the host's cores busy.
const THREADS_ON_A_CORE: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(300);
/// The most that a clock may be off, ppm.
const LIMIT_PPM: f64 = 1_000.0;

/// One boot.
enum Seen {
    /// What the kernel's clock has, and what is measured over half a second by the HPET, if there is one, in kHz.
    Clock {
        kernel: f64,
        bounds: (f64, f64),
        hpet: Option<f64>,
        repeated: u64,
    },
    /// The kernel's words.
    Refused(String),
}

/// Boots `boots` times. Whether every clock was right or refused.
pub fn run(boots: u32) -> Result<bool> {
    let kernel = kernel::build(&KernelOptions::on(Variant::Release, Cores::Single))?;
    let root_task = program::build(PACKAGE)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let is_over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        for _ in 0..cores * THREADS_ON_A_CORE {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for step in 0..100_000 {
                        std::hint::black_box(step);
                    }
                }
            });
        }
        let seen = (0..boots)
            .map(|number| {
                let model = MODELS[number as usize % MODELS.len()];
                let boot = Boot {
                    machine: Machine {
                        model: model.to_owned(),
                        cpu: CPU.to_owned(),
                        ..Machine::default()
                    },
                    timeout: Some(TIMEOUT),
                    ..Boot::new(&kernel, &root_task)
                };
                look(&boot).with_context(|| format!("boot {number}, on {model}"))
            })
            .collect::<Result<Vec<_>>>();
        is_over.store(true, Ordering::Relaxed);
        seen
    })?;
    judge(&seen)
}

fn look(boot: &Boot) -> Result<Seen> {
    let outcome = qemu::run(boot)?;
    let console = &outcome.console;
    if let Some((_, words)) = console.split_once("Sandglass cannot start: ") {
        return Ok(Seen::Refused(words.trim().to_owned()));
    }
    // A clock that is wrong has it end with another status, and is judged here.
    ensure!(
        outcome.end != End::TimedOut && console.contains("clock and HPET"),
        "the machine did not say what its clock is:\n{console}"
    );
    read(console).with_context(|| format!("in what the machine said:\n{console}"))
}

/// Reads what the root task says of the clock.
fn read(console: &str) -> Result<Seen> {
    let line = |name: &str| {
        let line = console
            .lines()
            .find(|line| line.get(8..).is_some_and(|line| line.starts_with(name)));
        line.with_context(|| format!("no line `{name}`"))
    };
    let numbers = |text: &str| -> Vec<f64> {
        let words = text.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let measured = numbers(line("clock   ")?);
    let compared = line("clock and HPET")?;
    // Where there is none, the line says why, with numbers of its own.
    let compared = match compared.starts_with("skipped") {
        true => Vec::new(),
        false => numbers(compared),
    };
    let [hz, least, most, _windows, repeated] = measured[..] else {
        bail!("five numbers of the clock are expected");
    };
    let (kernel, hpet) = match compared[..] {
        [by_hpet, _width, kernel] => (kernel, Some(by_hpet)),
        // Without an HPET, the frequency before it was rounded is all that there is.
        _ => ((hz / 1_000.0).round() * 1_000.0, None),
    };
    Ok(Seen::Clock {
        kernel,
        bounds: (least, most),
        hpet,
        repeated: repeated as u64,
    })
}

/// Judges all boots by the median of what the HPET said.
fn judge(seen: &[Seen]) -> Result<bool> {
    let mut truths: Vec<f64> = seen
        .iter()
        .filter_map(|seen| match seen {
            Seen::Clock { hpet, .. } => *hpet,
            Seen::Refused(_) => None,
        })
        .collect();
    truths.sort_by(f64::total_cmp);
    let truth = *truths
        .get(truths.len() / 2)
        .context("no boot could compare its clock with an HPET")?;
    let off = |khz: f64| (khz / truth - 1.0).abs() * 1e6;
    let (mut worst, mut outside, mut wrong, mut refused, mut again) = (0f64, 0, 0, 0, 0);
    for seen in seen {
        match seen {
            Seen::Clock {
                kernel,
                bounds,
                repeated,
                ..
            } => {
                worst = worst.max(off(*kernel));
                wrong += u32::from(off(*kernel) > LIMIT_PPM);
                outside += u32::from(!(bounds.0 <= truth && truth <= bounds.1));
                again += u32::from(*repeated > 0);
            }
            Seen::Refused(words) => {
                refused += 1;
                println!("refused: {words}");
            }
        }
    }
    println!(
        "{} boots beside {THREADS_ON_A_CORE} busy threads on each core: the emulator's clock has {truth:.0} kHz; {refused} \
         refused; the others are off by {worst:.0} ppm at most, rounding to whole MHz included; {wrong} by more than \
         {LIMIT_PPM:.0}; {outside} have bounds without it; {again} were measured more than once",
        seen.len()
    );
    Ok(wrong == 0 && outside == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "\
ok      clock               2596096 kHz, 2595806 to 2596387, by HPET ACPI-timer; 2 windows, repeated 3 times\r
ok      clock and HPET      2596098 kHz by the HPET, to 2 kHz; 2596000 kHz by the kernel\r
";

    #[test]
    fn lines_of_the_self_test_are_read() {
        let Seen::Clock {
            kernel,
            bounds,
            hpet,
            repeated,
        } = read(CONSOLE).unwrap()
        else {
            panic!("a clock");
        };
        assert_eq!((kernel, bounds), (2_596_000.0, (2_595_806.0, 2_596_387.0)));
        assert_eq!((hpet, repeated), (Some(2_596_098.0), 3));
        let without = CONSOLE.replace(
            "ok      clock and HPET      2596098 kHz by the HPET, to 2 kHz; 2596000 kHz by the kernel",
            "skipped clock and HPET      no HPET with a 64-bit counter: capabilities 0x0, 12 of 13",
        );
        assert!(without.contains("skipped"));
        let Seen::Clock { kernel, hpet, .. } = read(&without).unwrap() else {
            panic!("a clock");
        };
        assert_eq!((kernel, hpet), (2_596_000.0, None));
    }

    fn clock(kernel: f64, bounds: (f64, f64)) -> Seen {
        Seen::Clock {
            kernel,
            bounds,
            hpet: Some(1_000_000.0),
            repeated: 0,
        }
    }

    #[test]
    fn a_clock_that_is_off_or_outside_its_bounds_is_wrong() {
        let right = || clock(1_000_900.0, (999_999.0, 1_000_001.0));
        assert!(judge(&[right(), Seen::Refused("disturbed".to_owned())]).unwrap());
        assert!(!judge(&[right(), clock(1_001_100.0, (999_999.0, 1_000_001.0))]).unwrap());
        assert!(!judge(&[right(), clock(1_000_000.0, (1_000_001.0, 1_000_002.0))]).unwrap());
        assert!(judge(&[]).is_err());
    }
}
