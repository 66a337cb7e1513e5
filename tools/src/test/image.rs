//! Disk images, as real machines boot them: the demo's system, through each firmware.

use anyhow::Result;

use super::report::Report;
use super::Filter;
use crate::demo;
use crate::qemu::Firmware;

/// Boots an image through each wanted firmware.
pub(super) fn run(filter: &Filter, report: &mut Report) -> Result<()> {
    for firmware in Firmware::ALL {
        let name = format!("qemu::image::{}", firmware.name());
        if !filter.accepts(&name) {
            continue;
        }
        report.started(&name);
        match demo::from_disk(firmware) {
            Ok(failures) if failures.is_empty() => report.passed(&name),
            Ok(failures) => report.failed(&name, &failures.join("\n")),
            Err(error) => report.failed(&name, &format!("{error:#}")),
        }
    }
    Ok(())
}
