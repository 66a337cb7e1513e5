//! 03, section 3, checks 1 to 15: what Untyped_Retype refuses, and in which order.

use crate::prelude::*;

use super::common::{refuses_other_labels, truncated, works_in_first_phase, works_without_answer};

pub const CHECKS: &[Check] = &[
    check("03/3/1-other-labels", other_labels),
    check("03/3/2-truncated", short_messages),
    check("03/3/3-types-that-are-none", invalid_types),
    check("03/3/4-sizes-out-of-range", sizes_out_of_range),
    check("03/3/5-to-7-sizes-too-small", sizes_too_small),
    check("03/3/8-destination-lookup", destination_lookup),
    check("03/3/9-destination-is-no-cnode", destination_no_cnode),
    check("03/3/10-offset-beyond-the-cnode", offset_beyond),
    check("03/3/11-number-of-objects", numbers_of_objects),
    check("03/3/12-window-beyond-the-cnode", window_beyond),
    check("03/3/13-window-in-use", window_in_use),
    check("03/3/14-not-enough-memory", not_enough_memory),
    check("03/3/15-objects-of-device-memory", device_memory),
    check("03/3/order-of-the-checks", order),
    check("03/3/destination-in-a-slot", destination_in_a_slot),
    check("03/3/by-send", by_send),
    check("03/3/in-a-first-phase", in_first_phase),
];

/// Words of the message.
mod word {
    pub const TYPE: usize = 0;
    pub const SIZE: usize = 1;
    pub const INDEX: usize = 2;
    pub const DEPTH: usize = 3;
    pub const OFFSET: usize = 4;
    pub const COUNT: usize = 5;
}

const RADIX: u32 = 4;
const SLOTS: u64 = 1 << RADIX;
/// Every type.
const TYPES: core::ops::Range<u64> = 0..conformance_kit::arch::FIRST_INVALID_TYPE;
/// Types whose size is theirs.
const FIXED: [u64; 11] = [1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13];

/// An untyped of 2^12 bytes, a CNode, and the Retype of an endpoint into its first slot.
struct Scene {
    untyped: Untyped,
    cnode: CNode,
    retype: Invocation,
}

impl Scene {
    fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let untyped = f.untyped(12)?;
        Self::of(f, untyped)
    }

    fn of(f: &mut Fixture, untyped: Untyped) -> Result<Self, Failure> {
        let cnode = f.cnode(RADIX)?;
        let words = [object::ENDPOINT, 0, 0, 0, 0, 1];
        let retype = Invocation::new(untyped, label::UNTYPED_RETYPE, &words, &[cnode.cptr()]);
        Ok(Self {
            untyped,
            cnode,
            retype,
        })
    }

    fn slot(&self, index: u64) -> Slot {
        self.cnode.slot_at(index, RADIX as u8)
    }

    /// Fails unless the CNode is empty.
    fn ensure_empty(&self, f: &mut Fixture) -> TestResult {
        for index in 0..SLOTS {
            ensure!(f.is_empty(self.slot(index))?, "slot {index} was filled");
        }
        Ok(())
    }

    /// Whether there is an object in the first slot; takes it back.
    fn take_back(&self, f: &mut Fixture) -> Result<bool, Failure> {
        let made = !f.is_empty(self.slot(0))?;
        self.slot(0).delete()?;
        Ok(made)
    }
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    refuses_other_labels(&scene.retype, &[label::UNTYPED_RETYPE])?;
    scene.ensure_empty(f)
}

fn short_messages(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    truncated(&scene.retype)?;
    truncated(&scene.retype.with_word(word::TYPE, TYPES.end))?;
    scene.ensure_empty(f)?;
    scene.retype.expect_ok(&[])
}

fn invalid_types(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    for kind in [TYPES.end, 15, 1 << 8, 1 << 32 | 2, u64::MAX] {
        let retype = scene.retype.with_word(word::TYPE, kind);
        retype.expect_error(InvalidArgument, &[0])?;
        // Before the size.
        retype
            .with_word(word::SIZE, 64)
            .expect_error(InvalidArgument, &[0])?;
    }
    scene.ensure_empty(f)
}

