//! The end: what is wrong with the machine, and what must not happen, exceptions inside the kernel and panics.

use core::panic::PanicInfo;

use crate::arch::bounds::Together;
use crate::arch::x86_64::machine::platform::{have_last_word, Machine};
use crate::arch::x86_64::machine::vectors::MACHINE_CHECK;
use crate::arch::x86_64::machine::{cpu, machine_check};
use crate::arch::{Console, Platform};
use crate::cores::CoreId;

/// Status with which the machine stops after an exception inside the kernel.
const EXCEPTION_STATUS: u8 = 2;

/// Status with which the machine stops when it has left long mode.
const VIRTUAL_8086_STATUS: u8 = 4;

/// Status with which the machine stops when it says that something is wrong with it.
const MACHINE_STATUS: u8 = 5;

/// Status with which the machine stops after a panic of the debug kernel.
#[cfg(feature = "debug")]
const PANIC_STATUS: u8 = 3;

/// A non-maskable interrupt or a machine check, which is `vector`, at the address `ip` of a user or of the kernel. Nobody can
/// say what of the machine can still be relied on, so it ends, with words; it interrupts whatever `core` executes, but never
/// comes back. All cores can come here at once: the first one speaks.
#[cold]
#[inline(never)]
pub fn of_machine(vector: u64, core: CoreId, is_user: bool, ip: u64) -> ! {
    // For the bounds of execution time: as no way leads back, none of those that are bounded comes here.
    Together::<0>::new(true).turn();
    have_last_word();
    let machine = Machine::new();
    let console = Console::new(&machine);
    console
        .text(if vector == MACHINE_CHECK {
            "\nmachine check"
        } else {
            "\nNMI"
        })
        .text(" on core ")
        .decimal(core.index() as u64)
        .text(if is_user {
            ", user code at "
        } else {
            ", kernel at "
        })
        .hexadecimal(ip);
    if vector == MACHINE_CHECK {
        say_error(&console);
    }
    console.text("\n");
    machine.halt(MACHINE_STATUS);
    cpu::stop()
}

/// Says what the processor says of the error that it has raised a machine check for.
fn say_error(console: &Console<Machine>) {
    let Some(error) = machine_check::first_error() else {
        return;
    };
    console
        .text(": bank ")
        .decimal(error.bank.into())
        .text(", status ")
        .hexadecimal(error.status);
    if let Some(address) = error.address() {
        console.text(", address ").hexadecimal(address);
    }
}

/// An exception inside the kernel, at the address `ip`.
pub fn exception(vector: u64, code: u64, ip: u64) -> ! {
    let machine = Machine::new();
    #[cfg(feature = "debug")]
    Console::new(&machine)
        .text("\nexception ")
        .decimal(vector)
        .text(" in the kernel at ")
        .hexadecimal(ip)
        .text(", code ")
        .hexadecimal(code)
        .text(", fault address ")
        .hexadecimal(cpu::fault_address())
        .text("\n");
    #[cfg(not(feature = "debug"))]
    let _ = (vector, code, ip);
    machine.halt(EXCEPTION_STATUS);
    cpu::stop()
}

/// An interrupt or exception in virtual-8086 mode, at the address `ip`. No processor enters that mode from
/// long mode; QEMU 7.2 does, by an IRET of 32 bits of a 64-bit program. What runs has the rights of a
/// program, but there is no way back from there.
#[cold]
pub fn virtual_8086(vector: u64, ip: u64) -> ! {
    let machine = Machine::new();
    #[cfg(feature = "debug")]
    Console::new(&machine)
        .text("\nvector ")
        .decimal(vector)
        .text(" in virtual-8086 mode at ")
        .hexadecimal(ip)
        .text(": this is no processor, or a defective one\n");
    #[cfg(not(feature = "debug"))]
    let _ = (vector, ip);
    machine.halt(VIRTUAL_8086_STATUS);
    cpu::stop()
}

/// A panic: the debug kernel says where and stops. The release kernel has no reachable panic; it
/// proves so by calling a function that does not exist here, so that a panic path that is left
/// over fails to link.
pub fn panic(info: &PanicInfo) -> ! {
    #[cfg(feature = "debug")]
    {
        let machine = Machine::new();
        let console = Console::new(&machine);
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
        cpu::stop()
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
