//! A second address space with this program in it, so that threads of one program are apart as
//! components are.

use sandglass::cap::{Attributes, Frame, Pml4, Rights};
use sandglass::vspace::VSpace;
use sandglass::{BootInfo, Process, SetupError};

const PAGE: u64 = 4096;

unsafe extern "C" {
    /// The ELF header, at the start of the image; defined by the linker.
    static __ehdr_start: u8;
}

/// Maps the whole image, at the same addresses, into a new address space.
pub fn new(process: &mut Process, boot: &BootInfo) -> Result<Pml4, SetupError> {
    let twin = VSpace::new(&mut process.resources)?;
    let frames = boot.user_image_frames();
    let start = &raw const __ehdr_start as u64;
    for index in 0..frames.len() {
        let frame = Frame::at(frames.start + index);
        let copy = process.resources.copy(frame, Rights::ALL)?;
        twin.map(
            &mut process.resources,
            copy,
            start + index * PAGE,
            Rights::READ_WRITE,
            Attributes::WriteBack,
        )?;
    }
    Ok(twin.root())
}
