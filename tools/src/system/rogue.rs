//! An untrusted client beside those of a described system: what `--rogue SEED` adds to a description.
//!
//! It is a component of the lowest criticality, with a small budget, a priority below that of all honest clients,
//! and a share in all that these share: it may call each endpoint and resource that others call, is a task of each
//! preemptive `[[edf]]`, and gives way in higher `[modes]`. Its program, `systems/components/rogue`, does
//! whatever comes to its mind with them, by a seed. It has neither memory nor notifications nor the console: who
//! has these is trusted by all others who have.

use anyhow::{ensure, Context, Result};
use toml::{Table, Value};

use super::Source;

/// The component's name; no described system has another of it.
pub const NAME: &str = "rogue-client";
/// Its program.
const EXECUTABLE: &str = "rogue";
/// Instructions that it may execute in each of so many; ns where an instruction takes 1.
const BUDGET_NS: u64 = 50_000;
const PERIOD_NS: u64 = 10_000_000;
/// The lowest badge that it may have: those below are interrupts' in servers that wait for a device.
const LEAST_BADGE: i64 = 2;
/// The lowest priority above an idle thread, which is at 1.
const LEAST_PRIORITY: i64 = 2;

/// A rogue client that is to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rogue {
    /// What it does; `None`: it is honest, and asks each server for nothing, and works.
    pub seed: Option<u64>,
    /// An instruction takes 2^shift ns of virtual time; its budget and its period are as many instructions on any.
    pub shift: u8,
    /// Whether it may call what others call.
    pub shares: bool,
    /// Whether it is among the tasks of `[modes]`, if there are any: suspended in modes above the lowest.
    pub gives_way: bool,
}

impl Rogue {
    /// The rogue of a seed, in a system where an instruction takes 1 ns.
    pub const fn of_seed(seed: u64) -> Self {
        Self {
            seed: Some(seed),
            shift: 0,
            shares: true,
            gives_way: true,
        }
    }

    /// An honest component in its place.
    pub const fn honest() -> Self {
        Self {
            seed: None,
            ..Self::of_seed(0)
        }
    }

    /// The system with the rogue.
    ///
    /// # Errors
    /// The description is no TOML, or has a component of the rogue's name already.
    pub fn beside(&self, source: &Source) -> Result<Source> {
        let text = self
            .added(&source.text)
            .with_context(|| format!("cannot add a rogue client to `{}`", source.name))?;
        Ok(Source {
            text,
            ..source.clone()
        })
    }

    fn added(&self, text: &str) -> Result<String> {
        let mut document: Table = text.parse()?;
        ensure!(
            find(&document, "component", NAME).is_none(),
            "a component is already called `{NAME}`; rename it"
        );
        let mut component = Table::new();
        set(&mut component, "name", NAME);
        set(&mut component, "executable", EXECUTABLE);
        set(&mut component, "priority", below_clients(&document));
        let time = [
            ("budget", (BUDGET_NS << self.shift) / 1000),
            ("period", (PERIOD_NS << self.shift) / 1000),
        ];
        if let Some(priority) = self.join_edf(&mut document, time) {
            set(&mut component, "priority", priority);
        } else {
            give_time(&mut component, time);
        }
        let shared = match self.shares {
            true => join_servers(&mut document),
            false => 0,
        };
        let mut parameters = Table::new();
        if let Some(seed) = self.seed {
            // The command line takes none from 2^63 on.
            set(&mut parameters, "seed", seed as i64);
        }
        set(&mut parameters, "shared", shared);
        component.insert("parameters".to_owned(), parameters.into());
        if self.gives_way {
            join_modes(&mut document);
        }
        let components = tables(&mut document, "component");
        let components = components.context("the description has no components")?;
        components.push(component.into());
        Ok(document.to_string())
    }

    /// Joins the first preemptive set of tasks, with the time given; returns the tasks' priority, which it has to
    /// have, too. In a cooperative one tasks trust each other to end their jobs.
    fn join_edf(&self, document: &mut Table, time: [(&str, u64); 2]) -> Option<i64> {
        let sets = document.get("edf")?.as_array()?;
        let preemptive = |set: &Value| text(set, "mode") == Some("preemptive");
        let place = sets.iter().position(preemptive)?;
        let first = sets[place].get("tasks")?.as_array()?.first()?;
        let task = find(document, "component", text(first, "component")?)?;
        let priority = task.get("priority")?.as_integer()?;
        let set_of_tasks = document.get_mut("edf")?.get_mut(place)?;
        let mut own = Table::new();
        set(&mut own, "component", NAME);
        give_time(&mut own, time);
        let tasks = set_of_tasks.get_mut("tasks")?.as_array_mut()?;
        tasks.push(own.into());
        Some(priority)
    }
}

