//! Program images: what an ELF executable wants where in memory.

use alloc::vec::Vec;
use core::fmt;

use crate::arch::vspace::{HIGHEST_PAGE, LOWEST_PROGRAM};
use crate::arch::{ELF_MACHINE, ELF_MACHINE_NAME};
use elf::abi::{ET_EXEC, PF_W, PT_LOAD};
use elf::endian::LittleEndian;
use elf::file::Class;
use elf::ElfBytes;

use crate::thread;

/// Most memory of all segments of a program, bytes. Who loads it plans each page beforehand.
pub const MOST_MEMORY: u64 = 64 << 20;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// The symbol that [`entry!`](crate::entry) defines for the page below the stack.
const STACK_GUARD_SYMBOL: &str = "__sandglass_stack_guard";

/// A program image, checked: static, position-dependent, for the architecture, inside user addresses and not
/// below [`LOWEST_PROGRAM`].
#[derive(Clone, Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    entry: u64,
    thread_start: Option<u64>,
    segments: Vec<Segment>,
    pages: Vec<ImagePage>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    vaddr: u64,
    /// Bytes in memory; what the file does not provide is zero.
    len: u64,
    file_offset: usize,
    file_len: usize,
    writable: bool,
}

/// A page of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePage {
    /// Virtual address of its first byte.
    pub vaddr: u64,
    /// Some segment that shares the page is writable.
    pub writable: bool,
    /// The file provides a part of it; otherwise it is all zero.
    pub has_content: bool,
}

/// Why bytes are no image that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// Not an ELF file, or one whose headers are cut off.
    NotElf,
    /// Not a 64-bit little-endian executable of the architecture.
    WrongMachine,
    /// Position-independent or relocatable.
    NotStatic,
    /// No program segment has any memory.
    Empty,
    /// The segment at this address lies outside of user memory or of the file.
    BadSegment { vaddr: u64 },
    /// The segment at this address begins below [`LOWEST_PROGRAM`].
    LowSegment { vaddr: u64 },
    /// The segments together have more memory than [`MOST_MEMORY`].
    TooLarge { bytes: u64 },
    /// The entry point lies in no segment.
    BadEntry { entry: u64 },
}

impl core::error::Error for ImageError {}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf => write!(f, "not an ELF file"),
            Self::WrongMachine => write!(f, "not an ELF file for 64-bit {ELF_MACHINE_NAME}"),
            Self::NotStatic => {
                write!(
                    f,
                    "not a position-dependent executable (link with -static -no-pie)"
                )
            }
            Self::Empty => write!(f, "the ELF file has no segment to load"),
            Self::BadSegment { vaddr } => {
                write!(
                    f,
                    "the segment at {vaddr:#x} exceeds user memory or the ELF file"
                )
            }
            Self::LowSegment { vaddr } => {
                write!(
                    f,
                    "the segment at {vaddr:#x} lies too low: link the program to {LOWEST_PROGRAM:#x} or \
                     above"
                )
            }
            Self::TooLarge { bytes } => write!(
                f,
                "its segments have {bytes} bytes of memory, but must have at most {MOST_MEMORY}"
            ),
            Self::BadEntry { entry } => write!(f, "the entry point {entry:#x} is in no segment"),
        }
    }
}

