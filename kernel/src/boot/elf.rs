//! The root task's file: a 64-bit ELF executable (06, section 3).
//!
//! Every number in it is a claim; [`Program::parse`] checks all of them, so that what it returns
//! can be loaded without further questions. No number of the file makes a loop longer than
//! [`MAX_HEADERS`] steps.

use crate::arch::abi::boot::{ELF_MACHINE, ELF_MACHINE_IS};
use crate::arch::abi::USER_TOP_EXCLUSIVE;

use super::{Range, Refusal};

const MAGIC: u64 = 0x464c_457f;
const CLASS_64: u64 = 2;
const LITTLE_ENDIAN: u64 = 1;
const EXECUTABLE: u64 = 2;
const SHARED: u64 = 3;
const HEADER_BYTES: u64 = 64;
const PROGRAM_HEADER_BYTES: u64 = 56;
const LOAD: u64 = 1;
const INTERPRETER: u64 = 3;

/// Most program headers of a root task.
pub const MAX_HEADERS: u64 = 64;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A checked executable.
#[derive(Clone, Copy, Debug)]
pub struct Program<'f> {
    file: &'f [u8],
    headers: u64,
    header_bytes: u64,
    header_count: u64,
    /// Virtual address of the first instruction, inside the image.
    pub entry: u64,
    /// Virtual addresses that the image covers, in whole pages.
    pub image: Range,
}

/// A program header of a checked executable.
#[derive(Clone, Copy, Debug)]
struct Header {
    kind: u64,
    offset: u64,
    file_bytes: u64,
    memory: Range,
}

/// A part of the image that comes from the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'f> {
    /// Offset from the start of the image.
    pub offset: u64,
    pub bytes: &'f [u8],
}

impl<'f> Program<'f> {
    /// Checks `file`.
    ///
    /// # Errors
    /// [`Refusal::File`], with the number that is wrong and what would be right.
    pub fn parse(file: &'f [u8]) -> Result<Program<'f>, Refusal> {
        check_identity(file)?;
        let field = |offset, size| number(file, offset, size).ok_or(truncated(file));
        let mut program = Program {
            file,
            headers: field(32, 8)?,
            header_bytes: field(54, 2)?,
            header_count: field(56, 2)?,
            entry: field(24, 8)?,
            image: Range {
                start: u64::MAX,
                end: 0,
            },
        };
        if program.header_bytes < PROGRAM_HEADER_BYTES {
            return Err(refusal(
                "size of a program header is",
                program.header_bytes,
                "it is 0x38 at least",
            ));
        }
        if program.header_count == 0 || program.header_count > MAX_HEADERS {
            return Err(refusal(
                "number of program headers is",
                program.header_count,
                "there must be 1 to 0x40",
            ));
        }
        program.image = program.checked_image()?;
        if program.entry < program.image.start || program.entry >= program.image.end {
            return Err(refusal(
                "entry point is",
                program.entry,
                "it must lie inside the image",
            ));
        }
        Ok(program)
    }

    /// The parts of the image that come from the file, in the file's order.
    pub fn segments(self) -> impl Iterator<Item = Segment<'f>> {
        (0..self.header_count).filter_map(move |i| {
            let header = self.header(i).ok()?;
            if header.kind != LOAD {
                return None;
            }
            let end = header.offset.checked_add(header.file_bytes)?;
            Some(Segment {
                offset: header.memory.start.checked_sub(self.image.start)?,
                bytes: self.file.get(header.offset as usize..end as usize)?,
            })
        })
    }

    /// Checks all program headers; the pages from the lowest to the highest address that they
    /// name.
    fn checked_image(&self) -> Result<Range, Refusal> {
        let mut image = Range {
            start: u64::MAX,
            end: 0,
        };
        for i in 0..self.header_count {
            let header = self.header(i)?;
            if header.kind == INTERPRETER {
                return Err(refusal(
                    "program header for an interpreter is at address",
                    header.memory.start,
                    "a root task must be linked statically",
                ));
            }
            let memory_bytes = header.memory.end - header.memory.start;
            if header.kind == LOAD && header.file_bytes > memory_bytes {
                return Err(refusal(
                    "segment for address",
                    header.memory.start,
                    "it has more bytes in the file than in memory",
                ));
            }
            if header.memory.is_empty() {
                continue;
            }
            image.start = image.start.min(header.memory.start);
            image.end = image.end.max(header.memory.end);
            if header.kind == LOAD {
                self.check_loadable(i, header)?;
            }
        }
        if image.start >= image.end {
            return Err(refusal(
                "number of program headers is",
                self.header_count,
                "none of them has anything to load",
            ));
        }
        if !image.start.is_multiple_of(PAGE) {
            return Err(refusal(
                "image starts at",
                image.start,
                "it must start at a page boundary",
            ));
        }
        // The highest address is below the user's top, so rounding does not wrap.
        image.end = image.end.next_multiple_of(PAGE);
        Ok(image)
    }