/// Budget and period, µs: far below 2^63.
fn give_time(table: &mut Table, time: [(&str, u64); 2]) {
    for (key, us) in time {
        set(table, key, us as i64);
    }
}

/// Lets the rogue call every server that others call; returns how many there are.
fn join_servers(document: &mut Table) -> i64 {
    let mut shared = 0;
    for kind in ["endpoint", "resource"] {
        for table in tables(document, kind).into_iter().flatten() {
            if callers(table).next().is_none() {
                continue;
            }
            let badges = list(table, "clients").iter();
            let badges = badges.filter_map(|client| client.get("badge")?.as_integer());
            let badge = badges
                .max()
                .map_or(LEAST_BADGE, |most| LEAST_BADGE.max(most + 1));
            let mut own = Table::new();
            set(&mut own, "component", NAME);
            if behind_gate(table) {
                set(&mut own, "requests", 0_i64);
            } else {
                set(&mut own, "badge", badge);
            }
            set(&mut own, "as", format!("shared.{shared}"));
            if let Some(clients) = table.get_mut("clients").and_then(Value::as_array_mut) {
                clients.push(own.into());
                shared += 1;
            }
        }
    }
    shared
}

/// Whether clients of a server are known by their places, and not by badges.
fn behind_gate(server: &Value) -> bool {
    matches!(
        text(server, "protocol"),
        Some("mc-ipc" | "fifo" | "priority")
    )
}

/// Lets the rogue give way when the mode rises.
fn join_modes(document: &mut Table) {
    let modes = document.get_mut("modes").and_then(Value::as_table_mut);
    let Some(tasks) = modes.and_then(|modes| tables(modes, "tasks")) else {
        return;
    };
    let mut own = Table::new();
    set(&mut own, "component", NAME);
    set(&mut own, "below", "suspend");
    tasks.push(own.into());
}

/// A priority below that of all threads of components that call servers, or, if there are none, of all components. Behind a
/// gate, the server works for it at the priority above its own, which has to be free.
fn below_clients(document: &Table) -> i64 {
    let servers = ["endpoint", "resource"].into_iter();
    let servers = servers.flat_map(|kind| document.get(kind).and_then(Value::as_array));
    let clients: Vec<&str> = servers.flatten().flat_map(callers).collect();
    let components = document.get("component").and_then(Value::as_array);
    let honest = components.into_iter().flatten().filter(|component| {
        let is_client = text(component, "name").is_some_and(|name| clients.contains(&name));
        clients.is_empty() || is_client
    });
    let threads = honest.flat_map(|component| list(component, "thread").iter().chain([component]));
    let priorities = threads.filter_map(|thread| thread.get("priority")?.as_integer());
    let lowest = priorities.min().unwrap_or(LEAST_PRIORITY);
    let resources = document.get("resource").and_then(Value::as_array);
    let is_gated = resources.into_iter().flatten().any(behind_gate);
    LEAST_PRIORITY.max(lowest - if is_gated { 2 } else { 1 })
}

/// The components that may call a server, except itself.
fn callers(server: &Value) -> impl Iterator<Item = &str> {
    let own = text(server, "server");
    let clients = list(server, "clients").iter();
    let calls = |client: &&Value| matches!(text(client, "rights"), None | Some("call" | "grant"));
    clients
        .filter(calls)
        .filter_map(|client| text(client, "component"))
        .filter(move |client| own.is_some_and(|own| own != *client))
}

/// The table `[[kind]]` of this name.
fn find<'d>(document: &'d Table, kind: &str, name: &str) -> Option<&'d Value> {
    let tables = document.get(kind)?.as_array()?;
    tables
        .iter()
        .find(|table| text(table, "name") == Some(name))
}

/// All tables `[[kind]]`, if there are any.
fn tables<'d>(document: &'d mut Table, kind: &str) -> Option<&'d mut Vec<Value>> {
    document.get_mut(kind)?.as_array_mut()
}

fn list<'t>(table: &'t Value, key: &str) -> &'t [Value] {
    let found = table.get(key).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

fn text<'t>(table: &'t Value, key: &str) -> Option<&'t str> {
    table.get(key).and_then(Value::as_str)
}

