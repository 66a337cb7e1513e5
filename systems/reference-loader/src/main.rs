//! Starts a kernel as the reference's loader does (ABI 06, section 7), so that a test sees whether ours keeps the contract.
//! For machines of QEMU with memory from 1 GiB on, 512 MiB at least: `virt`, `xlnx-zcu102`.
//!
//! QEMU starts it as an ELF file, at EL1 or EL2, and has put an archive (cpio, newc) into memory, at [`ARCHIVE`]: `kernel.elf`,
//! `kernel.dtb`, and behind them the root task; and perhaps `one-core`, so that it starts no others, and `system-errors`, so that
//! at EL2 it raises a system error whenever user code waits for an interrupt, or `vector-NN`, so that it enters the kernel by
//! that of its vectors then, as no processor should. It trusts these: whoever makes them is a test.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod archive;
#[cfg(target_os = "none")]
mod place;
#[cfg(target_os = "none")]
mod start;

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    start::stop()
}

/// Where the archive is, and how much is looked at.
#[cfg(target_os = "none")]
const ARCHIVE: (u64, usize) = (0x5400_0000, 32 << 20);

/// What the kernel is told, as the entry code passes it on: x0 to x5, and where it begins.
#[cfg(target_os = "none")]
#[repr(C)]
struct Handover {
    root_start: u64,
    root_end: u64,
    root_offset: u64,
    root_entry: u64,
    tree: u64,
    tree_bytes: u64,
    kernel_entry: u64,
}

/// Called by the entry code, with the MMU off. Returns what the kernel is told.
#[cfg(target_os = "none")]
extern "C" fn load(handover: &mut Handover) {
    let (at, bytes) = ARCHIVE;
    // SAFETY: the archive is there, in memory that nothing else uses.
    let archive = unsafe { core::slice::from_raw_parts(at as *const u8, bytes) };
    let mut files = archive::Files::new(archive);
    let mut next = |name: Option<&str>| {
        let (found, content) = files.next().expect("three files");
        assert!(name.is_none_or(|name| name.as_bytes() == found));
        content
    };
    let kernel = place::kernel(next(Some("kernel.elf")));
    let tree = next(Some("kernel.dtb"));
    let tree_at = place::page_behind(kernel.end);
    place::copy(tree, tree_at);
    let root = place::root_task(next(None), place::page_behind(tree_at + tree.len() as u64));
    *handover = Handover {
        root_start: root.start,
        root_end: root.end,
        root_offset: root.offset,
        root_entry: root.entry,
        tree: tree_at,
        tree_bytes: tree.len() as u64,
        kernel_entry: kernel.entry,
    };
    start::map_kernel(kernel.start, kernel.virtual_start);
    let mut is_single = false;
    for (name, _) in files {
        is_single |= name == b"one-core";
        if name == b"system-errors" {
            start::watch_waiting(None);
        }
        if let Some(&[tens, ones]) = name.strip_prefix(b"vector-") {
            let number = (tens - b'0') * 10 + (ones - b'0');
            start::watch_waiting(Some(number.into()));
        }
    }
    if !is_single {
        start::start_others(handover);
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("This loader runs on the bare machine.");
    std::process::exit(2);
}
