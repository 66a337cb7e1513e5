//! 07, sections 6 and 7: what entries say, and the levels of paging structures.

use conformance_kit::arch;

use super::scene::{
    add_table, add_tables, frame_of, map, map_at, marked, spaces, unmap, READ, READ_WRITE, SIZES,
    VADDR,
};
use super::visitor::{absent, forbidden, Seen, Visitor, WRITE};
use crate::page03::levels::LEVELS;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "07/6/rights-are-the-capability's-masked-by-the-argument",
        rights,
    ),
    check("07/6/rights-of-pages-of-every-size", rights_of_sizes),
    check("07/6/kernel-only-is-recorded-as-mapped", kernel_only),
    check("07/6/every-attribute-word-maps-memory", attributes),
    check("07/6/every-attribute-word-maps-devices", device_attributes),
    check(
        "07/6/structures-take-every-attribute-word",
        table_attributes,
    ),
    check("07/6/readable-pages-are-executable", executable),
    check("07/6/mappings-are-not-global", not_global),
    check("07/7/each-level-translates-its-bits", levels),
    check("07/7/large-pages-translate-the-rest", large_pages),
    check("07/7/structures-are-missing-from-the-top-down", missing),
    check("07/7/the-last-page-of-user-space", last_page),
    check("07/7/the-upper-half-is-not-for-users", upper_half),
    check("07/7/pages-and-tables-exclude-each-other", exclusion),
];

/// UD2, and zeros.
const UD2: u64 = 0x0b0f;

/// The rights that a mapping gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    ReadWrite,
    ReadOnly,
    KernelOnly,
}

impl Given {
    /// The rule of 02, section 3.
    fn masked(self, rights: u64) -> Self {
        match (self, rights & READ != 0, rights & 1 != 0) {
            (Self::ReadWrite, true, true) => Self::ReadWrite,
            (Self::ReadWrite | Self::ReadOnly, true, _) => Self::ReadOnly,
            _ => Self::KernelOnly,
        }
    }

    /// What loads, stores of [`UD2`] and jumps see, at an address that holds [`UD2`].
    fn sees(self, address: u64) -> [Seen; 3] {
        let (word, load) = (Seen::Word(UD2), forbidden(address, 0));
        let (jump, store) = (Seen::Word(address), forbidden(address, WRITE));
        match self {
            Self::ReadWrite => [word, word, jump],
            Self::ReadOnly => [word, store, jump],
            // Whether instructions are fetched is another matter on aarch64 (07, section 6).
            Self::KernelOnly if arch::KERNEL_ONLY_IS_EXECUTED => [load, store, jump],
            Self::KernelOnly => [load, store, load],
        }
    }
}

fn accesses(f: &Fixture, visitor: Visitor, address: u64) -> Result<[Seen; 3], Failure> {
    Ok([
        visitor.load(f, address)?,
        visitor.store(f, address, UD2)?,
        visitor.jump(f, address)?,
    ])
}

fn rights(f: &mut Fixture) -> TestResult {
    const ARGUMENTS: [u64; 7] = [0, 1, 2, 3, 0xf, !3, u64::MAX];
    let root = f.vspace()?.root();
    add_tables(f, root, 3)?;
    let (frame, visitor) = (marked(f, UD2)?, Visitor::new(f, root)?);
    for (kept, cap_rights) in [
        (Rights::ALL, Given::ReadWrite),
        (Rights::READ, Given::ReadOnly),
        (Rights::WRITE, Given::KernelOnly),
        (Rights::NONE, Given::KernelOnly),
    ] {
        let map = map(f.with_rights(frame, kept)?, root);
        for argument in ARGUMENTS {
            map.with_word(1, argument).expect_ok(&[])?;
            let expected = cap_rights.masked(argument).sees(VADDR);
            let seen = accesses(f, visitor, VADDR)?;
            ensure_eq!((kept, argument, seen), (kept, argument, expected));
        }
    }
    Ok(())
}

