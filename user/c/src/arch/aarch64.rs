//! aarch64: its procedure call standard.

/// The rest of a function's arguments.
#[repr(C)]
#[derive(Debug)]
pub struct ArgumentList {
    memory: *const u64,
    /// Where the registers of integers end, and those of floating-point numbers, where they were stored.
    integers_end: *const u8,
    floats_end: *const u8,
    /// Offset of the next of each from there, bytes; from 0 on they are in memory.
    integers: i32,
    floats: i32,
}

impl ArgumentList {
    /// Arguments that are all in memory.
    #[cfg(test)]
    pub const fn in_memory(memory: *const u64) -> Self {
        Self {
            memory,
            integers_end: core::ptr::null(),
            floats_end: core::ptr::null(),
            integers: 0,
            floats: 0,
        }
    }

    /// # Safety
    /// There must be another argument, an integer or a pointer.
    pub unsafe fn integer(&mut self) -> u64 {
        if self.integers >= 0 {
            // SAFETY: the caller's promise.
            return unsafe { self.next_in_memory() };
        }
        // SAFETY: the ABI's, below the end.
        let value = unsafe {
            self.integers_end
                .offset(self.integers as isize)
                .cast::<u64>()
                .read()
        };
        self.integers += 8;
        value
    }

    /// # Safety
    /// There must be another argument, a `double`.
    pub unsafe fn float(&mut self) -> f64 {
        if self.floats >= 0 {
            // SAFETY: the caller's promise.
            return f64::from_bits(unsafe { self.next_in_memory() });
        }
        // SAFETY: the ABI's, below the end.
        let bits = unsafe {
            self.floats_end
                .offset(self.floats as isize)
                .cast::<u64>()
                .read()
        };
        self.floats += 16;
        f64::from_bits(bits)
    }

    /// # Safety
    /// As of [`Self::integer`].
    unsafe fn next_in_memory(&mut self) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            let value = self.memory.read();
            self.memory = self.memory.add(1);
            value
        }
    }
}

/// The code in which a program and its further threads start, and names of C's library that are functions of ours.
#[macro_export]
macro_rules! start_code {
    ($start:path, $thread:path, $guard:path) => {
        core::arch::global_asm!(
            ".section .text._start, \"ax\", @progbits",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            "adrp x1, __sandglass_stack_guard",
            "add x1, x1, :lo12:__sandglass_stack_guard",
            "adrp x2, sg_program_stack_bytes",
            "ldr x2, [x2, :lo12:sg_program_stack_bytes]",
            "add x1, x1, x2",
            "mov x2, #{guard}",
            "add x1, x1, x2",
            "mov sp, x1",
            "mov x29, xzr",
            "mov x30, xzr",
            "bl {start}",
            "udf #0",
            // Where the component's further threads start, as in `sandglass::entry!`.
            ".globl __sandglass_thread",
            ".type __sandglass_thread, @function",
            "__sandglass_thread:",
            "ldr x1, [x0]",
            "mov sp, x1",
            "mov x29, xzr",
            "mov x30, xzr",
            "bl {thread}",
            "udf #0",
            // Called by the compiled core library, and by code that compilers see through. In assembly, because a compiler
            // may turn a loop that counts into a call of it.
            ".globl strlen",
            ".type strlen, @function",
            "strlen:",
            "mov x1, x0",
            "1: ldrb w2, [x1], #1",
            "cbnz w2, 1b",
            "sub x0, x1, x0",
            "sub x0, x0, #1",
            "ret",
            // Existing code calls these names. What defines one of its own keeps it.
            ".macro sandglass_name name",
            ".weak \\name",
            ".type \\name, @function",
            "\\name: b sg_\\name",
            ".endm",
            "sandglass_name malloc",
            "sandglass_name calloc",
            "sandglass_name realloc",
            "sandglass_name free",
            "sandglass_name aligned_alloc",
            ".text",
            guard = const $guard,
            start = sym $start,
            thread = sym $thread,
        );
    };
}
