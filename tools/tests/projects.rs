//! Projects of users, outside of the repository's workspace: made, tested, built and run by the command, as
//! users call it.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use sandglass_tools::{toolchain, workspace};

/// A folder of this test's own, which is not there.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("projects")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    folder
}

/// The command as it is installed: it knows where it was compiled. Projects share what their components
/// depend on with the repository, which saves most of the building.
fn sandglass(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandglass"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("SANDGLASS_ROOT")
        .env("CARGO_TARGET_DIR", workspace::target_dir())
        .stdin(Stdio::null());
    command
}

/// A new project. The form of its dependencies does not matter to cargo.
fn new(name: &str, template: &str) -> PathBuf {
    new_for("x86_64", name, template)
}

fn new_for(arch: &str, name: &str, template: &str) -> PathBuf {
    let project = folder(name);
    let folder = project.to_str().unwrap();
    let arguments = ["new", folder, "--arch", arch, "--template", template];
    let out = sandglass(Path::new("/"), &arguments).output().unwrap();
    assert!(out.status.success(), "{}", said(&out));
    project
}

fn said(out: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&out.stdout) + &text(&out.stderr)
}

#[track_caller]
fn assert_says(out: &Output, parts: &[&str]) {
    for part in parts {
        let said = said(out);
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
}

/// Replaces text that is in a file.
fn change(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "`{old}` is in {}", file.display());
    fs::write(file, text.replace(old, new)).unwrap();
}

/// Runs the tests of a new project as its continuous integration does.
fn test(template: &str) {
    test_project(&new(template, template));
}

fn test_project(project: &Path) {
    let out = Command::new(project.join(".ci/run"))
        .arg("--target-dir")
        .arg(project.join("target"))
        .env("CARGO_TARGET_DIR", workspace::target_dir())
        .env("SANDGLASS", env!("CARGO_BIN_EXE_sandglass"))
        .env("SANDGLASS_CLONE", workspace::root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", said(&out));
    // Those of pure logic, and of the system.
    assert_says(&out, &["Running unittests", "Running tests/system.rs"]);
}

/// One for aarch64, by what its description says.
fn test_for_aarch64(template: &str) {
    let name = format!("{template}-aarch64");
    let project = new_for("aarch64", &name, template);
    let description = fs::read_to_string(project.join("SYSTEM.toml")).unwrap();
    assert!(
        description.contains("\narch = \"aarch64\"\n"),
        "{description}"
    );
    test_project(&project);
}

/// A test for each template, on each architecture.
macro_rules! templates {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                test($name);
            }
        )*

        mod aarch64 {
            $(
                #[test]
                fn $test() {
                    super::test_for_aarch64($name);
                }
            )*
        }

        #[test]
        fn every_template_is_tested() {
            let out = sandglass(Path::new("/"), &["new", "--list"]).output().unwrap();
            let said = said(&out);
            let listed = said.lines().filter_map(|line| line.split_whitespace().next());
            assert_eq!(listed.collect::<Vec<_>>(), [$($name),*]);
        }
    };
}

templates! {
    the_template_in_c_passes_its_tests: "c",
    the_template_of_a_control_loop_passes_its_tests: "control-loop",
    the_template_of_deadline_scheduling_passes_its_tests: "edf",
    the_template_of_modes_passes_its_tests: "modes",
    the_template_of_a_server_passes_its_tests: "server",
}

#[test]
fn templates_are_formatted() {
    if !toolchain::host_has("fmt") {
        eprintln!("there is no rustfmt");
        return;
    }
    let templates = workspace::root().join("tools/templates");
    let script = "find . -name '*.rs' -exec rustfmt --check --edition 2021 {} +";
    let mut command = Command::new("sh");
    let out = command
        .current_dir(&templates)
        .args(["-c", script])
        .output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}", said(&out));
}

