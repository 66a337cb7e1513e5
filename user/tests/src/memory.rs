//! Slots, untyped memory and mappings.

use sandglass::cap::{Attributes, FrameSize, ObjectType, Rights, Untyped};
use sandglass::testing::{Suite, TestResult};
use sandglass::{ensure, ensure_eq, ErrorKind};

use crate::Bench;

pub fn run(suite: &mut Suite, bench: &mut Bench) {
    suite.run("memory::new_memory_is_zero_and_writable", || {
        new_memory(bench)
    });
    suite.run("memory::the_mirrored_watermark_is_the_kernels", || {
        watermark(bench)
    });
    suite.run("memory::one_frame_is_seen_at_two_addresses", || {
        aliases(bench)
    });
    suite.run("memory::large_frames_are_mapped", || large_frame(bench));
    suite.run(
        "memory::capabilities_keep_their_addresses_in_a_larger_cspace",
        || enlarge(bench),
    );
}

fn new_memory(bench: &mut Bench) -> TestResult {
    let bytes = 3 * 4096;
    let region = bench
        .process
        .space
        .map_new(&mut bench.process.resources, bytes)?;
    ensure_eq!(region.frames().len(), 3);
    // SAFETY: the region is mapped and used by nothing else.
    let memory = unsafe { core::slice::from_raw_parts_mut(region.as_mut_ptr(), bytes as usize) };
    ensure!(
        memory.iter().all(|&byte| byte == 0),
        "new memory is not zero"
    );
    memory.fill(0xa5);
    let frame = region.frames().nth(1).ok_or("no second frame")?;
    let mut seen = 0;
    bench
        .process
        .space
        .fill_frame(&mut bench.process.resources, frame, |page| {
            seen = page.iter().filter(|&&byte| byte == 0xa5).count();
        })?;
    ensure_eq!(seen, 4096);
    Ok(())
}

/// Objects of all sizes, from one untyped of 64 KiB, until the mirror says that it is full: the
/// kernel must not have refused before, and must refuse the next.
fn watermark(bench: &mut Bench) -> TestResult {
    use sandglass::resources::UntypedAllocator;

    let resources = &mut bench.process.resources;
    let untyped: Untyped = resources.untyped(16)?;
    let mut mirror = UntypedAllocator::default();
    mirror.add(untyped, 0, 16);
    let kinds = [
        ObjectType::Endpoint,
        ObjectType::Tcb,
        ObjectType::Reply,
        ObjectType::Page,
        ObjectType::Notification,
        ObjectType::SchedContext(8),
    ];
    for kind in kinds.into_iter().cycle() {
        let slot = resources.allocate_slot()?;
        match mirror.place(kind.size_bits(), 1) {
            Some(placement) => {
                untyped.retype(kind, slot, 1)?;
                mirror.commit(placement);
            }
            None => {
                let refused = untyped.retype(kind, slot, 1);
                resources.free_slot(slot);
                let kind = refused.err().ok_or("the kernel had memory left")?.kind;
                ensure!(matches!(kind, ErrorKind::NotEnoughMemory { .. }), "{kind}");
                break;
            }
        }
    }
    resources.slot_of(untyped).revoke()?;
    untyped.retype(ObjectType::Page, resources.allocate_slot()?, 1)?;
    Ok(())
}

fn aliases(bench: &mut Bench) -> TestResult {
    let process = &mut bench.process;
    let region = process.space.map_new(&mut process.resources, 4096)?;
    let frame = region.frames().next().ok_or("no frame")?;
    let copy = process.resources.copy(frame, Rights::READ)?;
    let alias = process.space.map_frame(
        &mut process.resources,
        copy,
        FrameSize::Small,
        Rights::READ,
        Attributes::WriteBack,
    )?;
    // SAFETY: both addresses are mapped to the frame, which nothing else uses.
    let seen = unsafe {
        region.as_mut_ptr().cast::<u64>().write_volatile(0x5a4d);
        (alias as *const u64).read_volatile()
    };
    ensure_eq!(seen, 0x5a4d);
    ensure_eq!(copy.physical_address()?, frame.physical_address()?);
    Ok(())
}

fn large_frame(bench: &mut Bench) -> TestResult {
    let process = &mut bench.process;
    let frame = process.resources.frame(FrameSize::Large)?;
    let address = process.space.map_frame(
        &mut process.resources,
        frame,
        FrameSize::Large,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    // SAFETY: just mapped.
    let last = unsafe { (address as *const u8).add((1 << 21) - 1).read_volatile() };
    ensure_eq!(last, 0);
    Ok(())
}

fn enlarge(bench: &mut Bench) -> TestResult {
    const RADIX: u32 = 15;
    let resources = &mut bench.process.resources;
    let before = resources.notification()?;
    resources.enlarge_cspace(RADIX)?;
    before.signal();
    ensure_eq!(before.poll(), 0);
    let badged = resources.mint(before, Rights::ALL, 6)?;
    badged.signal();
    ensure_eq!(before.poll(), 6);
    // More slots than the old CSpace had.
    let many = resources.allocate_slots(10_000)?;
    let last = many.root().slot(many.index() + 9_999);
    last.copy_from(resources.slot_of(badged), Rights::ALL)?;
    last.capability::<sandglass::cap::Notification>().signal();
    ensure_eq!(before.wait(), 6);
    Ok(())
}
