//! Section 2: layout of the boot information.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("06/2/one-core-is-reported", one_core)];

fn one_core(f: &mut Fixture) -> TestResult {
    let info = f.boot.raw();
    ensure_eq!((info.node_id, info.num_nodes), (0, 1));
    ensure_eq!(info.sched_control.len(), 1);
    Ok(())
}
