//! What a machine's record says.

use anyhow::{bail, ensure, Context, Result};
use demo_protocol::record::{Actor, Sections, Tag};
use demo_protocol::trace::{Interval, INTERVAL_WORDS};

/// The measurements of one point. Times are ticks of the machine's time-stamp counter unless
/// said otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// Ticks per µs.
    pub mhz: u64,
    /// Start and end of the measured window.
    pub window: [u64; 2],
    /// Bytes that the server finished in the window, for A and B.
    pub finished: [u64; 2],
    /// Bytes that the server finished until the window's end.
    pub total: [u64; 2],
    /// What A and B acknowledge: bytes, and the digest of their ciphertext. `None` for a client
    /// that was left out.
    pub acknowledged: [Option<(u64, u64)>; 2],
    /// Rollbacks for A and B, in the window: how many there are before it depends on when the clients
    /// start.
    pub rollbacks: [u64; 2],
    /// Time of these rollbacks.
    pub handling: u64,
    /// Of the longest rollback, since the start.
    pub longest_rollback: u64,
    pub control: Control,
    /// Who ran when, towards the window's end.
    pub traces: Vec<(Actor, Vec<Interval>)>,
    /// Ciphertext of A's first copy, if the machine sends it.
    pub ciphertext: Option<Vec<u8>>,
}

/// What the control task measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    pub misses: u64,
    /// Time executed.
    pub busy: u64,
    /// From release to completion, ns.
    pub responses_ns: Vec<u64>,
}

impl Measurement {
    /// Reads a record.
    ///
    /// # Errors
    /// It is incomplete or contradicts itself.
    pub fn decode(record: &[u8]) -> Result<Self> {
        let mut result = Self::default();
        let mut snapshots = Vec::new();
        for section in Sections::new(record) {
            let (tag, content) = section?;
            result
                .take(tag, content, &mut snapshots)
                .with_context(|| format!("the machine's record, section {tag:?}"))?;
        }
        let [begin, end]: [[u64; 6]; 2] = snapshots
            .try_into()
            .ok()
            .context("the machine's record has not two snapshots")?;
        result.window = [begin[0], end[0]];
        result.total = [end[1], end[2]];
        let in_window = |counter: usize| {
            end[counter]
                .checked_sub(begin[counter])
                .context("the server's counters ran backwards")
        };
        result.finished = [in_window(1)?, in_window(2)?];
        result.rollbacks = [in_window(3)?, in_window(4)?];
        result.handling = in_window(5)?;
        ensure!(
            result.mhz > 0 && begin[0] < end[0],
            "the machine's record has no clock"
        );
        Ok(result)
    }

    fn take(&mut self, tag: Tag, content: &[u8], snapshots: &mut Vec<[u64; 6]>) -> Result<()> {
        match tag {
            Tag::Clock => [self.mhz] = numbers(content)?,
            Tag::Snapshot => snapshots.push(numbers(content)?),
            Tag::Server => [self.longest_rollback] = numbers(content)?,
            Tag::Client => {
                let [badge, bytes, digest] = numbers(content)?;
                let client = (badge as usize).checked_sub(1);
                *client
                    .and_then(|client| self.acknowledged.get_mut(client))
                    .context("it has an unknown badge")? = Some((bytes, digest));
            }
            Tag::Control => self.control = control(&words(content)?)?,
            Tag::Trace => self.traces.push(trace(&words(content)?)?),
            Tag::Ciphertext => self.ciphertext = Some(content.to_vec()),
            Tag::End => {}
        }
        Ok(())
    }

    /// Ticks as µs.
    pub fn us(&self, ticks: u64) -> f64 {
        ticks as f64 / self.mhz as f64
    }

    /// Length of the measured window, seconds of virtual time.
    pub fn window_seconds(&self) -> f64 {
        self.us(self.window[1] - self.window[0]) / 1e6
    }

    /// Bytes per second of virtual time, for A and B.
    pub fn throughput(&self) -> [f64; 2] {
        self.finished
            .map(|bytes| bytes as f64 / self.window_seconds())
    }

    /// Share of the processor that the control task takes, between 0 and 1; `period_us` is its
    /// period.
    pub fn control_share(&self, period_us: u64) -> f64 {
        let available = self.control.responses_ns.len() as u64 * period_us * self.mhz;
        self.control.busy as f64 / available.max(1) as f64
    }