fn sizes_out_of_range(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let range = |kind, size| {
        let retype = scene.retype.with_word(word::TYPE, kind);
        let retype = retype.with_word(word::SIZE, size);
        retype.expect_error(RangeError, &[0, 47])?;
        // Before the destination.
        retype
            .with_word(word::DEPTH, 65)
            .expect_error(RangeError, &[0, 47])
    };
    for kind in TYPES {
        for size in [64, 65, 1 << 8, 1 << 32, u64::MAX - 4, u64::MAX] {
            range(kind, size)?;
        }
    }
    for size in 48..64 {
        range(object::UNTYPED, size)?;
        range(object::SCHED_CONTEXT, size)?;
    }
    for radix in 43..64 {
        range(object::CNODE, radix)?;
    }
    // The largest sizes are of no use here, but in range.
    for (kind, size) in [
        (object::UNTYPED, 47),
        (object::SCHED_CONTEXT, 47),
        (object::CNODE, 42),
    ] {
        let retype = scene.retype.with_word(word::TYPE, kind);
        retype
            .with_word(word::SIZE, size)
            .expect_error(NotEnoughMemory, &[1 << 12])?;
    }
    scene.ensure_empty(f)?;
    // Where the type has a size of its own, any argument in range will do.
    scene.retype.with_word(word::SIZE, 63).expect_ok(&[])
}

fn sizes_too_small(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    for (kind, smallest) in [
        (object::CNODE, 1),
        (object::UNTYPED, 4),
        (object::SCHED_CONTEXT, 7),
    ] {
        let retype = scene.retype.with_word(word::TYPE, kind);
        for size in 0..smallest {
            let retype = retype.with_word(word::SIZE, size);
            retype.expect_error(InvalidArgument, &[1])?;
            // Before the destination.
            retype
                .with_word(word::DEPTH, 65)
                .expect_error(InvalidArgument, &[1])?;
        }
        scene.ensure_empty(f)?;
        retype.with_word(word::SIZE, smallest).expect_ok(&[])?;
        ensure!(scene.take_back(f)?, "type {kind} was not made");
    }
    Ok(())
}

fn destination_lookup(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let lookup = |index, depth| {
        let retype = scene.retype.with_word(word::INDEX, index);
        // Before the offset.
        retype
            .with_word(word::DEPTH, depth)
            .with_word(word::OFFSET, SLOTS)
    };
    let (radix, endpoint) = (u64::from(RADIX), f.endpoint()?);
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let depth_mismatch = LookupFailureType::DepthMismatch as u64;
    let guard_mismatch = LookupFailureType::GuardMismatch as u64;
    for root in [endpoint.cptr(), f.null()?] {
        let by = lookup(0, radix).with_cap(0, root);
        by.expect_error(FailedLookup, &[0, invalid_root])?;
        by.with_word(word::DEPTH, 65)
            .expect_error(FailedLookup, &[0, invalid_root])?;
    }
    for depth in [65, 256, 1 << 32 | radix, u64::MAX] {
        lookup(0, depth).expect_error(RangeError, &[1, 64])?;
    }
    // Fewer bits than the radix; more than there are CNodes for.
    lookup(0, 3).expect_error(FailedLookup, &[0, depth_mismatch, 3, radix])?;
    lookup(0, 9).expect_error(FailedLookup, &[0, depth_mismatch, 5, 0])?;
    let guarded = f.badged(scene.cnode, GuardData::new(0b10, 2).raw())?;
    lookup(0, 6)
        .with_cap(0, guarded)
        .expect_error(FailedLookup, &[0, guard_mismatch, 6, 0b10, 2])?;
    lookup(0, 1)
        .with_cap(0, guarded)
        .expect_error(FailedLookup, &[0, guard_mismatch, 1, 0b10, 2])?;
    scene.ensure_empty(f)
}

fn destination_no_cnode(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let missing = LookupFailureType::MissingCapability as u64;
    let endpoint = f.endpoint()?;
    scene.slot(1).copy_from(f.slot_of(endpoint), Rights::ALL)?;
    let far = scene.retype.with_word(word::OFFSET, SLOTS);
    for direct in [endpoint.cptr(), f.null()?, scene.untyped.cptr()] {
        // Before the offset; the index does not matter.
        far.with_cap(0, direct)
            .with_word(word::INDEX, 5)
            .expect_error(FailedLookup, &[0, missing, 0])?;
    }
    for index in [1, 2] {
        far.with_word(word::INDEX, index)
            .with_word(word::DEPTH, u64::from(RADIX))
            .expect_error(FailedLookup, &[0, missing, u64::from(RADIX)])?;
    }
    let in_root = far.with_cap(0, boot::CNODE).with_word(word::DEPTH, 64);
    in_root
        .with_word(word::INDEX, endpoint.address())
        .expect_error(FailedLookup, &[0, missing, 64])
}

