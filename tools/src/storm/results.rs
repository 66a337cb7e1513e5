//! The counts that the system prints at its end, and their sum as a table.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{ensure, Context, Result};

use crate::arch::Arch;

/// Outcomes of an invocation, in the order of the errors' numbers.
const OUTCOMES: [&str; 11] = [
    "ok", "InvArg", "InvCap", "Illegal", "Range", "Align", "Lookup", "Trunc", "Delete", "Revoke",
    "Memory",
];

/// Names of the system calls −1 to −33; the others are one row.
const SYSCALLS: [(usize, &str); 21] = [
    (1, "Call"),
    (2, "ReplyRecv"),
    (3, "NBSendRecv"),
    (4, "NBSendWait"),
    (5, "Send"),
    (6, "NBSend"),
    (7, "Recv"),
    (8, "NBRecv"),
    (9, "Wait"),
    (10, "NBWait"),
    (11, "Yield"),
    (12, "DebugPutChar"),
    (13, "DebugDumpScheduler"),
    (14, "DebugHalt"),
    (15, "DebugCapIdentify"),
    (16, "DebugSnapshot"),
    (17, "DebugNameThread"),
    (18, "DebugSendIPI"),
    (19, "DebugGetThreadAffinity"),
    (33, "SetTLSBase"),
    (0, "numbers beyond"),
];

/// Faults by number.
const FAULTS: [(usize, &str); 5] = [
    (1, "CapFault"),
    (2, "UnknownSyscall"),
    (3, "UserException"),
    (5, "Timeout"),
    (6, "VMFault"),
];

/// What instructions of the storm fault with, by its position in a class's row. All others are one column.
const fn faults_of_instructions(arch: Arch) -> &'static [(usize, &'static str)] {
    match arch {
        Arch::X86_64 => &FAULTS_ON_X86_64,
        Arch::Aarch64 => &FAULTS_ON_AARCH64,
    }
}

/// Exceptions by vector, then what the kernel takes for a system call that it does not know, or that has no capability.
const FAULTS_ON_X86_64: [(usize, &str); 14] = [
    (0, "#DE"),
    (1, "#DB"),
    (3, "#BP"),
    (5, "#BR"),
    (6, "#UD"),
    (7, "#NM"),
    (11, "#NP"),
    (12, "#SS"),
    (13, "#GP"),
    (14, "#PF"),
    (16, "#MF"),
    (17, "#AC"),
    (32, "call"),
    (33, "cap"),
];

/// Exceptions by their class in the syndrome, then the same, then faults of memory.
const FAULTS_ON_AARCH64: [(usize, &str); 12] = [
    (0x00, "unknown"),
    (0x01, "waiting"),
    (0x07, "FPU"),
    (0x0e, "state"),
    (0x18, "register"),
    (0x22, "PC"),
    (0x26, "SP"),
    (0x2c, "FP"),
    (0x3c, "BRK"),
    (64, "call"),
    (65, "cap"),
    (66, "memory"),
];

/// Counts of one run, or of several.
#[derive(Debug, Default, PartialEq)]
pub struct Results {
    pub calls: u64,
    pub instructions: u64,
    pub arenas: u64,
    /// Machines that the emulator cut short.
    pub cut_short: u64,
    /// Arenas whose counters were overwritten, and do not count.
    discarded: u64,
    /// Jobs of the canaries.
    periods: u64,
    /// The longest time from a release of a canary to its job's start and end, ticks.
    latest: [u64; 2],
    /// By name, in the order of labels: issued, then each outcome.
    invocations: Vec<(String, Vec<u64>)>,
    /// Instructions, by class: begun, then their faults by [`faults_of_instructions`].
    classes: Vec<(String, Vec<u64>)>,
    /// By number: issued, returned.
    syscalls: BTreeMap<usize, [u64; 2]>,
    faults: Vec<u64>,
}

