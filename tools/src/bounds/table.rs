//! The measurements as a table, and what must hold.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{bail, Context, Result};

use super::floors::Floor;
use super::intervals::{Interval, Stretch};
use super::names::Symbols;
use super::reference;
use crate::arch::Arch;

/// The most that an operation may grow from the fewest attackers to the most.
const MOST_GROWTH: f64 = 3.0;

/// The longest stretch without a look for interrupts, in instructions, with capability spaces of
/// up to [`USUAL_LEVELS`], and with deeper ones.
pub(super) const MOST_STRETCH: u64 = 10_000;
const MOST_DEEP_STRETCH: u64 = 20_000;
const USUAL_LEVELS: u64 = 8;

/// The most that an object that is deleted costs for each thread in a long queue, on the average, in instructions; and in what
/// rows. The budgets of few of them are in pieces.
const MOST_STEP: u64 = 200;
const EMPTIED: [&str; 3] = [
    "endpoint-delete-senders",
    "endpoint-delete-receivers",
    "notification-delete",
];

/// Functions that are named for a stretch, and the least share of it that they have.
const NAMED: usize = 3;
const LEAST_SHARE: u64 = 10;

/// What the sizes of a measurement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Numbers of attackers.
    Many,
    /// Levels of capability spaces.
    Deep,
    /// Something of its own.
    Single,
}

/// An operation, with the worst of its measurements for each size.
#[derive(Debug)]
struct Row {
    name: String,
    kind: Kind,
    costs: BTreeMap<u64, Worst>,
}

#[derive(Debug)]
struct Worst {
    cost: u64,
    stretch: Stretch,
    /// See [`Interval::step`].
    step: Option<u64>,
}

impl Row {
    /// Growth of the cost from the fewest attackers on.
    fn growth(&self) -> f64 {
        let mut costs = self.costs.values().map(|worst| worst.cost);
        let first = costs.next().unwrap_or(0);
        let most = costs.max().unwrap_or(first);
        match (first, most) {
            (_, most) if most <= first => 1.0,
            (0, _) => f64::INFINITY,
            _ => most as f64 / first as f64,
        }
    }

    /// The longest stretch of all sizes.
    fn stretch(&self) -> Option<&Stretch> {
        let stretches = self.costs.values().map(|worst| &worst.stretch);
        stretches.max_by_key(|stretch| stretch.instructions)
    }

    /// What does not hold.
    fn exceeded(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let name = &self.name;
        let growth = self.growth();
        if self.kind == Kind::Many && growth > MOST_GROWTH {
            findings.push(format!(
                "{name} grows {growth:.2}-fold, at most {MOST_GROWTH} is allowed"
            ));
        }
        for (&size, worst) in &self.costs {
            let is_deep = self.kind == Kind::Deep && size > USUAL_LEVELS;
            let limit = if is_deep {
                MOST_DEEP_STRETCH
            } else {
                MOST_STRETCH
            };
            let instructions = worst.stretch.instructions;
            if instructions > limit {
                findings.push(format!(
                    "{name} at {size} executes {instructions} instructions without a look for \
                     interrupts, at most {limit} are allowed"
                ));
            }
        }
        match self.step() {
            Some(0..=MOST_STEP) => {}
            Some(step) => findings.push(format!(
                "{name} takes {step} instructions for each thread, at most {MOST_STEP} are allowed"
            )),
            None if self.is_emptied() => findings.push(format!(
                "{name} was not seen to look for interrupts between two threads: what each costs cannot be told"
            )),
            None => {}
        }
        findings
    }

    /// Whether an object with a queue is deleted.
    fn is_emptied(&self) -> bool {
        EMPTIED.contains(&self.name.as_str())
    }

    /// The most that an object costs for each thread in its longest queue, if it is one that is deleted.
    fn step(&self) -> Option<u64> {
        let (_, longest) = self.costs.last_key_value()?;
        longest.step.filter(|_| self.is_emptied())
    }

