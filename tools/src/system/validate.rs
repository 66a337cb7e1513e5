//! `sandglass validate`: what is wrong with a description and what is to be expected of it, without building anything;
//! for people, or as JSON for editors and continuous integration. The book documents the JSON, whose `version` rises
//! when a field changes its meaning or goes.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::check::{
    check, Asked, Assumption, Blocking, Bound, CoreLoad, Description, Outlook, Requests,
};
use super::findings::{position, Finding, Report, Span};
use super::schema;
use super::source::Source;
use crate::arch::Arch;

/// What becomes of warnings about a description, for several commands.
#[derive(Args)]
pub struct WarningArgs {
    /// Refuse a description with warnings that it does not accept
    #[arg(long)]
    pub deny_warnings: bool,
}

/// Arguments of `sandglass validate`.
#[derive(Args)]
pub struct ValidateArgs {
    /// The description
    #[arg(value_name = "SYSTEM.toml", required_unless_present = "schema")]
    pub system: Option<PathBuf>,
    /// What it is to be for [default: as described]
    #[arg(long, value_enum, conflicts_with = "schema")]
    pub arch: Option<Arch>,
    /// Print the JSON schema of descriptions, for editors, instead
    #[arg(long, conflicts_with_all = ["system", "json"])]
    pub schema: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub warnings: WarningArgs,
}

/// Of the JSON.
const VERSION: u32 = 1;
/// Waits that are shown to people, the longest first.
const MOST_SHOWN: usize = 40;

/// `sandglass validate`, with the schema instead if there is no description: ends with 0 if nothing is wrong, else with 1; denied warnings are wrong.
pub fn run(args: &ValidateArgs) -> Result<ExitCode> {
    let Some(path) = &args.system else {
        print!("{}", schema::text());
        return Ok(ExitCode::SUCCESS);
    };
    let (source, result) = match Source::read(path) {
        Ok(source) => {
            let source = source.for_arch(args.arch);
            let result = check(&source);
            (Some(source), result.map_err(Wrong::Found))
        }
        Err(error) => (None, Err(Wrong::of(error))),
    };
    let warnings = match &result {
        Ok(description) => description.outlook.warnings.len(),
        Err(_) => 0,
    };
    let valid = result.is_ok() && !(args.warnings.deny_warnings && warnings > 0);
    if args.json {
        let file = path.display().to_string();
        let shown = Json::of(file, source.as_ref(), &result, valid);
        println!("{}", serde_json::to_string_pretty(&shown)?);
    } else {
        show(&result, args.warnings.deny_warnings);
    }
    Ok(match valid {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Why there is no description.
enum Wrong {
    Found(Report),
    /// There is no text to point into.
    Unreadable(anyhow::Error),
}

impl Wrong {
    fn of(error: anyhow::Error) -> Self {
        match error.downcast::<Report>() {
            Ok(report) => Self::Found(report),
            Err(error) => Self::Unreadable(error),
        }
    }
}

/// Prints the result for people: findings on standard error, the outlook on standard output.
fn show(result: &Result<Description, Wrong>, denied: bool) {
    match result {
        Err(Wrong::Unreadable(error)) => eprintln!("error: {error:#}"),
        Err(Wrong::Found(report)) => {
            eprintln!("{report}");
            let count = report.findings.len();
            println!("`validate`: {count} error{}", plural(count));
        }
        Ok(description) => {
            print!("{}", outlook(description));
            let warnings = &description.outlook.warnings;
            if !warnings.is_empty() {
                eprintln!("{}", Report::new(&description.source, warnings.clone()));
            }
            let count = warnings.len();
            println!(
                "`validate`: 0 errors, {count} warning{}{}, {} accepted",
                plural(count),
                if denied && count > 0 { " (denied)" } else { "" },
                description.outlook.accepted.len()
            );
        }
    }
}

fn plural(count: usize) -> &'static str {
    match count {
        1 => "",
        _ => "s",
    }
}

/// Utilisation and blocking, for people.
pub fn outlook(description: &Description) -> String {
    let outlook = &description.outlook;
    let mut text = format!("system `{}`\n", description.system.name);
    for (core, load) in outlook.cores.iter().enumerate() {
        text += &format!("core {core}: budgets take {}", load.demand());
        if !load.unlimited.is_empty() {
            let shown = load.unlimited.len().min(MOST_SHOWN);
            text += &format!("; without limit: {}", load.unlimited[..shown].join(", "));
        }
        text.push('\n');
    }
    text + &waits(outlook) + &requests(outlook)
}

/// The longest waits.
fn waits(outlook: &Outlook) -> String {
    if outlook.blocking.is_empty() {
        return String::new();
    }
    let mut rows: Vec<&Blocking> = outlook.blocking.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bound.length()));
    let mut text = "longest wait of a request for those of others:\n".to_owned();
    for row in rows.iter().take(MOST_SHOWN) {
        text += &format!("  {} at {}: {}\n", row.client, row.endpoint, wait(row));
    }
    if rows.len() > MOST_SHOWN || outlook.cut {
        let all = if outlook.cut {
            "there are more"
        } else {
            "`--json` shows all"
        };
        text += &format!("  and shorter ones; {all}\n");
    }
    text
}

