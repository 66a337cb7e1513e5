//! Telling whoever watches the machine how it ended: by semihosting, which an emulator or a debugger answers. Of the debug
//! kernel only: where nobody answers, it is an exception.

/// Ends the run with `status`, if anybody watches.
#[cfg(feature = "debug")]
pub fn exit(status: u8) {
    use core::arch::asm;
    use core::sync::atomic::{AtomicBool, Ordering};

    /// SYS_EXIT, and the reason that is followed by a status: the application has ended.
    const EXIT: u64 = 0x18;
    const APPLICATION_ENDED: u64 = 0x2_0026;
    /// Whether it has been tried: the exception that it is elsewhere comes back here. Relaxed: another core may try, too.
    static TRIED: AtomicBool = AtomicBool::new(false);

    if TRIED.swap(true, Ordering::Relaxed) {
        return;
    }
    let block = [APPLICATION_ENDED, status.into()];
    // SAFETY: it ends the emulator, or is an exception, which ends this kernel.
    unsafe {
        asm!("hlt #0xf000", inout("x0") EXIT => _, in("x1") block.as_ptr(), options(nostack));
    }
}

/// Nobody is told.
#[cfg(not(feature = "debug"))]
pub fn exit(_status: u8) {}
