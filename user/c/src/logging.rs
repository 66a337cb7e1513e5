//! The log, and signs of life.

use core::ffi::c_int;

use sandglass::log;
use sandglass::logging::level_of;

use crate::console::Formatted;
use crate::environment;
use crate::foreign::Text;
use crate::format::ArgumentList;

#[no_mangle]
pub extern "C" fn sg_vlog(level: c_int, format: Text, arguments: Option<&mut ArgumentList>) {
    let level = u8::try_from(level).ok().and_then(level_of);
    if let (Some(level), Some(arguments)) = (level, arguments) {
        log::log!(level, "{}", Formatted::new(format, arguments));
    }
}

#[no_mangle]
pub extern "C" fn sg_report_alive() {
    environment::get().watchdog().report();
}

#[no_mangle]
pub extern "C" fn sg_rest() {
    environment::get().watchdog().rest();
}