fn set(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    /// A server with two clients, of which one has a further thread, and one that only sends to another server.
    const SYSTEM: &str = r#"
        name = "system"
        component = [
          { name = "server", executable = "hello-shouter", priority = 200, passive = true },
          { name = "first", executable = "hello-visitor", priority = 100, budget = 100, period = 200 },
          { name = "second", executable = "hello-visitor", priority = 90, budget = 100, period = 200, ready = true,
            thread = [{ name = "low", priority = 80, budget = 100, period = 200 }] },
          { name = "sender", executable = "hello-visitor", priority = 10, budget = 100, period = 200 },
          { name = "receiver", executable = "hello-visitor", priority = 20, budget = 100, period = 200 },
        ]
        [[endpoint]]
        name = "work"
        server = "server"
        clients = [{ component = "first", badge = 7 }, { component = "second" }]
        [[endpoint]]
        name = "news"
        server = "receiver"
        clients = [{ component = "sender", rights = "send" }]
    "#;

    fn source(text: &str) -> Source {
        Source {
            arch: None,
            name: "test".to_owned(),
            text: text.to_owned(),
            folder: ".".into(),
        }
    }

    /// The description with the rogue, which is right.
    #[track_caller]
    fn beside(rogue: Rogue, text: &str) -> Table {
        let beside = rogue.beside(&source(text)).unwrap();
        if let Err(report) = check(&beside) {
            panic!("{report}");
        }
        beside.text.parse().unwrap()
    }

    fn own(document: &Table) -> &Value {
        find(document, "component", NAME).expect("the rogue was added")
    }

    #[test]
    fn it_may_call_what_others_call_and_nothing_else() {
        let document = beside(Rogue::of_seed(3), SYSTEM);
        let parameters = own(&document)["parameters"].as_table().unwrap();
        assert_eq!(parameters["shared"].as_integer(), Some(1));
        assert_eq!(parameters["seed"].as_integer(), Some(3));
        let clients = list(find(&document, "endpoint", "work").unwrap(), "clients");
        let joined = clients.last().unwrap();
        assert_eq!(text(joined, "component"), Some(NAME));
        assert_eq!(joined["badge"].as_integer(), Some(8), "nobody else's");
        assert_eq!(text(joined, "rights"), None, "calls only");
        let news = find(&document, "endpoint", "news").unwrap();
        assert_eq!(list(news, "clients").len(), 1);
        let alone = Rogue {
            shares: false,
            ..Rogue::of_seed(3)
        };
        let document = beside(alone, SYSTEM);
        let clients = list(find(&document, "endpoint", "work").unwrap(), "clients");
        assert_eq!(clients.len(), 2);
    }

    #[test]
    fn it_is_below_all_threads_of_all_clients_on_a_small_budget() {
        let document = beside(Rogue::of_seed(1), SYSTEM);
        assert_eq!(own(&document)["priority"].as_integer(), Some(79));
        let time = |document: &Table| {
            ["budget", "period"].map(|key| own(document)[key].as_integer().unwrap())
        };
        assert_eq!(time(&document), [50, 10_000]);
        let slow = Rogue {
            shift: 5,
            ..Rogue::of_seed(1)
        };
        assert_eq!(time(&beside(slow, SYSTEM)), [1_600, 320_000]);
    }

    #[test]
    fn a_name_that_is_taken_is_refused() {
        let taken = SYSTEM.replace("\"sender\"", &format!("\"{NAME}\""));
        let error = Rogue::of_seed(1).beside(&source(&taken)).unwrap_err();
        assert!(format!("{error:#}").contains("rename it"), "{error:#}");
    }

    /// Also a task of a deadline scheduler, and one that gives way.
    #[test]
    fn every_example_is_right_with_it() {
        let folder = crate::workspace::root().join("systems/examples");
        let mut joined = [0; 2];
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path().join("SYSTEM.toml");
            let beside = Rogue::of_seed(1)
                .beside(&Source::read(&path).unwrap())
                .unwrap();
            if let Err(report) = check(&beside) {
                panic!("{report}");
            }
            let document: Table = beside.text.parse().unwrap();
            let is_own = |task: &Value| text(task, "component") == Some(NAME);
            let edf = document.get("edf").and_then(|edf| edf.get(0));
            let modes = document.get("modes");
            for (count, policy) in joined.iter_mut().zip([edf, modes]) {
                let tasks = policy.map_or(&[][..], |policy| list(policy, "tasks"));
                *count += tasks.iter().filter(|task| is_own(task)).count();
            }
        }
        assert_eq!(joined, [3, 2], "preemptive sets of tasks, and modes");
    }
}
