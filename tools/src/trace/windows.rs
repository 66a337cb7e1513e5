//! The windows of partitions, as marks of their scheduler tell: what to draw. Whether they are true is
//! [`check`](super::check)'s matter.

use super::history::History;
use super::record::{Event, Mark, Object};

/// A stretch in which the processor was a partition's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The partition's.
    pub context: Object,
    /// Of the release or the frame, modulo 256.
    pub number: u8,
    /// Ticks. A window may end before `until`, when another partition takes the processor; or after it, and that is
    /// an overrun.
    pub from: u64,
    pub until: u64,
    pub to: u64,
    /// What its partition is charged for it, ticks.
    pub overrun: u64,
}

impl Window {
    /// When it was to be over at the latest: the rest is overrun.
    pub fn planned_end(&self) -> u64 {
        self.until.min(self.to)
    }
}

/// All windows, in their order.
pub fn of(history: &History) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut current: Option<Window> = None;
    let mut charged = None;
    for record in &history.records {
        let Event::Mark { subject, mark } = record.event else {
            continue;
        };
        let (at, next) = match mark {
            Mark::Window { number, at, until } => {
                let window = Window {
                    context: subject,
                    number,
                    from: at,
                    until,
                    to: at,
                    overrun: 0,
                };
                (at, Some(window))
            }
            Mark::WindowEnd { at } => (at, None),
            Mark::Overrun { ticks, .. } => {
                charged = Some((subject, ticks));
                continue;
            }
            _ => continue,
        };
        windows.extend(std::mem::replace(&mut current, next).map(|window| {
            Window {
                to: at,
                overrun: charged
                    .filter(|&(context, _)| context == window.context)
                    .map_or(0, |(_, ticks)| ticks),
                ..window
            }
        }));
        charged = None;
    }
    windows.extend(current.map(|window| Window {
        to: history.end().max(window.from),
        ..window
    }));
    windows
}
