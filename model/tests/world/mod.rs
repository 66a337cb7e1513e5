//! What the tests of the specification share.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_model::state::{Action, Capabilities, Clock, Core, Devices, Domains, Ticks};
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
        core: Core {
            thread: None,
            context: None,
            now: 1000,
            consumed: 0,
            ready: BTreeMap::new(),
            release: Vec::new(),
            deadline: Ticks::MAX,
            action: Action::ResumeCurrent,
            reprogram: false,
        },
        memory: BTreeMap::new(),
        devices: Devices::default(),
    }
}
