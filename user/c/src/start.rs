//! What a program has once: where it starts, its memory, and what a panic does.
//!
//! The stack of the first thread and the heap are the program's: `SG_STACK` and `SG_HEAP` of the header define them. Of a
//! program without these macros they are those below, which the linker leaves out otherwise.

use core::arch::global_asm;
use core::ffi::{c_char, c_int};
use core::panic::PanicInfo;

use sandglass::entry::{self, MainThreadArea, GUARD_BYTES};
use sandglass::heap::{self, Heap};
use sandglass::{thread, Environment};

use crate::environment;

/// Bytes of a stack that the program does not define.
const DEFAULT_STACK: usize = 0x1_0000;
/// Bytes of a heap that the program does not define.
const DEFAULT_HEAP: usize = 0x4_0000;

static mut THREAD_AREA: MainThreadArea = MainThreadArea::new();

#[global_allocator]
static ALLOCATOR: Heap = heap::empty();

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    entry::panicked(info)
}

extern "C" {
    /// The program's.
    fn main() -> c_int;
    /// The unmapped page, and behind it the stack.
    static __sandglass_stack_guard: u8;
    static mut sg_program_heap: [u8; 0];
    static sg_program_heap_bytes: usize;
}

extern "C" fn start(argument: u64) -> ! {
    // SAFETY: `_start` runs once, on the first thread, with the loader's argument.
    unsafe {
        entry::run(
            argument,
            &raw mut THREAD_AREA,
            &raw const __sandglass_stack_guard as u64,
            run,
        )
    }
}

fn run(env: &'static Environment) -> u8 {
    environment::set(env);
    // SAFETY: the memory is the program's for this, of so many bytes.
    unsafe {
        heap::give(
            &ALLOCATOR,
            (&raw mut sg_program_heap).cast(),
            sg_program_heap_bytes,
        )
    };
    // SAFETY: C's `main`, called once. Of a status, eight bits count.
    unsafe { main() as u8 }
}

/// Where compiled C code ends that finds its stack overwritten (`-fstack-protector`).
#[no_mangle]
extern "C" fn __stack_chk_fail() -> ! {
    panic!("the stack is overwritten")
}

/// What `assert` of a C library's header calls.
#[no_mangle]
extern "C" fn __assert_fail(
    assertion: *const c_char,
    file: *const c_char,
    line: u32,
    _function: *const c_char,
) -> ! {
    // SAFETY: the compiler's texts.
    let [assertion, file] =
        [assertion, file].map(|text| unsafe { core::ffi::CStr::from_ptr(text) });
    let (assertion, file) = (assertion.to_bytes(), file.to_bytes());
    let (assertion, file) = (crate::format::Lossy(assertion), crate::format::Lossy(file));
    entry::fail(&format_args!(
        "panicked at {file}:{line}:\nassertion `{assertion}` failed"
    ))
}

global_asm!(
    // The memory that a program does not define. Each in a section of its own, so that the linker can leave it out.
    ".section .bss.sandglass_stack, \"aw\", @nobits",
    ".balign 4096",
    ".weak __sandglass_stack_guard",
    "__sandglass_stack_guard: .skip {guard} + {stack}",
    ".section .rodata.sandglass_stack, \"a\", @progbits",
    ".balign 8",
    ".weak sg_program_stack_bytes",
    "sg_program_stack_bytes: .quad {stack}",
    ".section .bss.sandglass_heap, \"aw\", @nobits",
    ".balign 16",
    ".weak sg_program_heap",
    "sg_program_heap: .skip {heap}",
    ".section .rodata.sandglass_heap, \"a\", @progbits",
    ".balign 8",
    ".weak sg_program_heap_bytes",
    "sg_program_heap_bytes: .quad {heap}",
    ".text",
    guard = const GUARD_BYTES,
    stack = const DEFAULT_STACK,
    heap = const DEFAULT_HEAP,
);
crate::start_code!(start, thread::begin, GUARD_BYTES);
sandglass::memory_functions!("");
