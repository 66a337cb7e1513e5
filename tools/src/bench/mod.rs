//! `sandglass bench`: instructions of kernel operations, beside the reference or on the SMP kernel.
//!
//! The benchmark system measures under virtual time, where a tick is an instruction, and prints
//! `bench NAME MIN MEAN MAX` for each row.

mod beside;
mod boot;
mod calls_only;
mod page;
mod reference;
mod speculation;
mod touches;
mod trace;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use serde::Serialize;

use crate::arch::Arch;
use crate::cli::BenchArgs;
use crate::cores::Cores;
use crate::isolation;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::{self, Boot, End, Machine};
use crate::workspace;
use beside::{Comparison, Other};

/// Folder of the benchmark system.
const SYSTEM: &str = "systems/bench";

/// Limit of a run on the host's clock; it takes seconds.
const TIMEOUT: Duration = Duration::from_secs(300);

/// One measured operation, in instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    name: String,
    min: f64,
    mean: f64,
    max: f64,
    /// The reference's MCS configuration.
    reference: Option<u32>,
    /// The reference without scheduling contexts.
    base: Option<u32>,
    /// `mean / reference`.
    ratio: Option<f64>,
    /// What `max` must not exceed.
    limit: Option<u32>,
}

impl Row {
    /// What is wrong, if it exceeds its limit.
    fn finding(&self) -> Option<String> {
        let limit = self.limit.filter(|&limit| self.max > f64::from(limit))?;
        Some(format!(
            "{} takes up to {} instructions, but at most {limit} are allowed",
            self.name, self.max
        ))
    }
}

/// `sandglass bench`.
pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    if let Some(path) = &args.json {
        workspace::ensure_writable(path)?;
    }
    let findings = if args.boot {
        boots(args)?
    } else {
        run_system(args)?
    };
    for finding in &findings {
        eprintln!("{finding}");
    }
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}

/// Runs the benchmark system. Returns what is wrong with what it measures.
fn run_system(args: &BenchArgs) -> Result<Vec<String>> {
    let metadata = program::workspace_metadata()?;
    let package = program::package_in(&metadata, SYSTEM)?;
    let arch = args.arch;
    ensure!(
        arch == Arch::X86_64 || !args.trace && !args.page && !args.speculation,
        "the cost of traces and of what is done against speculation, and the tables of the book, are measured on x86_64 only"
    );
    let root_task = program::build_for(arch, &package.name)?;
    if args.speculation {
        against_speculation(args, &root_task)
    } else if args.touches {
        touches(args, &root_task)
    } else {
        compare(args, &root_task)
    }
}

/// Prints what operations touch. Returns what is wrong with it.
fn touches(args: &BenchArgs, root_task: &Path) -> Result<Vec<String>> {
    let touched = touches::measure(args.arch, root_task)?;
    let table = touches::table(&touched);
    print!("{table}");
    write_json(args, &touched)?;
    let mut findings: Vec<String> = touches::finding(args.arch, &touched).into_iter().collect();
    if args.page {
        eprintln!("written: {}", touches::PAGE.write(&table)?.display());
    }
    if args.arch == Arch::X86_64 {
        findings.extend(touches::PAGE.finding(&table)?);
    }
    Ok(findings)
}

/// Prints what it costs to act against speculation. Returns what is wrong with it.
fn against_speculation(args: &BenchArgs, root_task: &Path) -> Result<Vec<String>> {
    let measures = speculation::kernels(args.all || args.page);
    let costs = speculation::measure(root_task, &measures)?;
    let table = speculation::table(&costs, &measures);
    print!("{table}");
    write_json(args, &costs)?;
    if args.page {
        eprintln!("written: {}", speculation::PAGE.write(&table)?.display());
    }
    let mut findings: Vec<String> = costs
        .iter()
        .filter_map(speculation::Cost::finding)
        .collect();
    findings.extend(speculation::PAGE.finding_in_columns(&table)?);
    Ok(findings)
}

