//! `sandglass bounds --worst`: programs that drive the kernel down its longest paths, beside what is computed of paths of
//! the same kind (`assurance/wcet/cases.toml`): executed instructions, and cycles of processors whose caches are simulated.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use sandglass_binary::image::Image;
use sandglass_binary::model::{Processor, INSTRUCTIONS};
use sandglass_binary::watch;
use serde::Deserialize;

use super::intervals::Interval;
use super::{plugin, Measuring, QUICK, SYSTEM};
use crate::arch::Arch;
use crate::kernel::{self, KernelOptions, Variant};
use crate::{program, wcet, workspace};

/// The kinds of paths.
const CASES: &str = "assurance/wcet/cases.toml";
/// The page with the table, in the repository.
const PAGE: &str = "docs/src/assurance/worst-cases.md";
/// The table of each architecture stands between a line that names the command and this one.
const END: &str = "\n<!-- The end of the table. -->\n";

/// Processors on which cycles are counted, in the order of the columns.
const PROCESSORS: [&str; 2] = ["cortex-a8", "cortex-a53"];

/// The most that is to be computed for what is observed: in instructions, and in cycles. What exceeds it is shown.
const MOST_RATIOS: [f64; 3] = [1.3, 2.0, 2.0];

/// What this command needs of a case.
#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    what: String,
    #[serde(default = "usual_levels")]
    levels: u64,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

const fn usual_levels() -> u64 {
    8
}

/// A case with what was computed and observed: instructions, then cycles of each of [`PROCESSORS`].
#[derive(Debug)]
struct Row {
    what: String,
    levels: u64,
    figures: [(u64, u64); 3],
}

