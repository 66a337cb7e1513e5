//! `sandglass validate` on descriptions and files that are hostile by their size or kind: it ends, with an answer,
//! within limits of memory and of the processor's time, which the operating system counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sandglass_tools::workspace;

/// KiB of address space: of the tool, and of cargo, which it asks for the workspace's packages.
const MEMORY_KIB: u64 = 1 << 20;
/// Seconds of processor time, several times what an unoptimised build takes on a slow machine.
const CPU_SECONDS: u64 = 10;
/// Components of a large description.
const MANY: usize = 5_000;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = workspace::target_dir()
            .join("descriptions")
            .join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the tool within the limits.
fn limited(arguments: &[&str], path: &Path) -> Output {
    let limits = format!("ulimit -v {MEMORY_KIB}; ulimit -t {CPU_SECONDS}; exec \"$@\"");
    Command::new("sh")
        .args(["-c", &limits, "sh", env!("CARGO_BIN_EXE_sandglass")])
        .args(arguments)
        .arg(path)
        .env("SANDGLASS_ROOT", workspace::root())
        .output()
        .unwrap()
}

/// The status, and all that was said.
fn said(output: &Output) -> (Option<i32>, String) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[track_caller]
fn assert_said(arguments: &[&str], path: &Path, status: i32, expected: &str) {
    let (code, text) = said(&limited(arguments, path));
    let shown = &text[..text.len().min(2000)];
    assert_eq!(code, Some(status), "{}: {shown}", path.display());
    assert!(text.contains(expected), "`{expected}` is not in: {shown}");
}

fn component(number: usize, keys: &str) -> String {
    format!("[[component]]\nname = \"c{number}\"\nexecutable = \"hello-visitor\"\npriority = {}\n{keys}\n", number % 200 + 1)
}

fn description(components: impl Iterator<Item = String>) -> String {
    "name = \"large\"\n".to_owned() + &components.collect::<String>()
}

#[test]
fn thousands_of_components_are_answered() {
    let folder = Folder::new("many");
    let timed = |number: usize| component(number, "budget = 100\nperiod = 1000000\nexit = true");
    let alone = description((0..MANY).map(timed));
    assert_said(
        &["validate"],
        &folder.file("alone.toml", &alone),
        0,
        "0 errors, 0 warnings",
    );

    let clients: String = (0..MANY)
        .filter(|&number| number != 199)
        .map(|number| format!("{{ component = \"c{number}\", badge = {} }},\n", number + 1))
        .collect();
    let shared =
        format!("{alone}[[endpoint]]\nname = \"e\"\nserver = \"c199\"\nclients = [\n{clients}]\n");
    assert_said(
        &["validate"],
        &folder.file("shared.toml", shared),
        0,
        "and shorter ones",
    );

    let circle = description((0..MANY).map(|number| {
        let next = (number + 1) % MANY;
        component(number, "passive = true")
            + &format!("[[endpoint]]\nname = \"e{number}\"\nserver = \"c{number}\"\nclients = [{{ component = \"c{next}\" }}]\n")
    }));
    assert_said(
        &["validate"],
        &folder.file("circle.toml", circle),
        1,
        "wait for each other's start",
    );

    let wrong = description((0..MANY).map(|number| {
        component(
            number,
            &format!("budget = 5\nperiod = 1\ntimeout-handler = \"x{number}\""),
        )
        .replace("hello-visitor", &format!("absent-{number}"))
    }));
    assert_said(
        &["validate"],
        &folder.file("wrong.toml", wrong),
        1,
        "more\n",
    );
}

#[test]
fn files_that_are_no_descriptions_are_refused() {
    let folder = Folder::new("kinds");
    let fifo = folder.0.join("fifo.toml");
    assert!(Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap()
        .success());
    for (path, expected) in [
        (fifo, "not a regular file"),
        (PathBuf::from("/dev/zero"), "not a regular file"),
        (folder.0.clone(), "it is a folder"),
        (folder.0.join("absent.toml"), "No such file"),
        (
            folder.file("utf16.toml", b"\xff\xfen\0a\0m\0e\0"),
            "save it as UTF-8",
        ),
        (
            folder.file("latin1.toml", b"name = \"a\"\n# gr\xfc\xdf\n"),
            "latin1.toml:2:5",
        ),
        (
            folder.file("program.toml", b"\x7fELF\x02\x01"),
            "`sandglass boot`",
        ),
        (
            folder.file("deep.toml", format!("name = {}", "[".repeat(100_000))),
            "this is not TOML",
        ),
        (
            folder.file("large.toml", vec![b'\n'; (4 << 20) + 1]),
            "4 MiB",
        ),
    ] {
        assert_said(&["validate"], &path, 1, expected);
    }
    // A byte-order mark and the line ends of other systems are none of our business.
    let windows = format!(
        "\u{feff}{}",
        description([component(1, "budget = 100\nperiod = 1000\nexit = true")].into_iter())
    );
    let windows = folder.file("windows.toml", windows.replace('\n', "\r\n"));
    assert_said(&["validate"], &windows, 0, "0 errors");
}

