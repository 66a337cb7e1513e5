//! Interrupts (ABI 03, section 7).

use rustc_hash::FxHashSet;
use sandglass_kernel::arch::abi::MAX_IRQ;
use sandglass_model::isa::IrqNumber;

use super::{require, Finding};
use crate::census::Census;

/// An interrupt has a line exactly if some capability to its handler exists; only then it has a
/// notification, and nothing else.
pub fn issued_interrupts_have_handlers(census: &Census) -> Finding {
    let handlers: FxHashSet<IrqNumber> = census
        .sites
        .iter()
        .filter_map(|site| site.view.cap.irq())
        .collect();
    for irq in 0..=MAX_IRQ as IrqNumber {
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