/// Fails if more is observed than computed, or if the page shows other figures; with `page`, writes it.
pub fn run(arch: Arch, page: bool) -> Result<ExitCode> {
    let rows = measure(arch)?;
    let table = table(&rows);
    print!("{table}");
    if page {
        println!("{}", write(arch, &table)?.display());
    }
    let mut findings = exceeded(&rows);
    findings.extend(finding(arch, &table)?);
    for finding in &findings {
        println!("EXCEEDED: {finding}");
    }
    Ok(match findings.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn measure(arch: Arch) -> Result<Vec<Row>> {
    let metadata = program::workspace_metadata()?;
    let package = program::package_in(&metadata, SYSTEM)?;
    let root_task = program::build_for(arch, &package.name)?;
    let kernel = KernelOptions::new(Variant::Release).for_arch(arch);
    // The program reads the counter.
    let kernel = kernel::build(&kernel.with_user_timer())?;
    let plugin = plugin::build()?;
    let folder = workspace::target_dir().join(format!("worst-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let list = folder.join("list");
    fs::write(&list, watched(&kernel)?).with_context(|| list.display().to_string())?;
    let out = folder.join("seen");
    let watched = format!(",visits={},visits_out={}", list.display(), out.display());
    let measuring = Measuring {
        arch,
        kernel: &kernel,
        root_task: &root_task,
        plugin: &plugin,
        memory_mib: QUICK.memory_mib,
        told: "name=opt/sandglass/worst,string=1",
        watched: &watched,
    };
    let run = measuring.run();
    // Nobody else has read it; a folder that stays behind is no failure.
    let _ = fs::remove_dir_all(&folder);
    let (console, intervals) = run?;
    let observed = observed(&console, &intervals)?;
    let file = workspace::root().join(CASES);
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {CASES}"))?;
    let cases: Cases = toml::from_str(&text).context(CASES)?;
    let [instructions, first, second] = [INSTRUCTIONS, PROCESSORS[0], PROCESSORS[1]]
        .map(|model| wcet::cases(&kernel, &file, model));
    join(cases, &[instructions?, first?, second?], observed)
}

/// What the plugin watches besides: the processors.
fn watched(kernel: &std::path::Path) -> Result<String> {
    let image = Image::read(kernel)?;
    let models = PROCESSORS.map(|name| {
        let processor = Processor::named(name)?;
        let processor = processor.with_context(|| format!("`{name}` is no processor"))?;
        anyhow::Ok((name.to_owned(), processor.model))
    });
    let models: Vec<_> = models.into_iter().collect::<Result<_>>()?;
    Ok(watch::list(&image, &[])? + &watch::processors(&image, &models)?)
}

/// The most of each measurement that `console` names, in the order of `intervals`: instructions, then cycles.
fn observed(console: &str, intervals: &[Interval]) -> Result<BTreeMap<String, [u64; 3]>> {
    let lines = console.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter_map(|it| it.strip_prefix("bounds ")).collect();
    ensure!(
        !lines.is_empty() && lines.len() == intervals.len(),
        "the system names {} measurements, and the plugin made {}",
        lines.len(),
        intervals.len()
    );
    let mut most = BTreeMap::<String, [u64; 3]>::new();
    for (line, interval) in lines.into_iter().zip(intervals) {
        let name = line.split(' ').nth(1);
        let name = name.with_context(|| format!("the system printed `bounds {line}`"))?;
        let cycles = PROCESSORS.map(|processor| {
            let found = interval.cycles.iter().find(|(name, _)| name == processor);
            found.map_or(0, |&(_, cycles)| cycles)
        });
        let figures = [interval.stretch.instructions, cycles[0], cycles[1]];
        let known = most.entry(name.to_owned()).or_default();
        for (known, figure) in known.iter_mut().zip(figures) {
            *known = figure.max(*known);
        }
    }
    Ok(most)
}

/// The rows, in the order of the cases.
///
/// # Errors
/// A case was not measured, or what was measured is no case.
fn join(
    cases: Cases,
    computed: &[BTreeMap<String, u64>; 3],
    mut observed: BTreeMap<String, [u64; 3]>,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for Case { name, what, levels } in cases.case {
        let seen = observed.remove(&name);
        let seen =
            seen.with_context(|| format!("the system does not measure the case `{name}`"))?;
        let mut figures = [(0, 0); 3];
        for ((figure, computed), seen) in figures.iter_mut().zip(computed).zip(seen) {
            let bound = computed.get(&name);
            let bound = bound.with_context(|| format!("nothing is computed of `{name}`"))?;
            *figure = (*bound, seen);
        }
        rows.push(Row {
            what,
            levels,
            figures,
        });
    }
    let left: Vec<String> = observed.into_keys().collect();
    ensure!(
        left.is_empty(),
        "{CASES} has no case {}: what is measured is to be compared",
        left.join(", ")
    );
    Ok(rows)
}

fn ratio((computed, observed): (u64, u64)) -> f64 {
    computed as f64 / observed as f64
}

/// What is observed of more than was computed.
fn exceeded(rows: &[Row]) -> Vec<String> {
    let mut findings = Vec::new();
    for row in rows {
        let names = [INSTRUCTIONS].into_iter().chain(PROCESSORS);
        for (name, &(computed, observed)) in names.zip(&row.figures) {
            if observed > computed {
                findings.push(format!(
                    "{}: {observed} observed, and computed are at most {computed} ({name}). The analysis leaves out a way \
                     that the kernel goes, or the case of {CASES} is not what is driven",
                    row.what
                ));
            }
        }
    }
    findings
}

/// The table, and how many ratios are as they are to be.
fn table(rows: &[Row]) -> String {
    let mut text =
        "| case | levels | computed | observed | ratio | `cortex-a8` | observed | ratio | `cortex-a53` | observed | ratio |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    for row in rows {
        // Writing to a string does not fail.
        let _ = write!(text, "| {} | {} |", row.what, row.levels);
        for figure in row.figures {
            let _ = write!(
                text,
                " {} | {} | {:.2} |",
                figure.0,
                figure.1,
                ratio(figure)
            );
        }
        text.push('\n');
    }
    let within = |column: usize| {
        let ratios = rows.iter().map(|row| ratio(row.figures[column]));
        ratios.filter(|&ratio| ratio <= MOST_RATIOS[column]).count()
    };
    let _ = writeln!(
        text,
        "\nOf {} cases, {} are at most {} in instructions, {} and {} at most {} in cycles.",
        rows.len(),
        within(0),
        MOST_RATIOS[0],
        within(1),
        within(2),
        MOST_RATIOS[1]
    );
    text
}

fn path() -> PathBuf {
    workspace::root().join(PAGE)
}

/// The command that makes the table.
fn command(arch: Arch) -> String {
    let of_arch = match arch {
        Arch::X86_64 => String::new(),
        Arch::Aarch64 => format!("--arch {} ", arch.name()),
    };
    format!("./sandglass bounds --worst {of_arch}--page")
}

/// Where the table stands in the text of the page.
///
/// # Errors
/// It has no place there.
fn place(arch: Arch, page: &str) -> Result<std::ops::Range<usize>> {
    let line = format!("<!-- `{}` makes this table. -->\n\n", command(arch));
    let begin = page.find(&line).map(|at| at + line.len());
    let place = begin.and_then(|begin| Some(begin..begin + page[begin..].find(END)?));
    match place {
        Some(place) => Ok(place),
        None => bail!("{PAGE} has no place for the table: the lines\n{line}{END}"),
    }
}

/// Writes it into the page, and returns where that is.
fn write(arch: Arch, table: &str) -> Result<PathBuf> {
    let path = path();
    let mut page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    page.replace_range(place(arch, &page)?, table);
    fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"))?;
    Ok(path)
}

/// What is wrong with the page, if it shows another table.
fn finding(arch: Arch, table: &str) -> Result<Option<String>> {
    let page = fs::read_to_string(path()).with_context(|| format!("cannot read {PAGE}"))?;
    let is_right = page[place(arch, &page)?] == *table;
    Ok((!is_right).then(|| {
        format!(
            "{PAGE} shows other figures: run `{}`\n{table}",
            command(arch)
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "[[case]]\nname = \"a\"\nwhat = \"one\"\n[[case]]\nname = \"b\"\nwhat = \"two\"\nlevels = 64\n";

    fn cases() -> Cases {
        toml::from_str(TWO).unwrap()
    }

    fn computed() -> [BTreeMap<String, u64>; 3] {
        [130, 1_500, 2_100].map(|bound| ["a", "b"].map(|name| (name.to_owned(), bound)).into())
    }

    fn interval(instructions: u64, cycles: [u64; 2]) -> Interval {
        let text = format!(
            "interval 1 9 9 9 {instructions} entry exit\ncycles cortex-a8 {}\ncycles cortex-a53 {}\n",
            cycles[0], cycles[1]
        );
        Interval::read_all(&text).unwrap().remove(0)
    }

    fn rows(console: &str, intervals: &[Interval]) -> Result<Vec<Row>> {
        join(cases(), &computed(), observed(console, intervals)?)
    }

    const CONSOLE: &str =
        "bounds: the worst of a\nbounds single a 8 stretch\nbounds single a 8 stretch\n\
                           bounds single b 32 stretch\n";

    #[test]
    fn the_worst_of_each_case_is_compared_with_its_bound() {
        let intervals = [
            interval(90, [1_000, 900]),
            interval(100, [800, 1_000]),
            interval(50, [500, 500]),
        ];
        let rows = rows(CONSOLE, &intervals).unwrap();
        assert_eq!(
            rows[0].figures,
            [(130, 100), (1_500, 1_000), (2_100, 1_000)]
        );
        assert!(exceeded(&rows).is_empty());
        let table = table(&rows);
        assert!(
            table.contains(
                "| one | 8 | 130 | 100 | 1.30 | 1500 | 1000 | 1.50 | 2100 | 1000 | 2.10 |"
            ),
            "{table}"
        );
        assert!(table.contains("| two | 64 | 130 | 50 | 2.60 |"), "{table}");
        assert!(
            table.contains(
                "Of 2 cases, 1 are at most 1.3 in instructions, 1 and 0 at most 2 in cycles."
            ),
            "{table}"
        );
    }

    #[test]
    fn more_observed_than_computed_is_found() {
        let intervals = [131, 1, 1].map(|most| interval(most, [1_501, 1]));
        let found = exceeded(&rows(CONSOLE, &intervals).unwrap());
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].contains("one: 131 observed") && found[0].contains("at most 130"),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_measured_are_the_cases() {
        let one = interval(1, [1, 1]);
        let error = |console: &str, intervals: &[Interval]| {
            let error = rows(console, intervals).unwrap_err();
            format!("{error:#}")
        };
        let message = error("bounds single a 8 stretch\n", std::slice::from_ref(&one));
        assert!(
            message.contains("does not measure the case `b`"),
            "{message}"
        );
        let more = format!("{CONSOLE}bounds single c 8 stretch\n");
        let message = error(&more, &[one.clone(), one.clone(), one.clone(), one.clone()]);
        assert!(message.contains("no case c"), "{message}");
        let message = error(CONSOLE, &[one]);
        assert!(
            message.contains("3 measurements, and the plugin made 1"),
            "{message}"
        );
    }

    #[test]
    fn the_page_has_a_place_and_other_figures_are_found() {
        for (arch, command) in [
            (Arch::X86_64, "`./sandglass bounds --worst --page`"),
            (
                Arch::Aarch64,
                "`./sandglass bounds --worst --arch aarch64 --page`",
            ),
        ] {
            let finding = finding(arch, "| another |\n").unwrap().unwrap();
            assert!(finding.contains(command), "{finding}");
        }
    }
}
