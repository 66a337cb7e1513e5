//! The machine's timer: the HPET.

use alloc::format;

use crate::cap::{IoApicPin, IoPort, IrqHandler, MessageSource, Notification};
use crate::env::Environment;
use crate::hpet::{
    silence_pit, Hpet, Route, HPET_PADDR, PIT_COMMAND, PIT_ONE_SHOT_WITHOUT_COUNT, PIT_PIN,
};
use crate::process::Process;
use crate::resources::SetupError;
use crate::timer::{Timer, TimerError};

/// What it counts by.
pub use crate::hpet::Hpet as TimerClock;

/// Takes the HPET as the root task, interrupting through `vector` (0 to 107): by messages if it can.
pub fn take_timer(process: &mut Process, vector: u64) -> Result<Timer, TimerError> {
    let (_, address) = process
        .space
        .map_device(&mut process.resources, HPET_PADDR)?;
    // SAFETY: just mapped, and never unmapped.
    let hpet = unsafe { Hpet::open(address as *mut u8)? };
    let (route, irq) = if hpet.has_messages() {
        let source = MessageSource {
            vector,
            ..MessageSource::default()
        };
        let irq = process.resources.message_irq(source)?;
        (Route::Messages(vector), irq)
    } else {
        let pin = hpet.choose_pin()?;
        (Route::Pin(pin), pin_irq(process, pin, vector)?)
    };
    let notification = process.resources.notification()?;
    irq.set_notification(notification)?;
    with_parts(hpet, route, irq, notification)
}

fn pin_irq(process: &mut Process, pin: u64, vector: u64) -> Result<IrqHandler, SetupError> {
    if pin == PIT_PIN {
        silence_pit(process)?;
    }
    process.resources.ioapic_irq(IoApicPin {
        ioapic: 0,
        pin,
        level: false,
        active_low: false,
        vector,
    })
}

/// Puts a timer together of an opened HPET, the handler of its interrupt and the notification that the handler signals. What
/// has been set is kept: the badge of the signal is that of the capability that was set.
fn with_parts(
    hpet: Hpet,
    route: Route,
    irq: IrqHandler,
    notification: Notification,
) -> Result<Timer, TimerError> {
    hpet.route(route);
    irq.ack()?;
    // The kernel does not mask messages.
    let irq = matches!(route, Route::Pin(_)).then_some(irq);
    Ok(Timer::of(hpet, irq, notification))
}

/// The timer of a component of a described system: the HPET, through the input of the I/O APIC that it shares with the PIT,
/// which is silenced. The component has, under these names, the HPET's registers as memory, the interrupt at pin 2, and the
/// PIT's ports 0x40 to 0x43.
pub fn described_timer(
    env: &Environment,
    registers: &str,
    interrupt: &str,
    pit: &str,
) -> Result<Timer, TimerError> {
    env.capability::<IoPort>(pit)
        .out8(PIT_COMMAND, PIT_ONE_SHOT_WITHOUT_COUNT)?;
    let registers = env.memory(registers);
    // SAFETY: memory of an environment is nothing that the compiler knows of, and stays mapped;
    // that it is a device's registers, uncached, is what its name says.
    let hpet = unsafe { Hpet::open(registers.as_mut_ptr())? };
    let signal = env.capability(&format!("{interrupt}.signal"));
    with_parts(hpet, Route::Pin(PIT_PIN), env.capability(interrupt), signal)
}

/// Whether a component has it under these names: its registers.
pub fn has_timer(env: &Environment, registers: &str, _interrupt: &str) -> bool {
    env.find_memory(registers).is_some()
}