#[test]
fn json_says_what_is_wrong_and_where() {
    let folder = Folder::new("json");
    let parse = |path: &Path, arguments: &[&str]| -> (Option<i32>, serde_json::Value) {
        let output = limited(arguments, path);
        (
            output.status.code(),
            serde_json::from_slice(&output.stdout).unwrap(),
        )
    };
    let unlimited = description([component(1, "budget = 100\nperiod = 100")].into_iter());
    let path = folder.file("warned.toml", &unlimited);
    let (status, json) = parse(&path, &["validate", "--json"]);
    assert_eq!(
        (status, &json["version"], &json["valid"]),
        (Some(0), &1.into(), &true.into())
    );
    assert_eq!(json["warnings"][0]["warning"], "no-exit");
    assert_eq!(json["warnings"][0]["place"]["line"], 1);
    assert_eq!(json["cores"][0]["without_limit"][0], "c1");
    let (status, json) = parse(&path, &["validate", "--json", "--deny-warnings"]);
    assert_eq!((status, &json["valid"]), (Some(1), &false.into()));

    assert_eq!(json["arch"], "x86_64");
    let for_other = ["validate", "--json", "--arch", "aarch64"];
    assert_eq!(parse(&path, &for_other).1["arch"], "aarch64");
    let ports = "[[ports]]\nname = \"clock\"\ncomponent = \"c1\"\nfirst = 0x70\nlast = 0x71\n";
    let path = folder.file("ports.toml", unlimited.clone() + ports);
    assert_eq!(parse(&path, &["validate", "--json"]).0, Some(0));
    let (status, json) = parse(&path, &for_other);
    assert_eq!(
        (status, &json["errors"][0]["message"], &json["arch"]),
        (
            Some(1),
            &"aarch64 has no I/O ports".into(),
            &serde_json::Value::Null
        )
    );

    let accepted = unlimited + "[[accept]]\nwarning = \"no-exit\"\nreason = \"it runs for ever\"\n";
    let (status, json) = parse(
        &folder.file("accepted.toml", accepted),
        &["validate", "--json", "--deny-warnings"],
    );
    assert_eq!((status, &json["valid"]), (Some(0), &true.into()));
    assert_eq!(json["accepted"][0]["reason"], "it runs for ever");

    let (status, json) = parse(
        &folder.file("wrong.toml", "name = 5\n"),
        &["validate", "--json"],
    );
    assert_eq!(
        (status, &json["errors"][0]["place"]["column"]),
        (Some(1), &8.into())
    );
    let (status, json) = parse(Path::new("/dev/zero"), &["validate", "--json"]);
    assert_eq!((status, &json["valid"]), (Some(1), &false.into()));
}

#[test]
fn other_commands_say_which_one_was_meant() {
    let folder = Folder::new("meant");
    let system = folder.file("ok.toml", "name = \"a\"\n");
    assert_said(&["boot"], &system, 1, "`sandglass run");
    assert_said(&["check"], &system, 1, "`sandglass validate");
    let hello = workspace::root().join("systems/examples/hello/SYSTEM.toml");
    let absent = folder.0.join("absent/image");
    for command in ["build", "image"] {
        let arguments = [command, "-o", absent.to_str().unwrap()];
        assert_said(&arguments, &hello, 1, "cannot write");
        assert!(
            !absent.parent().unwrap().exists(),
            "{command} makes folders"
        );
    }
}

#[test]
fn the_systems_here_have_no_warning_that_they_do_not_accept() {
    let mut descriptions = descriptions(&workspace::root().join("systems"));
    // The experiment fills it in.
    descriptions.retain(|path| !path.ends_with("experiments/sharing/SYSTEM.toml"));
    assert!(descriptions.len() > 20, "{descriptions:?}");
    for path in descriptions {
        let arguments = ["validate", "--deny-warnings"];
        assert_said(&arguments, &path, 0, "0 errors, 0 warnings");
    }
}

/// The descriptions of systems in a folder and all below it.
fn descriptions(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(descriptions(&path));
        } else if path.extension().is_some_and(|it| it == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("[[component]]") {
                found.push(path);
            }
        }
    }
    found
}
