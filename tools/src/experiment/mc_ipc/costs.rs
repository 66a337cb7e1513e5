//! What a request at a gate costs on the bare kernel, in instructions; and whether parallel virtual time agrees.

use std::fmt::Write;

use anyhow::{bail, Context, Result};

use super::simulated::{self, Calibration};
use crate::arch::Arch;
use crate::experiment::machines;
use crate::experiment::page::Page;
use crate::system::Source;
use crate::workspace;

/// The description of what is measured.
const SYSTEM: &str = "systems/experiments/mc-ipc/costs.toml";
/// Most by which both machines may differ, in thousandths.
const TOLERANCE: u64 = 20;
/// Most instructions that a request may cost the gate more if twice as many clients wait.
const FOR_A_DOUBLING: u64 = 60;

pub const PAGE: Page = Page {
    path: "docs/src/policies/mc-ipc.md",
    experiment: "mc-ipc",
};

/// Means, in instructions.
#[derive(Debug)]
pub struct Costs {
    call: u64,
    request: u64,
    behind_another: u64,
    /// What that other one's operation computes.
    long: u64,
    /// User code of the gate's thread for a request, by the number of clients that wait meanwhile.
    waiting: Vec<(u64, u64)>,
    /// The same in parallel virtual time, which has the costs of x86_64.
    simulated: Option<Calibration>,
}

impl Costs {
    /// Runs both.
    ///
    /// # Errors
    /// Something does not build or run, or says something else.
    pub fn measure(arch: Arch) -> Result<Self> {
        let system = Source::read(&workspace::root().join(SYSTEM))?;
        let ended = machines::run_all(arch, "costs of requests", &[system], 0, None)?;
        let [machine] = &ended[..] else {
            bail!("{SYSTEM} ran {} times", ended.len())
        };
        let console = &machine.console;
        let long = number(console, "long", 0)?;
        Ok(Self {
            call: number(console, "cost call", 1)?,
            request: number(console, "cost request", 1)?,
            behind_another: number(console, "cost request-behind-another", 1)?,
            long,
            waiting: waiting(console)?,
            simulated: match arch {
                Arch::X86_64 => Some(simulated::calibration(long)?),
                Arch::Aarch64 => None,
            },
        })
    }

    /// What of it fails.
    pub fn failures(&self) -> Vec<String> {
        let pairs = self.simulated.iter().flat_map(|simulated| {
            [
                ("a request", self.request, simulated.request),
                (
                    "a request behind another",
                    self.behind_another,
                    simulated.behind_another,
                ),
            ]
        });
        let differ = pairs.filter(|(_, bare, hosted)| {
            bare.abs_diff(*hosted).saturating_mul(1000) > bare.saturating_mul(TOLERANCE)
        });
        let mut failures: Vec<String> = differ
            .map(|(what, bare, hosted)| {
                format!("{what} takes {bare} instructions on the bare kernel, and {hosted} ticks in parallel virtual time: more \
                         than 2 % apart")
            })
            .collect();
        for pair in self.waiting.windows(2) {
            let [(few, before), (many, after)] = pair else {
                continue;
            };
            // From nobody to somebody is no doubling.
            if *few == 0 {
                continue;
            }
            let doublings = u64::from((many / few).ilog2().max(1));
            if *after > before + doublings * FOR_A_DOUBLING {
                failures.push(format!(
                    "a request takes {after} instructions of the gate's thread if {many} wait, and {before} if {few} do: more \
                     than {FOR_A_DOUBLING} for each doubling"
                ));
            }
        }
        failures
    }

    /// What the book shows.
    pub fn figures(&self) -> String {
        let mut text = String::from("| on one core | instructions |\n| --- | ---: |\n");
        let rows = [
            ("a call to a passive server and its answer", self.call),
            (
                "a request at a gate and its answer, nobody else there",
                self.request,
            ),
            (
                "the same, while a less urgent client is served: without the rest of that operation",
                self.behind_another.saturating_sub(self.long),
            ),
        ];
        for (what, instructions) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "| {what} | {} |", grouped(instructions));
        }
        text += "\n| clients that wait meanwhile | instructions of the gate's thread for a request, without the kernel |\n";
        text += "| ---: | ---: |\n";
        for (waiting, instructions) in &self.waiting {
            let _ = writeln!(
                text,
                "| {} | {} |",
                grouped(*waiting),
                grouped(*instructions)
            );
        }
        text
    }

    /// As lines for the console.
    pub fn lines(&self) -> String {
        let simulated = |of: fn(&Calibration) -> u64| {
            let simulated = self.simulated.as_ref().map(of);
            simulated.map_or(String::new(), |ticks| format!(" (simulated {ticks})"))
        };
        format!(
            "instructions on one core: a call to a passive server {}, a request at a gate {}{}, behind another {}{}\n",
            self.call,
            self.request,
            simulated(|it| it.request),
            self.behind_another,
            simulated(|it| it.behind_another)
        )
    }
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The number so many words behind `name` at the beginning of a line.
fn number(console: &str, name: &str, place: usize) -> Result<u64> {
    let mut lines = console.lines();
    let numbers = lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(' '));
    let word = numbers.and_then(|numbers| numbers.split_whitespace().nth(place));
    let word = word.with_context(|| format!("the system of {SYSTEM} prints no `{name}`"))?;
    word.parse()
        .with_context(|| format!("`{name}` has no number, but `{word}`"))
}

fn waiting(console: &str) -> Result<Vec<(u64, u64)>> {
    let lines = console.lines();
    let all: Vec<&str> = lines
        .filter_map(|line| line.trim().strip_prefix("waiting "))
        .collect();
    let rows = all.iter().map(|line| {
        let numbers = line.split_whitespace().map(str::parse);
        let numbers = numbers.collect::<Result<Vec<u64>, _>>();
        match numbers.as_deref() {
            Ok([waiting, mean, _most]) => Ok((*waiting, *mean)),
            _ => bail!("`waiting {line}`: must be three numbers"),
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str =
        "cost call 1 2 3\ncost request 10 20 30\ncost request-behind-another 4 1020 9\nlong 1000\n\
                           waiting 0 100 110\nwaiting 1 180 190\nwaiting 4 280 290\n";

    fn costs() -> Costs {
        Costs {
            call: number(CONSOLE, "cost call", 1).unwrap(),
            request: number(CONSOLE, "cost request", 1).unwrap(),
            behind_another: number(CONSOLE, "cost request-behind-another", 1).unwrap(),
            long: number(CONSOLE, "long", 0).unwrap(),
            waiting: waiting(CONSOLE).unwrap(),
            simulated: Some(Calibration {
                request: 20,
                behind_another: 1000,
            }),
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        let costs = costs();
        assert_eq!(
            (costs.call, costs.request, costs.behind_another),
            (2, 20, 1020)
        );
        assert_eq!(costs.waiting, [(0, 100), (1, 180), (4, 280)]);
        assert_eq!(costs.failures(), Vec::<String>::new());
        assert!(costs
            .figures()
            .contains("without the rest of that operation | 20 |"));
        assert!(number(CONSOLE, "cost nothing", 1).is_err());
        assert!(waiting("waiting 1 2").is_err());
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn machines_that_differ_and_a_cost_that_grows_with_the_clients_are_found() {
        let mut costs = costs();
        costs.simulated.as_mut().unwrap().request = 21;
        costs.waiting.push((8, 341));
        let failures = costs.failures();
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(
            failures[0].starts_with("a request takes 20"),
            "{failures:?}"
        );
        assert!(failures[1].contains("if 8 wait"), "{failures:?}");
    }
}