    /// Longest response of the control task, ns.
    pub fn longest_response_ns(&self) -> u64 {
        self.control.responses_ns.iter().copied().max().unwrap_or(0)
    }
}

/// A section of words.
fn words(content: &[u8]) -> Result<Vec<u64>> {
    let (words, rest) = content.as_chunks();
    ensure!(rest.is_empty(), "it is not made of whole words");
    Ok(words.iter().map(|&word| u64::from_le_bytes(word)).collect())
}

/// A section of exactly `N` words.
fn numbers<const N: usize>(content: &[u8]) -> Result<[u64; N]> {
    let words = words(content)?;
    let found = words.len();
    match words.try_into() {
        Ok(numbers) => Ok(numbers),
        Err(_) => bail!("it has {found} numbers instead of {N}"),
    }
}

fn control(words: &[u64]) -> Result<Control> {
    let (&[releases, misses, busy], responses) =
        words.split_first_chunk().context("it is too short")?;
    ensure!(
        releases == responses.len() as u64,
        "{releases} releases, but {} responses",
        responses.len()
    );
    Ok(Control {
        misses,
        busy,
        responses_ns: responses.to_vec(),
    })
}

fn trace(words: &[u64]) -> Result<(Actor, Vec<Interval>)> {
    let (&actor, words) = words.split_first().context("it is empty")?;
    let actor = Actor::from_word(actor)
        .with_context(|| format!("no participant has the number {actor}"))?;
    let (intervals, rest) = words.as_chunks::<INTERVAL_WORDS>();
    ensure!(rest.is_empty(), "it ends inside of an interval");
    let intervals = intervals
        .iter()
        .map(|&words| Interval::from_words(words))
        .collect();
    Ok((actor, intervals))
}

#[cfg(test)]
mod tests {
    use demo_protocol::record::header;

    use super::*;

    fn section(tag: Tag, words: &[u64]) -> Vec<u8> {
        let mut bytes = header(tag, words.len() as u64 * 8).to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    fn record(sections: &[(Tag, &[u64])]) -> Vec<u8> {
        let sections = sections.iter().map(|&(tag, words)| section(tag, words));
        sections.collect::<Vec<_>>().concat()
    }

    const SECTIONS: [(Tag, &[u64]); 7] = [
        (Tag::Clock, &[1000]),
        (Tag::Snapshot, &[1_000_000, 10, 20, 5, 0, 50]),
        (Tag::Snapshot, &[3_000_000, 110, 20, 7, 0, 66]),
        (Tag::Client, &[1, 99, 7]),
        (Tag::Control, &[2, 1, 500, 40, 60]),
        (Tag::Trace, &[3, 1, 2, 1]),
        (Tag::End, &[]),
    ];

    #[test]
    fn a_record_is_decoded() {
        let measurement = Measurement::decode(&record(&SECTIONS)).unwrap();
        assert_eq!(measurement.finished, [100, 0]);
        assert_eq!(measurement.throughput(), [100.0 / 0.002, 0.0]);
        assert_eq!(measurement.acknowledged, [Some((99, 7)), None]);
        assert_eq!(measurement.rollbacks, [2, 0], "of the window alone");
        assert_eq!(measurement.handling, 16);
        assert_eq!(measurement.control.misses, 1);
        assert_eq!(measurement.longest_response_ns(), 60);
        assert_eq!(measurement.control_share(1), 500.0 / 2000.0);
        assert_eq!(measurement.traces[0].0, Actor::Server);
    }

    #[test]
    fn contradictions_are_errors() {
        let with = |index: usize, section: (Tag, &'static [u64])| {
            let mut sections = SECTIONS;
            sections[index] = section;
            format!("{:#}", Measurement::decode(&record(&sections)).unwrap_err())
        };
        assert!(with(2, (Tag::Snapshot, &[3_000_000, 9, 20, 7, 0, 66])).contains("backwards"));
        assert!(with(2, (Tag::Clock, &[1000])).contains("two snapshots"));
        assert!(with(3, (Tag::Client, &[3, 0, 0])).contains("badge"));
        assert!(with(4, (Tag::Control, &[2, 1, 500, 40])).contains("responses"));
        assert!(with(5, (Tag::Trace, &[9])).contains("number 9"));
        assert!(with(5, (Tag::Trace, &[3, 1])).contains("interval"));
        assert!(with(0, (Tag::Clock, &[])).contains("instead of 1"));
        assert!(with(6, (Tag::Clock, &[1])).contains("incomplete"));
    }
}
