//! The boot on the hosted machine: what is refused, and what the root task finds.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::sched::MAX_PRIORITY;

use super::elf::Program;
use super::Refusal;
use crate::arch::abi::boot::ELF_MACHINE;
use crate::arch::hosted::{boot, boot_loaded};
use crate::arch::hosted::{expected, DEVICE_TOP};
use crate::arch::{Machine, Register};
use crate::event::Next;
use crate::{Kernel, CORES};

const VADDR: u64 = 0x40_0000;
const MEMORY: usize = 8 << 20;
const PAGE: u64 = 4096;

/// A program header.
#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    vaddr: u64,
    bytes: &'static [u8],
    memory: u64,
}

const TEXT: Header = Header {
    kind: 1,
    vaddr: VADDR,
    bytes: b"text",
    memory: 0x1100,
};
const DATA: Header = Header {
    kind: 1,
    vaddr: VADDR + 0x3000,
    bytes: b"data",
    memory: 8,
};

/// An executable with these program headers; their contents follow in order.
fn elf(headers: &[Header]) -> Vec<u8> {
    let mut file = vec![0; 64];
    let mut contents: Vec<u8> = vec![];
    let start = 64 + 56 * headers.len() as u64;
    for header in headers {
        let mut bytes = [0u8; 56];
        let offset = start + contents.len() as u64;
        let length = header.bytes.len() as u64;
        for (at, value) in [
            (8, offset),
            (16, header.vaddr),
            (32, length),
            (40, header.memory),
            (48, PAGE),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[..4].copy_from_slice(&header.kind.to_le_bytes());
        file.extend(bytes);
        contents.extend(header.bytes);
    }
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    put(&mut file, 16, &2u16.to_le_bytes());
    put(&mut file, 18, &(ELF_MACHINE as u16).to_le_bytes());
    put(&mut file, 24, &VADDR.to_le_bytes());
    put(&mut file, 32, &64u64.to_le_bytes());
    put(&mut file, 54, &56u16.to_le_bytes());
    put(&mut file, 56, &(headers.len() as u16).to_le_bytes());
    file.extend(contents);
    file
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The executable `elf(&[TEXT, DATA])` with other bytes at one place.
fn spoilt(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = elf(&[TEXT, DATA]);
    put(&mut file, at, bytes);
    file
}

#[track_caller]
fn refused(file: &[u8], complaint: &str) {
    match Program::parse(file) {
        Err(Refusal::File { what, right, .. }) => {
            assert!(
                what.contains(complaint) || right.contains(complaint),
                "{what}, but {right}"
            );
        }
        other => panic!("{other:?} instead of `{complaint}`"),
    }
    assert!(boot(Machine::new(MEMORY, 1000), file).is_err());
}

#[test]
fn what_is_no_program_for_this_machine_is_refused() {
    refused(b"", "an ELF file is longer");
    refused(b"#!/bin/sh\n", "first bytes");
    refused(&elf(&[TEXT])[..40], "an ELF file is longer");
    refused(&spoilt(4, &[1]), "64-bit file");
    refused(&spoilt(5, &[2]), "little-endian");
    refused(&spoilt(18, &[expected::OTHER_MACHINE]), "machine");
    refused(&spoilt(16, &[1]), "an executable is");
}

#[test]
fn claims_of_the_file_are_checked() {
    let most = u64::MAX.to_le_bytes();
    let second = 64 + 56;
    refused(&spoilt(32, &most), "lie in the file");
    refused(&spoilt(32, &0x1000u64.to_le_bytes()), "lie in the file");
    refused(
        &spoilt(32, &(u64::MAX - 60).to_le_bytes()),
        "lie in the file",
    );
    refused(&spoilt(54, &[55, 0]), "0x38");
    refused(&spoilt(second, &3u32.to_le_bytes()), "linked statically");
    refused(&spoilt(56, &[0, 0]), "1 to 0x40");
    refused(&spoilt(56, &[0xff, 0xff]), "1 to 0x40");
    refused(&spoilt(second + 8, &most), "beyond their end");
    refused(
        &spoilt(second + 8, &0x1000u64.to_le_bytes()),
        "beyond their end",
    );
    refused(
        &spoilt(second + 40, &2u64.to_le_bytes()),
        "more bytes in the file",
    );
    // Also where there is no memory at all: the bytes would end up in another segment's.
    refused(
        &spoilt(second + 40, &0u64.to_le_bytes()),
        "more bytes in the file",
    );
    refused(&spoilt(second + 16, &most), "highest user address");
    refused(
        &spoilt(second + 16, &expected::LAST_PAGE.to_le_bytes()),
        "highest user address",
    );
    refused(
        &spoilt(second + 16, &(VADDR + 0x1000).to_le_bytes()),
        "overlaps",
    );
    refused(
        &spoilt(64 + 16, &(VADDR + 8).to_le_bytes()),
        "page boundary",
    );
    refused(&spoilt(24, &(VADDR + 0x4000).to_le_bytes()), "entry point");
    refused(&spoilt(24, &(VADDR - 1).to_le_bytes()), "entry point");
    refused(
        &elf(&[Header {
            memory: 0,
            bytes: b"",
            ..TEXT
        }]),
        "anything to load",
    );
}

/// Behind the image there must be room for the pages that the kernel adds.
#[test]
fn an_image_at_the_end_of_user_memory_is_refused() {
    let top = expected::LAST_PAGE;
    let needed = 1 + 2 + expected::EXTRA_PAGES;
    for pages in 1..=needed {
        let vaddr = top - pages * PAGE;
        let mut file = elf(&[Header { vaddr, ..DATA }]);
        put(&mut file, 24, &vaddr.to_le_bytes());
        assert!(Program::parse(&file).is_ok());
        assert_eq!(
            boot(Machine::new(MEMORY, 1000), &file).is_ok(),
            pages == needed
        );
    }
}

/// Headers that are not loaded count for the extent of the image (06, section 3).
#[test]
fn every_header_extends_the_image() {
    let notes = Header {
        kind: 4,
        vaddr: VADDR + 0x5000,
        bytes: b"",
        memory: 0x1001,
    };
    let file = elf(&[TEXT, notes]);
    let program = Program::parse(&file).unwrap();
    assert_eq!(
        (program.image.start, program.image.end),
        (VADDR, VADDR + 0x7000)
    );
    assert_eq!(program.segments().count(), 1);
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let wide = |memory| elf(&[Header { memory, ..TEXT }]);
    let slots = 8192 - 16 - CORES as u64 - expected::EXTRA_PAGES;
    // 31 MiB need 16 page tables and two tables above.
    let fits = slots - 18;
    let machine = || Machine::new(64 << 20, 1000);
    match boot(machine(), &wide((fits + 1) * PAGE)) {
        Err(refusal) => {
            assert_eq!(
                refusal,
                Refusal::TooManyPages {
                    pages: fits + 1,
                    slots: fits
                }
            );
        }
        Ok(_) => panic!("an image of {} pages was accepted", fits + 1),
    }
    // The machine's memory needs slots too.
    match boot(machine(), &wide(fits * PAGE)) {
        Err(refusal) => assert_eq!(refusal, Refusal::NoSlotsForMemory { pages: fits }),
        Ok(_) => panic!("there is no slot left for memory"),
    }
    assert!(boot(machine(), &wide((fits - 100) * PAGE)).is_ok());
    match boot(Machine::new(MEMORY, 1000), &wide(8 << 20)) {
        Err(Refusal::TooLittleMemory { needed, available }) => {
            assert!(needed == 8 << 20 && available < 6 << 20);
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("8 MiB were loaded into less"),
    }
}

/// Wherever the memory ends while the root task is made, the boot says how much was needed.
#[test]
fn too_little_memory_is_refused_wherever_it_ends() {
    let fits = |pages: u64| {
        let file = elf(&[Header {
            memory: pages * PAGE,
            ..TEXT
        }]);
        match boot(Machine::new(4 << 20, 1000), &file) {
            Ok(_) => true,
            Err(Refusal::TooLittleMemory { needed, available }) => {
                assert!(needed > available, "{needed} of {available} bytes");
                false
            }
            Err(other) => panic!("{other:?} with {pages} pages"),
        }
    };
    // The kernel has 2 MiB, the file a page, the root CNode alone 64.
    assert!(fits(256) && !fits(512 - 64));
    for pages in 257..600 {
        assert!(fits(pages - 1) || !fits(pages));
    }
}

/// What a refusal prints.
fn report(refusal: Refusal) -> std::string::String {
    let machine = Machine::new(PAGE as usize, 1);
    refusal.report(&machine);
    std::string::String::from_utf8(machine.take_console()).unwrap()
}

#[test]
fn refusals_are_one_line_with_the_numbers() {
    let text = report(Refusal::TooManyPages {
        pages: 10_203,
        slots: 0,
    });
    assert!(
        text.contains(" 10203 pages") && text.contains(" 0 slots"),
        "{text}"
    );
    let text = report(Refusal::TooLittleMemory {
        needed: u64::MAX,
        available: 9,
    });
    assert!(
        text.contains(" 18446744073709551615 bytes") && text.contains(" 9 "),
        "{text}"
    );
    let text = report(Refusal::File {
        what: "class is",
        found: 0x1f0,
        right: "right",
    });
    assert!(text.contains("its class is 0x1f0, but right"), "{text}");
    for text in [
        text,
        report(Refusal::NoRootTask),
        report(Refusal::NoSlotsForMemory { pages: 8100 }),
        report(Refusal::Machine("reason")),
    ] {
        assert!(
            text.starts_with("Sandglass cannot start: ") && text.ends_with("\r\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
}

/// The root task's view of its memory.
struct View {
    kernel: Box<Kernel>,
    info: Vec<u8>,
}

impl View {
    fn boot(file: &[u8]) -> View {
        Self::of(boot(Machine::new(MEMORY, 1000), file).unwrap(), VADDR)
    }

    /// What the root task sees that runs first, from `entry` on.
    fn of((kernel, next): (Box<Kernel>, Next), entry: u64) -> View {
        let Next::Thread(thread) = next else {
            panic!("nobody runs")
        };
        let context = thread.at(&kernel).context();
        assert_eq!(context.get(Register::NextIp), entry);
        let [sp, flags, info] = expected::registers(context);
        assert_eq!((sp, flags), (0, expected::FLAGS));
        assert_eq!(thread.at(&kernel).priority(), MAX_PRIORITY);
        let mut view = View {
            kernel,
            info: vec![],
        };
        view.info = view.page(info);
        view
    }

    /// The page at `vaddr`, found as the processor finds it.
    fn page(&self, vaddr: u64) -> Vec<u8> {
        let (start, _) = self.walk(vaddr);
        let page = self.kernel.machine.read_memory(start, PAGE as usize);
        page.unwrap()
    }

    /// Where the page at `vaddr` is, and the entry that says so.
    fn walk(&self, vaddr: u64) -> (u64, u64) {
        let machine = &self.kernel.machine;
        let mut table = machine.address_space().unwrap().get();
        let mut last = 0;
        for shift in [39, 30, 21, 12] {
            let entry = machine
                .read_memory(table + (vaddr >> shift & 511) * 8, 8)
                .unwrap();
            let entry = u64::from_le_bytes(entry.try_into().unwrap());
            let next = expected::follow(entry);
            table = next.unwrap_or_else(|| panic!("{vaddr:#x} is not mapped for users to write"));
            last = entry;
        }
        (table, last)
    }

    fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.info[offset..offset + 8].try_into().unwrap())
    }

    fn region(&self, offset: usize) -> (u64, u64) {
        (self.word(offset), self.word(offset + 8))
    }
}

/// 06, sections 1.2 to 4, by their offsets.
#[test]
fn the_root_task_finds_what_the_abi_says() {
    let view = View::boot(&elf(&[TEXT, DATA]));
    let image_end = VADDR + 0x4000;
    assert_eq!(
        view.word(0),
        expected::EXTRA,
        "extra boot information, with what is told of time"
    );
    assert_eq!(
        (view.word(8), view.word(16), view.word(24)),
        (0, CORES as u64, expected::IO_LEVELS)
    );
    assert_eq!(view.word(32), image_end, "IPC buffer");
    assert_eq!((view.word(136), view.word(144)), (13, 0));
    let (sched_control, paging, extra, frames) = (152, 88, 120, 72);
    let mut order = vec![(paging, 3), (extra, expected::EXTRA_PAGES)];
    let at = if expected::SCHED_CONTROL_FIRST { 0 } else { 2 };
    order.insert(at, (sched_control, CORES as u64));
    // Gaps in the image have frames too.
    order.push((frames, 4));
    let mut next = slot::FIRST_DYNAMIC;
    for (region, slots) in order {
        assert_eq!(view.region(region), (next, next + slots), "at {region}");
        next += slots;
    }
    let untyped = view.region(168);
    assert_eq!(untyped.0, next);
    assert_eq!(view.region(40), (untyped.1, 8192));
    for unused in [56, 104] {
        assert_eq!(view.region(unused), (0, 0));
    }

    let text = view.page(VADDR);
    assert_eq!(&text[..5], b"text\0");
    assert_eq!(&view.page(VADDR + 0x3000)[..5], b"data\0");
    assert!(view.page(VADDR + 0x2000).iter().all(|&byte| byte == 0));
    assert!(view.page(image_end).iter().all(|&byte| byte == 0));
    let extra = (0..expected::EXTRA_PAGES).map(|page| view.page(image_end + (2 + page) * PAGE));
    expected::check_extra(&extra.collect::<Vec<_>>().concat());
    let is_executable = |vaddr| expected::is_executable(view.walk(vaddr).1);
    assert!(is_executable(VADDR) && is_executable(image_end + 2 * PAGE));
    for data in [image_end, image_end + PAGE] {
        assert_eq!(is_executable(data), expected::DATA_IS_EXECUTABLE);
    }
}

/// All memory is given out exactly once, and the crumbs are small.
#[test]
fn untyped_memory_is_all_that_is_left() {
    let view = View::boot(&elf(&[TEXT, DATA]));
    let (start, end) = view.region(168);
    let mut last = [0, 0];
    let mut ram = 0;
    let mut init_code: Vec<(u64, u8)> = Vec::new();
    for i in 0..(end - start) as usize {
        let entry = 184 + 16 * i;
        let (paddr, bits, device) = (
            view.word(entry),
            view.info[entry + 8],
            usize::from(view.info[entry + 9]),
        );
        // First of the RAM comes what the kernel's image has of code that runs once.
        if device == 0 && paddr < 0x20_0000 {
            assert_eq!(
                last[0],
                init_code.last().map_or(0, |&(at, bits)| at + (1 << bits))
            );
            init_code.push((paddr, bits));
        }
        assert!(
            paddr >= last[device],
            "{paddr:#x} is out of order or given twice"
        );
        // Aligned where the kernel sees it, which from 512 GiB on is something else.
        let alias = paddr.wrapping_add(0xffff_ff80_0000_0000);
        assert_eq!(alias % (1 << bits), 0, "{paddr:#x} of 2^{bits} bytes");
        last[device] = paddr + (1 << bits);
        if device == 0 {
            ram += 1u64 << bits;
        }
    }
    assert_eq!(
        init_code,
        [(0x10_2000, 13), (0x10_4000, 14), (0x10_8000, 12)]
    );
    // The kernel's 2 MiB but for that, the image, and the objects: 2^18, root table, pool, buffer, boot information, three tables, and
    // more pages; TCB, context.
    let pages = 7 + expected::EXTRA_PAGES + expected::IRQ_PAGES;
    let used = (2 << 20) - 7 * PAGE + 4 * PAGE + (1 << 18) + pages * PAGE + (1 << 11) + (1 << 7);
    assert_eq!(ram, MEMORY as u64 - used);
    assert_eq!(last[1], DEVICE_TOP);
}

/// A root task that the loader has put into memory is run from there, with the same around it as one from a file.
#[test]
fn a_loaded_root_task_runs_where_it_is() {
    let mut image = vec![0; 4 * PAGE as usize];
    put(&mut image, 0, b"text");
    put(&mut image, 3 * PAGE as usize, b"data");
    let entry = VADDR + 0x1234;
    let booted = boot_loaded(Machine::new(MEMORY, 1000), &image, VADDR, entry).unwrap();
    let view = View::of(booted, entry);
    let file = View::boot(&elf(&[TEXT, DATA]));
    assert_eq!(view.word(32), file.word(32), "IPC buffer");
    for region in [72, 88, 120, 152] {
        assert_eq!(view.region(region), file.region(region), "at {region}");
    }
    // At the top of the machine's memory.
    let (first, _) = view.walk(VADDR);
    assert_eq!(first, MEMORY as u64 - 4 * PAGE);
    for (page, start) in [(0, &b"text\0"[..]), (1, b"\0"), (3, b"data\0")] {
        assert!(view.page(VADDR + page * PAGE).starts_with(start), "{page}");
        assert_eq!(view.walk(VADDR + page * PAGE).0, first + page * PAGE);
    }
}
