//! What the tests of the specification share.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_model::state::{Capabilities, Clock, Core, CoreId, Devices, Domains};
use sandglass_model::State;

/// A state with nothing in it, idle at 1 ms. One tick is a microsecond.
pub fn empty() -> State {
    State {
        clock: Clock { ticks_per_us: 1 },
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
            left: 1,
        },
        cores: vec![Core::idle(1000)],
        executing: CoreId(0),
        memory: BTreeMap::new(),
        devices: Devices::default(),
    }
}
