//! The map of the kernel in the book: a table of its rooms and a drawing of them, made from the same
//! table that the rule `rooms` checks.

use std::fmt::Write as _;
use std::fs;

use anyhow::{bail, Context as _, Result};

use super::rooms::House;
use super::Verdict;
use crate::workspace;

const PAGE: &str = "docs/src/architecture/map.md";
const DRAWING: &str = "docs/src/img/rooms.svg";
const BEGIN: &str = "<!-- `./sandglass check --map` makes this table. -->\n\n";
const END: &str = "\n<!-- The end of the table. -->\n";

/// The rooms as a table, from the top to the bottom.
fn table(house: &House) -> String {
    let mut table =
        String::from("| room | decides, or keeps | below `kernel/src/` |\n| --- | --- | --- |\n");
    for room in &house.rooms {
        let paths: Vec<String> = room
            .paths
            .iter()
            .map(|path| format!("`{}`", path.display()))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {} | {} | {} |",
            room.name,
            room.about,
            paths.join(", ")
        );
    }
    table
}

/// Height of a room and of the gap below it, and where rooms begin and end, in units of the drawing.
const ROOM: usize = 34;
const GAP: usize = 12;
const LEFT: usize = 10;
const RIGHT: usize = 330;

const DOWN: &str = "#555";
/// Of an arrow against the order.
const UP: &str = "#c22";

/// The rooms one below the other, with an arrow for each room that another one names.
fn drawing(house: &House) -> String {
    let top = |room: usize| 10 + room * (ROOM + GAP);
    let height = top(house.rooms.len());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 {height}\" font-family=\"sans-serif\">\n\
         <!-- `./sandglass check --map` makes this drawing. -->\n\
         <title>The rooms of the kernel: an arrow leads to each room that another one names</title>\n\
         <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" \
         markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"#555\"/></marker></defs>\n"
    );
    for (number, room) in house.rooms.iter().enumerate() {
        let y = top(number);
        let width = RIGHT - LEFT;
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width}\" height=\"{ROOM}\" rx=\"4\" fill=\"#eef3f8\" \
             stroke=\"#456\"/>\n<text x=\"{}\" y=\"{}\" font-size=\"15\">{}</text>",
            LEFT + 12,
            y + 22,
            room.name
        );
    }
    for (from, to) in house.arrows() {
        let (start, end) = (top(from) + ROOM / 2 + 4, top(to) + ROOM / 2 - 4);
        // The farther an arrow leads, the farther out it bends.
        let bend = RIGHT + 24 * to.abs_diff(from);
        let colour = if to > from { DOWN } else { UP };
        let _ = writeln!(
            svg,
            "<path d=\"M{RIGHT} {start} C{bend} {start} {bend} {end} {RIGHT} {end}\" fill=\"none\" \
             stroke=\"{colour}\" stroke-opacity=\"0.55\" marker-end=\"url(#head)\"/>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// `page` with `table` between the marks.
fn with_table(page: &str, table: &str) -> Result<String> {
    let begin = page.find(BEGIN).map(|at| at + BEGIN.len());
    let end = begin.and_then(|begin| Some(begin + page[begin..].find(END)?));
    match (begin, end) {
        (Some(begin), Some(end)) => Ok(format!("{}{table}{}", &page[..begin], &page[end..])),
        _ => bail!("{PAGE} has no place for the table: the lines\n{BEGIN}{END}"),
    }
}

/// The files of the book that show the map, with what they should say.
fn files() -> Result<[(&'static str, String); 2]> {
    let house = House::read()?;
    let path = workspace::root().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    Ok([
        (PAGE, with_table(&page, &table(&house))?),
        (DRAWING, drawing(&house)),
    ])
}

/// The rule: the map shows the rooms as they are.
pub fn rule() -> Verdict {
    match files() {
        Ok(files) => {
            let stale = files.into_iter().filter(|(path, right)| {
                fs::read_to_string(workspace::root().join(path)).is_ok_and(|text| text != *right)
                    || !workspace::root().join(path).exists()
            });
            let finding =
                |(path, _)| format!("{path} shows other rooms: run `./sandglass check --map`");
            Verdict::of(stale.map(finding).collect())
        }
        Err(error) => Verdict::Broken(vec![format!("{error:#}")]),
    }
}

/// Writes the map into the book.
///
/// # Errors
/// A file cannot be read or written.
pub fn write() -> Result<()> {
    for (path, text) in files()? {
        fs::write(workspace::root().join(path), text)
            .with_context(|| format!("cannot write {path}"))?;
        println!("{path}");
    }
    Ok(())
}