    /// What costs less than it is known to.
    fn forgotten<'r>(&'r self, floors: &'r [Floor]) -> impl Iterator<Item = String> + 'r {
        let own = floors.iter().filter(|floor| floor.name == self.name);
        own.filter_map(|floor| {
            let cost = self.costs.get(&floor.size)?.cost;
            (cost < floor.cost).then(|| {
                format!(
                    "{} at {} costs {cost} instructions, though {} were measured once: its worst \
                     arrangement is not made any more, or the floor is to be lowered",
                    floor.name, floor.size, floor.cost
                )
            })
        })
    }
}

/// All operations.
pub struct Table {
    arch: Arch,
    rows: Vec<Row>,
    /// Names of functions, by addresses in stretches.
    functions: BTreeMap<u64, String>,
}

impl Table {
    /// The table of the measurements that `console` names, in the order of `intervals`.
    ///
    /// # Errors
    /// The two do not fit together.
    pub fn new(
        arch: Arch,
        console: &str,
        intervals: Vec<Interval>,
        symbols: &Symbols,
    ) -> Result<Self> {
        let lines: Vec<&str> = console
            .lines()
            .filter_map(|line| line.trim().strip_prefix("bounds "))
            .collect();
        if lines.is_empty() || lines.len() != intervals.len() {
            bail!(
                "the system names {} measurements, and the plugin made {}",
                lines.len(),
                intervals.len()
            );
        }
        let mut table = Self {
            arch,
            rows: Vec::new(),
            functions: BTreeMap::new(),
        };
        for (line, interval) in lines.into_iter().zip(intervals) {
            for &(address, _) in &interval.stretch.places {
                let function = || symbols.function(address);
                table.functions.entry(address).or_insert_with(function);
            }
            table
                .add(line, interval)
                .with_context(|| format!("the system printed `bounds {line}`"))?;
        }
        Ok(table)
    }

    /// Adds a measurement that `line` describes: `KIND NAME SIZE COST`.
    fn add(&mut self, line: &str, interval: Interval) -> Option<()> {
        let mut words = line.split(' ');
        let kind = match words.next()? {
            "many" => Kind::Many,
            "deep" => Kind::Deep,
            "single" => Kind::Single,
            _ => return None,
        };
        let name = words.next()?.to_owned();
        let size: u64 = words.next()?.parse().ok()?;
        let cost = match words.next()? {
            "first" => interval.first,
            "longest" => interval.longest,
            "total" => interval.total,
            "stretch" => interval.stretch.instructions,
            _ => return None,
        };
        let row = match self.rows.iter().position(|row| row.name == name) {
            Some(at) => &mut self.rows[at],
            None => {
                let costs = BTreeMap::new();
                self.rows.push(Row { name, kind, costs });
                self.rows.last_mut()?
            }
        };
        let (stretch, step) = (interval.stretch, interval.step);
        match row.costs.get_mut(&size) {
            None => {
                let worst = Worst {
                    cost,
                    stretch,
                    step,
                };
                row.costs.insert(size, worst);
            }
            Some(worst) => {
                worst.cost = worst.cost.max(cost);
                worst.step = worst.step.max(step);
                if stretch.instructions > worst.stretch.instructions {
                    worst.stretch = stretch;
                }
            }
        }
        Some(())
    }

    /// What does not hold, a sentence each.
    pub fn exceeded(&self) -> Vec<String> {
        self.rows.iter().flat_map(Row::exceeded).collect()
    }

    /// What costs less than `floors` say, a sentence each.
    pub fn forgotten(&self, floors: &[Floor]) -> Vec<String> {
        let rows = self.rows.iter();
        rows.flat_map(|row| row.forgotten(floors)).collect()
    }

    /// Where the instructions of `stretch` are.
    fn place(&self, stretch: &Stretch) -> String {
        if stretch.instructions == 0 {
            return "the kernel is not entered".to_owned();
        }
        let mut shares: BTreeMap<&str, u64> = BTreeMap::new();
        for &(address, instructions) in &stretch.places {
            let name = self.functions.get(&address).map_or("?", String::as_str);
            *shares.entry(name).or_default() += instructions;
        }
        let mut shares: Vec<(&str, u64)> = shares.into_iter().collect();
        shares.sort_by_key(|&(name, instructions)| (std::cmp::Reverse(instructions), name));
        let all = stretch.instructions;
        let named: Vec<String> = shares
            .into_iter()
            .map(|(name, instructions)| (name, 100 * instructions / all))
            .take(NAMED)
            .filter(|&(_, share)| share >= LEAST_SHARE)
            .map(|(name, share)| format!("{name} {share} %"))
            .collect();
        format!("{} to {}: {}", stretch.from, stretch.to, named.join(", "))
    }