impl<'a> Image<'a> {
    /// Checks an ELF executable and plans its pages.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ImageError> {
        let elf = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(|_| ImageError::NotElf)?;
        if elf.ehdr.class != Class::ELF64 || elf.ehdr.e_machine != ELF_MACHINE {
            return Err(ImageError::WrongMachine);
        }
        if elf.ehdr.e_type != ET_EXEC {
            return Err(ImageError::NotStatic);
        }
        let mut segments = Vec::new();
        for header in elf.segments().ok_or(ImageError::Empty)?.iter() {
            if header.p_type == PT_LOAD && header.p_memsz > 0 {
                segments.push(Segment {
                    vaddr: header.p_vaddr,
                    len: header.p_memsz,
                    file_offset: usize::try_from(header.p_offset).unwrap_or(usize::MAX),
                    file_len: usize::try_from(header.p_filesz).unwrap_or(usize::MAX),
                    writable: header.p_flags & PF_W != 0,
                });
            }
        }
        let mut image = Self::plan(bytes, elf.ehdr.e_entry, segments)?;
        if let Some(guard) = symbol(&elf, STACK_GUARD_SYMBOL) {
            image.pages.retain(|page| page.vaddr != guard);
        }
        image.thread_start = symbol(&elf, thread::START_SYMBOL);
        Ok(image)
    }

    fn plan(bytes: &'a [u8], entry: u64, segments: Vec<Segment>) -> Result<Self, ImageError> {
        if segments.is_empty() {
            return Err(ImageError::Empty);
        }
        // Before anything is planned: a page of it takes room in the loader's heap.
        let mut total = 0_u64;
        for segment in &segments {
            segment.check(bytes)?;
            total = total.saturating_add(segment.len);
        }
        if total > MOST_MEMORY {
            return Err(ImageError::TooLarge { bytes: total });
        }
        if !segments
            .iter()
            .any(|segment| (segment.vaddr..segment.end()).contains(&entry))
        {
            return Err(ImageError::BadEntry { entry });
        }
        let mut pages = Vec::new();
        for segment in &segments {
            let content_end = segment.vaddr + segment.file_len as u64;
            for vaddr in segment.page_addresses() {
                pages.push(ImagePage {
                    vaddr,
                    writable: segment.writable,
                    has_content: vaddr < content_end,
                });
            }
        }
        pages.sort_unstable_by_key(|page| page.vaddr);
        pages.dedup_by(|later, kept| {
            let same = later.vaddr == kept.vaddr;
            if same {
                kept.writable |= later.writable;
                kept.has_content |= later.has_content;
            }
            same
        });
        Ok(Self {
            bytes,
            entry,
            thread_start: None,
            segments,
            pages,
        })
    }

    /// Address of the first instruction.
    pub const fn entry(&self) -> u64 {
        self.entry
    }

    /// Where further threads start, if the program is made for that: see [`thread`].
    pub const fn thread_start(&self) -> Option<u64> {
        self.thread_start
    }

    /// Its pages, by ascending address, each once.
    pub fn pages(&self) -> &[ImagePage] {
        &self.pages
    }

    /// The first address after its last page.
    pub fn end(&self) -> u64 {
        self.pages.last().map_or(0, |page| page.vaddr + PAGE)
    }

    /// Writes the file's part of the page at `vaddr` to `page`, which is the page's memory, all
    /// zero.
    pub fn fill(&self, vaddr: u64, page: &mut [u8]) {
        let page_end = vaddr + page.len() as u64;
        for segment in &self.segments {
            let start = segment.vaddr.max(vaddr);
            let end = (segment.vaddr + segment.file_len as u64).min(page_end);
            if start < end {
                let from = segment.file_offset + (start - segment.vaddr) as usize;
                let len = (end - start) as usize;
                let to = (start - vaddr) as usize;
                page[to..to + len].copy_from_slice(&self.bytes[from..from + len]);
            }
        }
    }
}

/// The value of a symbol that programs of this runtime have.
fn symbol(elf: &ElfBytes<'_, LittleEndian>, wanted: &str) -> Option<u64> {
    let (symbols, names) = elf.symbol_table().ok()??;
    symbols
        .iter()
        .find(|symbol| {
            names
                .get(symbol.st_name as usize)
                .is_ok_and(|name| name == wanted)
        })
        .map(|symbol| symbol.st_value)
}

impl Segment {
    /// The first address after it; `check` has shown that there is one.
    const fn end(&self) -> u64 {
        self.vaddr + self.len
    }

    fn check(&self, bytes: &[u8]) -> Result<(), ImageError> {
        if self.vaddr < LOWEST_PROGRAM {
            return Err(ImageError::LowSegment { vaddr: self.vaddr });
        }
        let bad = ImageError::BadSegment { vaddr: self.vaddr };
        let end = self.vaddr.checked_add(self.len).ok_or(bad)?;
        let file_end = self.file_offset.checked_add(self.file_len).ok_or(bad)?;
        let fits = end <= HIGHEST_PAGE
            && self.file_len as u64 <= self.len
            && (self.file_len == 0 || file_end <= bytes.len());
        fits.then_some(()).ok_or(bad)
    }

