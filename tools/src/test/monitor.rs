//! What a monitor says that threads have used, against the trace of the same run.

use std::collections::BTreeMap;

use crate::trace::timeline::Timeline;
use crate::trace::Traced;

/// How far a figure may be off: so much of what the trace says, ...
const PARTS: u64 = 100;
/// ... and so many µs. The kernel tells whole µs and drops the rest each time, and the threads are asked one after
/// another, some µs from what the report states as its end.
const GRAIN_US: u64 = 12;

/// A report of `top`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    /// Ticks.
    from: u64,
    to: u64,
    /// What each thread has used, µs.
    used_us: BTreeMap<String, u64>,
}

/// All whole reports on a console.
fn reports(console: &str) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for line in console.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["top:", _, "us,", "from", "tick", from, "to", "tick", to] = words[..] {
            let (from, to) = (from.parse(), to.parse());
            if let (Ok(from), Ok(to)) = (from, to) {
                reports.push(Report {
                    from,
                    to,
                    used_us: BTreeMap::new(),
                });
            }
        } else if let ([name, _, _, used, _, _, _, _], Some(report)) =
            (&words[..], reports.last_mut())
        {
            if let Ok(used) = used.parse() {
                report.used_us.insert((*name).to_owned(), used);
            }
        }
    }
    reports
}

/// Where reports and trace differ; or that there is nothing to compare.
pub(super) fn departures(traced: &Traced) -> Vec<String> {
    let history = &traced.history;
    let timeline = Timeline::of(history);
    let mut departures = Vec::new();
    let mut compared = 0;
    for report in reports(&traced.console) {
        if report.to > history.end() || report.from < history.begin() {
            continue;
        }
        let mut paid: BTreeMap<String, u64> = BTreeMap::new();
        for execution in &timeline.executions {
            let from = execution.from.max(report.from);
            let ticks = execution.to.min(report.to).saturating_sub(from);
            *paid.entry(history.name(execution.context)).or_default() += ticks;
        }
        for (name, &said) in &report.used_us {
            let traced_us = history.us(paid.get(name).copied().unwrap_or(0)) as u64;
            compared += u64::from(traced_us > GRAIN_US);
            if said.abs_diff(traced_us) > traced_us / PARTS + GRAIN_US {
                departures.push(format!(
                    "the monitor says that `{name}` used {said} us from tick {} to tick {}, the trace {traced_us} us",
                    report.from, report.to
                ));
            }
        }
    }
    if compared == 0 {
        departures.push("no figure of the monitor could be compared with the trace".to_owned());
    }
    departures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_from_the_console() {
        let console = "\
booting
top: 50000 us, from tick 7 to tick 9
thread               prio core   used us      % budget us period us   left us
tally                 200    0 on its clients' time
oracle                150    1       200    1.9      2000     10000      1800
judge                  50    0         -      -      5000      5000         -
top: cut off";
        let used_us = BTreeMap::from([("oracle".to_owned(), 200)]);
        let (from, to) = (7, 9);
        assert_eq!(reports(console), [Report { from, to, used_us }]);
    }
}