fn rights_of_sizes(f: &mut Fixture) -> TestResult {
    for (size, depth) in SIZES {
        let root = f.vspace()?.root();
        add_tables(f, root, depth)?;
        let (frame, visitor) = (frame_of(f, size)?, Visitor::new(f, root)?);
        let last = VADDR + size.bytes() - 8;
        for (argument, loads, stores) in [
            (READ_WRITE, true, true),
            (READ, true, false),
            (1, false, false),
            (READ_WRITE, true, true),
            (0, false, false),
        ] {
            map(frame, root).with_word(1, argument).expect_ok(&[])?;
            for address in [VADDR, last] {
                let seen = visitor.load(f, address)?;
                let loaded = matches!(seen, Seen::Word(_));
                ensure!(loaded == loads, "{size:?}, rights {argument}: {seen:x?}");
                ensure!(loads || seen == forbidden(address, 0), "{seen:x?}");
                let expected = if stores {
                    Seen::Word(5)
                } else {
                    forbidden(address, WRITE)
                };
                ensure_eq!(visitor.store(f, address, 5)?, expected);
            }
        }
    }
    Ok(())
}

fn kernel_only(f: &mut Fixture) -> TestResult {
    for (size, depth) in SIZES {
        let root = f.vspace()?.root();
        add_tables(f, root, depth)?;
        let map = map(frame_of(f, size)?, root);
        map.with_word(1, 0).expect_ok(&[])?;
        map.with_word(0, VADDR + size.bytes())
            .expect_error(InvalidArgument, &[0])?;
        let other = f.vspace()?.root();
        map.with_cap(0, other)
            .expect_error(InvalidCapability, &[1])?;
        map.expect_ok(&[])?;
    }
    Ok(())
}

/// Every word of the bits that mean something, and words of others.
fn attribute_words() -> impl Iterator<Item = u64> {
    (0..8).chain([8, 1 << 7, 1 << 12, 1 << 63, !7, u64::MAX])
}

fn attributes(f: &mut Fixture) -> TestResult {
    for root in spaces(f)? {
        for (size, depth) in [(FrameSize::Small, 3), (FrameSize::Large, 2)] {
            let vaddr = VADDR + ((3 - depth as u64) << 39);
            for &level in &LEVELS[..depth] {
                add_table(f, level, root, vaddr)?;
            }
            let (frame, visitor) = (frame_of(f, size)?, Visitor::new(f, root)?);
            let last = vaddr + size.bytes() - 8;
            for (word, attributes) in (1..).zip(attribute_words()) {
                map_at(frame, root, vaddr)
                    .with_word(2, attributes)
                    .expect_ok(&[])?;
                for address in [vaddr, last] {
                    ensure_eq!(visitor.load(f, address)?, Seen::Word(word - 1));
                    ensure_eq!(visitor.store(f, address, word)?, Seen::Word(word));
                }
                visitor.store(f, vaddr + 16, UD2)?;
                let jump = match arch::is_executed(attributes) {
                    Some(true) => Seen::Word(vaddr + 16),
                    Some(false) => forbidden(vaddr + 16, 0),
                    None => continue,
                };
                ensure_eq!(visitor.jump(f, vaddr + 16)?, jump);
            }
            unmap(frame).expect_ok(&[])?;
        }
    }
    Ok(())
}

/// The registers of a device that the profile's machine has: the first says what it is.
fn device_attributes(f: &mut Fixture) -> TestResult {
    if !is_device_memory(f, arch::DEVICE) {
        return Err(Failure::skip("the machine has other devices"));
    }
    let frame = f.device_page(arch::DEVICE)?;
    let get = Invocation::new(frame, arch_label::PAGE_GET_ADDRESS, &[], &[]);
    get.expect_ok(&[arch::DEVICE])?;
    let root = f.vspace()?.root();
    add_tables(f, root, 3)?;
    let visitor = Visitor::new(f, root)?;
    let mut first = None;
    for attributes in attribute_words() {
        let map = map(frame, root).with_word(2, attributes);
        map.expect_ok(&[])?;
        let seen = visitor.load(f, VADDR)?;
        let first = *first.get_or_insert(seen);
        ensure_eq!((attributes, seen), (attributes, first));
        ensure!(
            matches!(seen, Seen::Word(word) if arch::is_device(word)),
            "{seen:x?} is not what the device says"
        );
    }
    Ok(())
}

/// Whether a device may be at the physical address `at`.
fn is_device_memory(f: &Fixture, at: u64) -> bool {
    let covers = |start: u64, bits: u32| (start..start + (1 << bits)).contains(&at);
    let mut untypeds = f.boot.untypeds();
    untypeds.any(|untyped| untyped.is_device && covers(untyped.paddr, untyped.size_bits))
}

