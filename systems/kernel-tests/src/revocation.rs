//! Revocation leaves no derived capability alive, however it was derived (ABI 02, sections 5 to 7).

use alloc::vec::Vec;

use sandglass::cap::{CNode, Rights, Slot};
use sandglass::ensure;
use sandglass::testing::{Suite, TestResult};

use crate::fixture::Fixture;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(suite, "revocation", &[("takes_random_derivations", random)]);
}

const RADIX: u32 = 6;

fn inner(cnode: CNode, index: u64) -> Slot {
    cnode.slot_at(index, RADIX as u8)
}

/// Copies and badged copies of copies, at random, over two CNodes; then the original is revoked.
fn random(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let cnodes = [resources.cnode(RADIX)?, resources.cnode(RADIX)?];
    let endpoint = resources.endpoint()?;
    let original = resources.slot_of(endpoint);
    let all: Vec<Slot> = (0..64)
        .flat_map(|index| cnodes.map(|cnode| inner(cnode, index)))
        .collect();
    for seed in 1..=3u64 {
        let mut random = seed;
        let mut next = move |bound: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % bound
        };
        let mut filled = alloc::vec![original];
        for &slot in &all {
            let source = filled[next(filled.len())];
            match next(3) {
                0 => slot.copy_from(source, Rights::ALL)?,
                // A badged capability cannot be badged again: then it is copied.
                1 => slot
                    .mint_from(source, Rights::ALL, next(5) as u64 + 1)
                    .or_else(|_| slot.copy_from(source, Rights::ALL))?,
                _ => {
                    let from = filled.len() - 1;
                    if from == 0 {
                        continue;
                    }
                    slot.move_from(filled[from])?;
                    filled.pop();
                }
            }
            filled.push(slot);
        }
        // Deletions in between do not lose anything.
        for _ in 0..20 {
            filled[1 + next(filled.len() - 1)].delete()?;
        }
        original.revoke()?;
        for (index, &slot) in all.iter().enumerate() {
            ensure!(
                fixture.is_empty(slot)?,
                "slot {index} of seed {seed} survived"
            );
        }
    }
    Ok(())
}
