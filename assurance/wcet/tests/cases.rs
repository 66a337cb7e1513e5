//! Kinds of paths, and what is computed of each.

use sandglass_wcet::cases::Cases;
use sandglass_wcet::code::InstructionSet;
use sandglass_wcet::image::Image;

use crate::programs::{bound, image, question};

/// What is computed of the paths of a program that are of a case; `Err` with the message if it names what is not there.
fn limited(program: &str, case: &str) -> Result<Option<i64>, String> {
    let image = image();
    let text = format!("[[case]]\nname = \"it\"\nwhat = \"\"\n{case}\n");
    let cases = Cases::parse(&text).expect("cases");
    let bounds = cases.case[0].bounds(&image);
    let bounds = bounds.map_err(|error| format!("{error:#}"))?;
    Ok(bound(&image, program, question(&image, bounds)).expect("it can be analysed"))
}

/// Of the ways of `marked`: straight to its end, by the mark and the call to its end, or on to `leaves`.
#[test]
fn a_case_has_the_paths_that_call_what_it_names_and_nothing_that_it_excludes() {
    let to = |case: &str| limited("marked", case).expect("it names what is there");
    assert_eq!(to(""), Some(2 + 1 + 3 + 2 + 6));
    assert_eq!(to("never = [\"leaves\"]"), Some(2 + 1 + 3 + 2 + 1));
    assert_eq!(to("never_marks = [\"invocation\"]"), Some(2 + 1));
    assert_eq!(
        to("through = [\"three\", \"leaves\"]"),
        Some(2 + 1 + 3 + 2 + 6)
    );
    assert_eq!(
        to("never_on_aarch64 = [\"leaves\"]"),
        to(""),
        "these programs are for x86_64"
    );
    let neither = "through = [\"leaves\"]\nnever = [\"three\"]";
    assert_eq!(to(neither), None, "no path is one of it");
    let message = limited("marked", "through = [\"nobody\"]").expect_err("it is not there");
    assert!(
        message.contains("the case `it`") && message.contains("names `nobody`"),
        "{message}"
    );
}

/// What is excluded on aarch64 is excluded there, and nowhere else.
#[test]
fn what_is_excluded_depends_on_the_architecture() {
    let text = "[[case]]\nname = \"it\"\nwhat = \"\"\nnever_on_aarch64 = [\"leaves\"]\n";
    let cases = Cases::parse(text).expect("a case");
    let mut image = image();
    let excluded = |image: &Image| cases.case[0].bounds(image).expect("it is there").len();
    assert_eq!(excluded(&image), 0);
    image.set = InstructionSet::Aarch64;
    assert_eq!(excluded(&image), 1);
}

#[test]
fn a_case_with_a_key_that_nobody_knows_is_refused() {
    let text = "[[case]]\nname = \"it\"\nwhat = \"\"\nthru = [\"three\"]\n";
    assert!(Cases::parse(text).is_err());
}
