//! Points of the hosted kernel's parallel virtual time, which another run has measured.
//!
//! A file of comma-separated values, the first line `scenario,spin,cores,work,time`: a scenario
//! is `single`, `multiple` or `pairs`; `spin` are the most instructions between two calls of a
//! pair, else 0; `work` are bytes encrypted or calls; `time` is what they took, in any unit that
//! is the same in all lines.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use super::points::{Point, Source};
use super::window::Scenario;

const HEADER: &str = "scenario,spin,cores,work,time";

/// Reads the file.
///
/// # Errors
/// It cannot be read, or a line is not as above.
pub fn read(path: &Path) -> Result<Vec<Point>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    parse(&text).with_context(|| format!("in `{}`", path.display()))
}

fn parse(text: &str) -> Result<Vec<Point>> {
    let mut lines = text.lines();
    ensure!(
        lines.next() == Some(HEADER),
        "the first line is not `{HEADER}`"
    );
    let mut points = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let point = point(line);
        points.push(point.with_context(|| format!("`{line}` is not `{HEADER}`"))?);
    }
    Ok(points)
}

fn point(line: &str) -> Option<Point> {
    let (name, rest) = line.split_once(',')?;
    let numbers: Option<Vec<u64>> = rest.split(',').map(|field| field.parse().ok()).collect();
    let &[spin, cores, work, time] = &numbers?[..] else {
        return None;
    };
    (time > 0).then_some(())?;
    Some(Point {
        source: Source::Hosted,
        scenario: Scenario::parse(name, spin)?,
        cores: u32::try_from(cores).ok()?,
        work,
        time,
        limit: None,
        counts: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_and_anything_else_is_refused() {
        let points = parse(&format!(
            "{HEADER}\nsingle,0,4,1048576,99\npairs,500,2,7,8\n"
        ));
        let points = points.unwrap();
        assert_eq!(points[0].scenario, Scenario::Single);
        assert_eq!((points[0].work, points[0].time), (1_048_576, 99));
        assert_eq!(points[1].scenario, Scenario::Pairs { spin: 500 });
        for wrong in ["", "single,0,4,5,6\n"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["double,0,1,2,3", "single,0,1,2", "single,0,1,2,0"] {
            assert!(parse(&format!("{HEADER}\n{wrong}\n")).is_err(), "{wrong}");
        }
    }
}
