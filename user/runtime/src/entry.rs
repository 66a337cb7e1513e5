//! From the kernel's first instruction of a program to its `main`.
//!
//! [`entry!`](crate::entry) gives a program everything that it must contain once: `_start`, the
//! stack of its first thread, its heap, the panic handler, and the memory functions that compiled
//! code calls. They are in a macro, not in this library, so that libraries above this one can be
//! tested on the host.
//!
//! A root task is started with the address of its boot information in the first argument's register (ABI 06, section 1.1), a
//! component with that of its [`Environment`]; both without a stack (ABI 06, section 3).

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::arch::order::COUNT;
use crate::boot::BootInfo;
use crate::cap::Frame;
use crate::env::Environment;
use crate::thread_block::{IpcBuffer, TlsImage};
use crate::{arch, console, exit, logging, println, screen, trace};

/// Declares `main` of a user program (`#![no_std]`, `#![no_main]`).
///
/// `main` takes either `&'static BootInfo` (a root task) or `&'static Environment` (a component)
/// and returns anything that is [`Termination`]. Stack and heap sizes are bytes; the stack's must
/// be a multiple of 16.
///
/// ```ignore
/// sandglass::entry!(main);
/// sandglass::entry!(main, stack = 0x4000, heap = 0x10_0000);
/// ```
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        $crate::entry!($main, stack = 0x1_0000, heap = 0x10_0000);
    };
    ($main:path, stack = $stack:expr, heap = $heap:expr) => {
        #[doc(hidden)]
        mod __sandglass_entry {
            pub const STACK_BYTES: usize = $stack;
            const _: () = assert!(
                STACK_BYTES % 16 == 0,
                "the stack's size is not a multiple of 16"
            );

            /// The first page is unmapped, so that an overflow is a fault.
            #[repr(C, align(4096))]
            pub struct Stack([u8; $crate::entry::GUARD_BYTES], [u8; STACK_BYTES]);
            pub static mut STACK: Stack = Stack([0; $crate::entry::GUARD_BYTES], [0; STACK_BYTES]);
            static mut HEAP: [u8; $heap] = [0; $heap];
            pub static mut THREAD_AREA: $crate::entry::MainThreadArea =
                $crate::entry::MainThreadArea::new();

            #[global_allocator]
            static ALLOCATOR: $crate::heap::Heap =
                // SAFETY: nothing else uses the array.
                unsafe { $crate::heap::over_array(&raw mut HEAP) };

            #[panic_handler]
            fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
                $crate::entry::panicked(info)
            }
        }

        #[doc(hidden)]
        extern "C" fn __sandglass_start(argument: u64) -> ! {
            // SAFETY: `_start` runs once, on the first thread, with the kernel's or the loader's
            // argument.
            unsafe {
                $crate::entry::run(
                    argument,
                    &raw mut __sandglass_entry::THREAD_AREA,
                    &raw const __sandglass_entry::STACK as u64,
                    $main,
                )
            }
        }

        $crate::start_code!(__sandglass_entry, __sandglass_start);
        $crate::memory_functions!("");
    };
}

/// Bytes below the stack of the first thread that are not mapped: a page.
pub const GUARD_BYTES: usize = 4096;

/// The registers that the program was started with, in the order of the user context (ABI 07,
/// section 1.1), as far as a program can see them: without RIP and the FS and GS bases. Written by
/// `_start` alone.
#[doc(hidden)]
pub static mut INITIAL_REGISTERS: [u64; COUNT] = [0; COUNT];

/// The registers that the program was started with; RIP and the FS and GS bases read as 0.
pub fn initial_registers() -> [u64; COUNT] {
    // SAFETY: nobody writes it once Rust code runs.
    unsafe { (&raw const INITIAL_REGISTERS).read() }
}

/// What a program's `main` takes.
pub trait Argument: Copy {
    /// # Safety
    /// `word` must be what the program was started with, and the program of this kind.
    unsafe fn from_start(word: u64) -> Self;

    fn ipc_buffer(self) -> *mut IpcBuffer;

    /// Unmaps the page at `guard`, unless the loader left it unmapped.
    fn protect_stack(self, guard: u64);

    /// Where `println!` goes, and whether marks do.
    fn set_up_console(self);
}

impl Argument for &'static BootInfo {
    unsafe fn from_start(word: u64) -> Self {
        // SAFETY: the kernel maps the boot information there for good.
        unsafe { &*(word as *const BootInfo) }
    }

    fn ipc_buffer(self) -> *mut IpcBuffer {
        self.raw().ipc_buffer as *mut IpcBuffer
    }

    fn protect_stack(self, guard: u64) {
        // The frames of the image are in the order of its pages (ABI 06, section 3).
        let page = (guard - image_start()) / GUARD_BYTES as u64;
        let frames = self.user_image_frames();
        if page < frames.len() {
            // Without it the program is as right as with it.
            let _ = Frame::at(frames.start + page).unmap();
        }
    }

    fn set_up_console(self) {}
}

