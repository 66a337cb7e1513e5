//! Where capability pointers lead in spaces of several levels (02, section 4).

use sandglass_abi::boot::slot;
use sandglass_abi::cnode::GuardData;
use sandglass_abi::error::{ErrorNumber, LookupFailureType};
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_kernel::cap::{lookup, Capability};
use sandglass_testkit::world::{Refused, World};

const ALL: u64 = 0b1111;

/// A chain of `levels` CNodes of 2^`radix` slots, each with a guard of `guard` zeroes, each in the
/// last slot of the one before; the slot of the first, which has no guard, and what is in the last
/// slot of the last.
fn chain(w: &mut World, levels: usize, radix: u64, guard: u32) -> (u64, u64) {
    let leaf = w.make(types::ENDPOINT, 0);
    let mut inner = leaf;
    let last = (1 << radix) - 1;
    for level in 0..levels {
        let node = w.make(types::CNODE, radix);
        let words = [last, radix, inner, 64, ALL];
        w.invoke(node, label::CNODE_COPY, &words, &[slot::CNODE])
            .expect("copied");
        let guarded = level + 1 < levels && guard > 0;
        inner = if guarded {
            w.mint(node, ALL, GuardData::new(0, guard).raw())
                .expect("minted")
        } else {
            node
        };
    }
    (inner, leaf)
}

/// The capability that `index` with `depth` names in the space of `root`.
fn named(w: &mut World, root: u64, index: u64, depth: u64) -> Result<Capability, Refused> {
    let copy = w.fresh_slot();
    let words = [copy, 64, index, depth, ALL];
    w.invoke(slot::CNODE, label::CNODE_COPY, &words, &[root])?;
    Ok(w.cap(copy))
}

#[test]
fn every_level_of_a_chain_is_named_by_as_many_bits() {
    for (radix, guard) in [(1, 0), (1, 2), (2, 0), (3, 1)] {
        for levels in [1, 2, 3, 5] {
            let mut w = World::new();
            let (root, leaf) = chain(&mut w, levels, radix, guard);
            let step = radix + u64::from(guard);
            let mut index = 0;
            for level in 1..=levels as u64 {
                // Guards are zeroes, indices ones; the first CNode has no guard.
                index = index << step | ((1 << radix) - 1);
                let depth = level * step - u64::from(guard);
                let cap = named(&mut w, root, index, depth).expect("a capability");
                let is_leaf = level == levels as u64;
                assert_eq!(cap.endpoint().is_some(), is_leaf, "level {level}");
                assert_eq!(cap.cnode().is_some(), !is_leaf, "level {level}");
                if is_leaf {
                    assert_eq!(cap.word(), w.cap(leaf).word());
                }
            }
        }
    }
}

/// An operation names a slot exactly: bits that are left over are an error, and so are too few.
#[test]
fn operations_use_every_bit() {
    for (radix, guard) in [(1, 0), (2, 0), (2, 3)] {
        let mut w = World::new();
        let (root, _) = chain(&mut w, 3, radix, guard);
        let depth = 3 * radix + 2 * u64::from(guard);
        let one = (1 << radix) - 1;
        let step = radix + u64::from(guard);
        let index = one << (2 * step) | one << step | one;
        named(&mut w, root, index, depth).expect("the leaf");
        let failure = |refused: Refused| (refused.error, refused.details[..2].to_vec());
        let long = named(&mut w, root, index << 1, depth + 1).unwrap_err();
        assert_eq!(
            failure(long),
            (
                ErrorNumber::FailedLookup,
                vec![1, LookupFailureType::DepthMismatch as u64]
            )
        );
        if step > 1 {
            let short = named(&mut w, root, index >> 1, depth - 1).unwrap_err();
            let mismatch = LookupFailureType::DepthMismatch as u64;
            assert_eq!(short.error, ErrorNumber::FailedLookup);
            assert_eq!(short.details, [1, mismatch, step - 1, step]);
        }
        if guard > 0 {
            let other = index | 1 << (step - 1);
            let other = named(&mut w, root, other, depth).unwrap_err();
            let mismatch = LookupFailureType::GuardMismatch as u64;
            assert_eq!(other.details, [1, mismatch, step, 0, guard.into()]);
        }
    }
}

/// A guard that the bits have is no mismatch, whatever its bits are (02, section 4).
#[test]
fn too_few_bits_behind_a_guard_are_a_mismatch_of_depth() {
    let mut w = World::new();
    let node = w.make(types::CNODE, 2);
    let guard = GuardData::new(0b101, 3).raw();
    let root = w.mint(node, ALL, guard).expect("minted");
    let refused = named(&mut w, root, 0b1011, 4).unwrap_err();
    let mismatch = LookupFailureType::DepthMismatch as u64;
    assert_eq!(refused.details, [1, mismatch, 4, 5]);
}

/// A pointer to a capability goes through every guard on its way, and may have bits left over.
#[test]
fn a_pointer_leads_nowhere_if_a_guard_differs() {
    let (radix, guard) = (2, 3);
    let mut w = World::new();
    let (root, leaf) = chain(&mut w, 3, radix, guard);
    let step = radix + u64::from(guard);
    let depth = 3 * radix + 2 * u64::from(guard);
    let left_over = 7;
    let first_guard = GuardData::new(0, 64 - depth as u32 - left_over);
    let root = w.mint(root, ALL, first_guard.raw()).expect("minted");
    let root = w.cap(root);
    let index = (0b11 << (2 * step) | 0b11 << step | 0b11) << left_over;
    let found = lookup::slot(&w.k, root, index).expect("the leaf");
    assert_eq!(found.at(&w.k).cap().word(), w.cap(leaf).word());
    let indices = index;
    for bit in (0..64).filter(|bit| indices >> bit & 1 == 0) {
        let found = lookup::slot(&w.k, root, index | 1 << bit);
        assert_eq!(found.is_some(), bit < left_over, "bit {bit}");
    }
}

/// A guard admits the one number that it is, whatever its bits.
#[test]
fn a_guard_admits_itself_only() {
    let mut w = World::new();
    let node = w.make(types::CNODE, 2);
    let leaf = w.make(types::ENDPOINT, 0);
    let words = [1, 2, leaf, 64, ALL];
    w.invoke(node, label::CNODE_COPY, &words, &[slot::CNODE])
        .expect("copied");
    for guard in 0..16 {
        let guarded = w.mint(node, ALL, GuardData::new(guard, 4).raw());
        let guarded = guarded.expect("minted");
        for named_by in 0..16 {
            let found = named(&mut w, guarded, named_by << 2 | 1, 6);
            assert_eq!(found.is_ok(), named_by == guard, "{named_by} for {guard}");
        }
        w.delete(guarded).expect("deleted");
    }
}
