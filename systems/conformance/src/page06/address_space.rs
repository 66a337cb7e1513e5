//! 06, sections 1.1, 3 and 8: the initial thread and its address space.

use conformance_kit::arch::order;
use sandglass::abi::boot::slot;
use sandglass::entry;

use super::image::{extra_region, Image, PAGE};
use crate::arch::page06::{is_mapped, FIRST_FLAGS, HIGHEST_PAGE, OTHER_ATTRIBUTES};
use crate::page02::support::unmapped_pages;
use crate::page03::levels::LEVELS;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "06/1.1/registers-at-the-first-instruction",
        initial_registers,
    ),
    check("06/1.1/the-gs-base-is-0", gs_base),
    check("06/1.1/flags-are-0", flags),
    check("06/1.1/priority-and-mcp-are-255", priorities),
    check("06/1.1/the-context-has-128-bytes", context_size),
    check(
        "06/1.1/the-root-cnode-has-13-bits-and-a-guard-of-51",
        root_cnode,
    ),
    check(
        "06/3/ipc-buffer-and-boot-info-follow-the-image",
        after_the_image,
    ),
    check("06/3/image-frames-are-mapped-in-order", image_frames_mapped),
    check(
        "06/3/image-frames-are-the-image's-memory",
        image_frames_contents,
    ),
    check("06/3/the-image-is-writable-and-executable", image_rights),
    check("06/3/buffer-and-boot-info-frames-are-mapped", other_frames),
    check(
        "06/3/extra-frames-are-mapped-behind-the-boot-info",
        extra_frames,
    ),
    check("06/3/unused-parts-of-the-pages-are-zero", unused_parts),
    check("06/3/nothing-else-is-mapped", nothing_else),
    check("06/3/paging-structures-are-mapped", paging_mapped),
    check("06/8/the-highest-page-ends-below-the-limit", highest_page),
    check("06/8/address-0-can-be-mapped", lowest_page),
];

fn initial_registers(f: &mut Fixture) -> TestResult {
    let registers = entry::initial_registers();
    for (index, &value) in registers.iter().enumerate() {
        let expected = match index {
            order::RDI => core::ptr::from_ref(f.boot) as u64,
            order::RFLAGS => FIRST_FLAGS,
            _ => 0,
        };
        ensure!(
            value == expected,
            "register {index} is {value:#x} at the first instruction, not {expected:#x}"
        );
    }
    Ok(())
}

fn gs_base(_: &mut Fixture) -> TestResult {
    ensure_eq!(boot::TCB.read_registers(false)?.get(order::GS_BASE), 0);
    Ok(())
}

fn flags(_: &mut Fixture) -> TestResult {
    ensure_eq!(boot::TCB.set_flags(0, 0)?, 0);
    Ok(())
}

fn priorities(f: &mut Fixture) -> TestResult {
    let target = f.tcb()?;
    let set = |priority| {
        let caps = [boot::TCB.cptr()];
        Invocation::new(target, label::TCB_SET_PRIORITY, &[priority], &caps)
    };
    set(255).expect_ok(&[])?;
    set(256).expect_error(RangeError, &[0, 255])?;
    // YieldTo needs an MCP that is not below the priority of the context's thread.
    let trace = Trace::leak();
    for mcp in [254, 255] {
        let params = ThreadParams {
            mcp,
            ..f.active(100)?
        };
        let yielding =
            Invocation::new(boot::SCHED_CONTEXT, label::SCHED_CONTEXT_YIELD_TO, &[], &[]);
        f.spawn(params, move || trace.note(yielding.call().label))?;
        f.settle()?;
    }
    ensure_eq!(trace.events(), [IllegalOperation as u64, 0]);
    Ok(())
}

fn context_size(f: &mut Fixture) -> TestResult {
    // 2^7 bytes have room for no extra refill (03, section 6.1, check 10).
    let configure = Invocation::new(
        f.control,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        &[5_000, 5_000, 1, 0, 0],
        &[boot::SCHED_CONTEXT.cptr()],
    );
    configure.expect_error(RangeError, &[0, 0])
}

