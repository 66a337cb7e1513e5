//! Calls that keep all registers (`arch/aside.rs`).

/// The code of this name, which calls a function with what is in RDI and RSI, and keeps all registers but RAX, where the result
/// is.
macro_rules! keep {
    ($name:literal, $function:path) => {
        core::arch::global_asm!(
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "push rcx",
            "push rdx",
            "push rsi",
            "push rdi",
            "push r8",
            "push r9",
            "push r10",
            "push r11",
            // The stack is aligned.
            "push rax",
            "call {function}",
            "pop rcx",
            "pop r11",
            "pop r10",
            "pop r9",
            "pop r8",
            "pop rdi",
            "pop rsi",
            "pop rdx",
            "pop rcx",
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
            concat!("call ", $name),
            in("rdi") $first,
            in("rsi") $second,
            lateout("rax") result,
        );
        result
    }};
}
pub(in crate::arch) use call;
