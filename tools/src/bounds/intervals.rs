//! What the plugin writes.

use anyhow::{Context, Result};

/// What the kernel executed between two marks, in instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// All of it.
    pub total: u64,
    /// From the first entry into the kernel to its exit.
    pub first: u64,
    /// The most from an entry to an exit.
    pub longest: u64,
    pub stretch: Stretch,
    /// From a look for interrupts to the next, on the average, rounded up; `None` if it looked less than twice in a row.
    pub step: Option<u64>,
    /// The most cycles of a stretch on processors whose caches are simulated, with their names.
    pub cycles: Vec<(String, u64)>,
}

/// The longest stretch without a look for interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub instructions: u64,
    /// Where it begins: `entry` or `point`.
    pub from: String,
    /// Where it ends: `exit`, `point` or `idle`.
    pub to: String,
    /// Addresses of code, and instructions executed there.
    pub places: Vec<(u64, u64)>,
}

impl Interval {
    /// Reads all intervals, in their order.
    ///
    /// # Errors
    /// A line is not as the plugin writes it.
    pub fn read_all(text: &str) -> Result<Vec<Self>> {
        let mut intervals: Vec<Self> = Vec::new();
        for line in text.lines() {
            let wrong = || format!("the plugin wrote `{line}`");
            if let Some(rest) = line.strip_prefix("interval ") {
                intervals.push(Self::parse(rest).with_context(wrong)?);
            } else if let Some(rest) = line.strip_prefix("steps ") {
                let step = rest.split_once(' ').and_then(|(steps, instructions)| {
                    let (steps, instructions) = (steps.parse().ok()?, instructions.parse().ok()?);
                    (steps > 0).then(|| u64::div_ceil(instructions, steps))
                });
                let (interval, step) = intervals.last_mut().zip(step).with_context(wrong)?;
                interval.step = Some(step);
            } else if let Some(rest) = line.strip_prefix("cycles ") {
                let cycles = rest.split_once(' ');
                let cycles = cycles.and_then(|(name, number)| Some((name, number.parse().ok()?)));
                let (interval, (name, cycles)) =
                    intervals.last_mut().zip(cycles).with_context(wrong)?;
                interval.cycles.push((name.to_owned(), cycles));
            } else {
                let place = line.strip_prefix("at ").and_then(parse_place);
                let interval = intervals.last_mut().zip(place).with_context(wrong)?;
                interval.0.stretch.places.push(interval.1);
            }
        }
        Ok(intervals)
    }

    /// Reads `PASSAGES TOTAL FIRST LONGEST STRETCH FROM TO`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').skip(1);
        let mut number = || words.next()?.parse::<u64>().ok();
        let (total, first, longest, instructions) = (number()?, number()?, number()?, number()?);
        let mut word = || words.next().map(str::to_owned);
        Some(Self {
            total,
            first,
            longest,
            stretch: Stretch {
                instructions,
                from: word()?,
                to: word()?,
                places: Vec::new(),
            },
            step: None,
            cycles: Vec::new(),
        })
    }
}

/// Reads `ADDRESS INSTRUCTIONS`.
fn parse_place(text: &str) -> Option<(u64, u64)> {
    let (address, instructions) = text.strip_prefix("0x")?.split_once(' ')?;
    Some((
        u64::from_str_radix(address, 16).ok()?,
        instructions.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_with_their_places() {
        let text =
            "interval 2 30 10 20 15 entry point\nsteps 4 21\nat 0xff 15\ncycles small 70\ninterval 0 0 0 0 0 entry exit\n";
        let read = Interval::read_all(text).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[0].total, read[0].first, read[0].longest),
            (30, 10, 20)
        );
        assert_eq!(read[0].stretch.places, [(0xff, 15)]);
        assert_eq!(read[0].stretch.to, "point");
        assert_eq!((read[0].step, read[1].step), (Some(6), None));
        assert_eq!(read[0].cycles, [("small".to_owned(), 70)]);
    }

    #[test]
    fn what_the_plugin_never_writes_is_refused() {
        assert!(Interval::read_all("at 0xff 15\n").is_err());
        assert!(Interval::read_all("interval 1 2\n").is_err());
        let interval = "interval 2 30 10 20 15 entry point\n";
        assert!(Interval::read_all(&format!("{interval}steps 0 0\n")).is_err());
    }
}
