//! Bounds of the kernel's execution time, from its file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{ensure, Context, Result};
use clap::Parser;
use sandglass_wcet::cases::{self, Cases};
use sandglass_wcet::compare::{self, Side};
use sandglass_wcet::image::Image;
use sandglass_wcet::kernel::{Case, Entry, Kernel, System};
use sandglass_wcet::limits::Limits;
use sandglass_wcet::model::{Processor, INSTRUCTIONS};
use sandglass_wcet::platform::Platform;
use sandglass_wcet::report::{self, Report};
use sandglass_wcet::results::{Results, Wanted};
use sandglass_wcet::{record, seen, show};

/// Computes how long the kernel can take at most, from its file
#[derive(Parser)]
struct Args {
    /// The kernel's file, with symbols
    kernel: PathBuf,
    /// Who may do what; both if not given
    #[arg(long)]
    system: Option<System>,
    /// Levels of capability spaces
    #[arg(long = "depth", alias = "levels", value_name = "LEVELS", value_delimiter = ',', default_values_t = [8, 64])]
    levels: Vec<u64>,
    /// What is counted: executed instructions, or cycles of a processor: `cortex-a53`, `cortex-a8`, or one that this file
    /// describes
    #[arg(long, default_value = INSTRUCTIONS)]
    model: String,
    /// Only paths through this function
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["record", "check", "report"])]
    through: Option<String>,
    /// Show the path of each bound
    #[arg(long)]
    path: bool,
    /// Write a page and a table into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write the bounds into this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Fail if a bound has grown by more than 2 % over what this file records
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Fail if the kernel needs longer on the platform that this file declares than it assumes of itself
    #[arg(long, value_name = "FILE")]
    platform: Option<PathBuf>,
    /// Record the bounds on that platform in the kernel's file, which tells its root task
    #[arg(long, requires = "platform")]
    stamp: bool,
    /// Show what is computed of the paths that the emulator's plugin has seen, which this file is of
    #[arg(long, value_name = "FILE", conflicts_with_all = ["through", "record", "check"])]
    seen: Option<PathBuf>,
    /// Show the bounds of the cases in this file, in a line each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seen", "through", "record", "check"])]
    cases: Option<PathBuf>,
    /// Show what grew or shrank since this kernel
    #[arg(long, value_name = "KERNEL")]
    against: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let processor = Processor::named(&args.model)?;
    ensure!(
        processor.is_none() || args.report.is_none() && args.platform.is_none(),
        "`--report` and `--platform` are of instructions: leave out `--model`"
    );
    let unit = match &processor {
        None => INSTRUCTIONS.to_owned(),
        Some(processor) => format!("cycles of {}", processor.name),
    };
    let limits = Limits::parse(include_str!("../limits.toml"))?;
    let closed = Limits::parse(include_str!("../closed.toml"))?;
    let wanted = Wanted {
        systems: args
            .system
            .map_or(System::ALL.to_vec(), |system| vec![system]),
        levels: args.levels.clone(),
    };
    let image = Image::read(&args.kernel)?;
    let model = processor.as_ref().map(|processor| processor.model);
    let kernel = Kernel::new(&image, &limits, &closed)?.on(model);
    if let Some(file) = &args.seen {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let levels = args.levels.iter().copied().max().unwrap_or_default();
        let visits = seen::read(&text, &args.model).with_context(|| file.display().to_string())?;
        print!("{}", seen::table(&kernel, &visits, levels)?);
        return Ok(());
    }
    if let Some(file) = &args.cases {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let cases = Cases::parse(&text).with_context(|| file.display().to_string())?;
        for (case, longest) in cases::longest(&cases, &kernel)? {
            println!("case {} {}", case.name, longest.cost);
            if args.path {
                print!("{}", show::path(&image, &longest));
            }
        }
        return Ok(());
    }
    let through = through(&image, args.through.as_deref())?;
    let results = wanted.of(&kernel, through)?;
    print(&image, &results, args.path, processor.as_ref());
    if let Some(file) = &args.record {
        fs::write(file, record::text(&results, &unit))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(directory) = &args.report {
        let report = Report {
            image: &image,
            name: &file_name(&args.kernel),
            properties: kernel.properties()?,
            results: &results,
            invocations: &kernel.invocations(&wanted)?,
            limits: [
                ("Of every system", &limits),
                ("Of closed systems, too", &closed),
            ],
        };
        report::write(directory, &report)?;
    }
    if let Some(base) = &args.against {
        let text = against(base, args, &wanted, [&limits, &closed], (&image, &results));
        print!("{}", text.with_context(|| base.display().to_string())?);
    }
    if let Some(file) = &args.platform {
        on_platform(file, args, &kernel).with_context(|| file.display().to_string())?;
    }
    if let Some(file) = &args.check {
        let recorded =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        record::check(&results, &recorded).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// Checks the kernel against a platform, and records what was found in the kernel's file if that is wanted.
fn on_platform(file: &Path, args: &Args, kernel: &Kernel) -> Result<()> {
    let text = fs::read_to_string(file).context("cannot read it")?;
    let platform = Platform::parse(&text)?;
    let wanted = Wanted {
        systems: vec![System::Open],
        levels: vec![platform.levels],
    };
    let stamp = platform.accept(kernel.image, &wanted.of(kernel, None)?)?;
    println!(
        "{}: {} instructions, {} ns; interrupt latency {} instructions, {} ns",
        platform.name, stamp.path, stamp.path_ns, stamp.latency, stamp.latency_ns
    );
    if args.stamp {
        let mut bytes = fs::read(&args.kernel).context("cannot read the kernel")?;
        stamp.write(&mut bytes)?;
        fs::write(&args.kernel, bytes)
            .with_context(|| format!("cannot write {}", args.kernel.display()))?;
    }
    Ok(())
}

/// What grew or shrank since another kernel.
fn against(
    file: &Path,
    args: &Args,
    wanted: &Wanted,
    limits: [&Limits; 2],
    (image, results): (&Image, &[Results]),
) -> Result<String> {
    let before = Image::read(file)?;
    let [(limits, left_out), (closed, left_out_too)] = limits.map(|limits| limits.split(&before));
    for why in left_out.into_iter().chain(left_out_too) {
        eprintln!(
            "note: {} has no such function, so this limit is not one of its own: {why}",
            file.display()
        );
    }
    let model = Processor::named(&args.model)?.map(|processor| processor.model);
    let kernel = Kernel::new(&before, &limits, &closed)?.on(model);
    let through = through(&before, args.through.as_deref())?;
    let base = Side {
        image: &before,
        results: &wanted.of(&kernel, through)?,
    };
    Ok(compare::table(base, Side { image, results }))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The number of the function that paths are to go through.
fn through(image: &Image, name: Option<&str>) -> Result<Option<usize>> {
    name.map(|name| {
        let number = image.function_named(name);
        number.with_context(|| {
            format!("there is no function `{name}`: it was inlined, or its path ends otherwise")
        })
    })
    .transpose()
}

fn print(image: &Image, results: &[Results], with_paths: bool, processor: Option<&Processor>) {
    for each in results {
        let Case { system, levels, .. } = each.case;
        for (name, cost) in each.figures() {
            let cost = show::cost(cost, processor);
            println!("{} {levels} levels {name}: {cost}", system.name());
            let entry = Entry::ALL.into_iter().find(|entry| entry.name() == name);
            let found = each.entries.iter().find(|(each, _)| Some(*each) == entry);
            if let Some((_, longest)) = found.filter(|_| with_paths) {
                print!("{}", show::path(image, longest));
            }
        }
    }
}
