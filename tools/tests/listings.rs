//! The listings of the pages about projects are what they say: commands are run, files are built.
//!
//! A listing of a shell is run. Any other one, and one of a shell that begins with `# FILE`, is about a file
//! of the project: its first line, a comment, names it. `(new)` behind the name says that it is that file,
//! `(add)` that it is added at the file's end, `(change)` that its line takes the place of the one that begins
//! alike; else it is a part of the file, at the end of all.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use sandglass_tools::workspace;

/// A listing that is about a file.
struct Part {
    file: String,
    what: String,
    /// Without the first line, except in a new file.
    text: String,
}

/// A listing.
enum Listing {
    Commands(String),
    Part(Part),
}

/// The listings of a page.
fn listings(page: &str) -> Vec<Listing> {
    let path = workspace::root().join("docs/src/how-to").join(page);
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("\n```").skip(1).step_by(2);
    blocks.map(listing).collect()
}

fn listing(block: &str) -> Listing {
    let (language, text) = block.split_once('\n').unwrap();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let comment = first.strip_prefix("# ").or(first.strip_prefix("// "));
    let Some(comment) = comment else {
        assert_eq!(language, "sh", "a listing of a file names it:\n{text}");
        return Listing::Commands(format!("{text}\n"));
    };
    let (file, what) = comment.split_once(' ').unwrap_or((comment, ""));
    Listing::Part(Part {
        file: file.to_owned(),
        what: what.to_owned(),
        text: match what {
            "(new)" => format!("{text}\n"),
            _ => format!("{rest}\n"),
        },
    })
}

/// A script that does what the listings of a page say.
fn script(listings: &[Listing]) -> String {
    let mut script = "set -eu\n".to_owned();
    for listing in listings {
        let part = match listing {
            Listing::Commands(commands) => {
                script.push_str(commands);
                continue;
            }
            Listing::Part(part) => part,
        };
        let (file, text) = (&part.file, &part.text);
        let written = match part.what.as_str() {
            "(new)" => writeln!(
                script,
                "mkdir -p \"$(dirname {file})\"\ncat > {file} <<'LISTING'\n{text}LISTING"
            ),
            "(add)" => writeln!(script, "cat >> {file} <<'LISTING'\n{text}LISTING"),
            "(change)" => {
                let key = text.split('=').next().unwrap();
                writeln!(
                    script,
                    "grep -q '^{key}=' {file}\nsed -i 's|^{key}=.*|{}|' {file}",
                    text.trim_end()
                )
            }
            what => {
                assert_eq!(what, "", "`{what}` is unknown");
                Ok(())
            }
        };
        written.unwrap();
    }
    script
}

/// Fails if a listing that is a part of a file of `project` is not.
fn assert_parts(listings: &[Listing], project: &Path) {
    for listing in listings {
        let Listing::Part(part) = listing else {
            continue;
        };
        if part.what.is_empty() {
            let text = fs::read_to_string(project.join(&part.file)).unwrap();
            assert!(
                text.contains(&part.text),
                "{} does not have:\n{}",
                part.file,
                part.text
            );
        }
    }
}

/// Runs a script with the command on its search path, in a folder beside the repository's clone, as far as
/// paths tell.
fn run(folder: &Path, script: &str) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_sandglass"))
        .parent()
        .unwrap()
        .to_owned();
    let others = env::var_os("PATH").unwrap();
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&others))).unwrap();
    let out = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .env("SANDGLASS", env!("CARGO_BIN_EXE_sandglass"))
        .env_remove("SANDGLASS_ROOT")
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(out.status.success(), "{script}\n{said}");
    said
}

/// A folder of this test's own.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("listings")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn your_own_repository() {
    let folder = folder("repository");
    let listings = listings("repository.md");
    // What a project depends on is shared with other tests; its own is not.
    let target = workspace::target_dir();
    let script = format!(
        "export CARGO_TARGET_DIR='{}'\n{}",
        target.display(),
        script(&listings).replace("cargo test", "cargo test --target-dir target")
    );
    let said = run(&folder, &script);
    for line in [
        "clock: 200 ms",
        "test result: ok",
        "trace check: 0 violations",
    ] {
        assert!(said.contains(line), "`{line}` is not in:\n{said}");
    }
    // Where the clone is depends on where the test is run.
    let project = folder.join("rig");
    let manifest = project.join("Cargo.toml");
    let root = workspace::root().canonicalize().unwrap();
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains(root.to_str().unwrap()), "{text}");
    fs::write(
        &manifest,
        text.replace(root.to_str().unwrap(), "../sandglass"),
    )
    .unwrap();
    assert_parts(&listings, &project);
}

/// The script itself is what the tests of templates run.
#[test]
fn use_it_in_ci() {
    let folder = folder("ci");
    let listings = listings("ci.md");
    let commands = listings.iter().filter_map(|listing| match listing {
        Listing::Commands(commands) => Some(commands.as_str()),
        Listing::Part(_) => None,
    });
    assert_eq!(commands.collect::<Vec<_>>(), [".ci/run\n"]);
    run(&folder, "sandglass new rig");
    assert_parts(&listings, &folder.join("rig"));
}

/// Parts of files are those of the example, in the repository.
#[test]
fn components_in_c() {
    let folder = folder("c");
    let listings = listings("c.md");
    let said = run(&folder, &script(&listings));
    assert_eq!(said.matches("the answer is 42").count(), 2, "{said}");
    assert!(!said.contains("warning"), "{said}");
    assert_parts(&listings, &workspace::root());
}
