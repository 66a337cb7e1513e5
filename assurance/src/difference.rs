//! How two states differ, readably: only the entries that do.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

use sandglass_model::state::Core;
use sandglass_model::State;

use crate::abstraction::Windows;

/// Brings a state of either side to the form in which they are compared: what neither users nor
/// devices can ever observe is the same in both.
pub fn normalise(state: &mut State) {
    // Nobody pays for idleness.
    for core in &mut state.cores {
        if core.context.is_none() {
            core.consumed = 0;
        }
    }
}

/// Whether the kernel's state is what the specification says; memory counts inside `windows`.
pub fn agree(kernel: &State, model: &State, windows: &Windows) -> bool {
    kernel.cores == model.cores
        && kernel.executing == model.executing
        && kernel.threads == model.threads
        && kernel.caps == model.caps
        && kernel.contexts == model.contexts
        && kernel.endpoints == model.endpoints
        && kernel.notifications == model.notifications
        && kernel.replies == model.replies
        && kernel.cnodes == model.cnodes
        && kernel.tables == model.tables
        && kernel.pools == model.pools
        && kernel.asids == model.asids
        && kernel.irqs == model.irqs
        && kernel.ports == model.ports
        && kernel.domains == model.domains
        && kernel.devices == model.devices
        && kernel.clock == model.clock
        && windows.agree(&model.memory, &kernel.memory)
}

/// What differs between the kernel's state and that of the specification.
pub fn describe(kernel: &State, model: &State, windows: &Windows) -> String {
    let mut text = String::new();
    maps(
        &mut text,
        "caps.slots",
        &kernel.caps.slots,
        &model.caps.slots,
    );
    if kernel.caps.lists != model.caps.lists {
        for list in &kernel.caps.lists {
            if !model.caps.lists.contains(list) {
                let _ = writeln!(text, "caps.lists: only in the kernel: {list:?}");
            }
        }
        for list in &model.caps.lists {
            if !kernel.caps.lists.contains(list) {
                let _ = writeln!(text, "caps.lists: only specified: {list:?}");
            }
        }
    }
    maps(&mut text, "cnodes", &kernel.cnodes, &model.cnodes);
    maps(&mut text, "threads", &kernel.threads, &model.threads);
    maps(&mut text, "endpoints", &kernel.endpoints, &model.endpoints);
    maps(
        &mut text,
        "notifications",
        &kernel.notifications,
        &model.notifications,
    );
    maps(&mut text, "replies", &kernel.replies, &model.replies);
    maps(&mut text, "contexts", &kernel.contexts, &model.contexts);
    maps(&mut text, "tables", &kernel.tables, &model.tables);
    maps(&mut text, "pools", &kernel.pools, &model.pools);
    maps(&mut text, "asids", &kernel.asids, &model.asids);
    maps(&mut text, "irqs", &kernel.irqs, &model.irqs);
    values(&mut text, "ports", &kernel.ports, &model.ports);
    values(&mut text, "domains", &kernel.domains, &model.domains);
    for (i, (a, b)) in kernel.cores.iter().zip(&model.cores).enumerate() {
        cores(&mut text, i, a, b);
    }
    values(&mut text, "executing", &kernel.executing, &model.executing);
    maps(
        &mut text,
        "memory",
        &kernel.memory,
        &windows.restrict(&model.memory),
    );
    values(&mut text, "devices", &kernel.devices, &model.devices);
    values(&mut text, "clock", &kernel.clock, &model.clock);
    text
}

/// What differs of core `i`.
fn cores(text: &mut String, i: usize, a: &Core, b: &Core) {
    let name = |part| format!("cores[{i}].{part}");
    values(text, &name("thread"), &a.thread, &b.thread);
    values(text, &name("context"), &a.context, &b.context);
    values(text, &name("now"), &a.now, &b.now);
    values(text, &name("consumed"), &a.consumed, &b.consumed);
    for (domain, (a, b)) in a.queues.iter().zip(&b.queues).enumerate() {
        let name = |what| format!("cores[{i}].queues[{domain}].{what}");
        maps(text, &name("ready"), &a.ready, &b.ready);
        values(text, &name("release"), &a.release, &b.release);
    }
    values(text, &name("deadline"), &a.deadline, &b.deadline);
    values(text, &name("action"), &a.action, &b.action);
    values(text, &name("reprogram"), &a.reprogram, &b.reprogram);
    values(text, &name("look"), &a.look, &b.look);
}

fn values<T: PartialEq + Debug>(text: &mut String, name: &str, kernel: &T, model: &T) {
    if kernel != model {
        let _ = writeln!(
            text,
            "{name}:\n    kernel:    {kernel:x?}\n    specified: {model:x?}"
        );
    }
}

fn maps<K: Ord + Debug, V: PartialEq + Debug>(
    text: &mut String,
    name: &str,
    kernel: &BTreeMap<K, V>,
    model: &BTreeMap<K, V>,
) {
    for (key, value) in kernel {
        match model.get(key) {
            Some(other) if other == value => {}
            Some(other) => {
                let _ = writeln!(
                    text,
                    "{name}[{key:x?}]:\n    kernel:    {value:x?}\n    specified: {other:x?}"
                );
            }
            None => {
                let _ = writeln!(text, "{name}[{key:x?}]: only in the kernel: {value:x?}");
            }
        }
    }
    for (key, value) in model {
        if !kernel.contains_key(key) {
            let _ = writeln!(text, "{name}[{key:x?}]: only specified: {value:x?}");
        }
    }
}
