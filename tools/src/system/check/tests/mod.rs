//! What is right comes out as written; [`wrong`] is about the rest.

mod aarch64;
mod allocations;
mod couriers;
mod edf;
mod mc_ipc;
mod mistakes;
mod modes;
mod monitor;
mod outlook;
mod partitions;
mod recovery;
mod sharing;
mod timeouts;
mod timers;
mod wrong;

use std::path::{Path, PathBuf};

use sandglass_description::policy::Table;
use sandglass_description::{MemorySource, Object, ThreadId};

use super::{check, Content, Description};
use crate::system::{Report, Source};

/// A system in which nothing is wrong: a passive server with a timeout handler, two clients,
/// shared memory, a device, a file, an output.
const RIGHT: &str = r#"
name = "test"
machine = { memory = 64, cores = 2 }
criticalities = ["low", "middle", "high"]

[[component]]
name = "client"
executable = "hello-visitor"
criticality = "middle"
priority = 100
budget = "2ms"
period = "10ms"
timeout-badge = 7
exit = true
console = true
parameters = { rounds = 12, delay = "3ms" }
controls = ["other"]
revokes = ["other"]
scheduling-control = [1]

[[component]]
name = "other"
executable = "hello-visitor"
priority = 90
core = 1
budget = 500
period = 500

[[component]]
name = "server"
executable = "hello-shouter"
criticality = "high"
priority = 200
passive = true
timeout-handler = "server"

[[component.thread]]
name = "handler"
priority = 201
budget = "1ms"
period = "1ms"
ready = true
stack = "8KiB"

[[endpoint]]
name = "work"
server = "server"
clients = [
  { component = "client", badge = 1 },
  { component = "other", badge = 2, as = "service", rights = "grant" },
]

[[notification]]
name = "done"
waiter = "client"
signallers = [{ component = "other", badge = 4 }]

[[memory]]
name = "shared"
size = "8KiB"
maps = [
  { component = "client", rights = "read-write", address = 0x2000_0000 },
  { component = "server" },
]

[[memory]]
name = "hpet"
size = "4KiB"
physical = 0xfed0_0000
maps = [{ component = "other", rights = "read-write" }]

[[interrupt]]
name = "timer"
component = "other"
pin = 2

[[ports]]
name = "pit"
component = "other"
first = 0x40
last = 0x43

[[output]]
name = "results"
component = "client"

[[file]]
name = "manifest"
path = "Cargo.toml"
components = ["client"]
"#;

fn source(text: &str) -> Source {
    Source {
        arch: None,
        name: "test.toml".to_owned(),
        text: text.to_owned(),
        folder: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    }
}

/// A description in which nothing is wrong.
#[track_caller]
fn described(text: &str) -> Description {
    check(&source(text)).unwrap_or_else(|report| panic!("{report}"))
}

/// A description with one text in place of another, which must be there.
#[track_caller]
fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "`{from}` is not in the description");
        text = text.replacen(from, to, 1);
    }
    text
}

/// A description is refused, for one reason, which says this.
#[track_caller]
fn refused(text: &str, said: &[&str]) {
    assert_one(&check(&source(text)).unwrap_err(), said);
}

/// Exactly one thing is wrong, and the report says all of `said`.
#[track_caller]
fn assert_one(report: &Report, said: &[&str]) {
    let shown = report.to_string();
    assert_eq!(report.findings.len(), 1, "{shown}");
    for expected in said {
        assert!(shown.contains(expected), "`{expected}` is not in:\n{shown}");
    }
}

fn right() -> Description {
    described(RIGHT)
}

/// The only table that is packed.
#[track_caller]
fn packed<T: Table>(description: &Description) -> T {
    let mut tables = description
        .files
        .iter()
        .filter_map(|file| match &file.content {
            Content::Bytes(bytes) => Some(T::decode(bytes).unwrap()),
            Content::Path(_) => None,
        });
    match (tables.next(), tables.next()) {
        (Some(only), None) => only,
        (first, _) => panic!(
            "{} tables are packed",
            if first.is_some() { "two" } else { "no" }
        ),
    }
}

