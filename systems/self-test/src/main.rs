//! A root task for a machine that is new: it prints a line for each thing that Sandglass assumes of a
//! machine, with what it found, and a code with a digit for each of them, to report
//! (*Trying it on a machine of yours*).

#![no_std]
#![no_main]

mod checks;
mod processor;

use core::fmt;

use sandglass::{println, BootInfo, Process, SetupError};

sandglass::entry!(main);

/// How it is with an assumption.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It holds.
    Right = 0,
    /// It does not, or the machine does not say so; systems run, with what the line says.
    Note = 1,
    /// It does not, and what is promised cannot be kept.
    Wrong = 2,
    /// Nothing is known: what it would be looked at by is not there.
    Skipped = 3,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Verdict::Right => "ok",
            Verdict::Note => "note",
            Verdict::Wrong => "WRONG",
            Verdict::Skipped => "skipped",
        }
    }

    /// Right, or else a note.
    const fn or_note(is_right: bool) -> Self {
        if is_right {
            Verdict::Right
        } else {
            Verdict::Note
        }
    }

    /// Right, or else wrong.
    const fn or_wrong(is_right: bool) -> Self {
        if is_right {
            Verdict::Right
        } else {
            Verdict::Wrong
        }
    }
}

/// Most lines.
const LINES: usize = 16;

/// The lines so far.
struct Report {
    digits: [Option<Verdict>; LINES],
    count: usize,
}

impl Report {
    /// Prints a line, and keeps its digit.
    fn line(&mut self, name: &str, verdict: Verdict, text: fmt::Arguments) {
        println!("{:<8}{name:<20}{text}", verdict.word());
        if let Some(place) = self.digits.get_mut(self.count) {
            *place = Some(verdict);
        }
        self.count += 1;
    }

    fn is_wrong(&self) -> bool {
        self.digits.contains(&Some(Verdict::Wrong))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, verdict) in self.digits.iter().flatten().enumerate() {
            if number > 0 && number % 4 == 0 {
                f.write_str("-")?;
            }
            write!(f, "{}", *verdict as u8)?;
        }
        Ok(())
    }
}

fn main(boot: &'static BootInfo) -> Result<(), SetupError> {
    let mut process = Process::root_task(boot);
    let serial = process.use_serial_console();
    process.use_exit_port()?;
    if let Err(error) = serial {
        println!("no serial port: {error}");
    }
    println!("Sandglass tries this machine: {}", processor::Brand::read());
    let mut report = Report {
        digits: [None; LINES],
        count: 0,
    };
    checks::clock(&mut report, boot);
    checks::clock_beside_hpet(&mut report, boot, &mut process);
    checks::promises_of_clock(&mut report, boot);
    checks::timer(&mut report, boot)?;
    checks::gaps(&mut report, boot);
    checks::memory(&mut report, boot);
    checks::cores(&mut report, boot);
    checks::screen(&mut report, boot);
    processor::protection(&mut report);
    processor::speculation(&mut report);
    println!("code {report}");
    assert!(!report.is_wrong(), "a line says WRONG");
    println!("self-test is done");
    Ok(())
}
