//! What a machine's record says.

use anyhow::{bail, ensure, Context, Result};
use demo_protocol::record::{Actor, Entries, Entry, Snapshot};
use demo_protocol::trace::Interval;

/// The measurements of one point. Times are ticks of the machine's time-stamp counter unless
/// said otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// Ticks per ms.
    pub khz: u64,
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
    /// Reads the entries of a record.
    ///
    /// # Errors
    /// It is incomplete or contradicts itself.
    pub fn decode(record: &[u8]) -> Result<Self> {
        let mut result = Self::default();
        let mut snapshots = Vec::new();
        let mut releases = 0;
        for entry in Entries::new(record) {
            match entry.context("the machine's record is incomplete, or is none")? {
                Entry::Clock { khz } => result.khz = khz,
                Entry::Snapshot(snapshot) => snapshots.push(snapshot),
                Entry::LongestRollback(ticks) => result.longest_rollback = ticks,
                Entry::Client {
                    badge,
                    bytes,
                    digest,
                } => result.acknowledge(badge, (bytes, digest))?,
                Entry::Control {
                    releases: announced,
                    misses,
                    busy,
                } => {
                    releases = announced;
                    result.control.misses = misses;
                    result.control.busy = busy;
                }
                Entry::Response(ns) => result.control.responses_ns.push(ns),
                Entry::Trace(actor) => result.traces.push((actor, Vec::new())),
                Entry::Interval(interval) => {
                    let trace = result.traces.last_mut();
                    let (_, intervals) = trace.context("an interval in the record is nobody's")?;
                    intervals.push(interval);
                }
                Entry::Ciphertext(part) => {
                    let ciphertext = result.ciphertext.get_or_insert_default();
                    ciphertext.extend(part);
                }
                Entry::End => {}
            }
        }
        let responses = result.control.responses_ns.len();
        ensure!(
            releases == responses as u64,
            "the machine's record has {releases} releases, but {responses} responses"
        );
        result.measure(&snapshots)?;
        ensure!(result.khz > 0, "the machine's record has no clock");
        Ok(result)
    }

    fn acknowledge(&mut self, badge: u64, acknowledged: (u64, u64)) -> Result<()> {
        let client = (badge as usize).checked_sub(1);
        let client = client.and_then(|client| self.acknowledged.get_mut(client));
        *client.with_context(|| format!("the machine's record has an unknown badge, {badge}"))? =
            Some(acknowledged);
        Ok(())
    }

    /// What happened between the snapshots at the window's beginning and end.
    fn measure(&mut self, snapshots: &[Snapshot]) -> Result<()> {
        let [begin, end] = snapshots else {
            bail!("the machine's record has not two snapshots");
        };
        ensure!(
            begin.time < end.time,
            "the machine's clock stands or runs backwards"
        );
        self.window = [begin.time, end.time];
        self.total = end.finished;
        let between = |begin: u64, end: u64| {
            end.checked_sub(begin)
                .context("the server's counters ran backwards")
        };
        for client in 0..2 {
            self.finished[client] = between(begin.finished[client], end.finished[client])?;
            self.rollbacks[client] = between(begin.rollbacks[client], end.rollbacks[client])?;
        }
        self.handling = between(begin.handling, end.handling)?;
        Ok(())
    }

    /// Ticks as µs.
    pub fn us(&self, ticks: u64) -> f64 {
        ticks as f64 * 1000.0 / self.khz as f64
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
        let available = self.control.responses_ns.len() as u64 * period_us * self.khz / 1000;
        self.control.busy as f64 / available.max(1) as f64
    }

    /// Longest response of the control task, ns.
    pub fn longest_response_ns(&self) -> u64 {
        self.control.responses_ns.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use demo_protocol::record::Buffer;

    use super::*;

    fn record(entries: &[Entry]) -> Vec<u8> {
        let mut buffer = Buffer::new();
        let bytes = entries
            .iter()
            .map(|entry| buffer.encode(entry).unwrap().to_vec());
        bytes.collect::<Vec<_>>().concat()
    }

    fn snapshot(time: u64, finished: [u64; 2], rollbacks: u64) -> Entry<'static> {
        Entry::Snapshot(Snapshot {
            time,
            finished,
            rollbacks: [rollbacks, 0],
            handling: rollbacks * 8,
        })
    }

    fn interval(start: u64, end: u64, payer: u64) -> Entry<'static> {
        Entry::Interval(Interval { start, end, payer })
    }

    fn control(releases: u64) -> Entry<'static> {
        Entry::Control {
            releases,
            misses: 1,
            busy: 500,
        }
    }

    fn client(badge: u64) -> Entry<'static> {
        Entry::Client {
            badge,
            bytes: 99,
            digest: 7,
        }
    }

    fn entries() -> Vec<Entry<'static>> {
        vec![
            Entry::Clock { khz: 1_000_000 },
            snapshot(1_000_000, [10, 20], 5),
            snapshot(3_000_000, [110, 20], 7),
            client(1),
            control(2),
            Entry::Response(40),
            Entry::Response(60),
            Entry::Trace(Actor::Server),
            interval(1, 2, 1),
            Entry::Ciphertext(&[1, 2]),
            Entry::Ciphertext(&[3]),
            Entry::End,
        ]
    }

    #[test]
    fn a_record_is_decoded() {
        let measurement = Measurement::decode(&record(&entries())).unwrap();
        assert_eq!(measurement.finished, [100, 0]);
        assert_eq!(measurement.throughput(), [100.0 / 0.002, 0.0]);
        assert_eq!(measurement.acknowledged, [Some((99, 7)), None]);
        assert_eq!(measurement.rollbacks, [2, 0], "of the window alone");
        assert_eq!(measurement.handling, 16);
        assert_eq!(measurement.control.misses, 1);
        assert_eq!(measurement.longest_response_ns(), 60);
        assert_eq!(measurement.control_share(1), 500.0 / 2000.0);
        assert_eq!(measurement.traces[0].0, Actor::Server);
        assert_eq!(measurement.traces[0].1.len(), 1);
        assert_eq!(measurement.ciphertext, Some(vec![1, 2, 3]));
    }

    #[test]
    fn contradictions_are_errors() {
        let with = |index: usize, entry: Entry<'static>| {
            let mut entries = entries();
            entries[index] = entry;
            format!("{:#}", Measurement::decode(&record(&entries)).unwrap_err())
        };
        assert!(with(2, snapshot(3_000_000, [9, 20], 7)).contains("counters ran backwards"));
        assert!(with(2, snapshot(3_000_000, [110, 20], 4)).contains("counters ran backwards"));
        assert!(with(2, snapshot(1_000_000, [110, 20], 7)).contains("clock stands"));
        assert!(with(2, Entry::Clock { khz: 1_000_000 }).contains("two snapshots"));
        assert!(with(3, client(3)).contains("badge, 3"));
        assert!(with(4, control(3)).contains("2 responses"));
        assert!(with(7, Entry::Clock { khz: 1_000_000 }).contains("nobody's"));
        assert!(with(0, Entry::Ciphertext(&[])).contains("no clock"));
        assert!(with(11, Entry::Clock { khz: 1000 }).contains("incomplete"));
    }
}
