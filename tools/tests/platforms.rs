//! A kernel for a platform that has a least budget of its own.

use std::collections::BTreeSet;
use std::process::Command;

/// The checks of the conformance suite that are about the least budget.
const OF_THE_LEAST_BUDGET: &[&str] = &[
    "03/6.1/4-to-7-budget-and-period-out-of-range",
    "03/6.1/8-budget-above-the-period",
    "03/6.1/order-of-the-checks",
    "04/1/limits-of-budget-and-period",
    "04/4/a-head-below-the-minimum-joins-and-delays-the-next",
    "04/6.1/a-fault-short-of-budget-is-raised-later",
    "04/6.1/a-system-call-short-of-budget-is-made-later",
    "04/6.1/the-least-budget-never-suffices-for-a-system-call",
    "04/6.3/a-system-call-short-of-budget-times-out",
];

#[test]
fn a_kernel_with_a_least_budget_of_its_own_differs_in_nothing_else() {
    let platform = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../assurance/wcet/platforms/quick.toml"
    );
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["conformance", "--platform", platform])
        .output()
        .expect("the command of this package starts");
    let console = String::from_utf8_lossy(&output.stdout);
    let failed: BTreeSet<&str> = console
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... FAILED"))
        .map(|(name, _)| name)
        .collect();
    let whole = format!("{console}{}", String::from_utf8_lossy(&output.stderr));
    let expected: BTreeSet<&str> = OF_THE_LEAST_BUDGET.iter().copied().collect();
    assert_eq!(failed, expected, "{whole}");
    let passed = console.lines().filter(|line| line.ends_with(" ... ok"));
    assert!(passed.count() > 1000, "the suite was not run: {whole}");
}