/// What requests take of budgets.
fn requests(outlook: &Outlook) -> String {
    if outlook.requests.is_empty() {
        return String::new();
    }
    let mut text = "requests at gates, and the budgets that pay for them:\n".to_owned();
    for row in outlook.requests.iter().take(MOST_SHOWN) {
        let takes = row
            .takes_us
            .map_or("no limit".to_owned(), |us| format!("{us} µs"));
        let asked: Vec<String> = row.gates.iter().map(Asked::explained).collect();
        text += &format!(
            "  {} ({}): {takes} of {} µs: {}\n",
            row.client,
            row.criticality,
            row.budget_us,
            asked.join("; ")
        );
    }
    if outlook.requests.len() > MOST_SHOWN {
        text += "  and more; `--json` shows all\n";
    }
    text
}

fn wait(row: &Blocking) -> String {
    let by = row
        .by
        .as_ref()
        .map_or(String::new(), |by| format!(", for `{by}`"));
    match &row.bound {
        Bound::None(why) => format!("no limit{by}: {why}"),
        Bound::Us(us, assumed) => {
            let assumed = match assumed {
                Assumption::Nothing => "",
                Assumption::Longest => " (if `longest` is true)",
                Assumption::OneBudget => " (if a request takes at most one budget)",
            };
            format!("{us} µs{by}{assumed}")
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Json<'r> {
    version: u32,
    file: String,
    /// Absent if there are errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'r str>,
    /// Absent if there are errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    arch: Option<&'static str>,
    valid: bool,
    errors: Vec<Shown<'r>>,
    warnings: Vec<Shown<'r>>,
    accepted: Vec<Shown<'r>>,
    cores: Vec<Core<'r>>,
    blocking: Vec<Wait<'r>>,
    blocking_cut: bool,
    requests: Vec<Taken<'r>>,
}

/// A finding.
#[derive(Serialize)]
struct Shown<'r> {
    /// The kind of a warning; absent of errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
    message: String,
    label: &'r str,
    help: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Related<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'r str>,
}

#[derive(Serialize)]
struct Related<'r> {
    label: &'r str,
    place: Place,
}

/// Lines and columns from 1, columns in characters; `offset` and `length` in bytes.
#[derive(Serialize)]
struct Place {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    offset: usize,
    length: usize,
}

#[derive(Serialize)]
struct Core<'r> {
    core: usize,
    budgets_millionths: u64,
    without_limit: &'r [String],
}

#[derive(Serialize)]
struct Wait<'r> {
    client: &'r str,
    server: &'r str,
    endpoint: &'r str,
    by: Option<&'r str>,
    /// `null`: there is no limit.
    bound_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumes: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_no_limit: Option<&'r str>,
}

/// What requests at gates take of a budget.
#[derive(Serialize)]
struct Taken<'r> {
    client: &'r str,
    criticality: &'r str,
    /// `null`: there is no limit.
    takes_us: Option<u64>,
    budget_us: u64,
    gates: Vec<TakenAt<'r>>,
}

