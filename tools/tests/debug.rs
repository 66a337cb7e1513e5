//! `sandglass debug`: what the page "Debugging" says is typed, and what it shows comes.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use regex::Regex;
use sandglass_tools::workspace;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/src/how-to/debugging.md")).unwrap()
}

/// The listings of a language in the page, in order.
fn listings(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// The arguments of a listing that is one command.
fn arguments(listing: &str) -> Vec<String> {
    let words = listing.split_whitespace().map(str::to_owned);
    words.skip_while(|word| word != "debug").collect()
}

fn write(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

/// A line of the page as a pattern: `...` stands for anything.
fn pattern(line: &str) -> Regex {
    Regex::new(&regex::escape(line.trim_end()).replace(r"\.\.\.", ".*")).unwrap()
}

/// A function of a Rust component by its line, its variables, the thread that the kernel runs and on whose time, a
/// thread that waits, the kernel's own function: as the page shows them.
#[test]
fn the_session_of_the_page_goes_as_it_says() {
    goes_as_the_page_says("x86_64");
}

#[test]
fn the_session_of_the_page_goes_as_it_says_on_aarch64() {
    goes_as_the_page_says("aarch64");
}

fn goes_as_the_page_says(arch: &str) {
    let page = page();
    let commands = listings(&page, "gdb").concat();
    let script = write(&format!("page-{arch}.gdb"), &commands);
    let out = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .current_dir(root())
        .args(arguments(&listings(&page, "sh")[0]))
        .args(["--arch", arch, "--script"])
        .arg(&script)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}\n{errors}");
    for line in listings(&page, "text").concat().lines() {
        assert!(pattern(line).is_match(&said), "`{line}` is not in:\n{said}");
    }
    assert!(
        !said.contains("warning") && !errors.contains("Python"),
        "{said}\n{errors}"
    );
}

/// What the page gives VS Code is valid, names what exists, and gdb understands it: a breakpoint that an editor sets
/// stops in the component, in its line.
#[test]
fn an_editor_stops_in_its_component() {
    let page = page();
    let launch: Value = serde_json::from_str(&listings(&page, "json")[0]).unwrap();
    let configuration = &launch["configurations"][0];
    assert_eq!(configuration["type"], "cppdbg");
    assert_eq!(configuration["MIMode"], "gdb");
    let port = free_port();
    let mut machine = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .current_dir(root())
        .args(arguments(&listings(&page, "sh")[1]))
        .args(["--port", &port, "--timeout", "120"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(machine.stderr.take().unwrap()).lines();
    assert!(messages.any(|line| line.unwrap().starts_with("waiting for a debugger")));
    let program = in_workspace(configuration["program"].as_str().unwrap(), &port);
    assert!(Path::new(&program).is_file(), "{program}");

    let mut editor = Editor::start();
    for command in configuration["customLaunchSetupCommands"]
        .as_array()
        .unwrap()
    {
        let text = in_workspace(command["text"].as_str().unwrap(), &port);
        editor.ask(&format!("-interpreter-exec console \"{text}\""));
    }
    let file = root().join("systems/examples/hello/visitor/src/main.rs");
    editor.ask(&format!("-break-insert -f {}:17", file.display()));
    assert_eq!(configuration["launchCompleteCommand"], "exec-continue");
    editor.tell("-exec-continue");
    let stop = editor.until("*stopped");
    assert!(stop.contains("reason=\"breakpoint-hit\""), "{stop}");
    assert!(stop.contains("func=\"hello_visitor::main\""), "{stop}");
    let variables = editor.ask("-stack-list-variables --simple-values");
    assert!(
        variables.contains("name=\"len\",type=\"u64\",value=\"18\""),
        "{variables}"
    );
    editor.tell("-gdb-exit");
    assert!(editor.gdb.wait().unwrap().success());
    let out = machine.wait_with_output().unwrap();
    assert!(out.status.success());
    assert!(String::from_utf8_lossy(&out.stdout).contains("HELLO FROM A FILE"));
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// With the variables of VS Code replaced, for a session at this port.
fn in_workspace(text: &str, port: &str) -> String {
    let target = workspace::target_dir();
    let session = format!("debug-sessions/hello-{port}/");
    text.replace("debug-sessions/hello/", &session)
        .replace("${workspaceFolder}/target", target.to_str().unwrap())
        .replace("${workspaceFolder}", root().to_str().unwrap())
}

/// gdb as an editor speaks to it.
struct Editor {
    gdb: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Editor {
    fn start() -> Self {
        let mut gdb = Command::new("gdb")
            .args(["-q", "-nx", "--interpreter=mi"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(gdb.stdout.take().unwrap()).lines();
        Self { gdb, said }
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.gdb.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    /// The next line that begins so.
    fn until(&mut self, start: &str) -> String {
        let mut said = String::new();
        for line in self.said.by_ref() {
            let line = line.unwrap();
            if line.starts_with(start) {
                return line;
            }
            assert!(!line.starts_with("^error"), "{line}");
            said.push_str(&line);
            said.push('\n');
        }
        panic!("gdb says no `{start}`, but:\n{said}");
    }

    /// The answer to a command, when gdb is ready for the next one.
    fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        let answer = self.until("^");
        self.until("(gdb)");
        answer
    }
}