/// What is found in the description `right` with `old`, which occurs once, replaced by `new`.
#[track_caller]
fn findings(right: &str, old: &str, new: &str) -> Report {
    assert_eq!(right.matches(old).count(), 1, "`{old}` occurs once");
    match check(&source(&right.replace(old, new))) {
        Ok(_) => panic!("nothing is found wrong with `{new}`"),
        Err(report) => report,
    }
}

/// With `old` replaced by `new`, exactly one thing is wrong, and the report says all of `said`.
#[track_caller]
fn one_finding(right: &str, old: &str, new: &str, said: &[&str]) -> Report {
    let report = findings(right, old, new);
    assert_one(&report, said);
    report
}

#[test]
fn servers_start_before_their_clients_else_in_the_files_order() {
    let description = right();
    let names = description
        .system
        .components
        .iter()
        .map(|c| c.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["server", "client", "other"]);
}

#[test]
fn the_server_gets_what_it_serves_and_rolls_back_with() {
    let system = right().system;
    let server = &system.components[0];
    let find = |name: &str| {
        let grant = server.grants.iter().find(|grant| grant.name == name);
        grant.unwrap_or_else(|| panic!("no `{name}`")).object
    };
    let main = ThreadId {
        component: 0,
        thread: 0,
    };
    assert_eq!(find("server.tcb"), Object::Tcb(main));
    assert_eq!(find("server.context"), Object::SchedContext(main));
    assert_eq!(find("ready"), find("server.ready"));
    let (Object::Endpoint(work), Object::Endpoint(timeouts)) = (find("work"), find("timeouts"))
    else {
        panic!("no endpoints");
    };
    assert_eq!(find("work.reply"), Object::Reply(work));
    assert_eq!(find("timeouts.reply"), Object::Reply(timeouts));
    assert_eq!(
        server.threads[0].timeout_handler.unwrap().endpoint,
        timeouts
    );
    assert!(server.threads[0].passive && server.threads[0].ready.is_some());
    let handler = &server.threads[1];
    assert_eq!((handler.stack_bytes, handler.passive), (8192, false));
    assert_eq!(
        Object::Notification(handler.ready.unwrap()),
        find("handler.ready")
    );
}

#[test]
fn what_a_client_is_given_is_what_is_written() {
    let system = right().system;
    let client = &system.components[1];
    let time = client.threads[0].time;
    assert_eq!(
        (time.budget_us, time.period_us, time.badge),
        (2000, 10_000, 7)
    );
    let parameter = |name: &str| {
        let found = client
            .parameters
            .iter()
            .find(|parameter| parameter.name == name);
        found.unwrap_or_else(|| panic!("no `{name}`")).value
    };
    assert_eq!((parameter("rounds"), parameter("delay")), (12, 3000));
    assert_eq!(parameter("criticality"), 1);
    assert!(client.exit && client.console);
    assert_eq!(client.maps[0].address, Some(0x2000_0000));
    assert!(client.maps[0].writable);
    let other = ThreadId {
        component: 2,
        thread: 0,
    };
    let controls = client
        .grants
        .iter()
        .any(|grant| grant.name == "other.context" && grant.object == Object::SchedContext(other));
    assert!(controls);
    let cnode = client.grants.iter().find(|of| of.name == "other.cnode");
    assert_eq!(cnode.map(|of| of.object), Some(Object::CNode(2)));
    let other = &system.components[2];
    assert_eq!(other.threads[0].time.core, 1);
    let service = other.grants.iter().find(|grant| grant.name == "service");
    let service = service.unwrap();
    assert_eq!((service.badge, service.rights), (2, 0b0101));
    assert!(service.calls_only);
}

#[test]
fn files_and_devices_are_memory() {
    let description = right();
    let sources: Vec<_> = description.system.memory.iter().map(|m| m.source).collect();
    assert_eq!(sources[0], MemorySource::New { bytes: 8192 });
    let physical = 0xfed0_0000;
    assert_eq!(
        sources[1],
        MemorySource::Device {
            physical,
            bytes: 4096
        }
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert_eq!(sources[2].bytes(), file.metadata().unwrap().len());
    assert!(matches!(&description.files[0].content, Content::Path(path) if *path == file));
    assert_eq!(description.output.as_deref(), Some("results"));
}
