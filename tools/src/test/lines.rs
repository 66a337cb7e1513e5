//! The lines that tests print: `test NAME ... ok`, as Rust's test harness and Sandglass's root
//! tasks have them.

/// One test's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// Not run, for this reason.
    Skipped(String),
    /// With the reason, if the line has one.
    Failed(String),
}

/// Reads `test NAME ... VERDICT`; any other line is `None`.
pub fn result(line: &str) -> Option<(&str, Verdict)> {
    let (name, verdict) = line.trim_end().strip_prefix("test ")?.split_once(" ... ")?;
    let verdict = match verdict {
        "ok" => Verdict::Passed,
        "FAILED" => Verdict::Failed(String::new()),
        _ if verdict.starts_with("ignored") => Verdict::Skipped("marked as ignored".to_owned()),
        _ => match verdict.strip_prefix("skipped: ") {
            Some(reason) => Verdict::Skipped(reason.to_owned()),
            None => Verdict::Failed(verdict.strip_prefix("FAILED: ")?.to_owned()),
        },
    };
    Some((name.trim_end_matches(" - should panic"), verdict))
}

/// Reads `note NAME: the reference's way: TEXT`, which the conformance suite prints of a check that
/// accepts both what Sandglass does and what the reference does, and has seen the latter.
pub fn departure(line: &str) -> Option<(&str, &str)> {
    line.trim_end()
        .strip_prefix("note ")?
        .split_once(": the reference's way: ")
}

/// Reads the closing line of a root task: `N passed, N failed`, or `TITLE: N passed, N failed`.
pub fn closing(line: &str) -> Option<(usize, usize)> {
    let line = line.trim();
    let counts = line.rsplit_once(": ").map_or(line, |(_, counts)| counts);
    let (passed, failed) = counts.strip_suffix(" failed")?.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.parse().ok()?))
}

/// What Rust's test harness says about each failure, at its end: sections that begin with
/// `---- NAME stdout ----`.
pub fn explanations(output: &str) -> Vec<(&str, String)> {
    let mut sections: Vec<(&str, String)> = Vec::new();
    let mut in_section = false;
    for line in output.lines() {
        let header = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = header {
            sections.push((name, String::new()));
            in_section = true;
        } else if line == "failures:" {
            in_section = false;
        } else if let (true, Some((_, text))) = (in_section, sections.last_mut()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        assert_eq!(result("test a::b ... ok"), Some(("a::b", Verdict::Passed)));
        assert_eq!(
            result("test a - should panic ... ok"),
            Some(("a", Verdict::Passed))
        );
        assert_eq!(result("test a ... ok\r"), Some(("a", Verdict::Passed)));
        assert_eq!(
            result("test a ... skipped: no such device"),
            Some(("a", Verdict::Skipped("no such device".into())))
        );
        assert_eq!(
            result("test a ... FAILED: 3 is not 4"),
            Some(("a", Verdict::Failed("3 is not 4".into())))
        );
        assert_eq!(
            result("test a ... ignored, slow"),
            Some(("a", Verdict::Skipped("marked as ignored".into())))
        );
        assert_eq!(
            result("test src/lib.rs - f (line 3) ... ok"),
            Some(("src/lib.rs - f (line 3)", Verdict::Passed))
        );
    }

    #[test]
    fn a_reason_may_hold_the_separator() {
        assert_eq!(
            result("test a ... FAILED: 1 ... 2"),
            Some(("a", Verdict::Failed("1 ... 2".into())))
        );
    }

    #[test]
    fn other_lines_are_not_results() {
        for line in [
            "testing",
            "test result: ok. 3 passed; 0 failed",
            "test a ... maybe",
            "",
        ] {
            assert_eq!(result(line), None, "{line}");
        }
    }

    #[test]
    fn departures_are_read() {
        assert_eq!(
            departure("note 07/8/a: the reference's way: later\r"),
            Some(("07/8/a", "later"))
        );
        assert_eq!(departure("note 07/8/a: Sandglass's way: at once"), None);
        assert_eq!(departure("test 07/8/a ... ok"), None);
    }

    #[test]
    fn closing_lines_are_read() {
        assert_eq!(closing("12 passed, 1 failed\r"), Some((12, 1)));
        assert_eq!(closing("suite: 12 passed, 0 failed"), Some((12, 0)));
        assert_eq!(closing("12 passed, none failed"), None);
        assert_eq!(closing("12 passed"), None);
    }

    #[test]
    fn explanations_are_cut_at_their_headers() {
        let output =
            "running\nfailures:\n\n---- a stdout ----\nwhy\n\n---- b (line 3) stdout ----\n\
                      how\nfailures:\n    a\n    b\n";
        let expected = [
            ("a", "why\n\n".to_owned()),
            ("b (line 3)", "how\n".to_owned()),
        ];
        assert_eq!(explanations(output), expected);
    }
}
