//! `sandglass test`: every test there is, on the host and in QEMU, as one list.
//!
//! - `host::PACKAGE::...`: the workspace's own tests, the tool's included;
//! - `doc::...`: examples in the documentation;
//! - `check::...`: the rules of `sandglass check`;
//! - `qemu::PACKAGE::KERNEL::...`: tests that run as root tasks on the kernel.

mod guest;
mod host;
mod lines;
mod report;

use std::process::ExitCode;

use anyhow::Result;

use crate::check;
use crate::cli::TestArgs;

use report::Report;

/// Which tests are wanted: those whose name contains the pattern.
#[derive(Debug, Clone)]
struct Filter(Option<String>);

impl Filter {
    fn accepts(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|pattern| name.contains(pattern))
    }
}

/// `sandglass test`: fails if a test failed, or if none was run.
pub fn run(args: &TestArgs) -> Result<ExitCode> {
    let filter = Filter(args.only.clone());
    let mut report = Report::default();
    host::run(&filter, &mut report)?;
    run_checks(&filter, &mut report);
    guest::run(&filter, &mut report)?;
    Ok(report.close())
}

fn run_checks(filter: &Filter, report: &mut Report) {
    let mut context = check::Context::default();
    for rule in check::RULES {
        let name = format!("check::{}", rule.name);
        if filter.accepts(&name) {
            report.started(&name);
            match (rule.check)(&mut context) {
                check::Verdict::Kept => report.passed(&name),
                check::Verdict::Skipped(reason) => report.skipped(&name, &reason),
                check::Verdict::Broken(findings) => report.failed(&name, &findings.join("\n")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn a_pattern_is_a_substring_and_its_absence_accepts_all() {
        assert!(Filter(None).accepts("host::a"));
        assert!(Filter(Some("t::a".into())).accepts("host::a"));
        assert!(!Filter(Some("b".into())).accepts("host::a"));
    }
}