fn root_cnode(f: &mut Fixture) -> TestResult {
    const RADIX: u64 = PROFILE.root_cnode_bits as u64;
    ensure_eq!(f.boot.raw().init_thread_cnode_size_bits, RADIX);
    let slot = f.empty_slot()?;
    let delete =
        |index, depth| Invocation::new(boot::CNODE, label::CNODE_DELETE, &[index, depth], &[]);
    delete(slot.index(), 64).expect_ok(&[])?;
    delete(slot.index(), RADIX).expect_error(FailedLookup, &[0, 4, RADIX, 0, ROOT_GUARD])?;
    delete(0, ROOT_GUARD).expect_error(FailedLookup, &[0, 3, ROOT_GUARD, 64])?;
    for bit in [RADIX, RADIX + 1, 63] {
        let outside = delete(slot.index() | 1 << bit, 64);
        outside.expect_error(FailedLookup, &[0, 4, 64, 0, ROOT_GUARD])?;
    }
    Ok(())
}

/// Fails unless the frame's recorded mapping is at this address of the initial address space;
/// maps it there again, writable. A mapped capability is refused at any other address (03, sections 8.3 and 9.3).
fn ensure_mapped(frame: u64, address: u64, attributes: u64) -> TestResult {
    let map = Invocation::new(
        CPtr::new(frame),
        arch_label::PAGE_MAP,
        &[address, Rights::READ_WRITE.raw(), attributes],
        &[boot::VSPACE.cptr()],
    );
    map.with_word(0, address + PAGE)
        .expect_error(InvalidArgument, &[0])?;
    map.expect_ok(&[])
}

fn after_the_image(f: &mut Fixture) -> TestResult {
    let image = Image::own();
    ensure_eq!(image.start % PAGE, 0);
    ensure_eq!(f.boot.raw().ipc_buffer, image.end);
    ensure_eq!(core::ptr::from_ref(f.boot) as u64, image.end + PAGE);
    Ok(())
}

fn image_frames_mapped(f: &mut Fixture) -> TestResult {
    let image = Image::own();
    let frames = f.boot.user_image_frames();
    let mut unmapped = 0;
    for (frame, page) in (frames.start..frames.end).zip(0..) {
        let address = image.start + page * PAGE;
        // The runtime unmaps the page below its first stack.
        if is_mapped(frame, address) {
            ensure_mapped(frame, address, Attributes::WriteBack.raw())?;
        } else {
            unmapped += 1;
        }
    }
    ensure!(
        unmapped <= 1,
        "{unmapped} frames of the image are not mapped"
    );
    Ok(())
}

fn image_frames_contents(f: &mut Fixture) -> TestResult {
    let image = Image::own();
    let frames = f.boot.user_image_frames();
    let window = unmapped_pages(f, 1)?;
    let mut physical = None;
    for (frame, page) in (frames.start..frames.end).zip(0..) {
        // Its frames are consecutive: the image lies behind the kernel (06, section 6).
        let address = Frame::at(frame).physical_address()?;
        ensure_eq!(address, physical.unwrap_or(address));
        physical = Some(address + PAGE);
        let own = image.start + page * PAGE;
        if page % 16 != 0 || !is_mapped(frame, own) {
            continue;
        }
        let copy = f.copy(Frame::at(frame))?;
        copy.map(boot::VSPACE, window, Rights::READ, Attributes::WriteBack)?;
        for offset in (0..PAGE).step_by(64) {
            let at = |base: u64| (base + offset) as *const u64;
            // SAFETY: both are mapped.
            let equal = unsafe { at(own).read_volatile() == at(window).read_volatile() };
            ensure!(equal, "the frame of {own:#x} has other contents");
        }
        f.process.resources.delete(copy)?;
    }
    Ok(())
}

/// In the image's zeroed part: an instruction would have to be written there.
static mut IN_BSS: [u64; 8] = [0; 8];
/// In the image's constants.
static CONSTANT: [u64; 2] = [0x0b0f, 2];

fn image_rights(f: &mut Fixture) -> TestResult {
    let prober = f.prober()?;
    // Program, constants and variables can all be written.
    let constant = &raw const CONSTANT as u64;
    for address in [
        image_rights as *const () as u64 & !7,
        constant,
        &raw const IN_BSS as u64,
    ] {
        ensure!(prober.can_load(f, address)?);
        let word = address as *mut u64;
        // SAFETY: writes what is there; the ABI promises that it can be written.
        unsafe { word.write_volatile(word.read_volatile()) };
    }
    // Constants and variables can be executed: UD2 is reached.
    const UD2: u64 = 0x0b0f;
    let variable = &raw mut IN_BSS as u64;
    // SAFETY: nothing else uses it.
    unsafe { (variable as *mut u64).write_volatile(UD2) };
    for address in [constant, variable] {
        let stopped = prober.execute(f, address)?;
        ensure_eq!(
            (stopped.label, stopped.words[0]),
            (fault::USER_EXCEPTION, address)
        );
    }
    Ok(())
}

