//! Paths as trees of calls, and what is written about bounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sandglass_wcet::analysis::Analysis;
use sandglass_wcet::compare::{self, Side};
use sandglass_wcet::flow::Longest;
use sandglass_wcet::image::Image;
use sandglass_wcet::kernel::{Case, Entry, Properties, System};
use sandglass_wcet::limits::Limits;
use sandglass_wcet::record;
use sandglass_wcet::report::{self, Report};
use sandglass_wcet::results::Results;
use sandglass_wcet::tree::{tree, Frame};

use crate::programs::{image, number, question};

fn longest(image: &Image, name: &str) -> Longest {
    let start = image.functions[number(image, name)].start;
    Analysis::new(image, question(image, Vec::new()))
        .longest(&[start])
        .expect("it can be analysed")
        .expect("it ends")
}

/// Each function of a tree with what it costs, and those that call it.
fn flat(frame: &Frame, above: &str, all: &mut BTreeMap<String, i64>) {
    for call in &frame.calls {
        let name = format!("{above}/{}", call.name);
        *all.entry(name.clone()).or_default() += call.cost;
        flat(call, &name, all);
    }
}

#[test]
fn a_tree_holds_all_of_its_path_below_who_called() {
    let image = image();
    for (name, expected) in [
        ("nested", vec![("/nested", 47)]),
        (
            "calls_in_loop",
            vec![("/calls_in_loop", 20), ("/calls_in_loop/three", 9)],
        ),
        (
            "fills_constant",
            vec![("/fills_constant", 22), ("/fills_constant/memset", 19)],
        ),
        // What never comes back is a part of the path, not a step of it.
        (
            "never_returns",
            vec![("/never_returns", 11), ("/never_returns/leaves", 6)],
        ),
        // A path that begins at a check returns into the function around it, of which no call is on the path.
        ("checks", vec![("/point", 3), ("/checks", 6)]),
    ] {
        let longest = longest(&image, name);
        let root = tree(&image, &longest);
        assert_eq!(root.cost, longest.cost, "{name}");
        let mut own = BTreeMap::new();
        root.add_own(&mut own);
        assert_eq!(own.values().sum::<i64>(), longest.cost, "{name}");
        let mut all = BTreeMap::new();
        flat(&root, "", &mut all);
        let expected: BTreeMap<String, i64> = expected
            .into_iter()
            .map(|(name, cost)| (name.to_string(), cost))
            .collect();
        assert_eq!(all, expected, "{name}");
    }
}

/// Bounds of one case: those of two programs stand for those of the entries.
fn results(image: &Image, system_call: &str) -> Vec<Results> {
    let case = Case {
        system: System::Open,
        levels: 8,
    };
    let entries = vec![
        (Entry::SystemCall, longest(image, system_call)),
        (Entry::Vector, longest(image, "straight")),
    ];
    vec![Results { case, entries }]
}

#[test]
fn an_interrupt_waits_for_the_longest_and_is_delivered() {
    let image = image();
    assert_eq!(results(&image, "nested")[0].interrupt_latency(), 47 + 4);
}

#[test]
fn what_is_recorded_is_checked() {
    let image = image();
    let now = results(&image, "nested");
    let text = record::text(&now, "instructions");
    record::check(&now, &text).expect("nothing has changed");

    // Two hundredths of 47 are less than one; of 50, one.
    for (recorded, grew) in [(48, false), (47, false), (46, true), (1, true)] {
        let text = text.replace("system_call = 47", &format!("system_call = {recorded}"));
        let result = record::check(&now, &text);
        assert_eq!(result.is_err(), grew, "{recorded} recorded, 47 computed");
        if let Err(error) = result {
            let message = format!("{error:#}");
            assert!(message.contains("open.8 system_call"), "{message}");
            assert!(message.contains("--record"), "{message}");
        }
    }
    for (gone, says) in [
        (
            text.replace("[open.8]", "[open.9]"),
            "no bounds are recorded for [open.8]",
        ),
        (
            text.replace("vector = 4\n", ""),
            "no vector is recorded for [open.8]",
        ),
        ("what?".to_string(), "recorded bounds"),
    ] {
        let error = record::check(&now, &gone).expect_err("something is missing");
        assert!(format!("{error:#}").contains(says), "{error:#}");
    }
}

/// A call that got dearer shows as such, and what is as before does not.
#[test]
fn what_grew_is_named() {
    let mut image = image();
    let before = image_of_before(&mut image);
    let old = results(&before, "calls_in_loop");
    let new = results(&image, "calls_in_loop");
    let text = compare::table(
        Side {
            image: &before,
            results: &old,
        },
        Side {
            image: &image,
            results: &new,
        },
    );
    let words: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "open.8 system_call 20 26 +6 (+30.0 %)",
        "calls_in_loop 11 14 +3 (+27.3 %)",
        "three 9 12 +3 (+33.3 %)",
        "open.8 vector 4 4 =",
        "open.8 interrupt_latency 24 30 +6 (+25.0 %)",
    ];
    assert_eq!(words, expected);
}

/// The programs as they are; in `image`, the loop that calls turns once more.
fn image_of_before(image: &mut Image) -> Image {
    let function = number(image, "calls_in_loop");
    let range = image.functions[function].start..image.functions[function].end;
    for record in &mut image.records {
        if range.contains(&record.address) {
            record.value += 1;
        }
    }
    crate::programs::image()
}

#[test]
fn a_report_is_one_page_and_a_table() {
    let image = image();
    let results = results(&image, "calls_in_loop");
    let limits =
        Limits::parse("[[limit]]\nat_most = 1\ncalls = [\"three\"]\nwhy = \"it is <dear>\"\n")
            .expect("limits");
    let invocation = (
        results[0].case,
        number(&image, "nested"),
        longest(&image, "nested"),
    );
    let report = Report {
        image: &image,
        name: "programs",
        properties: Properties {
            bytes: 12_345,
            ..Properties::default()
        },
        results: &results,
        invocations: &[invocation],
        limits: [("Of all", &limits), ("Of closed ones", &Limits::default())],
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    report::write(&directory, &report).expect("it is written");

    let page = fs::read_to_string(directory.join("index.html")).expect("the page");
    for said in [
        "12345",
        "three: 9 instructions (45.0 %), 9 of its own, called in programs.s:",
        "it is &lt;dear&gt;",
        "<code>nested</code>, 8 levels: 47",
    ] {
        assert!(page.contains(said), "the page does not say {said}");
    }
    for outside in ["src=", "href=", "url(", "@import"] {
        assert!(
            !page.contains(outside),
            "the page needs something: {outside}"
        );
    }

    let table = fs::read_to_string(directory.join("bounds.csv")).expect("the table");
    let expected = "system,levels,what,through,instructions\n\
        open,8,system_call,,20\nopen,8,vector,,4\nopen,8,interrupt_latency,,24\n\
        open,8,system_call,nested,47\n";
    assert_eq!(table, expected);
}
