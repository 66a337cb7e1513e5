//! The kernel's binary: the library with its entry, and what a panic means.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    sandglass_kernel::arch::entry::fatal::panic(info)
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!(
        "The kernel runs on the bare machine: build it with `./sandglass kernel`. Here it is a \
         library."
    );
    std::process::exit(2);
}
