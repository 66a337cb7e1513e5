//! What must not happen: exceptions inside the kernel, and panics.

use core::panic::PanicInfo;

use crate::arch::x86_64::machine::platform::Machine;
use crate::arch::Platform;

/// Status with which the machine stops after an exception inside the kernel.
const EXCEPTION_STATUS: u8 = 2;

/// Status with which the machine stops when it has left long mode.
const VIRTUAL_8086_STATUS: u8 = 4;

/// Status with which the machine stops after a panic of the debug kernel.
#[cfg(feature = "debug")]
const PANIC_STATUS: u8 = 3;

/// An exception inside the kernel, at the address `ip`.
pub fn exception(vector: u64, code: u64, ip: u64) -> ! {
    let machine = Machine::new();
    #[cfg(feature = "debug")]
    crate::arch::Console::new(&machine)
        .text("\nexception ")
        .decimal(vector)
        .text(" in the kernel at ")
        .hexadecimal(ip)
        .text(", code ")
        .hexadecimal(code)
        .text(", fault address ")
        .hexadecimal(crate::arch::x86_64::machine::cpu::fault_address())
        .text("\n");
    #[cfg(not(feature = "debug"))]
    let _ = (vector, code, ip);
    machine.halt(EXCEPTION_STATUS);
    crate::arch::x86_64::machine::cpu::stop()
}

/// An interrupt or exception in virtual-8086 mode, at the address `ip`. No processor enters that mode from
/// long mode; QEMU 7.2 does, by an IRET of 32 bits of a 64-bit program. What runs has the rights of a
/// program, but there is no way back from there.
#[cold]
pub fn virtual_8086(vector: u64, ip: u64) -> ! {
    let machine = Machine::new();
    #[cfg(feature = "debug")]
    crate::arch::Console::new(&machine)
        .text("\nvector ")
        .decimal(vector)
        .text(" in virtual-8086 mode at ")
        .hexadecimal(ip)
        .text(": this is no processor, or a defective one\n");
    #[cfg(not(feature = "debug"))]
    let _ = (vector, ip);
    machine.halt(VIRTUAL_8086_STATUS);
    crate::arch::x86_64::machine::cpu::stop()
}

/// A panic: the debug kernel says where and stops. The release kernel has no reachable panic; it
/// proves so by calling a function that does not exist here, so that a panic path that is left
/// over fails to link.
pub fn panic(info: &PanicInfo) -> ! {
    #[cfg(feature = "debug")]
    {
        let machine = Machine::new();
        let console = crate::arch::Console::new(&machine);
        console.text("\nthe kernel panicked");
        if let Some(place) = info.location() {
            console
                .text(" at ")
                .text(place.file())
                .text(":")
                .decimal(place.line().into());
        }
        console.text("\n");
        machine.halt(PANIC_STATUS);
        crate::arch::x86_64::machine::cpu::stop()
    }
    #[cfg(not(feature = "debug"))]
    {
        unsafe extern "C" {
            fn sandglass_kernel_must_not_panic() -> !;
        }
        let _ = info;
        // SAFETY: never executed, for it does not link.
        unsafe { sandglass_kernel_must_not_panic() }
    }
}
