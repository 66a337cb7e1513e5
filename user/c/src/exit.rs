//! The end of the program.

use core::ffi::c_int;

use sandglass::{entry, exit};

use crate::console::Formatted;
use crate::foreign::Text;
use crate::format::{ArgumentList, Lossy};

#[no_mangle]
pub extern "C" fn sg_exit(status: c_int) -> ! {
    // Of a status, eight bits count, as elsewhere.
    exit::exit(status as u8)
}

#[no_mangle]
pub extern "C" fn sg_vpanic(
    file: Text,
    line: c_int,
    format: Text,
    arguments: Option<&mut ArgumentList>,
) -> ! {
    let place = Lossy(file.bytes());
    match arguments {
        Some(arguments) => {
            let text = Formatted::new(format, arguments);
            entry::fail(&format_args!("panicked at {place}:{line}:\n{text}"))
        }
        None => entry::fail(&format_args!("panicked at {place}:{line}")),
    }
}
