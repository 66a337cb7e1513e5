//! The time-stamp counter, and its conversion to µs.

use sandglass::time::{self, Tsc};

use crate::environment;

fn tsc() -> Tsc {
    let tsc = environment::get().tsc();
    tsc.expect("the kernel reports the clock's frequency")
}

#[no_mangle]
pub extern "C" fn sg_ticks() -> u64 {
    time::ticks()
}

#[no_mangle]
pub extern "C" fn sg_ticks_per_us() -> u32 {
    tsc().mhz()
}

#[no_mangle]
pub extern "C" fn sg_us_to_ticks(us: u64) -> u64 {
    tsc().us_to_ticks(us)
}

#[no_mangle]
pub extern "C" fn sg_ticks_to_us(ticks: u64) -> u64 {
    tsc().ticks_to_us(ticks)
}

#[no_mangle]
pub extern "C" fn sg_ticks_to_ns(ticks: u64) -> u64 {
    tsc().ticks_to_ns(ticks)
}

#[no_mangle]
pub extern "C" fn sg_now_us() -> u64 {
    tsc().now_us()
}

#[no_mangle]
pub extern "C" fn sg_spin_us(us: u64) {
    tsc().spin_us(us);
}