    fn write_rows(&self, f: &mut fmt::Formatter<'_>, kind: Kind, title: &str) -> fmt::Result {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.kind == kind).collect();
        let mut sizes: Vec<u64> = rows
            .iter()
            .flat_map(|row| row.costs.keys().copied())
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        // What has a size of its own has one figure.
        let columns = if kind == Kind::Single { 1 } else { sizes.len() };
        writeln!(f, "\n{title}\n")?;
        write!(f, "{:<32}", "operation")?;
        for size in sizes.iter().take(columns) {
            match kind {
                Kind::Single => write!(f, "{:>9}{:>9}", "size", "cost")?,
                _ => write!(f, "{:>9}", thousands(*size))?,
            }
        }
        if kind == Kind::Many {
            write!(f, "{:>8}", "growth")?;
        }
        writeln!(f, "{:>9}  {:<34}where", "stretch", "reference")?;
        for row in rows {
            write!(f, "{:<32}", row.name)?;
            match kind {
                Kind::Single => {
                    for (size, worst) in row.costs.iter().take(1) {
                        write!(f, "{:>9}{:>9}", thousands(*size), thousands(worst.cost))?;
                    }
                }
                _ => {
                    for size in &sizes {
                        let cost = row.costs.get(size).map(|worst| thousands(worst.cost));
                        write!(f, "{:>9}", cost.unwrap_or("-".to_owned()))?;
                    }
                }
            }
            if kind == Kind::Many {
                write!(f, "{:>8.2}", row.growth())?;
            }
            let figures = reference::of(self.arch, &row.name).unwrap_or_default();
            let figures: Vec<String> = figures.iter().map(|&figure| thousands(figure)).collect();
            let figures = figures.join(" / ");
            if let Some(stretch) = row.stretch() {
                let instructions = thousands(stretch.instructions);
                writeln!(f, "{instructions:>9}  {figures:<34}{}", self.place(stretch))?;
            }
        }
        Ok(())
    }

    /// The row with the greatest `measure` among those that `is_of`.
    fn worst<'t, N: PartialOrd + Copy>(
        &'t self,
        measure: impl Fn(&'t Row) -> Option<N>,
    ) -> Option<(&'t Row, N)> {
        let measured = self
            .rows
            .iter()
            .filter_map(|row| Some((row, measure(row)?)));
        measured.reduce(|a, b| if b.1 > a.1 { b } else { a })
    }

    /// The longest stretch with capability spaces of `is_deep` or other depth.
    fn longest(&self, is_deep: bool) -> Option<(&Row, u64)> {
        self.worst(|row| {
            let costs = row
                .costs
                .iter()
                .filter(|(&size, _)| is_deep == (row.kind == Kind::Deep && size > USUAL_LEVELS));
            costs.map(|(_, worst)| worst.stretch.instructions).max()
        })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "instructions of the kernel on {}; stretch: the most without a look for interrupts; \
             reference: seL4 16.0.0{}",
            self.arch.name(),
            match self.arch {
                Arch::X86_64 => "",
                Arch::Aarch64 => ", which was not measured here",
            }
        )?;
        self.write_rows(f, Kind::Many, "against this many attackers")?;
        self.write_rows(
            f,
            Kind::Deep,
            "through capability spaces with this many levels",
        )?;
        self.write_rows(f, Kind::Single, "of the largest sizes")?;
        writeln!(f)?;
        let many = |row: &Row| (row.kind == Kind::Many).then(|| row.growth());
        if let Some((row, growth)) = self.worst(many) {
            let name = &row.name;
            writeln!(
                f,
                "most growth: {growth:.2} ({name}), at most {MOST_GROWTH}"
            )?;
        }
        for (is_deep, levels, limit) in [
            (false, "up to 8 levels", MOST_STRETCH),
            (true, "64 levels", MOST_DEEP_STRETCH),
        ] {
            if let Some((row, instructions)) = self.longest(is_deep) {
                writeln!(
                    f,
                    "longest stretch, capability spaces of {levels}: {} ({}), at most {}",
                    thousands(instructions),
                    row.name,
                    thousands(limit)
                )?;
            }
        }
        if let Some((row, step)) = self.worst(Row::step) {
            let name = &row.name;
            writeln!(
                f,
                "an object that is deleted, for each thread in its longest queue: {step} ({name}), at most {MOST_STEP}"
            )?;
        }
        Ok(())
    }
}