impl Results {
    /// Reads the console of a run on `cores`, each of which has a canary.
    ///
    /// # Errors
    /// A line is missing, or has not the numbers that it should have.
    pub fn read(console: &str, cores: u32) -> Result<Self> {
        let rest = |name: &str| {
            console
                .lines()
                .find_map(|line| line.trim_end().strip_prefix(name))
                .and_then(numbers)
                .with_context(|| format!("the system printed no line `{name}N ...`"))
        };
        let run = rest("storm-run ")?;
        let mut results = Self {
            faults: rest("storm-faults ")?,
            ..Self::default()
        };
        if let [calls, instructions, arenas, discarded] = run[..] {
            (results.calls, results.instructions) = (calls, instructions);
            (results.arenas, results.discarded) = (arenas, discarded);
        }
        let canaries = results.read_canaries(console);
        ensure!(
            canaries == cores,
            "the system printed {canaries} lines `storm-canary PERIODS START END`: a line for each \
             of the {cores} cores would be right"
        );
        for line in console.lines() {
            let row = |prefix| {
                let (name, row) = line.trim_end().strip_prefix(prefix)?.split_once(' ')?;
                Some((name, numbers(row)?))
            };
            if let Some((name, row)) = row("storm-invocation ") {
                results.invocations.push((name.to_owned(), row));
            } else if let Some((name, row)) = row("storm-class ") {
                results.classes.push((name.to_owned(), row));
            } else if let Some((number, row)) = row("storm-syscall ") {
                if let (Ok(number), &[issued, returned]) = (number.parse(), &row[..]) {
                    results.syscalls.insert(number, [issued, returned]);
                }
            }
        }
        Ok(results)
    }

    /// Adds up what the canaries say; returns how many do.
    fn read_canaries(&mut self, console: &str) -> u32 {
        let mut canaries = 0;
        for line in console.lines() {
            let row = line.trim_end().strip_prefix("storm-canary ");
            if let Some(&[periods, start, end]) = row.and_then(numbers).as_deref() {
                self.add_canary(periods, [start, end]);
                canaries += 1;
            }
        }
        canaries
    }

    fn add_canary(&mut self, periods: u64, latest: [u64; 2]) {
        self.periods += periods;
        for (known, new) in self.latest.iter_mut().zip(latest) {
            *known = new.max(*known);
        }
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.instructions += other.instructions;
        self.arenas += other.arenas;
        self.cut_short += other.cut_short;
        self.discarded += other.discarded;
        self.add_canary(other.periods, other.latest);
        add_rows(&mut self.invocations, &other.invocations);
        add_rows(&mut self.classes, &other.classes);
        for (&number, row) in &other.syscalls {
            add_all(self.syscalls.entry(number).or_default(), row);
        }
        self.faults
            .resize(other.faults.len().max(self.faults.len()), 0);
        add_all(&mut self.faults, &other.faults);
    }

    /// The counts as text: those of storms that there were.
    pub fn table(&self, arch: Arch) -> String {
        let mut text = String::new();
        if self.calls > 0 {
            text += &self.table_of_calls();
        }
        if self.instructions > 0 {
            text += &self.table_of_instructions(arch);
        }
        let _ = writeln!(text, "{:<28}{:>9}", "fault", "handled");
        for (number, name) in FAULTS {
            let count = self.faults.get(number).copied().unwrap_or(0);
            let _ = writeln!(text, "{name:<28}{count:>9}");
        }
        let [start, end] = self.latest;
        let _ = writeln!(
            text,
            "\ncanaries: {} jobs; at the latest, begun {start} and done {end} ticks after release\n\
             arenas whose counters the storm overwrote, not counted: {}\n",
            self.periods, self.discarded
        );
        text
    }

    fn table_of_instructions(&self, arch: Arch) -> String {
        let columns = faults_of_instructions(arch);
        let mut text = format!("{:<24}{:>9}", "instructions", "begun");
        for (_, fault) in columns {
            let _ = write!(text, "{fault:>9}");
        }
        text += "    other  no fault\n";
        for (name, row) in &self.classes {
            let [begun, faults @ ..] = &row[..] else {
                continue;
            };
            let _ = write!(text, "{name:<24}{begun:>9}");
            let mut others: u64 = faults.iter().sum();
            let all = others;
            for (index, _) in columns {
                let count = faults.get(*index).copied().unwrap_or(0);
                others -= count;
                let _ = write!(text, "{count:>9}");
            }
            let _ = writeln!(text, "{others:>9}{:>10}", begun.saturating_sub(all));
        }
        text + "\n"
    }

