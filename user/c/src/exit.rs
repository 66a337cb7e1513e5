//! The end of the program.

use core::ffi::c_int;

use sandglass::exit;

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
    let file = Lossy(file.bytes());
    match arguments {
        Some(arguments) => panic!("{file}:{line}: {}", Formatted::new(format, arguments)),
        None => panic!("{file}:{line}"),
    }
}