    fn page_addresses(&self) -> impl Iterator<Item = u64> {
        (self.vaddr / PAGE..self.end().div_ceil(PAGE)).map(|number| number * PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn segment(vaddr: u64, len: u64, file: core::ops::Range<usize>, writable: bool) -> Segment {
        Segment {
            vaddr,
            len,
            file_offset: file.start,
            file_len: file.len(),
            writable,
        }
    }

    #[test]
    fn a_page_that_two_segments_share_is_planned_once_with_both_contents() {
        let bytes: Vec<u8> = (0..100).collect();
        let segments = vec![
            segment(0x1_1ff0, 0x20, 0..0x20, false),
            segment(0x1_2010, 0x1010, 40..50, true),
        ];
        let image = Image::plan(&bytes, 0x1_1ff0, segments).unwrap();
        let page = |vaddr, writable, has_content| ImagePage {
            vaddr,
            writable,
            has_content,
        };
        assert_eq!(
            image.pages(),
            [
                page(0x1_1000, false, true),
                page(0x1_2000, true, true),
                page(0x1_3000, true, false)
            ]
        );
        assert_eq!(image.end(), 0x1_4000);
        let mut memory = vec![0; PAGE as usize];
        image.fill(0x1_2000, &mut memory);
        assert_eq!(memory[..0x10], bytes[0x10..0x20]);
        assert_eq!(memory[0x10..0x1a], bytes[40..50]);
        assert!(memory[0x1a..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn claims_beyond_the_file_or_user_memory_are_refused() {
        let bytes = [0; 64];
        let refuse = |s: Segment| {
            let vaddr = s.vaddr;
            assert_eq!(
                Image::plan(&bytes, vaddr, vec![s]).err(),
                Some(ImageError::BadSegment { vaddr })
            );
        };
        refuse(segment(0x1_1000, 100, 0..65, false));
        refuse(segment(0x1_1000, 10, 0..20, false));
        refuse(segment(u64::MAX - 5, 10, 0..1, false));
        refuse(segment(HIGHEST_PAGE, 1, 0..1, false));
        refuse(segment(0x1_1000, 100, usize::MAX - 3..usize::MAX, false));
    }

    /// Finding 13 of the hostile reading of the user level: half of all addresses, in one header.
    #[test]
    fn more_memory_than_can_be_planned_is_refused() {
        let bytes = [0; 64];
        let plan = |len| {
            let halves = [0, len].map(|from| segment(0x1_0000 + from, len, 0..1, true));
            Image::plan(&bytes, 0x1_0000, halves.to_vec()).err()
        };
        assert_eq!(plan(MOST_MEMORY / 2), None);
        for len in [MOST_MEMORY / 2 + PAGE, 1 << 45] {
            let bytes = 2 * len;
            assert_eq!(plan(len), Some(ImageError::TooLarge { bytes }));
        }
    }

    #[test]
    fn segments_where_null_pointers_lead_are_refused() {
        let bytes = [0; 64];
        let plan = |vaddr| Image::plan(&bytes, vaddr, vec![segment(vaddr, 64, 0..64, false)]);
        for vaddr in [0, 0x1000, LOWEST_PROGRAM - 1] {
            let refused = plan(vaddr).unwrap_err();
            assert_eq!(refused, ImageError::LowSegment { vaddr });
            assert!(std::format!("{refused}").contains("0x10000 or above"));
        }
        assert!(plan(LOWEST_PROGRAM).is_ok());
    }

    #[test]
    fn the_entry_must_be_in_a_segment() {
        let bytes = [0; 64];
        let plan = |entry| Image::plan(&bytes, entry, vec![segment(0x1_1000, 64, 0..64, false)]);
        assert!(plan(0x1_103f).is_ok());
        assert_eq!(
            plan(0x1_1040).err(),
            Some(ImageError::BadEntry { entry: 0x1_1040 })
        );
    }

    #[test]
    fn files_that_are_no_static_executables_are_told_apart() {
        assert_eq!(Image::parse(b"hello").err(), Some(ImageError::NotElf));
        let own = std::fs::read("/proc/self/exe").unwrap();
        // Host tests are position-independent.
        assert_eq!(Image::parse(&own).err(), Some(ImageError::NotStatic));
        let mut arm = own.clone();
        arm[18] = 0xb7;
        assert_eq!(Image::parse(&arm).err(), Some(ImageError::WrongMachine));
        assert_eq!(Image::parse(&own[..40]).err(), Some(ImageError::NotElf));
    }
}
