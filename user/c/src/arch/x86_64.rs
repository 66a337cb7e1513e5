//! x86_64: the System V ABI.

/// The rest of a function's arguments, as the System V ABI for x86_64 has them.
#[repr(C)]
#[derive(Debug)]
pub struct ArgumentList {
    /// Offset of the next integer in `registers`, bytes; from [`Self::INTEGERS_END`] on they are in memory.
    integers: u32,
    /// Offset of the next floating-point number in `registers`, bytes.
    floats: u32,
    memory: *const u64,
    registers: *const u8,
}

impl ArgumentList {
    const INTEGERS_END: u32 = 48;
    const FLOATS_END: u32 = 176;

    /// Arguments that are all in memory.
    #[cfg(test)]
    pub const fn in_memory(memory: *const u64) -> Self {
        Self {
            integers: Self::INTEGERS_END,
            floats: Self::FLOATS_END,
            memory,
            registers: core::ptr::null(),
        }
    }

    /// # Safety
    /// There must be another argument, an integer or a pointer.
    pub unsafe fn integer(&mut self) -> u64 {
        if self.integers >= Self::INTEGERS_END {
            // SAFETY: the caller's promise.
            return unsafe { self.next_in_memory() };
        }
        // SAFETY: the ABI's, below the end.
        let value = unsafe {
            self.registers
                .add(self.integers as usize)
                .cast::<u64>()
                .read()
        };
        self.integers += 8;
        value
    }

    /// # Safety
    /// There must be another argument, a `double`.
    pub unsafe fn float(&mut self) -> f64 {
        if self.floats >= Self::FLOATS_END {
            // SAFETY: the caller's promise.
            return f64::from_bits(unsafe { self.next_in_memory() });
        }
        // SAFETY: the ABI's, below the end.
        let bits = unsafe {
            self.registers
                .add(self.floats as usize)
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
            "lea rsp, [rip + __sandglass_stack_guard + {guard}]",
            "add rsp, [rip + sg_program_stack_bytes]",
            "xor ebp, ebp",
            "call {start}",
            "ud2",
            // Where the component's further threads start, as in `sandglass::entry!`.
            ".globl __sandglass_thread",
            ".type __sandglass_thread, @function",
            "__sandglass_thread:",
            "mov rsp, [rdi]",
            "xor ebp, ebp",
            "call {thread}",
            "ud2",
            // Named by the compiled core and alloc libraries, called by nothing: this program does not unwind.
            ".weak rust_eh_personality",
            ".weak _Unwind_Resume",
            "rust_eh_personality:",
            "_Unwind_Resume:",
            "ud2",
            // Called by the compiled core library, and by code that compilers see through. In assembly, because a compiler may turn
            // a loop that counts into a call of it.
            ".globl strlen",
            ".type strlen, @function",
            "strlen:",
            "xor eax, eax",
            "1: cmp byte ptr [rdi + rax], 0",
            "je 2f",
            "inc rax",
            "jmp 1b",
            "2: ret",
            // Existing code calls these names. What defines one of its own keeps it.
            ".macro sandglass_name name",
            ".weak \\name",
            ".type \\name, @function",
            "\\name: jmp sg_\\name",
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