fn table_attributes(f: &mut Fixture) -> TestResult {
    for attributes in attribute_words() {
        let root = f.vspace()?.root();
        for level in LEVELS {
            let table: CPtr = f.make(level.kind)?;
            let words = [VADDR, attributes];
            Invocation::new(table, level.map, &words, &[root.cptr()]).expect_ok(&[])?;
        }
        let (frame, visitor) = (marked(f, UD2)?, Visitor::new(f, root)?);
        map(frame, root).expect_ok(&[])?;
        let seen = accesses(f, visitor, VADDR)?;
        let expected = Given::ReadWrite.sees(VADDR);
        ensure_eq!((attributes, seen), (attributes, expected));
    }
    Ok(())
}

fn executable(f: &mut Fixture) -> TestResult {
    for root in spaces(f)? {
        for (size, depth) in [(FrameSize::Small, 3), (FrameSize::Large, 2)] {
            let vaddr = VADDR + ((3 - depth as u64) << 39);
            for &level in &LEVELS[..depth] {
                add_table(f, level, root, vaddr)?;
            }
            let (frame, visitor) = (frame_of(f, size)?, Visitor::new(f, root)?);
            let map = map_at(frame, root, vaddr);
            map.expect_ok(&[])?;
            let last = vaddr + size.bytes() - 8;
            for address in [vaddr, last] {
                visitor.store(f, address, UD2)?;
            }
            for (argument, sees) in [(READ_WRITE, true), (READ, true), (0, false)] {
                map.with_word(1, argument).expect_ok(&[])?;
                for address in [vaddr, last] {
                    let expected = if sees || arch::KERNEL_ONLY_IS_EXECUTED {
                        Seen::Word(address)
                    } else {
                        forbidden(address, 0)
                    };
                    ensure_eq!(visitor.jump(f, address)?, expected);
                }
            }
        }
    }
    Ok(())
}

fn not_global(f: &mut Fixture) -> TestResult {
    let mut visitors = vec![];
    for (mark, root) in (1..).zip([f.vspace()?, f.vspace()?, f.vspace()?]) {
        add_tables(f, root.root(), 3)?;
        // The last has nothing there.
        if mark < 3 {
            map(marked(f, mark)?, root.root()).expect_ok(&[])?;
        }
        visitors.push(Visitor::new(f, root.root())?);
    }
    for _ in 0..3 {
        ensure_eq!(visitors[0].load(f, VADDR)?, Seen::Word(1));
        ensure_eq!(visitors[1].load(f, VADDR)?, Seen::Word(2));
        ensure_eq!(visitors[2].load(f, VADDR)?, absent(VADDR, 0));
    }
    Ok(())
}

fn levels(f: &mut Fixture) -> TestResult {
    let space = f.vspace()?;
    let root = space.root();
    let visitor = Visitor::new(f, root)?;
    // Addresses of which each differs from the first in one bit, and that in which all differ.
    let bits = (12..47).map(|bit| 1u64 << bit);
    let addresses: Vec<u64> = [0, 0x0fff_ffff_f000].into_iter().chain(bits).collect();
    for (mark, &address) in (1..).zip(&addresses) {
        let frame = marked(f, mark)?;
        let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
        let resources = &mut f.process.resources;
        space.map(resources, frame, address, rights, attributes)?;
    }
    for (mark, &address) in (1..).zip(&addresses) {
        ensure_eq!(
            (address, visitor.load(f, address)?),
            (address, Seen::Word(mark))
        );
    }
    Ok(())
}

fn large_pages(f: &mut Fixture) -> TestResult {
    let size = FrameSize::Large;
    let frame = frame_of(f, size)?;
    let copy = f.copy(frame)?;
    let process = &mut f.process;
    let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
    let own = process
        .space
        .map_frame(&mut process.resources, copy, size, rights, attributes)?;
    let root = f.vspace()?.root();
    add_tables(f, root, 2)?;
    map(frame, root).expect_ok(&[])?;
    let visitor = Visitor::new(f, root)?;
    let bits = (3..size.bits()).map(|bit| 1u64 << bit);
    for offset in bits.chain([0, size.bytes() - 8]) {
        // SAFETY: the frame is mapped there, and nothing of this program is in it.
        unsafe { ((own + offset) as *mut u64).write_volatile(offset + 1) };
        ensure_eq!(visitor.load(f, VADDR + offset)?, Seen::Word(offset + 1));
    }
    // It ends where it should.
    for outside in [VADDR - 8, VADDR + size.bytes()] {
        ensure_eq!(visitor.load(f, outside)?, absent(outside, 0));
    }
    Ok(())
}

