//! How two states differ, readably: only the entries that do.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

use sandglass_model::State;

use crate::abstraction::Windows;

/// Brings a state of either side to the form in which they are compared: what neither users nor
/// devices can ever observe is the same in both.
pub fn normalise(state: &mut State) {
    // Nobody pays for idleness.
    if state.core.context.is_none() {
        state.core.consumed = 0;
    }
}

/// Whether the kernel's state is what the specification says; memory counts inside `windows`.
pub fn agree(kernel: &State, model: &State, windows: &Windows) -> bool {
    kernel.core == model.core
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
    let (a, b) = (&kernel.core, &model.core);
    values(&mut text, "core.thread", &a.thread, &b.thread);
    values(&mut text, "core.context", &a.context, &b.context);
    values(&mut text, "core.now", &a.now, &b.now);
    values(&mut text, "core.consumed", &a.consumed, &b.consumed);
    maps(&mut text, "core.ready", &a.ready, &b.ready);
    values(&mut text, "core.release", &a.release, &b.release);
    values(&mut text, "core.deadline", &a.deadline, &b.deadline);
    values(&mut text, "core.action", &a.action, &b.action);
    values(&mut text, "core.reprogram", &a.reprogram, &b.reprogram);
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
