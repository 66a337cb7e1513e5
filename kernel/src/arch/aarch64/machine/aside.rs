//! Calls that keep all registers (`arch/aside.rs`).

/// The code of this name, which calls a function with what is in x14 and x15, and keeps all registers but x14, where the result
/// is, and the link. Not in those of a function's arguments: a line has its own there.
macro_rules! keep {
    ($name:literal, $function:path) => {
        core::arch::global_asm!(
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "stp x0, x1, [sp, #-160]!",
            "stp x2, x3, [sp, #16]",
            "stp x4, x5, [sp, #32]",
            "stp x6, x7, [sp, #48]",
            "stp x8, x9, [sp, #64]",
            "stp x10, x11, [sp, #80]",
            "stp x12, x13, [sp, #96]",
            "stp x15, x16, [sp, #112]",
            "stp x17, x18, [sp, #128]",
            "str x30, [sp, #144]",
            "mov x0, x14",
            "mov x1, x15",
            "bl {function}",
            "mov x14, x0",
            "ldr x30, [sp, #144]",
            "ldp x17, x18, [sp, #128]",
            "ldp x15, x16, [sp, #112]",
            "ldp x12, x13, [sp, #96]",
            "ldp x10, x11, [sp, #80]",
            "ldp x8, x9, [sp, #64]",
            "ldp x6, x7, [sp, #48]",
            "ldp x4, x5, [sp, #32]",
            "ldp x2, x3, [sp, #16]",
            "ldp x0, x1, [sp], #160",
            "ret",
            concat!(".size ", $name, ", . - ", $name),
            function = sym $function,
        );
    };
}
pub(in crate::arch) use keep;

/// Calls the code of this name with two words, and returns one. Unsafe as calling the function is that the code calls.
macro_rules! call {
    ($name:literal, $first:expr, $second:expr) => {{
        let result: u64;
        core::arch::asm!(
            concat!("bl ", $name),
            inlateout("x14") $first => result,
            in("x15") $second,
            lateout("x30") _,
        );
        result
    }};
}
pub(in crate::arch) use call;
