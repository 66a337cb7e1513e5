//! What a debugger needs to know of a system: where symbols are, and the names of what the description has numbered.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use sandglass_description::{Component as Described, Object, System};
use serde::Serialize;

use crate::arch::Arch;
use crate::system::Symbols;

/// A place to stop at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Breakpoint {
    component: String,
    /// A function, `FILE:LINE` or `*ADDRESS`.
    location: String,
}

impl Breakpoint {
    /// Reads `COMPONENT:LOCATION`.
    ///
    /// # Errors
    /// It is none, or there is no such component.
    pub fn parse(text: &str, system: &System) -> Result<Self> {
        let names = || {
            let names: Vec<&str> = system.components.iter().map(|c| c.name.as_str()).collect();
            names.join(", ")
        };
        let Some((component, location)) = text.split_once(':') else {
            bail!(
                "`--break {text}` has no component: it is `COMPONENT:LOCATION`; the components are {}",
                names()
            );
        };
        if !system.components.iter().any(|c| c.name == component) {
            bail!(
                "`--break {text}`: no component is called `{component}`; the components are {}",
                names()
            );
        }
        Ok(Self {
            component: component.to_owned(),
            location: location.trim_start_matches(':').to_owned(),
        })
    }
}

/// ELF files with debugging information, which stay as long as the session, whatever is built meanwhile.
pub struct SymbolFiles {
    launcher: PathBuf,
    components: Vec<PathBuf>,
}

/// Writes what a debugger reads of a system to `folder`.
///
/// # Errors
/// A file cannot be written.
pub fn write_symbols(folder: &Path, system: &System, symbols: &Symbols) -> Result<SymbolFiles> {
    let write = |name: &str, content: &[u8]| {
        let path = folder.join(format!("{name}.elf"));
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    };
    let components = system.components.iter().zip(&symbols.components);
    Ok(SymbolFiles {
        launcher: write(".launcher", &symbols.launcher)?,
        components: components
            .map(|(component, content)| write(&component.name, content))
            .collect::<Result<_>>()?,
    })
}

#[derive(Serialize)]
struct Component {
    name: String,
    executable: String,
    threads: Vec<String>,
}

/// Where the emulator waits.
pub enum Target {
    /// In the folder of a session that is for one debugger only.
    Socket(String),
    /// On this machine.
    Port(u16),
}

/// As `tools/gdb/sg/system.py` reads it.
#[derive(Serialize)]
pub struct Session {
    arch: &'static str,
    /// What gdb connects to.
    target: String,
    /// The folder of the file is removed when gdb ends.
    temporary: bool,
    kernel: String,
    launcher: String,
    components: Vec<Component>,
    endpoints: Vec<String>,
    notifications: Vec<String>,
    breakpoints: Vec<Breakpoint>,
}

impl Session {
    pub fn new(
        arch: Arch,
        system: &System,
        files: SymbolFiles,
        kernel: &Path,
        breakpoints: Vec<Breakpoint>,
        target: Target,
    ) -> Self {
        let components = system.components.iter().zip(&files.components);
        let (target, temporary) = match target {
            Target::Socket(path) => (path, true),
            Target::Port(port) => (format!("127.0.0.1:{port}"), false),
        };
        Self {
            arch: arch.name(),
            target,
            temporary,
            kernel: text(kernel),
            launcher: text(&files.launcher),
            components: components
                .map(|(component, executable)| Component {
                    name: component.name.clone(),
                    executable: text(executable),
                    threads: component.threads.iter().map(|t| t.name.clone()).collect(),
                })
                .collect(),
            endpoints: names_of(system, system.endpoints, "endpoint", Object::Endpoint),
            notifications: names_of(
                system,
                system.notifications,
                "notification",
                Object::Notification,
            ),
            breakpoints,
        }
    }

    /// Writes it to `file`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let json = serde_json::to_vec_pretty(self).context("cannot encode the session")?;
        fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Of each object, the name under which the first component that has it knows it, which is the description's if that
/// one has no other for it.
fn names_of(system: &System, count: u32, kind: &str, object: fn(u32) -> Object) -> Vec<String> {
    let granted = |index: u32| {
        let grants = system.components.iter().flat_map(|c| &c.grants);
        let mut named = grants.filter(|grant| grant.object == object(index) && grant.is_named());
        named.next().map(|grant| grant.name.clone())
    };
    let ready = |index: u32| match object(index) {
        Object::Notification(index) => system.components.iter().find_map(|c| ready_of(c, index)),
        _ => None,
    };
    (0..count)
        .map(|index| {
            let name = ready(index).or_else(|| granted(index));
            name.unwrap_or_else(|| format!("{kind} {index}"))
        })
        .collect()
}

/// What the notification is called through which a thread of the component says that it is ready.
fn ready_of(component: &Described, notification: u32) -> Option<String> {
    let mut threads = component.threads.iter();
    let thread = threads.find(|thread| thread.ready == Some(notification))?;
    Some(format!("{} is ready", thread.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{self, Source};
    use crate::workspace;

    fn hello() -> System {
        let path = workspace::root().join("systems/examples/hello/SYSTEM.toml");
        system::check(&Source::read(&path).unwrap()).unwrap().system
    }

    #[test]
    fn breakpoints_are_in_components_that_exist() {
        let system = hello();
        let stop = Breakpoint::parse("visitor:hello_visitor::main", &system).unwrap();
        assert_eq!(stop.component, "visitor");
        assert_eq!(stop.location, "hello_visitor::main");
        let line = Breakpoint::parse("visitor:src/main.rs:13", &system).unwrap();
        assert_eq!(line.location, "src/main.rs:13");
        for wrong in ["main", "nobody:main"] {
            let error = Breakpoint::parse(wrong, &system).unwrap_err().to_string();
            assert!(error.contains("shouter, visitor"), "{error}");
        }
    }

    #[test]
    fn objects_have_the_descriptions_names() {
        let system = hello();
        let endpoints = names_of(&system, system.endpoints, "endpoint", Object::Endpoint);
        assert_eq!(endpoints, ["shout"]);
        let notifications = names_of(
            &system,
            system.notifications,
            "notification",
            Object::Notification,
        );
        assert_eq!(notifications, ["shouter is ready"]);
    }
}
