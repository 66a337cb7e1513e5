//! Exact bounds, counted by hand.

use sandglass_wcet::analysis::{Analysis, Question};
use sandglass_wcet::annotations::Kind;
use sandglass_wcet::image::Image;
use sandglass_wcet::limits::{Bound, Limits};
use sandglass_wcet::watch;

use crate::programs::{bound, image, number, question};

fn cost(image: &Image, name: &str) -> i64 {
    let found = bound(image, name, question(image, Vec::new()));
    found.expect("it can be analysed").expect("it ends")
}

#[test]
fn bounds_are_those_counted_by_hand() {
    let image = image();
    for (name, expected) in [
        ("straight", 4),
        ("nested", 1 + 3 * (1 + 4 * 3 + 2) + 1),
        ("triangular", 1 + 4 * 3 + 10 * 3 + 1),
        // Four turns, and the beginning of the fifth.
        ("several_exits", 1 + 4 * 4 + 2 + 6 + 1),
        ("shared_tail", 2 + 3 + 1 + 2 + 1),
        ("tail_call", 2 + 4),
        ("calls_tail_call", 1 + 2 + 3 + 1),
        ("calls_in_loop", 1 + 3 * (1 + 3 + 2) + 1),
        ("never_returns", 4 + 1 + 6),
        ("waits", 2),
        ("repeats_constant", 1 + (1 + 7) + 1),
        ("repeats_recorded", (1 + 12) + 1),
        // Seven instructions, five words, and up to seven bytes.
        ("fills_constant", 2 + (7 + 5 + 7) + 1),
        ("fills_recorded", 2 + (7 + 3 + 7) + 1),
        ("calls_fills_by_jump", 2 + 2 + (7 + 5 + 7) + 1),
        ("descends", 8 * 3 + 1),
        // From one check through the next turn up to the next.
        ("checks", 3 + 2 + 3 + 1),
        // From a check on: the rest of that turn, and as many as may be left.
        ("may_check", 3 + 4 + 4 * 6 + 1),
        ("steps_alone", 2 + 20 + 1),
        ("may_be_heavy", 1 + 5 * (3 + 11 + 2) + 3 + 3 + 1),
        // Two turns that count as four, and two.
        ("share_turns", 2 * 3 + 2 * 7 + 1),
        ("two_kinds", 2 * 9 + 2 * 6 + 1),
        ("copied_turn", 2 * 5 + 1),
        // Three dear turns, instead of six cheap ones.
        ("counts_twice", 3 * 15 + 1),
    ] {
        assert_eq!(cost(&image, name), expected, "{name}");
    }
}

#[test]
fn levels_are_a_parameter() {
    let image = image();
    let deep = Question {
        levels: 64,
        ..question(&image, Vec::new())
    };
    let found = bound(&image, "descends", deep).expect("it can be analysed");
    assert_eq!(found, Some(64 * 3 + 1));
}

/// A bound that is raised by one raises the result by what a turn costs.
#[test]
fn each_bound_matters() {
    for (name, kind, value, more) in [
        ("nested", Kind::Turns, 3, 15),
        ("nested", Kind::Turns, 4, 3 * 3),
        ("triangular", Kind::Steps, 10, 3),
        // There are no more than ten turns of the inner loop, but one more of the outer.
        ("triangular", Kind::Turns, 4, 3),
        ("several_exits", Kind::Turns, 5, 4),
        ("calls_in_loop", Kind::Turns, 3, 6),
        ("repeats_recorded", Kind::Repeats, 12, 1),
        ("fills_recorded", Kind::Argument, 24, 0),
        ("may_check", Kind::Turns, 4, 6),
        ("may_be_heavy", Kind::Turns, 5, 16),
    ] {
        let mut image = image();
        let before = cost(&image, name);
        let function = number(&image, name);
        let within = |image: &Image, address| image.function_at(address) == Some(function);
        let chosen: Vec<usize> = (0..image.records.len())
            .filter(|&i| {
                let record = image.records[i];
                (record.kind, record.value) == (kind, value) && within(&image, record.address)
            })
            .collect();
        assert!(!chosen.is_empty(), "{name} has no {kind:?} of {value}");
        for &i in &chosen {
            image.records[i].value += 1;
        }
        assert_eq!(
            cost(&image, name),
            before + more,
            "{name} with {kind:?} of {value} + 1"
        );
    }
}

/// Without the limit across loops, the triangle is a square.
#[test]
fn a_bound_across_loops_takes_turns_away() {
    let mut image = image();
    let square = 1 + 4 * (1 + 4 * 3 + 2) + 1;
    image
        .records
        .retain(|record| record.kind != Kind::Steps || record.value != 10);
    assert_eq!(cost(&image, "triangular"), square);
}

