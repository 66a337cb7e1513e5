//! Marks in the execution trace.

use sandglass::trace::{self, Mark};

#[no_mangle]
pub extern "C" fn sg_mark_release(job: u64, at: u64) {
    trace::mark(Mark::Release { job, at });
}

#[no_mangle]
pub extern "C" fn sg_mark_deadline(job: u64, at: u64) {
    trace::mark(Mark::Deadline { job, at });
}

#[no_mangle]
pub extern "C" fn sg_mark_end(job: u64) {
    trace::mark(Mark::End { job });
}

#[no_mangle]
pub extern "C" fn sg_mark_note(what: u64, value: u64) {
    trace::mark(Mark::Note { what, value });
}
