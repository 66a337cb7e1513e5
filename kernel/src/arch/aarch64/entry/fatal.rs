//! What must not happen: exceptions inside the kernel, system errors, and panics.

use core::panic::PanicInfo;

use crate::arch::aarch64::machine::platform::Machine;
use crate::arch::Platform;

/// Status with which the machine stops after an exception inside the kernel.
const EXCEPTION_STATUS: u8 = 2;

/// Status with which the machine stops after a panic of the debug kernel.
#[cfg(feature = "debug")]
const PANIC_STATUS: u8 = 3;

/// Status with which the machine stops after an exception that nobody can have caused by a program (05, section 7).
const UNEXPECTED_STATUS: u8 = 4;

/// An exception inside the kernel, at the address `ip`, with what ESR says of it, perhaps about the address `address`.
#[cold]
pub fn exception(syndrome: u64, ip: u64, address: u64) -> ! {
    let machine = Machine::new();
    #[cfg(feature = "debug")]
    crate::arch::Console::new(&machine)
        .text("\nexception in the kernel at ")
        .hexadecimal(ip)
        .text(", syndrome ")
        .hexadecimal(syndrome)
        .text(", fault address ")
        .hexadecimal(address)
        .text("\n");
    #[cfg(not(feature = "debug"))]
    let _ = (syndrome, ip, address);
    machine.halt(EXCEPTION_STATUS);
    crate::arch::aarch64::machine::cpu::stop()
}

/// An exception by vector `vector`, of which there are four for each place that exceptions come from.
#[cold]
pub fn unexpected(vector: u64, syndrome: u64, ip: u64) -> ! {
    let machine = Machine::new();
    #[cfg(feature = "debug")]
    crate::arch::Console::new(&machine)
        .text(match vector % 4 {
            0 => "\nan exception",
            1 => "\nan interrupt",
            2 => "\na fast interrupt",
            _ => "\na system error (SError)",
        })
        .text(match vector / 4 {
            0 => " in the kernel on a user's stack",
            1 => " in the kernel",
            2 => " in user code",
            _ => " in user code of 32 bits",
        })
        .text(", near ")
        .hexadecimal(ip)
        .text(", syndrome ")
        .hexadecimal(syndrome)
        .text("\n");
    #[cfg(not(feature = "debug"))]
    let _ = (vector, syndrome, ip);
    machine.halt(UNEXPECTED_STATUS);
    crate::arch::aarch64::machine::cpu::stop()
}

/// A panic: the debug kernel says where and stops. The release kernel has no reachable panic; it proves so by calling a
/// function that does not exist here, so that a panic path that is left over fails to link.
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
        crate::arch::aarch64::machine::cpu::stop()
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