/// A number with its thousands set apart.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(cost: u64) -> Interval {
        let text = format!("interval 1 {cost} {cost} {cost} {cost} entry exit\nat 0x10 {cost}\n");
        Interval::read_all(&text).unwrap().remove(0)
    }

    fn table(lines: &[(&str, u64)]) -> Table {
        let console: String = lines
            .iter()
            .map(|(line, _)| format!("bounds {line} first\r\n"))
            .collect();
        let intervals = lines.iter().map(|&(_, cost)| interval(cost)).collect();
        Table::new(Arch::X86_64, &console, intervals, &Symbols::default()).unwrap()
    }

    #[test]
    fn growth_beyond_the_limit_is_found() {
        let kept = table(&[("many a 10", 100), ("many a 1000", 300)]);
        assert!(kept.exceeded().is_empty());
        let broken = table(&[("many a 10", 100), ("many a 1000", 301)]);
        assert_eq!(broken.exceeded().len(), 1);
        let from_nothing = table(&[("many a 10", 0), ("many a 1000", 1)]);
        assert_eq!(from_nothing.exceeded().len(), 1);
    }

    #[test]
    fn stretches_beyond_the_limit_are_found() {
        assert!(table(&[("deep a 8", 10_000), ("deep a 64", 20_000)])
            .exceeded()
            .is_empty());
        for (line, cost) in [
            ("deep a 8", 10_001),
            ("deep a 64", 20_001),
            ("single a 64", 10_001),
        ] {
            assert_eq!(table(&[(line, cost)]).exceeded().len(), 1, "{line}");
        }
    }

    #[test]
    fn objects_that_cost_too_much_for_a_thread_are_found() {
        for (name, steps, findings) in [
            ("notification-delete", "steps 2 400\n", 0),
            ("notification-delete", "steps 2 401\n", 1),
            ("notification-delete", "", 1),
            ("revoke-copies", "steps 2 401\n", 0),
        ] {
            let text = format!("interval 1 9 9 9 9 entry exit\n{steps}");
            let console = format!("bounds many {name} 10 stretch\r\n");
            let intervals = Interval::read_all(&text).unwrap();
            let table = Table::new(Arch::X86_64, &console, intervals, &Symbols::default());
            assert_eq!(table.unwrap().exceeded().len(), findings, "{name}");
        }
    }

    #[test]
    fn what_costs_less_than_it_is_known_to_is_found() {
        let table = table(&[("many a 10", 5), ("many a 1000", 9)]);
        let floor = |size, cost| Floor {
            name: "a",
            size,
            cost,
        };
        assert!(table
            .forgotten(&[floor(10, 5), floor(1000, 8), floor(100, 1)])
            .is_empty());
        assert_eq!(table.forgotten(&[floor(10, 6), floor(1000, 10)]).len(), 2);
    }

    #[test]
    fn the_worst_of_several_measurements_counts() {
        let table = table(&[("many a 10", 5), ("many a 10", 9), ("many a 10", 7)]);
        assert_eq!(table.rows[0].costs[&10].cost, 9);
    }

    #[test]
    fn measurements_without_names_are_refused() {
        let symbols = Symbols::default();
        assert!(Table::new(
            Arch::X86_64,
            "bounds many a 10 first\n",
            Vec::new(),
            &symbols
        )
        .is_err());
        assert!(Table::new(
            Arch::X86_64,
            "bounds all a 10 first\n",
            vec![interval(1)],
            &symbols
        )
        .is_err());
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1_234), "1,234");
        assert_eq!(thousands(136_400_115), "136,400,115");
    }
}