/// Prints what operations cost, beside the reference or on another kernel. Returns what is wrong with it.
fn compare(args: &BenchArgs, root_task: &Path) -> Result<Vec<String>> {
    let arch = args.arch;
    let rows = measure(arch, Cores::Single, root_task)?;
    Ok(if args.trace {
        let costs = trace::compare(&rows, &measure_traced(root_task)?)?;
        print!("{}", trace::table(&costs));
        write_json(args, &costs)?;
        costs.iter().filter_map(trace::Cost::finding).collect()
    } else if args.smp {
        let other = measure(arch, Cores::Smp(1), root_task)?;
        beside(args, &Other::SMP, &rows, &other)?
    } else if args.no_isolation {
        let kernel = isolation::leave_out(release(arch, Cores::Single))?;
        let other = measure_on(&kernel, Cores::Single, root_task, &[])?;
        beside(args, &Other::NOT_ISOLATED, &rows, &other)?
    } else {
        print!("{}", table(arch, &rows));
        write_json(args, &rows)?;
        let table = calls_only::table(&rows)?;
        if args.page {
            eprintln!("written: {}", calls_only::PAGE.write(&table)?.display());
        }
        let mut findings: Vec<String> = rows.iter().filter_map(Row::finding).collect();
        if arch == Arch::X86_64 {
            findings.extend(calls_only::PAGE.finding(&table)?);
        }
        findings
    })
}

/// Prints what operations cost on the kernel that ships and on another. Returns what is wrong with it.
fn beside(args: &BenchArgs, other: &Other, rows: &[Row], others: &[Row]) -> Result<Vec<String>> {
    let comparisons = beside::compare(rows, others)?;
    print!("{}", beside::table(other, &comparisons));
    write_json(args, &comparisons)?;
    let finding = |comparison: &Comparison| other.finding(comparison);
    Ok(comparisons.iter().filter_map(finding).collect())
}

/// Measures the boot. Returns what is wrong with it.
fn boots(args: &BenchArgs) -> Result<Vec<String>> {
    ensure!(
        args.arch == Arch::X86_64,
        "boots are measured on x86_64 only: profiles other than base are for it"
    );
    let rows = boot::measure(args.all || args.page)?;
    print!("{}", boot::table(&rows));
    write_json(args, &rows)?;
    if args.page {
        let table = boot::table(&rows);
        eprintln!("written: {}", boot::PAGE_OF_BOOK.write(&table)?.display());
    }
    boot::findings(&rows)
}

