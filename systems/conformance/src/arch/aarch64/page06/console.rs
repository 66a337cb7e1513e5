//! 06, section 9: the console.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "06/9/the-serial-port-is-not-withheld",
    serial_port_is_ours,
)];

/// The page of the kernel's own console, which the device tree names, is device memory that a program has: the harness prints
/// there. That this check's line appears is the other half of it.
fn serial_port_is_ours(f: &mut Fixture) -> TestResult {
    let tree = super::tree(f)?;
    let parts = ["arm,pl011", "cdns,uart-r1p12"].map(|kind| tree.registers(kind));
    let parts = parts.into_iter().flatten().next();
    let parts = parts.ok_or_else(|| Failure::from("no serial port in the device tree"))?;
    let (at, _) = parts[0];
    let covers = |start: u64, bits: u32| (start..start + (1 << bits)).contains(&at);
    let mut untypeds = f.boot.untypeds();
    let holds =
        untypeds.any(|initial| initial.is_device && covers(initial.paddr, initial.size_bits));
    ensure!(holds, "{at:#x} is in no device untyped");
    Ok(())
}
