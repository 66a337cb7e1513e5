//! What the host's programs are made of has the features that the workspace's tests need of it. Else cargo compiles it once
//! for the tests and again for each program, with all that depends on it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};

use super::Verdict;
use crate::toolchain;

/// Programs that are built beside the workspace's tests, and the feature that they are built with: the command itself, and what
/// it runs.
const PROGRAMS: &[(&str, Option<&str>)] = &[
    ("sandglass-tools", None),
    ("sandglass-wcet", None),
    ("sandglass-gates", Some("smp")),
    ("sandglass-parallel", Some("smp")),
    ("sandglass-assurance", Some("smp")),
];

/// Package with its version, and the sets of features with which it is built.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Fails for each package that a program needs with other features than the tests.
pub fn built_once() -> Verdict {
    Verdict::of(find().unwrap_or_else(|error| vec![format!("{error:#}")]))
}

fn find() -> Result<Vec<String>> {
    let tests = tree(&["--workspace", "--edges", "normal,build,dev"])?;
    let mut findings = Vec::new();
    for (program, feature) in PROGRAMS {
        let mut arguments = vec!["--package", program, "--edges", "normal,build"];
        arguments.extend(feature.iter().flat_map(|feature| ["--features", feature]));
        findings.extend(differences(program, &tree(&arguments)?, &tests));
    }
    Ok(findings)
}

/// What is not ours of what cargo would build.
fn tree(arguments: &[&str]) -> Result<Features> {
    let mut cargo = toolchain::host_cargo();
    cargo.args(["tree", "--locked", "--prefix", "none"]);
    cargo.args(["--format", "{p} [{f}]"]).args(arguments);
    let output = cargo.output().context("cannot run cargo")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        anyhow::bail!("cargo tree fails: {why}");
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

fn parse(lines: &str) -> Features {
    let mut features = Features::new();
    // Packages of the workspace have their path behind the version, and features for which they are built anew.
    let foreign = lines.lines().filter(|line| !line.contains(" (/"));
    for (package, rest) in foreign.filter_map(|line| line.split_once(" [")) {
        let of_it = rest.split(']').next().unwrap_or_default();
        features
            .entry(package.to_owned())
            .or_default()
            .insert(of_it.to_owned());
    }
    features
}

fn differences(program: &str, needed: &Features, tests: &Features) -> Vec<String> {
    let none = BTreeSet::new();
    let of_tests = |package: &String| tests.get(package).unwrap_or(&none);
    let differing = needed
        .iter()
        .filter(|(package, features)| !features.is_subset(of_tests(package)));
    let finding = |(package, features): (&String, &BTreeSet<String>)| {
        format!(
            "`{program}` builds {package} with the features {features:?}, and the workspace's tests with {:?}: list it \
             among the dependencies of `{program}` with those of the tests, or both are compiled, with all that needs them",
            of_tests(package)
        )
    };
    differing.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_other_features_than_in_the_tests_is_found() {
        let tests = parse(
            "ours v0.1.0 (/x) [smp]\nlog v0.4.35 [alloc,std]\nlog v0.4.35 [alloc,std] (*)\nmemchr v2.8.3 []",
        );
        assert_eq!(tests.len(), 2, "ours is none of it");
        let same = parse("ours v0.1.0 (/x) []\nlog v0.4.35 [alloc,std]");
        assert!(differences("p", &same, &tests).is_empty());
        for other in [
            "log v0.4.35 [std]",
            "log v0.3.0 [alloc,std]",
            "csv v1.4.0 []",
        ] {
            assert_eq!(differences("p", &parse(other), &tests).len(), 1, "{other}");
        }
    }
}