    /// Checks that the segment of header `i` is in the file and apart from those before it.
    fn check_loadable(&self, i: u64, header: Header) -> Result<(), Refusal> {
        let length = self.file.len() as u64;
        if header
            .offset
            .checked_add(header.file_bytes)
            .is_none_or(|end| end > length)
        {
            return Err(refusal(
                "length in bytes is",
                length,
                "a segment lies beyond their end",
            ));
        }
        for before in 0..i {
            let before = self.header(before)?;
            if before.kind == LOAD && before.memory.overlaps(header.memory) {
                return Err(refusal(
                    "segment for address",
                    header.memory.start,
                    "it overlaps another",
                ));
            }
        }
        Ok(())
    }

    /// Program header `i`, with its address range checked.
    fn header(&self, i: u64) -> Result<Header, Refusal> {
        let start = self
            .headers
            .checked_add(i * self.header_bytes)
            .ok_or(refusal(
                "program headers start at byte",
                self.headers,
                "they must lie in the file",
            ))?;
        let field = |offset: u64, size| {
            let offset = start.checked_add(offset)?;
            number(self.file, offset, size)
        };
        let fields = (
            field(0, 4),
            field(8, 8),
            field(16, 8),
            field(32, 8),
            field(40, 8),
        );
        let (Some(kind), Some(offset), Some(vaddr), Some(file_bytes), Some(memory_bytes)) = fields
        else {
            return Err(refusal(
                "program headers start at byte",
                self.headers,
                "they must lie in the file",
            ));
        };
        match vaddr.checked_add(memory_bytes) {
            Some(end) if end <= USER_TOP_EXCLUSIVE || memory_bytes == 0 => Ok(Header {
                kind,
                offset,
                file_bytes,
                memory: Range { start: vaddr, end },
            }),
            _ => Err(refusal(
                "segment for address",
                vaddr,
                "it ends above the highest user address",
            )),
        }
    }
}

/// Where a number of the ELF header is and its size, the values it may have, what it is, and what
/// is right.
type Expectation = (u64, u64, &'static [u64], &'static str, &'static str);

/// Checks what says that `file` is an executable for this machine at all.
fn check_identity(file: &[u8]) -> Result<(), Refusal> {
    let expected: [Expectation; 5] = [
        (
            0,
            4,
            &[MAGIC],
            "first bytes are",
            "those of an ELF file are 0x464c457f",
        ),
        (
            4,
            1,
            &[CLASS_64],
            "ELF class is",
            "that of a 64-bit file is 0x2",
        ),
        (
            5,
            1,
            &[LITTLE_ENDIAN],
            "ELF data encoding is",
            "little-endian is 0x1",
        ),
        (18, 2, &[ELF_MACHINE], "ELF machine is", ELF_MACHINE_IS),
        (
            16,
            2,
            &[EXECUTABLE, SHARED],
            "ELF type is",
            "an executable is 0x2 (or 0x3)",
        ),
    ];
    for (offset, size, allowed, what, right) in expected {
        match number(file, offset, size) {
            Some(found) if allowed.contains(&found) => {}
            Some(found) => return Err(refusal(what, found, right)),
            None => return Err(truncated(file)),
        }
    }
    if (file.len() as u64) < HEADER_BYTES {
        return Err(truncated(file));
    }
    Ok(())
}

fn refusal(what: &'static str, found: u64, right: &'static str) -> Refusal {
    Refusal::File { what, found, right }
}

fn truncated(file: &[u8]) -> Refusal {
    refusal(
        "length in bytes is",
        file.len() as u64,
        "an ELF file is longer",
    )
}

/// The little-endian number of `size` bytes, up to 8, at `offset` of `file`.
#[inline(never)]
fn number(file: &[u8], offset: u64, size: u64) -> Option<u64> {
    let start = usize::try_from(offset).ok()?;
    let bytes = file.get(start..start.checked_add(size as usize)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte)),
    )
}