fn offset_beyond(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    for offset in [SLOTS, SLOTS + 1, 1 << 32, u64::MAX] {
        let retype = scene.retype.with_word(word::OFFSET, offset);
        // Before the number of objects.
        for count in [1, 0, 257, u64::MAX] {
            retype
                .with_word(word::COUNT, count)
                .expect_error(RangeError, &[0, SLOTS - 1])?;
        }
    }
    scene.ensure_empty(f)?;
    scene
        .retype
        .with_word(word::OFFSET, SLOTS - 1)
        .expect_ok(&[])
}

fn numbers_of_objects(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    // Before the window, which is too small and in use.
    scene
        .slot(0)
        .copy_from(f.slot_of(scene.cnode), Rights::ALL)?;
    for count in [0, 257, 1 << 8 | 1 << 32, u64::MAX] {
        scene
            .retype
            .with_word(word::COUNT, count)
            .expect_error(RangeError, &[1, 256])?;
    }
    // As many as are allowed: the next check takes over.
    scene
        .retype
        .with_word(word::COUNT, 256)
        .expect_error(RangeError, &[1, SLOTS])?;
    let large = f.cnode(9)?;
    let many = scene.retype.with_cap(0, large);
    many.with_word(word::COUNT, 257)
        .expect_error(RangeError, &[1, 256])?;
    many.with_word(word::COUNT, 256).expect_ok(&[])?;
    for (index, empty) in [(0, false), (255, false), (256, true)] {
        ensure_eq!(f.is_empty(large.slot_at(index, 9))?, empty);
    }
    Ok(())
}

fn window_beyond(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    // Before the use of the window.
    scene
        .slot(SLOTS - 1)
        .copy_from(f.slot_of(scene.cnode), Rights::ALL)?;
    for offset in 0..SLOTS {
        let left = SLOTS - offset;
        let retype = scene.retype.with_word(word::OFFSET, offset);
        for count in [left + 1, 256] {
            retype
                .with_word(word::COUNT, count)
                .expect_error(RangeError, &[1, left])?;
        }
    }
    scene.slot(SLOTS - 1).delete()?;
    scene.ensure_empty(f)?;
    scene
        .retype
        .with_word(word::OFFSET, 5)
        .with_word(word::COUNT, SLOTS - 5)
        .expect_ok(&[])
}

fn window_in_use(f: &mut Fixture) -> TestResult {
    const USED: u64 = 8;
    let scene = Scene::new(f)?;
    scene
        .slot(USED)
        .copy_from(f.slot_of(scene.cnode), Rights::ALL)?;
    for (offset, count) in [(8, 1), (8, 8), (0, 9), (0, 16), (5, 5)] {
        let retype = scene.retype.with_word(word::OFFSET, offset);
        let retype = retype.with_word(word::COUNT, count);
        retype.expect_error(DeleteFirst, &[])?;
        // Before the memory.
        retype
            .with_word(word::TYPE, arch_object::HUGE_PAGE)
            .expect_error(DeleteFirst, &[])?;
    }
    scene.slot(USED).delete()?;
    scene.ensure_empty(f)?;
    scene
        .slot(USED)
        .copy_from(f.slot_of(scene.cnode), Rights::ALL)?;
    for (offset, count) in [(0, 8), (9, 7)] {
        let retype = scene.retype.with_word(word::OFFSET, offset);
        retype.with_word(word::COUNT, count).expect_ok(&[])?;
    }
    Ok(())
}

fn not_enough_memory(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let make = |kind, count| {
        let retype = scene.retype.with_word(word::TYPE, kind);
        retype.with_word(word::COUNT, count)
    };
    make(object::TCB, 3).expect_error(NotEnoughMemory, &[4096])?;
    make(arch_object::PAGE, 2).expect_error(NotEnoughMemory, &[4096])?;
    make(arch_object::LARGE_PAGE, 1).expect_error(NotEnoughMemory, &[4096])?;
    make(arch_object::HUGE_PAGE, 1).expect_error(NotEnoughMemory, &[4096])?;
    scene.ensure_empty(f)?;
    // What is left counts, whole objects of it.
    scene.retype.expect_ok(&[])?;
    let next = |kind, count| make(kind, count).with_word(word::OFFSET, 1);
    next(object::TCB, 2).expect_error(NotEnoughMemory, &[4080])?;
    next(arch_object::PAGE, 1).expect_error(NotEnoughMemory, &[4080])?;
    next(object::TCB, 1).expect_ok(&[])?;
    next(object::ENDPOINT, 1)
        .with_word(word::OFFSET, 2)
        .expect_error(NotEnoughMemory, &[0])
}

