//! What operations touch besides the instructions that they execute: memory, lines of caches, branches, and instructions that
//! the processor waits for.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};
use serde::Serialize;

use super::page::Page;
use super::{parse, release, run_machine, Row};
use crate::arch::Arch;
use crate::bounds::names::Symbols;
use crate::bounds::plugin;
use crate::cores::Cores;
use crate::kernel;
use crate::workspace;

/// Where the table is.
pub const PAGE: Page = Page {
    path: "docs/src/reference/benchmarks.md",
    command: "./sandglass bench --touches --page",
};

/// Most different lines of data that a Call without words touches: of both threads alone, 7 on x86_64; aarch64 has more
/// registers.
const fn most_data_lines(arch: Arch) -> u64 {
    match arch {
        Arch::X86_64 => 12,
        Arch::Aarch64 => 20,
    }
}

const CALL: &str = "call-0-passive";

/// The rows of operations for which there is a straight line, and the function of the kernel that they come to.
const LINES: &[(&str, Entry)] = &[
    (CALL, Entry::Call("on_call")),
    ("reply-recv-0-passive", Entry::Call("on_reply_recv")),
    ("call-0-active", Entry::Call("on_call")),
    ("reply-recv-0-active", Entry::Call("on_reply_recv")),
    ("call-10-passive", Entry::Call("on_call")),
    ("reply-recv-10-passive", Entry::Call("on_reply_recv")),
    ("send-wake-higher", Entry::Call("on_send")),
    ("recv-block", Entry::Call("on_recv")),
    ("nb-send-recv-block", Entry::Call("on_nb_send_recv")),
    ("signal-no-waiter", Entry::Call("on_send")),
    ("signal-wake-higher", Entry::Call("on_send")),
    ("wait-block", Entry::Call("on_wait")),
    ("yield-alone", Entry::Call("on_yield")),
    ("fault-to-handler", Entry::Exception),
    ("fault-reply", Entry::Call("on_reply_recv")),
    ("timer-to-timeout-fault", Entry::Interrupt),
    ("interrupt-to-driver", Entry::Interrupt),
];

/// How the kernel is entered.
#[derive(Clone, Copy)]
enum Entry {
    /// By a system call, for which there is this function.
    Call(&'static str),
    /// By an exception.
    Exception,
    /// By an interrupt.
    Interrupt,
}

impl Entry {
    fn function(self, arch: Arch) -> String {
        let path = match (self, arch) {
            (Self::Call(name), _) => format!("calls::{name}"),
            (_, Arch::X86_64) => "x86_64::entry::handlers::on_vector".to_owned(),
            (Self::Exception, Arch::Aarch64) => {
                "aarch64::entry::handlers::act_on_exception".to_owned()
            }
            (Self::Interrupt, Arch::Aarch64) => "aarch64::entry::handlers::on_interrupt".to_owned(),
        };
        format!("sandglass_kernel::arch::{path}")
    }
}

/// What an operation touches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Touched {
    name: &'static str,
    instructions: u64,
    loads: u64,
    stores: u64,
    taken_branches: u64,
    data_lines: u64,
    code_lines: u64,
    serialising: u64,
}

/// Boots the benchmark system, and reads what its operations touched.
///
/// # Errors
/// Something does not build or run, or an operation was not seen.
pub fn measure(arch: Arch, root_task: &Path) -> Result<Vec<Touched>> {
    let options = release(arch, Cores::Single);
    let symbols = Symbols::read(&kernel::build(&options)?)?;
    let mut functions = HashMap::new();
    for (_, entry) in LINES {
        let name = entry.function(arch);
        let address = symbols.address(&name);
        let address = address.with_context(|| format!("the kernel has no function `{name}`"))?;
        functions.insert(name, address);
    }
    let out = workspace::target_dir().join(format!("touches-{}.txt", std::process::id()));
    let mut plugin = format!("{},out={}", plugin::build()?.display(), out.display());
    for address in functions.values() {
        // Writing to a string does not fail.
        let _ = write!(plugin, ",touch={address:x}");
    }
    let console = run_machine(&options, Cores::Single, root_task, &["-plugin", &plugin])?;
    let seen =
        fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))?;
    // Only we have read it; a file that stays behind is no failure.
    let _ = fs::remove_file(&out);
    let (rows, seen) = (parse(arch, &console)?, Seen::parse(&seen)?);
    let lines = LINES.iter();
    lines
        .map(|&(name, entry)| seen.of(&rows, name, functions[&entry.function(arch)], entry))
        .collect()
}

