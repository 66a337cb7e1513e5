//! Figures of a run, by name, and how those of two runs differ.

use std::collections::BTreeMap;

/// Most that a figure may differ, percent of it; or percentage points, of one that is a percentage.
pub const TOLERANCE_PERCENT: f64 = 1.0;

/// Something that a run printed or checked, as a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Unique among the figures of a run.
    pub name: String,
    pub value: f64,
    /// Whether it is a percentage: of two, the difference counts, in percentage points.
    pub is_percentage: bool,
}

impl Figure {
    /// A figure that is no percentage.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self {
            name: name.into(),
            value,
            is_percentage: false,
        }
    }
}

/// The figures of a table as comma-separated values with a header. The first `keys` columns, and all that is no
/// number, name a line; a column whose name has `percent` in it has percentages.
///
/// # Panics
/// It is no such table.
pub fn of_csv(text: &str, keys: usize) -> Vec<Figure> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    let mut lines = reader
        .records()
        .map(|line| line.expect("we have written it"));
    let header = lines.next().unwrap_or_default();
    let mut figures = Vec::new();
    for cells in lines {
        let parsed = cells.iter().enumerate();
        let parsed: Vec<Option<f64>> = parsed
            .map(|(column, cell)| cell.parse().ok().filter(|_| column >= keys))
            .collect();
        let names = cells.iter().zip(&parsed);
        let names = names.filter(|(_, value)| value.is_none());
        let line: Vec<&str> = names.map(|(cell, _)| cell).collect();
        for (column, value) in header.iter().zip(parsed) {
            figures.extend(value.map(|value| Figure {
                name: format!("{}: {column}", line.join(" ")),
                value,
                is_percentage: column.contains("percent"),
            }));
        }
    }
    figures
}

/// The numbers on a console. A number's name is its line without any number, how often such a line came, and its place
/// in the line. Lines that have `ignored` in them are left out.
pub fn of_console(console: &str, ignored: &str) -> Vec<Figure> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut figures = Vec::new();
    for line in console.lines().map(str::trim_end) {
        if line.contains(ignored) {
            continue;
        }
        let numbers = numbers(line);
        if numbers.is_empty() {
            continue;
        }
        let words = template(line);
        let times = seen.entry(words.clone()).or_default();
        *times += 1;
        for (place, value) in (1..).zip(numbers) {
            figures.push(Figure::new(format!("{words} [{times}.{place}]"), value));
        }
    }
    figures
}

/// The whole numbers of a line.
fn numbers(line: &str) -> Vec<f64> {
    let words = line.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|digits| digits.parse().ok()).collect()
}

/// A line with `_` in place of each of its numbers.
fn template(line: &str) -> String {
    let mut words = String::new();
    for c in line.chars() {
        match c.is_ascii_digit() {
            true if words.ends_with('_') => {}
            true => words.push('_'),
            false => words.push(c),
        }
    }
    words
}

/// A figure without the rogue client, and beside it; `None` where a run does not have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    pub name: String,
    pub without: Option<f64>,
    pub with: Option<f64>,
    is_percentage: bool,
}

impl Pair {
    /// The difference in percent of the figure without, or in percentage points; infinite if one is missing.
    pub fn difference(&self) -> f64 {
        match (self.without, self.with) {
            (Some(without), Some(with)) if self.is_percentage => with - without,
            (Some(without), Some(with)) if without == with => 0.0,
            (Some(without), Some(with)) => (with - without) / without.abs() * 100.0,
            _ => f64::INFINITY,
        }
    }

    /// Whether the figure with is between that without and `other`, or the same as `other`.
    pub fn is_within(&self, other: f64) -> bool {
        let (Some(without), Some(with)) = (self.without, self.with) else {
            return false;
        };
        let from_other = Self {
            without: Some(other),
            ..self.clone()
        };
        let is_between = (without.min(other)..=without.max(other)).contains(&with);
        is_between || !from_other.is_off()
    }

    /// Not `>`: what is no number is off, too.
    pub fn is_off(&self) -> bool {
        !matches!(self.difference().abs(), off if off <= TOLERANCE_PERCENT)
    }
}

/// Each figure of either run, in the order of the first.
pub fn pairs(without: &[Figure], with: &[Figure]) -> Vec<Pair> {
    let find = |figures: &[Figure], name: &str| {
        let found = figures.iter().find(|figure| figure.name == name);
        found.map(|figure| figure.value)
    };
    let new = with
        .iter()
        .filter(|figure| find(without, &figure.name).is_none());
    let all = without.iter().chain(new);
    all.map(|figure| Pair {
        name: figure.name.clone(),
        without: find(without, &figure.name),
        with: find(with, &figure.name),
        is_percentage: figure.is_percentage,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(without: &[Figure], with: &[Figure]) -> Vec<String> {
        let off = pairs(without, with).into_iter().filter(Pair::is_off);
        off.map(|pair| pair.name).collect()
    }

    #[test]
    fn a_line_is_named_by_its_keys_and_by_what_is_no_number() {
        let figures = of_csv(
            "ms,client,limit,bytes,percent_off\n10,a,demand,100,0.5\n",
            1,
        );
        let expected = [
            Figure::new("10 a demand: bytes", 100.0),
            Figure {
                is_percentage: true,
                ..Figure::new("10 a demand: percent_off", 0.5)
            },
        ];
        assert_eq!(figures, expected);
    }

    #[test]
    fn a_figure_may_differ_by_a_percent_of_it_and_a_percentage_by_a_point() {
        let of = |bytes, percent| of_csv(&format!("k,bytes,percent\nx,{bytes},{percent}\n"), 1);
        assert_eq!(off(&of(1000, 0.1), &of(1010, 1.1)), Vec::<String>::new());
        assert_eq!(off(&of(1000, 0.1), &of(1011, 0.1)), ["x: bytes"]);
        assert_eq!(off(&of(1000, 0.1), &of(989, 0.1)), ["x: bytes"]);
        assert_eq!(off(&of(1000, 0.1), &of(1000, 1.2)), ["x: percent"]);
        assert_eq!(off(&of(0, 0.1), &of(1, 0.1)), ["x: bytes"], "of nothing");
    }

    #[test]
    fn a_figure_is_within_what_somebody_else_changes() {
        let pair = |without, with| Pair {
            name: String::new(),
            without: Some(without),
            with: Some(with),
            is_percentage: false,
        };
        for (with, other) in [(120.0, 150.0), (120.0, 119.0), (80.0, 60.0)] {
            assert!(pair(100.0, with).is_within(other), "{with}, {other}");
        }
        for (with, other) in [(120.0, 110.0), (80.0, 150.0), (120.0, 100.0)] {
            assert!(!pair(100.0, with).is_within(other), "{with}, {other}");
        }
        let missing = Pair {
            with: None,
            ..pair(100.0, 0.0)
        };
        assert!(!missing.is_within(100.0));
    }

    #[test]
    fn figures_that_one_run_does_not_have_are_off() {
        let figures = of_console("task 0: 7 late\n", "rogue");
        assert_eq!(off(&figures, &[]).len(), 2);
        assert_eq!(off(&[], &figures).len(), 2);
    }

    #[test]
    fn numbers_of_a_console_are_told_apart_by_their_lines() {
        let console = "a ran 30 us\nrogue-client ran 4 us\na ran 50 us\nno number\nx7130\n";
        let figures = of_console(console, "rogue-client");
        let expected = [
            Figure::new("a ran _ us [1.1]", 30.0),
            Figure::new("a ran _ us [2.1]", 50.0),
            Figure::new("x_ [1.1]", 7130.0),
        ];
        assert_eq!(figures, expected);
    }
}