    fn table_of_calls(&self) -> String {
        let mut text = format!("{:<28}{:>9}", "invocation", "issued");
        for outcome in OUTCOMES {
            let _ = write!(text, "{outcome:>8}");
        }
        text += "   no answer\n";
        for (name, row) in &self.invocations {
            let [issued, outcomes @ ..] = &row[..] else {
                continue;
            };
            let _ = write!(text, "{name:<28}{issued:>9}");
            for count in outcomes {
                let _ = write!(text, "{count:>8}");
            }
            let silent = issued.saturating_sub(outcomes.iter().sum());
            let _ = writeln!(text, "{silent:>12}");
        }
        let _ = writeln!(
            text,
            "\n{:<28}{:>9}{:>10}",
            "system call", "issued", "returned"
        );
        for (number, name) in SYSCALLS {
            let [issued, returned] = self.syscalls.get(&number).copied().unwrap_or_default();
            let _ = writeln!(text, "{name:<28}{issued:>9}{returned:>10}");
        }
        let holes = (20..33).filter_map(|number| self.syscalls.get(&number));
        let [issued, returned] = holes.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
        let _ = writeln!(
            text,
            "{:<28}{issued:>9}{returned:>10}",
            "of disabled features"
        );
        text + "\n"
    }
}

/// Reads numbers with anything but digits between them.
fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().ok())
        .collect()
}

/// Adds rows with the same name.
fn add_rows(sums: &mut Vec<(String, Vec<u64>)>, rows: &[(String, Vec<u64>)]) {
    for (name, row) in rows {
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sums)) => add_all(sums, row),
            None => sums.push((name.clone(), row.clone())),
        }
    }
}

fn add_all(sums: &mut [u64], row: &[u64]) {
    for (sum, count) in sums.iter_mut().zip(row) {
        *sum += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "noise\r\nstorm-run 9 4 2 0\r\nstorm-canary 5 10 20\r\n\
        storm-invocation TCB_Suspend [7, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]\r\n\
        storm-class port [8, [0, 2, 0]]\r\nstorm-syscall 1 [7, 6]\r\nstorm-faults [0, 3, 0, 0, 0, 0, 1]\r\n";

    #[test]
    fn counts_are_read_and_added() {
        let mut sum = Results::default();
        for _ in 0..2 {
            sum.add(&Results::read(CONSOLE, 1).unwrap());
        }
        assert_eq!((sum.calls, sum.instructions), (18, 8));
        assert_eq!((sum.arenas, sum.periods), (4, 10));
        assert_eq!(sum.latest, [10, 20]);
        assert_eq!(sum.invocations[0].1[..2], [14, 10]);
        assert_eq!(sum.syscalls[&1], [14, 12]);
        assert_eq!(sum.faults[1], 6);
        let table = sum.table(Arch::X86_64);
        let row = table.lines().find(|line| line.starts_with("TCB_Suspend"));
        assert!(row.unwrap().ends_with(" 2"), "{table}");
        assert_eq!(sum.classes[0].1, [16, 0, 4, 0]);
        let row = table.lines().find(|line| line.starts_with("port"));
        assert!(row.unwrap().ends_with(" 12"), "{table}");
    }

    #[test]
    fn a_console_without_results_is_refused() {
        for console in ["", "storm-run 1 1 1 1\nstorm-faults [0]\n"] {
            let error = Results::read(console, 1).unwrap_err();
            assert!(error.to_string().contains("storm-"), "{error}");
        }
    }

    #[test]
    fn each_core_has_a_canary() {
        let console = CONSOLE.to_owned() + "storm-canary 7 30 10\n";
        let results = Results::read(&console, 2).unwrap();
        assert_eq!((results.periods, results.latest), (12, [30, 20]));
        for cores in [1, 3] {
            let error = Results::read(&console, cores).unwrap_err();
            assert!(error.to_string().contains(&cores.to_string()), "{error}");
        }
    }
}
