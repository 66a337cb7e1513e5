//! Which lines a path had best pay for at its beginning.
//!
//! For a path that uses a line several times, it is best to pay for it ahead; for one that does not use it, not to. What counts
//! is the path that costs most. Of each that was the longest so far, it is known what it costs with other lines paid for ahead, and
//! the longest costs no less then. So lines are added and left out, one after the other, as long as the dearest of them gets
//! cheaper.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_cache::Model;

use crate::prices::Line;

/// A longest way, where some lines were paid for ahead.
#[derive(Debug)]
pub struct Seen {
    pub cost: i64,
    pub ahead: BTreeSet<Line>,
    /// How often it would pay for each line that stays, if that were not paid for ahead.
    pub uses: BTreeMap<Line, u64>,
}

impl Seen {
    /// By how much more it costs if a line is paid for ahead.
    fn more(&self, line: Line, model: &Model) -> i64 {
        let uses = self.uses.get(&line).copied().unwrap_or_default();
        line.cost(model) * (1 - uses as i64)
    }

    /// What it costs if these lines are paid for ahead.
    fn cost_with(&self, ahead: &BTreeSet<Line>, model: &Model) -> i64 {
        let more = ahead
            .difference(&self.ahead)
            .map(|&line| self.more(line, model));
        let less = self
            .ahead
            .difference(ahead)
            .map(|&line| self.more(line, model));
        self.cost + more.sum::<i64>() - less.sum::<i64>()
    }
}

/// What several paths cost: less is what is less for the dearest of them, and then for all together.
fn rank(costs: &[i64]) -> (Option<i64>, i64) {
    (costs.iter().copied().max(), costs.iter().sum())
}

/// What to pay for ahead, next, by the ways that were the longest with what was paid for so far.
pub fn choice(seen: &[Seen], before: BTreeSet<Line>, model: &Model) -> BTreeSet<Line> {
    let uses = seen.iter().flat_map(|way| &way.uses);
    let several = uses.filter(|(_, times)| **times > 1);
    let lines: BTreeSet<Line> = several.map(|(&line, _)| line).collect();
    let mut ahead: BTreeSet<Line> = before.intersection(&lines).copied().collect();
    let costs = seen.iter().map(|way| way.cost_with(&ahead, model));
    let mut costs: Vec<i64> = costs.collect();
    loop {
        let changed = lines.iter().map(|&line| {
            let sign = match ahead.contains(&line) {
                true => -1,
                false => 1,
            };
            let ways = costs.iter().zip(seen);
            let costs: Vec<i64> = ways
                .map(|(cost, way)| cost + sign * way.more(line, model))
                .collect();
            (line, costs)
        });
        let best = changed.min_by_key(|(_, costs)| rank(costs));
        match best {
            Some((line, fewer)) if rank(&fewer) < rank(&costs) => {
                if !ahead.remove(&line) {
                    ahead.insert(line);
                }
                costs = fewer;
            }
            _ => return ahead,
        }
    }
}
