//! A value of which the compiler knows nothing, on every bare machine.

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
