//! The packed system in this program's image.

use core::ptr;
use core::slice;

use sandglass_description::archive::{Archive, ArchiveError};

/// Where the archive is, as the builder writes it into the section `.sandglass.archive`.
#[repr(C)]
struct Location {
    /// Virtual address, at a page boundary; 0 in a launcher without a system.
    address: u64,
    /// Bytes.
    len: u64,
}

#[link_section = ".sandglass.archive"]
static LOCATION: Location = Location { address: 0, len: 0 };

/// The archive.
///
/// # Errors
/// There is none, or it is damaged.
pub fn archive() -> Result<Archive<'static>, ArchiveError> {
    // SAFETY: the builder changes the static's value in the file. It is read as something that the
    // compiler does not know, and describes a segment of this image, which stays as it is.
    let bytes = unsafe {
        let location = ptr::read_volatile(&raw const LOCATION);
        if location.address == 0 {
            return Err(ArchiveError::NotAnArchive);
        }
        slice::from_raw_parts(location.address as *const u8, location.len as usize)
    };
    Archive::parse(bytes)
}
