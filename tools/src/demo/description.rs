//! The description of one point's system: `systems/demo/SYSTEM.toml`, with the budgets, sizes and
//! lengths of the point. A client without budget is left out.

use std::fs;

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::demo::input::Input;
use crate::demo::sweep::{Point, CONTROL_PERIOD_US};
use crate::system::Source;
use crate::workspace;

/// Folder of the description, from the root of the repository.
const FOLDER: &str = "systems/demo";
/// The clients' names in the description, A first.
const CLIENTS: [&str; 2] = ["a", "b"];
const PAGE: u64 = 4096;
/// Most that a description may ask for.
const MAX_EXTRA_REFILLS: u64 = 126;

/// The system for `point`.
///
/// # Errors
/// The description cannot be read, or lacks what is to be changed.
pub fn source(point: &Point, input: &Input) -> Result<Source> {
    let folder = workspace::root().join(FOLDER);
    let path = folder.join("SYSTEM.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let text =
        adapt(&text, point, input).with_context(|| format!("cannot adapt `{}`", path.display()))?;
    Ok(Source {
        arch: None,
        name: format!(
            "demo-{}ms-{}-{}KiB",
            point.period_us / 1000,
            point.percents[0],
            point.demand_bytes / 1024
        ),
        text,
        folder,
    })
}

fn adapt(text: &str, point: &Point, input: &Input) -> Result<String> {
    let mut document: Table = text.parse()?;
    let buffer_bytes = input.lap_bytes(point.demand_bytes).next_multiple_of(PAGE);
    for (index, name) in CLIENTS.into_iter().enumerate() {
        let budget = point.budgets_us()[index];
        if budget == 0 {
            remove_client(&mut document, name)?;
            continue;
        }
        let client = named(&mut document, "component", name)?;
        set(client, "budget", budget);
        set(client, "period", point.period_us);
        set(client, "extra-refills", extra_refills(point.period_us));
        let parameters = parameters(client)?;
        set(parameters, "period", point.period_us);
        set(parameters, "demand", point.demand_bytes);
        set(parameters, "sleeps", u64::from(!point.has_all(index)));
        for memory in ["plaintext", "ciphertext"] {
            let memory = named(&mut document, "memory", &format!("{name}.{memory}"))?;
            set(memory, "size", buffer_bytes);
        }
    }
    let control = parameters(named(&mut document, "component", "control")?)?;
    set(
        control,
        "clients-release",
        point.period_us / CONTROL_PERIOD_US,
    );
    set(control, "warm-up", point.warm_up_releases());
    set(control, "releases", point.releases());
    let recorder = parameters(named(&mut document, "component", "recorder")?)?;
    set(recorder, "traced", 2 * point.period_us);
    set(recorder, "input-bytes", input.len());
    if point.sends_ciphertext {
        let size = input.len().next_multiple_of(PAGE);
        array(&mut document, "memory")?.push(first_copy(size).into());
    }
    let path = input
        .path
        .to_str()
        .context("the input's path is not UTF-8")?;
    let file = named(&mut document, "file", "input")?;
    file.insert("path".to_owned(), path.into());
    Ok(document.to_string())
}

/// Replenishments of a client beyond two: one for each time that the control task interrupts it in a
/// period, as far as there may be so many; in short periods, interruptions by others count.
fn extra_refills(period_us: u64) -> u64 {
    (period_us / CONTROL_PERIOD_US).clamp(40, MAX_EXTRA_REFILLS)
}

/// The memory in which A leaves its first pass's ciphertext for the recorder.
fn first_copy(size: u64) -> Table {
    let map = |component: &str, rights: &str| {
        let entries = [("component", component), ("rights", rights)];
        Table::from_iter(entries.map(|(key, value)| (key.to_owned(), value.into())))
    };
    let mut memory = Table::new();
    memory.insert("name".to_owned(), "a.first-copy".into());
    set(&mut memory, "size", size);
    let maps = [map("a", "read-write"), map("recorder", "read")];
    memory.insert("maps".to_owned(), maps.map(Value::Table).to_vec().into());
    memory
}

/// Removes the component `name`, its memory and notification, and where others mention it.
fn remove_client(document: &mut Table, name: &str) -> Result<()> {
    let prefix = format!("{name}.");
    array(document, "component")?.retain(|component| text(component, "name") != Some(name));
    for kind in ["memory", "notification"] {
        array(document, kind)?
            .retain(|table| !text(table, "name").is_some_and(|name| name.starts_with(&prefix)));
    }
    array(named(document, "endpoint", "cipher")?, "clients")?
        .retain(|client| text(client, "component") != Some(name));
    array(named(document, "file", "input")?, "components")?
        .retain(|component| component.as_str() != Some(name));
    Ok(())
}

fn set(table: &mut Table, key: &str, number: u64) {
    // Every number of a description is far below 2^63.
    table.insert(key.to_owned(), Value::Integer(number as i64));
}

/// The text under `key` of a table.
fn text<'t>(table: &'t Value, key: &str) -> Option<&'t str> {
    table.get(key).and_then(Value::as_str)
}

fn array<'t>(table: &'t mut Table, key: &str) -> Result<&'t mut Vec<Value>> {
    table
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .with_context(|| format!("there is no array `{key}`"))
}

/// The table `[[kind]]` of the name `name`.
fn named<'d>(document: &'d mut Table, kind: &str, name: &str) -> Result<&'d mut Table> {
    array(document, kind)?
        .iter_mut()
        .find(|table| text(table, "name") == Some(name))
        .and_then(Value::as_table_mut)
        .with_context(|| format!("there is no [[{kind}]] named `{name}`"))
}

fn parameters(table: &mut Table) -> Result<&mut Table> {
    table
        .get_mut("parameters")
        .and_then(Value::as_table_mut)
        .context("a component has no parameters")
}

#[cfg(test)]
mod tests {
    use demo_protocol::board::BOARD_BYTES;

    use super::*;
    use crate::demo::sweep;

    fn adapted(percent_a: u64) -> Table {
        let point = sweep::points(false, 1)
            .into_iter()
            .find(|point| point.percents[0] == percent_a && point.period_us == 10_000)
            .unwrap();
        let input = Input::read(None).unwrap();
        source(&point, &input).unwrap().text.parse().unwrap()
    }

    #[test]
    fn budgets_are_those_of_the_point() {
        let mut document = adapted(25);
        let budget = |document: &mut Table, name| {
            named(document, "component", name).unwrap()["budget"].as_integer()
        };
        assert_eq!(budget(&mut document, "a"), Some(2_500));
        assert_eq!(budget(&mut document, "b"), Some(7_500));
    }

    #[test]
    fn a_client_without_budget_is_left_out() {
        for (percent_a, absent) in [(0, "a"), (100, "b")] {
            let text = adapted(percent_a).to_string();
            assert!(!text.contains(&format!("\"{absent}\"")), "{absent}");
            assert!(!text.contains(&format!("\"{absent}.")), "{absent}");
        }
    }

    /// The layout of the boards and the memory that the description gives them agree.
    #[test]
    fn boards_have_room() {
        let mut document = adapted(50);
        let boards: Vec<_> = array(&mut document, "memory")
            .unwrap()
            .iter()
            .filter(|memory| text(memory, "name").unwrap().ends_with("board"))
            .map(|memory| text(memory, "size").unwrap().to_owned())
            .collect();
        assert_eq!(boards, vec![format!("{}KiB", BOARD_BYTES / 1024); 5]);
    }
}
