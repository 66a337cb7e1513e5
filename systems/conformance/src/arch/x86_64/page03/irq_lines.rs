//! 03, section 7.2: what the arguments of GetIOAPIC do. The PIT raises edges, the HPET holds a level.

use sandglass::cap::{IoApicPin, IrqHandler};
use sandglass::hpet::{silence_pit, HPET_PADDR, PIT_PIN};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/7.2/every-vector-delivers", every_vector),
    check(
        "03/7.2/a-level-interrupts-until-it-is-taken-away",
        level_triggered,
    ),
];

const BADGE: u64 = 0x77;

fn handler(f: &mut Fixture, vector: u64, level: bool) -> Result<IrqHandler, Failure> {
    let pin = IoApicPin {
        ioapic: 0,
        pin: PIT_PIN,
        level,
        active_low: false,
        vector,
    };
    Ok(f.process.resources.ioapic_irq(pin)?)
}

/// Acknowledges, and takes the edge that the IOAPIC may have kept.
fn drain(handler: IrqHandler, notification: Notification) -> TestResult {
    handler.ack()?;
    while notification.poll() != 0 {
        handler.ack()?;
    }
    Ok(())
}

fn every_vector(f: &mut Fixture) -> TestResult {
    const CHANNEL_0: u16 = 0x40;
    const COMMAND: u16 = 0x43;
    /// Mode 0 of channel 0: the output rises when the count ends.
    const ONE_SHOT: u8 = 0b0011_0000;
    /// Of 1.19 MHz: about 50 µs.
    const COUNT: u16 = 60;
    let ports = f.process.resources.io_ports(CHANNEL_0, COMMAND)?;
    ports.out8(COMMAND, ONE_SHOT)?;
    let notification = f.notification()?;
    let badged = f.badged(notification, BADGE)?;
    for vector in [0, 1, 15, 16, 47, 48, 63, 64, 90, 106, 107] {
        let handler = handler(f, vector, false)?;
        handler.set_notification(badged)?;
        drain(handler, notification)?;
        ports.out8(COMMAND, ONE_SHOT)?;
        for byte in COUNT.to_le_bytes() {
            ports.out8(CHANNEL_0, byte)?;
        }
        f.sleep(200)?;
        ensure_eq!((vector, notification.poll()), (vector, BADGE));
        // What the next vector is told is not what this one kept.
        f.slot_of(handler).delete()?;
    }
    Ok(())
}

/// Timer 0 of the HPET, whose interrupt is a level. Dropping it takes the level away: the device
/// outlives the check.
struct Level {
    base: *mut u64,
}

impl Level {
    const CONFIGURATION: usize = 0x10;
    const STATUS: usize = 0x20;
    const COUNTER: usize = 0xf0;
    const TIMER: usize = 0x100;
    const COMPARATOR: usize = 0x108;
    /// Level triggered, and enabled.
    const BY_LEVEL: u64 = 0b110;
    const ROUTE_SHIFT: u32 = 9;

    fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let frame = f.device_page(HPET_PADDR)?;
        let process = &mut f.process;
        let base = process.space.map_frame(
            &mut process.resources,
            frame,
            FrameSize::Small,
            Rights::READ_WRITE,
            Attributes::Uncached,
        )?;
        let level = Self {
            base: base as *mut u64,
        };
        level.lower();
        Ok(level)
    }

    /// Raises the level when the counter has gone on a little.
    fn raise(&self) {
        self.write(Self::COUNTER, 0);
        self.write(Self::TIMER, PIT_PIN << Self::ROUTE_SHIFT | Self::BY_LEVEL);
        self.write(Self::COMPARATOR, 1_000);
        self.write(Self::CONFIGURATION, 1);
    }

    fn lower(&self) {
        self.write(Self::CONFIGURATION, 0);
        self.write(Self::STATUS, 1);
        self.write(Self::TIMER, 0);
    }

    fn write(&self, offset: usize, value: u64) {
        // SAFETY: the page is mapped as long as the check runs.
        unsafe { self.base.byte_add(offset).write_volatile(value) }
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.lower();
    }
}

fn level_triggered(f: &mut Fixture) -> TestResult {
    let level = Level::new(f)?;
    silence_pit(&mut f.process)?;
    let notification = f.notification()?;
    let badged = f.badged(notification, BADGE)?;
    let handler = handler(f, 33, true)?;
    handler.set_notification(badged)?;
    drain(handler, notification)?;
    for _ in 0..2 {
        level.raise();
        f.sleep(300)?;
        ensure_eq!(notification.poll(), BADGE);
        // Masked: not again, however long it lasts.
        f.sleep(100)?;
        ensure_eq!(notification.poll(), 0);
        // Acknowledged, and still there.
        handler.ack()?;
        f.sleep(100)?;
        ensure_eq!(notification.poll(), BADGE);
        level.lower();
        handler.ack()?;
        f.sleep(100)?;
        ensure_eq!(notification.poll(), 0);
    }
    Ok(())
}
