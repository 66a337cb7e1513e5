//! How much of the processor a partition's windows have given it, at any time.

use crate::trace::history::History;
use crate::trace::record::{Event, Mark};
use crate::trace::windows;

/// The windows of a partition: from, to, in ticks from the time from which on the plan counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supply(Vec<(u64, u64)>);

impl Supply {
    /// That of the partition with this name; `None` if no plan counts.
    pub fn of(history: &History, partition: &str) -> Option<Self> {
        let origin = history
            .records
            .iter()
            .find_map(|record| match record.event {
                Event::Mark {
                    mark: Mark::Origin { at },
                    ..
                } => Some(at),
                _ => None,
            })?;
        let windows = windows::of(history).into_iter();
        let own = windows.filter(|window| history.name(window.context) == partition);
        let from_origin = |time: u64| time.saturating_sub(origin);
        Some(Self(
            own.map(|window| (from_origin(window.from), from_origin(window.to)))
                .collect(),
        ))
    }

    /// How many windows there are.
    pub fn windows(&self) -> usize {
        self.0.len()
    }

    /// When the last one begins.
    fn last(&self) -> u64 {
        self.0.last().map_or(0, |&(from, _)| from)
    }

    /// What it has had until then, ticks.
    fn until(&self, time: u64) -> u64 {
        let begun = self.0.iter().take_while(|&&(from, _)| from < time);
        begun.map(|&(from, to)| to.min(time) - from).sum()
    }

    /// The most, at any time, by which what it has had differs from what it has had in `other`, in ticks: by so much, windows
    /// have moved. As long as both go on.
    pub fn moved_from(&self, other: &Self) -> u64 {
        let end = self.last().min(other.last());
        // Between these, both grow steadily.
        let times = self.0.iter().chain(&other.0);
        let times = times.flat_map(|&(from, to)| [from, to]);
        let differences = times
            .filter(|&time| time <= end)
            .map(|time| self.until(time).abs_diff(other.until(time)));
        differences.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_move_by_what_a_partition_has_sooner_or_later() {
        let honest = Supply(vec![(0, 10), (20, 30), (40, 50), (60, 70)]);
        let late = Supply(vec![(0, 10), (23, 33), (40, 50), (60, 70)]);
        assert_eq!(late.moved_from(&honest), 3);
        // A piece of a window that comes much sooner is a small movement.
        let split = Supply(vec![(0, 10), (12, 13), (21, 30), (40, 50), (60, 70)]);
        assert_eq!(split.moved_from(&honest), 1);
        // A window that is missing is a whole one.
        let missing = Supply(vec![(0, 10), (40, 50), (60, 70)]);
        assert_eq!(missing.moved_from(&honest), 10);
    }
}