/// Visits of the kernel, by the address of a function that they came to, and their instructions: what they touched.
struct Seen(HashMap<(u64, u64), [u64; 6]>);

impl Seen {
    /// Reads what the plugin wrote.
    fn parse(text: &str) -> Result<Self> {
        let visits = text.lines().map(|line| {
            Self::parse_line(line).with_context(|| format!("`{line}` is not from the plugin"))
        });
        Ok(Self(visits.collect::<Result<_>>()?))
    }

    fn parse_line(line: &str) -> Option<((u64, u64), [u64; 6])> {
        let mut words = line.strip_prefix("visits ")?.split(' ');
        let function = u64::from_str_radix(words.next()?, 16).ok()?;
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let [instructions, _count, touched @ ..] = &numbers?[..] else {
            return None;
        };
        Some(((function, *instructions), touched.try_into().ok()?))
    }

    /// What the operation of the row `name` touched: the visits that came to `function` with as many instructions.
    fn of(&self, rows: &[Row], name: &'static str, function: u64, entry: Entry) -> Result<Touched> {
        let row = rows.iter().find(|row| row.name == name);
        let row = row.with_context(|| format!("the benchmark system printed no row `{name}`"))?;
        // A number of instructions is exact.
        let instructions = row.min as u64;
        let key = (function, instructions);
        let Some(&[loads, stores, taken_branches, data_lines, code_lines, serialising]) =
            self.0.get(&key)
        else {
            let mut known: Vec<u64> = self
                .0
                .keys()
                .filter(|it| it.0 == function)
                .map(|it| it.1)
                .collect();
            known.sort_unstable();
            bail!(
                "`{name}` takes {instructions} instructions, but no visit that comes to `{}` does: only {known:?}",
                match entry {
                    Entry::Call(name) => name,
                    Entry::Exception | Entry::Interrupt => "the handler of traps",
                }
            );
        };
        ensure!(
            loads > 0,
            "`{name}` loads nothing: the plugin sees no accesses"
        );
        Ok(Touched {
            name,
            instructions,
            loads,
            stores,
            taken_branches,
            data_lines,
            code_lines,
            serialising,
        })
    }
}

/// The table.
pub fn table(touched: &[Touched]) -> String {
    let mut text = "| operation | instructions | loads | stores | taken branches | lines of data | lines of code | serialising |\n\
                    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for it in touched {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |",
            it.name,
            it.instructions,
            it.loads,
            it.stores,
            it.taken_branches,
            it.data_lines,
            it.code_lines,
            it.serialising
        );
    }
    text
}

/// What is wrong, if the Call touches more than it may.
pub fn finding(arch: Arch, touched: &[Touched]) -> Option<String> {
    let call = touched.iter().find(|it| it.name == CALL)?;
    let most = most_data_lines(arch);
    (call.data_lines > most).then(|| {
        format!(
            "{CALL} touches {} lines of data, but at most {most} are allowed",
            call.data_lines
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(data_lines: u64) -> Touched {
        let seen = Seen::parse(&format!("visits 2a 202 9 60 40 12 {data_lines} 30 1\n")).unwrap();
        let rows = parse(Arch::X86_64, "bench call-0-passive 202 202 202\n").unwrap();
        seen.of(&rows, CALL, 0x2a, Entry::Call("on_call")).unwrap()
    }

    #[test]
    fn a_row_has_what_visits_of_its_length_touched() {
        let text = table(&[touched(11)]);
        let last = text.lines().last();
        assert_eq!(
            last,
            Some("| `call-0-passive` | 202 | 60 | 40 | 12 | 11 | 30 | 1 |")
        );
    }

    #[test]
    fn a_call_that_touches_more_lines_is_found() {
        let finding = |lines| finding(Arch::X86_64, &[touched(lines)]);
        assert_eq!(finding(12), None);
        let finding = finding(13).unwrap();
        assert!(finding.contains("at most 12"), "{finding}");
    }

    #[test]
    fn a_row_of_another_length_is_refused() {
        let seen = Seen::parse("visits 2a 300 9 60 40 12 11 30 1\n").unwrap();
        let rows = parse(Arch::X86_64, "bench call-0-passive 202 202 202\n").unwrap();
        let error = seen.of(&rows, CALL, 0x2a, Entry::Call("on_call"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("only [300]"), "{error}");
        assert!(Seen::parse("visit 2a 300\n").is_err());
    }
}
