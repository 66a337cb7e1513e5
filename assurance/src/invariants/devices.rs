//! Interrupts and I/O ports (ABI 03, sections 7 and 8.6).

use rustc_hash::FxHashSet;
use sandglass_abi::vspace::x86_64::MAX_IRQ;

use super::{require, Finding};
use crate::census::Census;

/// An interrupt has a line exactly if some capability to its handler exists; only then it has a
/// notification, and nothing else.
pub fn issued_interrupts_have_handlers(census: &Census) -> Finding {
    let handlers: FxHashSet<u8> = census
        .sites
        .iter()
        .filter_map(|site| site.view.cap.irq())
        .collect();
    for irq in 0..=MAX_IRQ as u8 {
        let view = census.k.irqs.inspect(irq);
        let has_handler = handlers.contains(&irq);
        require!(
            view.line.is_some() == has_handler,
            "interrupt {irq} has the line {:?}, and a handler: {has_handler}",
            view.line
        );
        let Some(slot) = view.slot else { continue };
        if let Some(site) = census.site(slot) {
            require!(
                has_handler && site.view.cap.notification().is_some(),
                "interrupt {irq} has {:?}, and a handler: {has_handler}",
                site.view.cap
            );
        }
    }
    Ok(())
}

/// A port is marked as issued exactly if some capability covers it.
pub fn issued_ports_have_capabilities(census: &Census) -> Finding {
    let mut covered = vec![0u64; 1 << 10];
    for ports in census
        .sites
        .iter()
        .filter_map(|site| site.view.cap.io_ports())
    {
        for port in ports.first..=ports.last {
            covered[usize::from(port / 64)] |= 1 << (port % 64);
        }
    }
    for (i, &covered) in covered.iter().enumerate() {
        let marked = census.k.arch.ports.inspect(i).unwrap_or(0);
        require!(
            marked == covered,
            "of the ports from {} on {marked:#x} are issued, but {covered:#x} have capabilities",
            i * 64
        );
    }
    Ok(())
}