#[test]
fn components_are_built_before_they_boot_and_errors_are_in_the_users_files() {
    let project = new("stale", "control-loop");
    let run = || {
        let arguments = ["run", "SYSTEM.toml", "--icount", "0", "--timeout", "120s"];
        sandglass(&project, &arguments).output().unwrap()
    };
    let program = project.join("control/src/main.rs");
    change(&project.join("SYSTEM.toml"), "jobs = 60", "jobs = 3");
    let out = run();
    assert_says(&out, &["control: 3 jobs, 0 late"]);
    assert!(out.status.success());

    change(&program, "jobs, {late} late", "JOBS, {late} late");
    assert_says(&run(), &["control: 3 JOBS, 0 late"]);

    change(
        &program,
        "let period = env.parameter(\"period\");",
        "let period = env.parameter(\"period\") + \"\";",
    );
    let out = run();
    assert_says(
        &out,
        &["control does not build", "--> control/src/main.rs:22:"],
    );
    assert!(!out.status.success() && !said(&out).contains("JOBS"));

    // The same file by its path could be an old one.
    let built = "\"./target/x86_64-unknown-linux-gnu/release/control\"";
    let system = project.join("SYSTEM.toml");
    change(
        &system,
        "executable = \"control\"",
        &format!("executable = {built}"),
    );
    let mut command = sandglass(&project, &["run", "SYSTEM.toml"]);
    let out = command.env_remove("CARGO_TARGET_DIR").output().unwrap();
    assert_says(
        &out,
        &[
            "may be older than its sources",
            "write `executable = \"control\"`",
            "SYSTEM.toml:7:",
        ],
    );

    // What is there is said, without the repository's tests.
    change(&system, built, "\"controll\"");
    assert_says(&run(), &["did you mean `control`?"]);
    change(&system, "\"controll\"", "\"something-else\"");
    let out = run();
    assert_says(
        &out,
        &["the programs are: background, control, ", "mode-manager"],
    );
    assert!(!said(&out).contains("-tests"), "{}", said(&out));
    change(&system, "\"something-else\"", "\"law\"");
    assert_says(
        &run(),
        &["`law` of your project is not linked as a user program"],
    );

    // A wrong manifest is the user's, too.
    change(&project.join("Cargo.toml"), "\"law\", ", "\"law\" ");
    assert_says(&run(), &["cannot read the project of", "Cargo.toml"]);
}

/// Two systems of one name, each twice, that end with different statuses.
#[test]
fn runs_at_once_boot_their_own_images() {
    let start = |name: &str, status: u8| -> Child {
        let system = folder(name);
        fs::create_dir_all(&system).unwrap();
        let example = workspace::root().join("systems/examples/hello");
        for file in ["SYSTEM.toml", "text.txt"] {
            fs::copy(example.join(file), system.join(file)).unwrap();
        }
        let text = format!("status = {status}");
        change(&system.join("SYSTEM.toml"), "status = 0", &text);
        let arguments = ["run", "SYSTEM.toml", "--icount", "0", "--timeout", "120s"];
        let mut command = sandglass(&system, &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let again = |name: &str| -> Child {
        let system = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("projects")
            .join(name);
        let arguments = ["run", "SYSTEM.toml", "--icount", "0", "--timeout", "120s"];
        let mut command = sandglass(&system, &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let runs = [
        (3, start("at-once-3", 3)),
        (5, start("at-once-5", 5)),
        (3, again("at-once-3")),
        (5, again("at-once-5")),
    ];
    for (status, run) in runs {
        let out = run.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(status), "{}", said(&out));
    }
}

#[test]
fn the_script_works_from_any_folder_by_a_link() {
    let bin = folder("bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(workspace::root().join("sandglass"), bin.join("sandglass")).unwrap();
    let paths = env::split_paths(&env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let path = env::join_paths([bin].into_iter().chain(paths)).unwrap();
    let out = Command::new("sh")
        .args(["-c", "cd / && sandglass new --list"])
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", said(&out));
    assert_says(&out, &["control-loop"]);
}

/// What cannot be written is said before anything is built.
#[test]
fn results_that_cannot_be_written_are_refused_at_once() {
    let system = workspace::root().join("systems/examples/hello/SYSTEM.toml");
    let system = system.to_str().unwrap();
    for command in ["build", "image", "trace", "run"] {
        let arguments = [command, system, "--output", "/nonexistent/folder/file"];
        let out = sandglass(Path::new("/"), &arguments).output().unwrap();
        assert!(
            !out.status.success() && !said(&out).contains("building"),
            "{}",
            said(&out)
        );
        assert_says(&out, &["cannot write /nonexistent/folder/file"]);
    }
    assert!(!Path::new("/nonexistent").exists());
}
