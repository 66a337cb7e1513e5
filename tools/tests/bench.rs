//! The kernel's general path stays lean, also where there could be several cores.

use std::process::Command;

/// `./sandglass bench` with `options` finds nothing to complain about.
fn assert_within_limits(options: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .arg("bench")
        .args(options)
        .output()
        .expect("the command of this package starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn no_operation_exceeds_its_limit() {
    assert_within_limits(&[]);
}

#[test]
fn no_operation_exceeds_its_limit_on_aarch64() {
    assert_within_limits(&["--arch", "aarch64"]);
}

#[test]
fn operations_touch_what_the_book_says() {
    assert_within_limits(&["--touches"]);
}

#[test]
fn an_operation_takes_at_most_15_percent_more_on_the_smp_kernel() {
    assert_within_limits(&["--smp"]);
}

#[test]
fn an_operation_takes_at_most_15_percent_more_on_the_smp_kernel_of_aarch64() {
    assert_within_limits(&["--smp", "--arch", "aarch64"]);
}

#[test]
fn a_message_takes_no_more_without_page_table_isolation() {
    assert_within_limits(&["--no-isolation"]);
}

#[test]
fn all_that_is_done_against_speculation_costs_what_the_book_says() {
    assert_within_limits(&["--speculation"]);
}

#[test]
fn each_thing_done_against_speculation_costs_what_the_book_says() {
    assert_within_limits(&["--speculation", "--all"]);
}

#[test]
fn a_boot_takes_what_the_page_says_and_no_longer_than_the_image_explains() {
    assert_within_limits(&["--boot"]);
}

#[test]
fn a_boot_with_an_image_of_100_mib_takes_what_the_page_says() {
    assert_within_limits(&["--boot", "--all"]);
}