#[derive(Serialize)]
struct TakenAt<'r> {
    gate: &'r str,
    requests: u64,
    each_us: Option<u64>,
}

impl<'r> Taken<'r> {
    fn of(row: &'r Requests) -> Self {
        let gates = row.gates.iter().map(|asked| TakenAt {
            gate: &asked.gate,
            requests: asked.requests,
            each_us: asked.each_us,
        });
        Self {
            client: &row.client,
            criticality: &row.criticality,
            takes_us: row.takes_us,
            budget_us: row.budget_us,
            gates: gates.collect(),
        }
    }
}

impl<'r> Json<'r> {
    fn of(
        file: String,
        source: Option<&'r Source>,
        result: &'r Result<Description, Wrong>,
        valid: bool,
    ) -> Self {
        let text = source.map_or("", |source| source.text.as_str());
        let shown = |findings: &'r [Finding]| findings.iter().map(|f| Shown::of(text, f)).collect();
        let mut json = Self {
            version: VERSION,
            file,
            system: None,
            arch: None,
            valid,
            errors: Vec::new(),
            warnings: Vec::new(),
            accepted: Vec::new(),
            cores: Vec::new(),
            blocking: Vec::new(),
            blocking_cut: false,
            requests: Vec::new(),
        };
        match result {
            Err(Wrong::Unreadable(error)) => json.errors.push(Shown::without_place(error)),
            Err(Wrong::Found(report)) => json.errors = shown(&report.findings),
            Ok(description) => {
                let outlook = &description.outlook;
                json.system = Some(&description.system.name);
                json.arch = Some(description.arch.name());
                json.warnings = shown(&outlook.warnings);
                let accepted = outlook.accepted.iter();
                json.accepted = accepted
                    .map(|accepted| Shown {
                        reason: Some(&accepted.reason),
                        ..Shown::of(text, &accepted.finding)
                    })
                    .collect();
                json.cores = outlook.cores.iter().enumerate().map(Core::of).collect();
                json.blocking = outlook.blocking.iter().map(Wait::of).collect();
                json.blocking_cut = outlook.cut;
                json.requests = outlook.requests.iter().map(Taken::of).collect();
            }
        }
        json
    }
}

impl<'r> Shown<'r> {
    fn of(text: &str, finding: &'r Finding) -> Self {
        let related = finding.related.as_ref().map(|(span, label)| Related {
            label,
            place: Place::of(text, span),
        });
        Self {
            warning: finding.warning.map(|warning| warning.name()),
            message: finding.message.clone(),
            label: &finding.label,
            help: &finding.help,
            place: Some(Place::of(text, &finding.span)),
            related,
            reason: None,
        }
    }

    fn without_place(error: &anyhow::Error) -> Self {
        Self {
            warning: None,
            message: format!("{error:#}"),
            label: "",
            help: "",
            place: None,
            related: None,
            reason: None,
        }
    }
}

impl Place {
    fn of(text: &str, span: &Span) -> Self {
        let (line, column) = position(text, span.start);
        let (end_line, end_column) = position(text, span.end);
        Self {
            line,
            column,
            end_line,
            end_column,
            offset: span.start,
            length: span.end.saturating_sub(span.start),
        }
    }
}

impl<'r> Core<'r> {
    fn of((core, load): (usize, &'r CoreLoad)) -> Self {
        Self {
            core,
            budgets_millionths: load.millionths,
            without_limit: &load.unlimited,
        }
    }
}

impl<'r> Wait<'r> {
    fn of(row: &'r Blocking) -> Self {
        let (bound_us, assumes, why_no_limit) = match &row.bound {
            Bound::None(why) => (None, None, Some(why.as_str())),
            Bound::Us(us, Assumption::Nothing) => (Some(*us), None, None),
            Bound::Us(us, Assumption::Longest) => (Some(*us), Some("longest"), None),
            Bound::Us(us, Assumption::OneBudget) => (Some(*us), Some("one-budget"), None),
        };
        Self {
            client: &row.client,
            server: &row.server,
            endpoint: &row.endpoint,
            by: row.by.as_deref(),
            bound_us,
            assumes,
            why_no_limit,
        }
    }
}
