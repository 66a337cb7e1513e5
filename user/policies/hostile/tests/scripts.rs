//! A short storm of each policy's scripts, and that none is forgotten.

use std::fs;
use std::path::Path;

use sandglass_hostile::{storm, SCRIPTS};

/// Steps of each script: a second or so.
const STEPS: u64 = 300_000;
const SEED: u64 = 1;

#[test]
fn whatever_rogues_do_everybody_honest_is_served_within_the_bound() {
    for script in SCRIPTS {
        let outcome = storm::run(script, &[], SEED, STEPS);
        let found: Vec<_> = outcome
            .findings
            .iter()
            .map(|finding| format!("seed {}: {}", finding.seed, finding.message))
            .collect();
        assert!(found.is_empty(), "{}: {}", script.name, found.join("\n"));
        // A storm in which something does not happen shows nothing about it.
        assert_eq!(
            outcome.unseen(script),
            [""; 0],
            "{}: this never happens",
            script.name
        );
        let unknown = outcome
            .seen
            .keys()
            .find(|seen| !script.situations.contains(seen));
        assert_eq!(unknown, None, "{}: not among its situations", script.name);
    }
}

#[test]
fn every_file_of_scripts_is_in_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scripts");
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "mod")
        .collect();
    files.sort();
    let mut names: Vec<_> = SCRIPTS.iter().map(|script| script.name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}
