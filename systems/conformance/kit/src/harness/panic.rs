//! A panic of a check is its failure, and not the end of the run.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use sandglass::cap::Endpoint;
use sandglass::thread_block::current_ipc_buffer;
use sandglass::{entry, exit, Message};

/// Of the conductor, whose own panics do end the run.
static CONDUCTOR_BUFFER: AtomicU64 = AtomicU64::new(0);
/// Where a panic is reported to; 0 once one is.
static REPORT_TO: AtomicU64 = AtomicU64::new(0);
/// A box, or null.
static MESSAGE: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

/// To be called by the conductor.
pub fn install() {
    CONDUCTOR_BUFFER.store(current_ipc_buffer() as u64, Relaxed);
    entry::set_panic_hook(hook);
}

/// A check begins: its panic is to be reported to `endpoint`.
pub fn expect(endpoint: Endpoint) {
    REPORT_TO.store(endpoint.address(), Relaxed);
}

/// What the last check's panic said, if it panicked.
pub fn take() -> Option<String> {
    let message = MESSAGE.swap(ptr::null_mut(), Relaxed);
    // SAFETY: null, or a box that the hook has given up.
    (!message.is_null()).then(|| *unsafe { Box::from_raw(message) })
}

fn hook(info: &PanicInfo<'_>) {
    if current_ipc_buffer() as u64 == CONDUCTOR_BUFFER.load(Relaxed) {
        return;
    }
    let endpoint = REPORT_TO.swap(0, Relaxed);
    if endpoint != 0 {
        MESSAGE.store(Box::into_raw(Box::new(format!("{info}"))), Relaxed);
        Endpoint::at(endpoint).call(Message::EMPTY);
    }
    // A second panic, perhaps of the report itself: the watchdog will tell.
    exit::stop()
}