fn other_frames(_: &mut Fixture) -> TestResult {
    let image = Image::own();
    ensure_mapped(slot::IPC_BUFFER, image.end, OTHER_ATTRIBUTES)?;
    ensure_mapped(slot::BOOT_INFO_FRAME, image.end + PAGE, OTHER_ATTRIBUTES)?;
    for address in [image.end, image.end + PAGE] {
        let last = (address + PAGE - 8) as *mut u64;
        // SAFETY: both pages are mapped; the last word of neither is used.
        unsafe { last.write_volatile(last.read_volatile()) };
    }
    Ok(())
}

fn extra_frames(f: &mut Fixture) -> TestResult {
    let image = Image::own();
    let pages = f.boot.raw().extra_bi_pages;
    for (frame, page) in (pages.start..pages.end).zip(0..) {
        let address = image.end + (2 + page) * PAGE;
        ensure_mapped(frame, address, Attributes::WriteBack.raw())?;
    }
    Ok(())
}

fn unused_parts(f: &mut Fixture) -> TestResult {
    let image = Image::own();
    let extra = image.end + 2 * PAGE;
    let used = (f.boot.raw().extra_len).next_multiple_of(8);
    let buffer = sandglass::abi::message::ipc_buffer::SIZE as u64;
    for (start, end) in [
        (image.end + buffer, image.end + PAGE),
        (extra + used, extra + extra_region(f)),
    ] {
        for address in (start..end).step_by(8) {
            // SAFETY: these pages are mapped.
            let word = unsafe { (address as *const u64).read_volatile() };
            ensure!(word == 0, "{address:#x} is {word:#x}");
        }
    }
    Ok(())
}

fn nothing_else(f: &mut Fixture) -> TestResult {
    let image = Image::own();
    let end = image.end + 2 * PAGE + extra_region(f);
    let prober = f.prober()?;
    let last_table = end.next_multiple_of(1 << 21);
    for address in (end..last_table).step_by(PAGE as usize) {
        ensure!(!prober.can_load(f, address)?, "{address:#x} is mapped");
    }
    let first_table = image.start & !((1 << 21) - 1);
    for address in (first_table..image.start).step_by(PAGE as usize) {
        ensure!(!prober.can_load(f, address)?, "{address:#x} is mapped");
    }
    ensure!(!prober.can_load(f, 0)?);
    Ok(())
}

fn paging_mapped(f: &mut Fixture) -> TestResult {
    let region = f.boot.raw().user_image_paging;
    for index in region.start..region.end {
        // The wrong kinds' labels are illegal; that of its own says that it is mapped.
        let mut labels = LEVELS.map(|level| level.map).to_vec();
        labels.dedup();
        let answers = labels.into_iter().map(|label| {
            let caps = [boot::VSPACE.cptr()];
            Invocation::new(CPtr::new(index), label, &[0, 0], &caps).call()
        });
        let mapped = answers.filter(|a| a.label == InvalidCapability as u64 && a.words == [0]);
        ensure_eq!(mapped.count(), 1);
    }
    Ok(())
}

fn highest_page(f: &mut Fixture) -> TestResult {
    let space = f.vspace()?;
    f.code_in(space, HIGHEST_PAGE, &[])?;
    let frame = f.frame(FrameSize::Small)?;
    for address in [HIGHEST_PAGE + PAGE, 0x8000_0000_0000, u64::MAX - 0xfff] {
        let words = [address, 3, 0];
        let map = Invocation::new(frame, arch_label::PAGE_MAP, &words, &[space.root().cptr()]);
        map.expect_error(InvalidArgument, &[0])?;
    }
    Ok(())
}

fn lowest_page(f: &mut Fixture) -> TestResult {
    let frame = f.frame(FrameSize::Small)?;
    let prober = f.prober()?;
    let space = f.process.space.vspace();
    let resources = &mut f.process.resources;
    space.map(
        resources,
        frame,
        0,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    ensure!(prober.can_load(f, 0)?);
    ensure!(prober.can_store(f, 8)?);
    Ok(())
}