/// Each of these limits is the difference between two bounds.
#[test]
fn limits_of_calls_are_kept() {
    let image = image();
    let limited = |text: &str| {
        let limits = Limits::parse(text).expect("limits");
        let bounds = limits.resolve(&image).expect("of functions that there are");
        let found = bound(&image, "may_be_heavy", question(&image, bounds));
        found.expect("it can be analysed")
    };
    let turns = |heavy: i64| 1 + 5 * 4 + heavy * 12;
    let limit = |most: u64, calls: &str| {
        format!("[[limit]]\nat_most = {most}\ncalls = [{calls}]\nwhy = \"a test\"\n")
    };
    assert_eq!(limited(""), Some(turns(5) + 2 + 4 + 1));
    for most in 0..5 {
        let expected = Some(turns(most as i64) + 2 + 4 + 1);
        assert_eq!(limited(&limit(most, "\"heavy\"")), expected, "{most} calls");
        let by = limit(most, "\"may_be_heavy -> heavy\"");
        assert_eq!(limited(&by), expected, "{most} calls by that function");
        let elsewhere = limit(most, "\"calls_in_loop -> three\"");
        assert_eq!(
            limited(&elsewhere),
            limited(""),
            "calls by another function"
        );
    }
    // All together: the dearest are taken.
    assert_eq!(
        limited(&limit(2, "\"heavy\", \"three\"")),
        Some(turns(2) + 2 + 1)
    );
}

/// What a limit counts is seen where it is executed: at calls, at jumps, at branches that lead there, and at marks.
#[test]
fn limits_of_calls_and_marks_are_kept_and_watched() {
    let image = image();
    let limited = |most: u64, names: &str| {
        let text = format!("[[limit]]\nat_most = {most}\n{names}\nwhy = \"a test\"\n");
        let limits = Limits::parse(&text).expect("limits");
        let bounds = limits.resolve(&image).expect("of what there is");
        let list = watch::limits(&image, &bounds);
        let found = bound(&image, "marked", question(&image, bounds));
        (found.expect("it can be analysed"), list)
    };
    let code = &image.functions[number(&image, "marked")].code;
    let [mark, call, branch] = [2, 2, 4].map(|at| code[at].address);
    let leaves = image.functions[number(&image, "leaves")].start;
    let all = "calls = [\"marked -> three\", \"marked -> leaves\"]\nmarks = [\"invocation\"]";
    let watched =
        format!("limits 1\ncall 0 {call:x}\nbranch 0 {branch:x} {leaves:x}\ncall 0 {mark:x}\n");
    assert_eq!(limited(3, all), (Some(2 + 1 + 3 + 2 + 6), watched.clone()));
    // The branch is not taken.
    assert_eq!(limited(2, all), (Some(2 + 1 + 3 + 2 + 1), watched.clone()));
    assert_eq!(limited(1, all), (Some(2 + 1), watched));
}

/// What is executed behind a check counts only where a path may lead to the check.
#[test]
fn nothing_begins_behind_a_check_that_is_never_reached() {
    let image = image();
    let limited = |text: &str| {
        let limits = Limits::parse(text).expect("limits");
        let bounds = limits.resolve(&image).expect("of functions that there are");
        bound(&image, "may_check", question(&image, bounds)).expect("it can be analysed")
    };
    assert_eq!(limited(""), Some(3 + 4 + 4 * 6 + 1));
    let never = "[[limit]]\nat_most = 0\ncalls = [\"point\"]\nwhy = \"a test\"\n";
    assert_eq!(limited(never), Some(1 + 4 * 6 + 1));
    // One that may be reached behind a check, only.
    let later = never.replace("calls", "after_check = 1\ncalls");
    assert_eq!(limited(&later), Some(3 + 4 + 4 * 6 + 1));
}

#[test]
fn the_longest_path_through_a_function_calls_it() {
    let image = image();
    let through = |name: &str| {
        let bounds = vec![Bound::through(number(&image, name))];
        bound(&image, "never_returns", question(&image, bounds)).expect("it can be analysed")
    };
    assert_eq!(through("leaves"), Some(4 + 1 + 6));
    assert_eq!(through("dies"), None, "no path through it ends");
    assert_eq!(through("heavy"), None, "no path leads through it");
}

/// What the blocks of a path cost is what the path costs, and the path goes through as many as it says.
#[test]
fn paths_account_for_their_cost() {
    let image = image();
    for name in [
        "nested",
        "triangular",
        "calls_in_loop",
        "fills_constant",
        "may_check",
    ] {
        let start = image.functions[number(&image, name)].start;
        let longest = Analysis::new(&image, question(&image, Vec::new()))
            .longest(&[start])
            .expect("it can be analysed")
            .expect("it ends");
        let costs: i64 = longest.counts.values().map(|visits| visits.cost).sum();
        assert_eq!(costs, longest.cost, "{name}");
    }
}