fn device_memory(f: &mut Fixture) -> TestResult {
    let untyped = f.device_untyped(12)?;
    let scene = Scene::of(f, untyped)?;
    let make = |kind, size| {
        let retype = scene.retype.with_word(word::TYPE, kind);
        retype.with_word(word::SIZE, size)
    };
    for kind in FIXED.into_iter().filter(|kind| TYPES.contains(kind)) {
        let frames = [
            arch_object::PAGE,
            arch_object::LARGE_PAGE,
            arch_object::HUGE_PAGE,
        ];
        if !frames.contains(&kind) {
            make(kind, 0).expect_error(InvalidArgument, &[1])?;
        }
    }
    // After the memory.
    make(object::TCB, 0)
        .with_word(word::COUNT, 3)
        .expect_error(NotEnoughMemory, &[4096])?;
    make(object::CNODE, 2).expect_error(InvalidArgument, &[1])?;
    make(object::SCHED_CONTEXT, 7).expect_error(InvalidArgument, &[1])?;
    scene.ensure_empty(f)?;
    make(object::UNTYPED, 11).expect_ok(&[])?;
    scene.slot(0).delete()?;
    make(arch_object::PAGE, 0).expect_ok(&[])
}

/// Two violations at once, neighbours in the list: the first wins.
fn order(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let retype = |changes: &[(usize, u64)]| {
        changes
            .iter()
            .fold(scene.retype.clone(), |all, &(word, value)| {
                all.with_word(word, value)
            })
    };
    let missing = LookupFailureType::MissingCapability as u64;
    scene
        .slot(0)
        .copy_from(f.slot_of(scene.cnode), Rights::ALL)?;
    retype(&[(word::TYPE, TYPES.end), (word::SIZE, 64)]).expect_error(InvalidArgument, &[0])?;
    retype(&[
        (word::TYPE, object::CNODE),
        (word::SIZE, 0),
        (word::DEPTH, 65),
    ])
    .expect_error(InvalidArgument, &[1])?;
    retype(&[(word::DEPTH, 65), (word::OFFSET, 16)]).expect_error(RangeError, &[1, 64])?;
    retype(&[(word::INDEX, 3), (word::DEPTH, 4), (word::OFFSET, 16)])
        .expect_error(FailedLookup, &[0, missing, 4])?;
    retype(&[(word::OFFSET, 16), (word::COUNT, 0)]).expect_error(RangeError, &[0, 15])?;
    retype(&[(word::COUNT, 257)]).expect_error(RangeError, &[1, 256])?;
    retype(&[(word::COUNT, 17)]).expect_error(RangeError, &[1, 16])?;
    retype(&[(word::TYPE, arch_object::LARGE_PAGE)]).expect_error(DeleteFirst, &[])
}

fn destination_in_a_slot(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    // By the root CNode, 64 bits.
    scene
        .retype
        .with_cap(0, boot::CNODE)
        .with_word(word::INDEX, scene.cnode.address())
        .with_word(word::DEPTH, 64)
        .with_word(word::OFFSET, 3)
        .expect_ok(&[])?;
    ensure!(!f.is_empty(scene.slot(3))?, "slot 3 is empty");
    // By a CNode that holds it; only the low bits of the index count.
    let holder = f.cnode(2)?;
    holder
        .slot_at(1, 2)
        .copy_from(f.slot_of(scene.cnode), Rights::ALL)?;
    scene
        .retype
        .with_cap(0, holder)
        .with_word(word::INDEX, 1 << 63 | 0b101)
        .with_word(word::DEPTH, 2)
        .with_word(word::OFFSET, 4)
        .expect_ok(&[])?;
    ensure!(!f.is_empty(scene.slot(4))?, "slot 4 is empty");
    Ok(())
}

fn by_send(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    works_without_answer(f, &scene.retype, |f| scene.take_back(f))?;
    for call in SENDING {
        scene.retype.with_word(word::COUNT, 0).send(call)?;
    }
    scene.ensure_empty(f)
}

fn in_first_phase(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    works_in_first_phase(f, &scene.retype, |f| scene.take_back(f))
}
