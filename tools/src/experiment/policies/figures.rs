//! The figures that the book shows.

use std::fmt::Write;

use super::compared::{Compared, Effect};
use super::switches::Switches;
use super::systems::{Conduct, TaskSet, TASKS};
use crate::experiment::page::Page;

pub const PAGE: Page = Page {
    path: "docs/src/policies/which.md",
    experiment: "policies",
};

/// Tables: cost; isolation; what is left; what happens if a critical task needs more.
pub fn of(tasks: &TaskSet, compared: &[Compared], switches: &[Switches]) -> String {
    let tables = [
        ("The tasks", tasks_table(tasks)),
        ("Cost, all honest", cost(compared, switches)),
        ("What attacks change for others", isolation(compared)),
        ("Who has how much", shares(compared)),
        ("If `control` needs more", more(compared)),
    ];
    tables
        .map(|(title, table)| format!("### {title}\n\n{table}"))
        .join("\n")
}

/// A line of a table.
fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// A table: names to the left, numbers to the right.
fn table(heads: &[&str], names: usize, lines: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = line(
        &heads
            .iter()
            .map(|&head| head.to_owned())
            .collect::<Vec<_>>(),
    );
    let ruler = |column| if column < names { "---" } else { "---:" };
    let ruler: Vec<String> = (0..heads.len())
        .map(|column| ruler(column).to_owned())
        .collect();
    text += &line(&ruler);
    for cells in lines {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}", line(&cells));
    }
    text
}

fn link(compared: &Compared) -> String {
    format!("[{}]({})", compared.policy.name, compared.policy.page)
}

fn tasks_table(tasks: &TaskSet) -> String {
    let ms = |us: u64| format!("{:.1}", us as f64 / 1e3);
    let lines = tasks.0.iter().map(|task| {
        let criticality = if task.is_high { "high" } else { "low" };
        vec![
            format!("`{}`", task.name),
            criticality.to_owned(),
            ms(task.period),
            ms(task.reserved),
            ms(task.work),
        ]
    });
    let heads = [
        "task",
        "criticality",
        "period, ms",
        "reserved, ms",
        "work, ms",
    ];
    let all = vec![
        "all".to_owned(),
        String::new(),
        String::new(),
        format!("{:.0} %", tasks.percent(|task| task.reserved)),
        format!("{:.0} %", tasks.percent(|task| task.work)),
    ];
    table(&heads, 2, lines.chain([all]))
}

fn cost(compared: &[Compared], switches: &[Switches]) -> String {
    let lines = compared.iter().zip(switches).map(|(of, switches)| {
        let cost = of.cost;
        vec![
            link(of),
            format!("{:.2}", cost.percent),
            cost.per_job.to_string(),
            format!("{} ({})", cost.start_mean, cost.start_most),
            format!("{:.1}", switches.entries),
            format!("{:.1}", switches.switches),
        ]
    });
    let heads = [
        "policy",
        "of the processor, %",
        "instructions a job",
        "release to first instruction: mean (most)",
        "kernel entries a job",
        "switches a job",
    ];
    table(&heads, 1, lines)
}

/// Tasks that others attack, and that are worth a line.
fn isolation(compared: &[Compared]) -> String {
    let mut lines = Vec::new();
    for of in compared {
        for (task, (name, _)) in TASKS.iter().enumerate() {
            if !["control", "camera"].contains(name) {
                continue;
            }
            let honest = &of.effect(Conduct::Honest).tasks[task];
            let us = |value: f64| format!("{value:.0}");
            let (response, jitter) = (
                of.worst(|effect| effect.tasks[task].response),
                of.worst(|effect| effect.tasks[task].jitter),
            );
            let missed: u64 = of.attacks().map(|effect| effect.tasks[task].missed).sum();
            lines.push(vec![
                link(of),
                format!("`{name}`"),
                format!("{} → {}", us(honest.response), us(response)),
                format!("{} → {}", us(honest.jitter), us(jitter)),
                format!(
                    "{:.1}",
                    of.worst(|effect| effect.tasks[task].moved) as f64 / 1e3
                ),
                format!("{} → {missed}", honest.missed),
            ]);
        }
    }
    let heads = [
        "policy",
        "task",
        "longest response, µs",
        "jitter of the start, µs",
        "a start is moved by, µs",
        "missed deadlines",
    ];
    table(&heads, 2, lines.into_iter())
}

fn shares(compared: &[Compared]) -> String {
    let lines = compared.iter().map(|of| {
        let percent = |value: f64| format!("{value:.1}");
        let effect = |conduct: Conduct| of.effect(conduct);
        let (spins, floods) = (effect(Conduct::Spins), effect(Conduct::Floods));
        vec![
            link(of),
            percent(of.cost.left_percent),
            percent(spins.left_percent),
            percent(floods.left_percent),
            percent(of.worst(|effect: &Effect| effect.hostile_percent)),
        ]
    });
    let heads = [
        "policy",
        "best effort has, %",
        "while `network` spins, %",
        "while it floods, %",
        "`network` has at most, %",
    ];
    table(&heads, 1, lines)
}

fn more(compared: &[Compared]) -> String {
    let lines = compared.iter().map(|of| {
        let effect = of.effect(Conduct::NeedsMore);
        let mut cells = vec![link(of)];
        cells.extend(effect.tasks.iter().map(|task| task.missed.to_string()));
        cells
    });
    let mut heads = vec!["policy: missed deadlines of"];
    let names = TASKS.map(|(name, _)| format!("`{name}`"));
    heads.extend(names.iter().map(String::as_str));
    table(&heads, 1, lines)
}