impl Argument for &'static Environment {
    unsafe fn from_start(word: u64) -> Self {
        // SAFETY: the loader maps the environment there for good.
        unsafe { &*(word as *const Environment) }
    }

    fn ipc_buffer(self) -> *mut IpcBuffer {
        self.ipc_buffer_address() as *mut IpcBuffer
    }

    fn protect_stack(self, _guard: u64) {}

    fn set_up_console(self) {
        console::set_output(self.console());
        // SAFETY: the loader maps it for good before it starts the component, whose first thread
        // comes here once.
        unsafe { screen::set(self.screen()) };
        if self.is_traced() {
            trace::enable();
        }
        if let Some(endpoint) = self.find_capability(exit::LAUNCHER) {
            exit::use_launcher(endpoint);
        }
        logging::start(self);
    }
}

/// What a program's `main` returns: its exit status.
pub trait Termination {
    fn status(self) -> u8;
}

impl Termination for () {
    fn status(self) -> u8 {
        0
    }
}

impl Termination for u8 {
    fn status(self) -> u8 {
        self
    }
}

/// The type of `main` functions that never return.
impl Termination for core::convert::Infallible {
    fn status(self) -> u8 {
        match self {}
    }
}

impl<T: Termination, E: core::fmt::Display> Termination for Result<T, E> {
    fn status(self) -> u8 {
        match self {
            Ok(value) => value.status(),
            Err(error) => {
                println!("error: {error}");
                1
            }
        }
    }
}

/// Memory for the first thread's thread-local variables and thread block.
#[repr(C, align(64))]
pub struct MainThreadArea([u8; Self::SIZE]);

impl MainThreadArea {
    const SIZE: usize = 1024;

    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self([0; Self::SIZE])
    }
}

/// Sets up the first thread and runs `main`.
///
/// # Safety
/// Must be called once, by `_start`, with its argument; `area` and the page at `stack_guard` must
/// be used by nothing else.
pub unsafe fn run<A: Argument, T: Termination>(
    word: u64,
    area: *mut MainThreadArea,
    stack_guard: u64,
    main: fn(A) -> T,
) -> ! {
    // SAFETY: the caller's promise. The thread pointer is set to a thread block before anything uses it.
    let argument = unsafe {
        let argument = A::from_start(word);
        let image = tls_image();
        let fits = image.area_len() <= MainThreadArea::SIZE && image.area_align() <= 64;
        let image = if fits { image } else { TlsImage::EMPTY };
        arch::set_thread_pointer(image.init_area(area.cast(), argument.ipc_buffer()));
        argument.protect_stack(stack_guard);
        argument.set_up_console();
        assert!(
            fits,
            "the program's thread-local variables exceed {} bytes",
            MainThreadArea::SIZE
        );
        argument
    };
    exit::exit(main(argument).status())
}

/// What a program does about a panic before it is reported; see [`set_panic_hook`].
pub type PanicHook = fn(&core::panic::PanicInfo<'_>);

/// A [`PanicHook`], or null.
static PANIC_HOOK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Lets `hook` see each panic on the thread that panicked. If it returns, the panic is reported
/// and ends the program as usual.
pub fn set_panic_hook(hook: PanicHook) {
    PANIC_HOOK.store(hook as *mut (), Ordering::Relaxed);
}

/// Reports a panic and ends the program with status 101.
pub fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    let hook = PANIC_HOOK.load(Ordering::Relaxed);
    if !hook.is_null() {
        // SAFETY: only `set_panic_hook` stores here, and only this type.
        let hook = unsafe { core::mem::transmute::<*mut (), PanicHook>(hook) };
        hook(info);
    }
    fail(info)
}

/// Ends the program as a panic does, with this report. If it has a launcher, that one prints the report, whether or not the
/// program could.
pub fn fail(report: &dyn core::fmt::Display) -> ! {
    if exit::has_launcher() {
        exit::panic(report)
    }
    println!("{report}");
    exit::exit(exit::PANIC_STATUS)
}

extern "C" {
    /// The ELF header in memory, at the start of the image; defined by the linker.
    static __ehdr_start: u8;
}

/// Address of the first page of the program's image.
fn image_start() -> u64 {
    &raw const __ehdr_start as u64
}

/// The program's thread-local variables, as its program headers describe them.
pub fn tls_image() -> TlsImage {
    const PT_TLS: u32 = 7;
    // SAFETY: the linker places the headers of a static executable at the start of its first
    // segment; offsets are those of the ELF64 format.
    unsafe {
        let base = &raw const __ehdr_start;
        let offset = base.add(0x20).cast::<u64>().read() as usize;
        let entry_size = usize::from(base.add(0x36).cast::<u16>().read());
        let count = usize::from(base.add(0x38).cast::<u16>().read());
        for i in 0..count {
            let header = base.add(offset + i * entry_size);
            if header.cast::<u32>().read() == PT_TLS {
                let field = |at: usize| header.add(at).cast::<u64>().read() as usize;
                return TlsImage {
                    init: field(0x10) as *const u8,
                    init_len: field(0x20),
                    len: field(0x28),
                    align: field(0x30).max(1),
                };
            }
        }
    }
    TlsImage::EMPTY
}
