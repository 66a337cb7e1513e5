//! What the witness looks at: its GS base, which is 0, as it is of most threads. The kernel
//! knows of bases that programs ask it for; a program that loads a base from a descriptor must not
//! hand it on to the next thread. In the witness's address space a page is mapped at address 0, so
//! that it can tell a base of 0 from others.

use core::arch::asm;

use sandglass::cap::{Attributes, FrameSize, Rights};
use sandglass::{Process, SetupError};

/// Where the page is mapped, and the word that is looked at.
const PAGE_ADDRESS: u64 = 0;
const WORD: u64 = 8;
const PATTERN: u64 = 0x5a1d_91a5_5000_0001;

/// For messages.
pub const LOOKED_AT: &str = "GS base";

/// Before the witnesses start.
pub fn prepare(process: &mut Process) -> Result<(), SetupError> {
    let frame = process.resources.frame(FrameSize::Small)?;
    process
        .space
        .fill_frame(&mut process.resources, frame, |page| {
            let at = WORD as usize;
            page[at..at + 8].copy_from_slice(&PATTERN.to_le_bytes());
        })?;
    let (rights, attributes) = (Rights::READ, Attributes::WriteBack);
    let vspace = process.space.vspace();
    vspace.map(
        &mut process.resources,
        frame,
        PAGE_ADDRESS,
        rights,
        attributes,
    )?;
    Ok(())
}

/// Whether all is as it was.
pub fn look() -> bool {
    let word: u64;
    // SAFETY: the page is mapped at the base that GS has; with another, the pattern or a fault
    // shows.
    unsafe { asm!("mov {}, gs:[{word}]", out(reg) word, word = const WORD, options(nostack)) };
    word == PATTERN
}