fn missing(f: &mut Fixture) -> TestResult {
    let missing = LookupFailureType::MissingCapability as u64;
    let root = f.vspace()?.root();
    for (depth, level) in LEVELS.into_iter().enumerate() {
        for (size, needs) in SIZES {
            if depth < needs {
                let map = map(frame_of(f, size)?, root);
                let bits = [39, 30, 21][depth];
                map.expect_error(FailedLookup, &[0, missing, bits])?;
            }
        }
        add_table(f, level, root, VADDR)?;
        // What is there covers the addresses of its level, and no others.
        let size = 1 << level.coverage;
        let map = map(frame_of(f, FrameSize::Small)?, root);
        let next = [30, 21].get(depth);
        if let Some(&bits) = next {
            map.with_word(0, VADDR + size - 0x1000)
                .expect_error(FailedLookup, &[0, missing, bits])?;
        }
        let bits = u64::from(level.coverage);
        for outside in [VADDR - 0x1000, VADDR + size] {
            // Of the levels above, those of the first addresses of their ranges.
            if outside > VADDR {
                map.with_word(0, outside)
                    .expect_error(FailedLookup, &[0, missing, bits])?;
            } else {
                map.with_word(0, outside)
                    .expect_error(FailedLookup, &[0, missing, 39])?;
            }
        }
    }
    map(frame_of(f, FrameSize::Small)?, root).expect_ok(&[])
}

fn last_page(f: &mut Fixture) -> TestResult {
    const LAST: u64 = crate::arch::page06::HIGHEST_PAGE;
    let root = f.vspace()?.root();
    let visitor = Visitor::new(f, root)?;
    for level in LEVELS {
        add_table(f, level, root, LAST)?;
    }
    let map = map_at(marked(f, 9)?, root, LAST);
    map.with_word(0, LAST + 0x1000)
        .expect_error(InvalidArgument, &[0])?;
    map.expect_ok(&[])?;
    ensure_eq!(visitor.load(f, LAST)?, Seen::Word(9));
    ensure_eq!(visitor.store(f, LAST + 0xff8, 10)?, Seen::Word(10));
    let beyond = LAST + 0x1000;
    ensure_eq!(visitor.load(f, beyond)?, absent(beyond, 0));
    // The same for the first.
    for level in LEVELS {
        add_table(f, level, root, 0)?;
    }
    map_at(marked(f, 11)?, root, 0).expect_ok(&[])?;
    ensure_eq!(visitor.load(f, 0)?, Seen::Word(11));
    Ok(())
}

fn upper_half(f: &mut Fixture) -> TestResult {
    let root = f.vspace()?.root();
    add_tables(f, root, 3)?;
    let mut refused = vec![];
    for (size, _) in SIZES {
        refused.push(map(frame_of(f, size)?, root));
    }
    for level in LEVELS {
        let table: CPtr = f.make(level.kind)?;
        refused.push(Invocation::new(table, level.map, &[0, 0], &[root.cptr()]));
    }
    for address in [
        0x0000_8000_0000_0000,
        0xffff_8000_0000_0000,
        0xffff_ff80_0000_0000,
        0xffff_ffff_8000_0000,
        VADDR | 0xffff << 48,
        VADDR | 1 << 48,
    ] {
        for map in &refused {
            map.with_word(0, address)
                .expect_error(InvalidArgument, &[0])?;
        }
    }
    Ok(())
}

/// A page and a table that want the same entry: the second is refused, until the first is gone.
fn exclusion(f: &mut Fixture) -> TestResult {
    for (size, depth) in [(FrameSize::Large, 2), (FrameSize::Huge, 1)] {
        let root = f.vspace()?.root();
        add_tables(f, root, depth)?;
        let page = map(frame_of(f, size)?, root);
        let level = LEVELS[depth];
        let table: CPtr = f.make(level.kind)?;
        let table = Invocation::new(table, level.map, &[VADDR, 0], &[root.cptr()]);
        for _ in 0..2 {
            page.expect_ok(&[])?;
            table.expect_error(DeleteFirst, &[])?;
            unmap(Frame::from_cptr(page.cap)).expect_ok(&[])?;
            table.expect_ok(&[])?;
            let (error, details) = arch::page_over_table(size);
            page.expect_error(error, details)?;
            super::scene::unmap_table(&table).expect_ok(&[])?;
        }
    }
    Ok(())
}
