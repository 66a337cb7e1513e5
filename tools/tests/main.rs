//! Tests of the command from outside, one program.

mod aarch64;
mod architectures;
mod bench;
mod boot;
mod bounds;
mod c_components;
mod c_roots;
mod debug;
mod demo;
mod descriptions;
mod gates;
mod image;
mod kernel_rules;
mod listings;
mod loader;
mod machine_events;
mod machine_state;
mod monitor;
mod platforms;
mod projects;
mod recovery;
mod rogues;
mod sdk;
mod sharing;
mod speculation;
mod systems;
mod time_oracle;
mod waiting;
mod windows;

// The plugin cannot be linked without the emulator, so its measurements are tested from here.
#[allow(dead_code)]
#[path = "../plugin/src/barriers.rs"]
mod barriers;
#[allow(dead_code)]
#[path = "../plugin/src/cycles.rs"]
mod cycles;
#[allow(dead_code)]
#[path = "../plugin/src/meter.rs"]
mod meter;
#[allow(dead_code)]
#[path = "../plugin/src/visits.rs"]
mod visits;
#[allow(dead_code)]
#[path = "../plugin/src/waits.rs"]
mod waits;
#[allow(dead_code)]
#[path = "../plugin/src/watch/mod.rs"]
mod watch;
