//! What the tests of the specification share.

// Each test binary uses its part of this.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use sandglass_model::isa::{COUNT, UNIT_US};
use sandglass_model::state::{
    Capabilities, Clock, ContextId, Core, CoreId, Devices, Domains, Registers, SchedContext,
    Thread, ThreadId, ThreadState, Ticks,
};
use sandglass_model::time::context;
use sandglass_model::State;

pub const MILLISECOND: Ticks = 1000;

/// A state with nothing in it, idle at 1 ms. One tick is a microsecond.
pub fn empty() -> State {
    State {
        clock: Clock {
            ticks_per_unit: UNIT_US,
        },
        caps: Capabilities::default(),
        cnodes: BTreeMap::new(),
        threads: BTreeMap::new(),
        endpoints: BTreeMap::new(),
        notifications: BTreeMap::new(),
        replies: BTreeMap::new(),
        contexts: BTreeMap::new(),
        tables: BTreeMap::new(),
        pools: BTreeMap::new(),
        asids: BTreeMap::new(),
        irqs: BTreeMap::new(),
        ports: BTreeSet::new(),
        domains: Domains {
            entries: vec![(0, 1), (0, 0)],
            start: 0,
            index: 0,
            current: 0,
            end: Ticks::MAX,
        },
        cores: vec![Core::idle(1000)],
        executing: CoreId(0),
        readings: Default::default(),
        memory: BTreeMap::new(),
        devices: Devices::default(),
    }
}

/// Adds an inactive thread `n` of `priority`, without a context.
pub fn passive(s: &mut State, n: u64, priority: u8) -> ThreadId {
    let id = ThreadId(n);
    let thread = Thread {
        state: ThreadState::Inactive,
        registers: Registers {
            user: [0; COUNT],
            next_ip: 0,
        },
        priority,
        mcp: 255,
        domain: 0,
        core: CoreId(0),
        fpu_disabled: false,
        buffer_address: 0,
        fault: None,
        context: None,
        notification: None,
        yield_to: None,
    };
    s.threads.insert(id, thread);
    id
}

/// Adds an inactive thread `n` of `priority` with a context of the same number: budget and period in
/// milliseconds, equal ones for round-robin.
pub fn add(s: &mut State, n: u64, priority: u8, budget: u64, period: u64) -> ThreadId {
    add_on(s, CoreId(0), n, priority, budget, period)
}

/// The same on `core`.
pub fn add_on(
    s: &mut State,
    core: CoreId,
    n: u64,
    priority: u8,
    budget: u64,
    period: u64,
) -> ThreadId {
    let (id, c) = (passive(s, n, priority), ContextId(n));
    let unconfigured = SchedContext {
        bits: 8,
        period: 0,
        max_refills: 0,
        refills: Vec::new(),
        consumed: 0,
        badge: 0,
        sporadic: false,
        core: CoreId(0),
        thread: None,
        notification: None,
        reply: None,
        yield_from: None,
    };
    s.contexts.insert(c, unconfigured);
    let parameters = context::Parameters {
        budget: budget * MILLISECOND,
        period: period * MILLISECOND,
        max_refills: 4,
        badge: n,
        sporadic: false,
    };
    context::configure(s, c, core, parameters);
    context::bind_thread(s, c, id);
    id
}
