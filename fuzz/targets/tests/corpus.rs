//! Replays the corpora: inputs that once reached something new, and those that once failed.

use std::fs;
use std::path::Path;

use sandglass_fuzz_targets::{find, targets};
use sandglass_hostile::SCRIPTS;

/// Runs every input of a target.
///
/// # Panics
/// One fails, or there is none.
fn replay(name: &str) {
    let target = find(name).expect("a target of this name");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../corpus")
        .join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder can be read").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        // Shown only if the test fails.
        println!("{}", file.display());
        (target.run)(&fs::read(&file).expect("a file can be read"));
    }
}

macro_rules! corpora {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                replay($name);
            }
        )*

        #[test]
        fn every_target_has_a_corpus() {
            let own = [$($name),*];
            let of_policies = SCRIPTS.iter().map(|script| script.name);
            let replayed: Vec<&str> = own.into_iter().chain(of_policies).collect();
            let names: Vec<&str> = targets().map(|target| target.name).collect();
            assert_eq!(names, replayed);
        }
    };
}

corpora! {
    system_calls: "system-calls",
    lock_step: "lock-step",
    root_task: "root-task",
    loader: "loader",
    description: "description",
    archive: "archive",
    device_tree: "device-tree",
}

#[test]
fn policies() {
    for script in SCRIPTS {
        replay(script.name);
    }
}
