//! Telling whoever watches the machine how it ended, and what it says before its console is known: by semihosting, which an
//! emulator or a debugger answers. Of the debug kernel only: where nobody answers, it is an exception.

/// Ends the run with `status`, if anybody watches.
#[cfg(feature = "debug")]
pub fn exit(status: u8) {
    /// SYS_EXIT, and the reason that is followed by a status: the application has ended.
    const EXIT: u64 = 0x18;
    const APPLICATION_ENDED: u64 = 0x2_0026;
    let block = [APPLICATION_ENDED, status.into()];
    call(EXIT, block.as_ptr().cast());
}

/// Shows `byte`, if anybody watches.
#[cfg(feature = "debug")]
pub fn put(byte: u8) {
    const WRITE_BYTE: u64 = 0x03;
    call(WRITE_BYTE, &raw const byte);
}

/// Asks whoever watches for `operation`. Where nobody answers it is an exception, whose end comes back here, and is not
/// asked for again.
#[cfg(feature = "debug")]
fn call(operation: u64, argument: *const u8) {
    use core::arch::asm;
    use core::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const ASKED: u8 = 1;
    const ANSWERS: u8 = 2;
    /// Whether somebody answers. Relaxed: another core may find it out, too.
    static WATCHER: AtomicU8 = AtomicU8::new(UNKNOWN);

    match WATCHER.load(Ordering::Relaxed) {
        ASKED => return,
        ANSWERS => {}
        _ => WATCHER.store(ASKED, Ordering::Relaxed),
    }
    // SAFETY: it reads what the argument is about, and may end the emulator; or it is an exception, which ends this
    // kernel.
    unsafe {
        asm!("hlt #0xf000", inout("x0") operation => _, in("x1") argument, options(nostack));
    }
    WATCHER.store(ANSWERS, Ordering::Relaxed);
}

/// Nobody is told.
#[cfg(not(feature = "debug"))]
pub fn exit(_status: u8) {}

/// Nobody is shown it.
#[cfg(not(feature = "debug"))]
pub fn put(_byte: u8) {}