/// Writes `figures` to the file that was asked for, if any.
fn write_json(args: &BenchArgs, figures: &impl Serialize) -> Result<()> {
    let Some(path) = &args.json else {
        return Ok(());
    };
    let json = serde_json::to_string_pretty(figures).context("cannot write JSON")?;
    fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// Boots the benchmark system on the release kernel for `cores`, and reads what it measured.
fn measure(arch: Arch, cores: Cores, root_task: &Path) -> Result<Vec<Row>> {
    measure_on(&release(arch, cores), cores, root_task, &[])
}

/// The release kernel for `cores`. Programs read the counter, and one row is of a timer's interrupt.
fn release(arch: Arch, cores: Cores) -> KernelOptions {
    KernelOptions::on(Variant::Release, cores)
        .for_arch(arch)
        .with_user_timer()
}

/// The same on the release kernel that records traces, with a log.
fn measure_traced(root_task: &Path) -> Result<Vec<Row>> {
    let kernel = KernelOptions::new(Variant::Release).traced();
    let log = ["-fw_cfg", "name=opt/sandglass/trace,string=1"];
    measure_on(&kernel, Cores::Single, root_task, &log)
}

/// The findings about the cost of trace points: for the tests.
///
/// # Errors
/// Something does not build or run.
pub fn findings_of_traces() -> Result<Vec<String>> {
    let metadata = program::workspace_metadata()?;
    let root_task = program::build(&program::package_in(&metadata, SYSTEM)?.name)?;
    let rows = measure(Arch::X86_64, Cores::Single, &root_task)?;
    let costs = trace::compare(&rows, &measure_traced(&root_task)?)?;
    Ok(costs.iter().filter_map(trace::Cost::finding).collect())
}

fn measure_on(
    kernel: &KernelOptions,
    cores: Cores,
    root_task: &Path,
    arguments: &[&str],
) -> Result<Vec<Row>> {
    parse(
        kernel.arch,
        &run_machine(kernel, cores, root_task, arguments)?,
    )
}

/// Boots the benchmark system, and returns its console.
fn run_machine(
    kernel: &KernelOptions,
    cores: Cores,
    root_task: &Path,
    arguments: &[&str],
) -> Result<String> {
    let arch = kernel.arch;
    let mut machine = Machine {
        cpu: reference::cpu(arch).to_owned(),
        cores: cores.number(),
        icount: Some(reference::shift(arch)),
        ..Machine::of(arch)
    };
    machine.suit(kernel);
    let boot = Boot {
        machine,
        user_semihosting: true,
        timeout: Some(TIMEOUT),
        extra_args: arguments.iter().map(Into::into).collect(),
        ..Boot::new(kernel::build(kernel)?, root_task)
    };
    eprintln!("measuring");
    let outcome = qemu::run(&boot)?;
    if outcome.end != End::Guest(0) {
        bail!(
            "the benchmark system ended with {:?}; its console:\n{}",
            outcome.end,
            outcome.console
        );
    }
    Ok(outcome.console)
}

/// Reads the rows of the console.
fn parse(arch: Arch, console: &str) -> Result<Vec<Row>> {
    let rows: Vec<Row> = console
        .lines()
        .filter_map(|line| line.trim().strip_prefix("bench "))
        .map(|line| {
            parse_row(arch, line).with_context(|| format!("`bench {line}` is not a measurement"))
        })
        .collect::<Result<_>>()?;
    if rows.is_empty() {
        bail!("the benchmark system printed no `bench NAME MIN MEAN MAX`:\n{console}");
    }
    Ok(rows)
}

/// Reads `NAME MIN MEAN MAX`.
fn parse_row(arch: Arch, line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let mut number = || words.next()?.parse::<f64>().ok();
    let (min, mean, max) = (number()?, number()?, number()?);
    let reference = reference::of(arch, &name);
    Some(Row {
        limit: reference::limit(arch, &name),
        name,
        min,
        mean,
        max,
        reference: reference.map(|reference| reference.mcs),
        base: reference.and_then(|reference| reference.base),
        ratio: reference.map(|reference| mean / f64::from(reference.mcs)),
    })
}

/// The rows as text.
fn table(arch: Arch, rows: &[Row]) -> String {
    let mut text = format!(
        "kernel-only instructions; reference: seL4 16.0.0, {}\n\n",
        arch.name()
    );
    text += &format!(
        "{:<30}{:>8}{:>10}{:>8}{:>9}{:>12}{:>8}{:>8}\n",
        "operation", "min", "mean", "max", "at most", "ref. MCS", "base", "ratio"
    );
    let cell = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
    for row in rows {
        let ratio = row
            .ratio
            .map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let (limit, reference, base) = (cell(row.limit), cell(row.reference), cell(row.base));
        text += &format!(
            "{:<30}{:>8}{:>10.1}{:>8}{limit:>9}{reference:>12}{base:>8}{ratio:>8}\n",
            row.name, row.min, row.mean, row.max
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_stand_beside_their_reference() {
        let rows = parse(
            Arch::X86_64,
            "boot\nbench signal 440 446.0 450\r\nbench new 1 2 3\n",
        )
        .unwrap();
        assert_eq!(rows[0].reference, Some(446));
        assert_eq!(rows[0].base, Some(364));
        assert_eq!(rows[0].ratio, Some(1.0));
        assert_eq!(rows[1].reference, None);
        assert!(table(Arch::X86_64, &rows)
            .lines()
            .last()
            .unwrap()
            .starts_with("new"));
    }

    #[test]
    fn limits_hold_for_the_slowest_sample() {
        let rows = parse(
            Arch::X86_64,
            "bench yield-alone 1 2 185\nbench yield-alone 1 2 186\n",
        )
        .unwrap();
        assert_eq!(
            rows.iter()
                .map(|row| row.finding().is_some())
                .collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[test]
    fn what_is_not_a_measurement_is_refused() {
        assert!(parse(Arch::X86_64, "bench signal 440 x 450\n").is_err());
        assert!(parse(Arch::X86_64, "nothing\n").is_err());
    }
}
