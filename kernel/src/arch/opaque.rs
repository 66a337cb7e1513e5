//! What the compiler knows nothing of, on every bare machine.

/// `value`, of which the compiler knows nothing from here on: it is computed here, and not where it is used, if that is behind
/// a branch.
#[inline(always)]
pub fn opaque_word(value: u64) -> u64 {
    let mut value = value;
    // SAFETY: no instruction. Not `pure`: that would be moved.
    unsafe {
        core::arch::asm!("/* {} */", inout(reg) value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// The same of an address.
#[inline(always)]
pub fn opaque_pointer<T>(pointer: *mut T) -> *mut T {
    let mut pointer = pointer;
    // SAFETY: no instruction, and the same pointer.
    unsafe {
        core::arch::asm!("/* {} */", inout(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

/// More bytes than an entry and a line need of the stack, which begins at a multiple of that.
#[repr(align(512))]
struct Frame {
    _bytes: core::mem::MaybeUninit<[u8; 64]>,
}

/// Whoever calls this has its frame at a multiple of [`Frame`], and what it calls has its own at a known distance from there: so
/// it is known at which addresses it is, whatever line it is called from.
#[inline(always)]
pub fn align_stack() {
    let frame = Frame {
        _bytes: core::mem::MaybeUninit::uninit(),
    };
    // SAFETY: no instruction. The frame is on the stack, and so aligned, as somebody might look at it.
    unsafe {
        core::arch::asm!("/* {} */", in(reg) &raw const frame, options(nostack, preserves_flags));
    }
}
