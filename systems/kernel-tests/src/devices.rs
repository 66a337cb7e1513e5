//! I/O ports, and interrupts through the IOAPIC.

use sandglass::cap::{IoApicPin, IrqHandler, Notification, Rights};
use sandglass::hpet::{self, Hpet, Timer};
use sandglass::testing::{Failure, Suite, TestResult};
use sandglass::{boot, ensure, ensure_eq, time, ErrorKind, SetupError};

use crate::fixture::Fixture;

/// Index and data register of the battery-backed memory.
const CMOS_INDEX: u16 = 0x70;
const CMOS_DATA: u16 = 0x71;
/// A byte of it that firmware leaves alone.
const CMOS_SCRATCH: u8 = 0x50;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "devices",
        &[
            ("ports_can_be_used_within_their_range", ports),
            ("a_port_range_is_given_out_once", port_ranges),
            ("wrong_interrupts_are_refused", wrong_interrupts),
            ("an_interrupt_signals_its_notification", interrupt),
            ("a_pin_obeys_its_last_handler_alone", shared_pin),
        ],
    );
}

fn kind<T>(result: Result<T, sandglass::Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

fn ports(fixture: &mut Fixture) -> TestResult {
    let cmos = fixture.process.resources.io_ports(CMOS_INDEX, CMOS_DATA)?;
    for value in [0x5a, 0xa5] {
        cmos.out8(CMOS_INDEX, CMOS_SCRATCH)?;
        cmos.out8(CMOS_DATA, value)?;
        cmos.out8(CMOS_INDEX, 0)?;
        cmos.out8(CMOS_INDEX, CMOS_SCRATCH)?;
        ensure_eq!(cmos.in8(CMOS_DATA)?, value);
    }
    let illegal = Some(ErrorKind::IllegalOperation);
    ensure_eq!(kind(cmos.in8(CMOS_INDEX - 1)), illegal);
    ensure_eq!(kind(cmos.out8(CMOS_DATA + 1, 0)), illegal);
    // All bytes of an access count.
    ensure_eq!(kind(cmos.in16(CMOS_DATA)), illegal);
    ensure_eq!(kind(cmos.in32(CMOS_INDEX)), illegal);
    fixture.process.resources.delete(cmos)?;
    Ok(())
}

fn port_ranges(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let taken = resources.io_ports(0x2f8, 0x2ff)?;
    for (first, last) in [(0x2f8, 0x2ff), (0x2f0, 0x2f8), (0x2ff, 0x300)] {
        let refused = resources.io_ports(first, last).err();
        ensure!(
            matches!(refused, Some(SetupError::Invocation(error)) if error.kind == ErrorKind::RevokeFirst),
            "{first:#x} to {last:#x}"
        );
    }
    let slot = resources.allocate_slot()?;
    ensure_eq!(
        kind(boot::IO_PORT_CONTROL.issue(2, 1, slot)),
        Some(ErrorKind::InvalidArgument { argument: 1 })
    );
    resources.delete(taken)?;
    resources.io_ports(0x2ff, 0x300)?;
    Ok(())
}

const fn pin(ioapic: u64, pin: u64, vector: u64) -> IoApicPin {
    IoApicPin {
        ioapic,
        pin,
        level: false,
        active_low: false,
        vector,
    }
}

fn wrong_interrupts(fixture: &mut Fixture) -> TestResult {
    let slot = fixture.process.resources.allocate_slot()?;
    let get = |source: IoApicPin| kind(boot::IRQ_CONTROL.get_ioapic(source, slot));
    let range = |max: u64| Some(ErrorKind::Range { min: 0, max });
    ensure_eq!(get(pin(0, 20, 108)), range(107));
    ensure_eq!(get(pin(1, 20, 50)), range(0));
    ensure_eq!(get(pin(0, 24, 50)), range(23));
    ensure_eq!(get(pin(0, 20, 50)), None);
    let other = fixture.process.resources.allocate_slot()?;
    let twice = boot::IRQ_CONTROL.get_ioapic(pin(0, 21, 50), other);
    ensure_eq!(kind(twice), Some(ErrorKind::RevokeFirst));
    slot.delete()?;
    boot::IRQ_CONTROL.get_ioapic(pin(0, 21, 50), other)?;
    other.delete()?;
    Ok(())
}

/// Runs `us` µs.
fn spin(fixture: &Fixture, us: u64) {
    let end = time::ticks() + fixture.ticks(us);
    while time::ticks() < end {}
}

/// Acknowledges, and takes the edge that came meanwhile: the IOAPIC may have kept it.
fn unmask(irq: IrqHandler, notification: Notification) -> Result<(), sandglass::Error> {
    irq.ack()?;
    while notification.poll() != 0 {
        irq.ack()?;
    }
    Ok(())
}

/// The timer's interrupt arrives with the badge of the capability that was set, waits to be
/// acknowledged, and signals nobody once it is cleared.
fn interrupt(fixture: &mut Fixture) -> TestResult {
    const BADGE: u64 = 0x1000;
    let base = fixture.hpet()?;
    let process = &mut fixture.process;
    // SAFETY: just mapped, and never unmapped.
    let hpet = unsafe { Hpet::open(base as *mut u8)? };
    let input = hpet.choose_pin()?;
    if input == hpet::PIT_PIN {
        hpet::silence_pit(process)?;
    }
    let irq = process.resources.ioapic_irq(pin(0, input, 60))?;
    let notification: Notification = process.resources.notification()?;
    let badged = process.resources.mint(notification, Rights::WRITE, BADGE)?;
    let reader = process.resources.copy(notification, Rights::READ)?;
    let refused = irq.set_notification(reader);
    ensure_eq!(
        kind(refused),
        Some(ErrorKind::InvalidCapability { capability: 0 })
    );
    irq.set_notification(badged)?;
    let timer = Timer::with_parts(hpet, input, irq, badged)?;
    unmask(irq, notification)?;
    let soon = || hpet.now() + hpet.us_to_ticks(50);
    for _ in 0..3 {
        let deadline = soon();
        ensure!(!timer.arm(deadline));
        ensure_eq!(notification.wait(), BADGE);
        let now = hpet.now();
        ensure!(now >= deadline, "at {now}, before {deadline}");
        // Not acknowledged: masked.
        ensure!(!timer.arm(soon()));
        spin(fixture, 100);
        ensure_eq!(notification.poll(), 0);
        unmask(irq, notification)?;
    }
    irq.clear()?;
    irq.ack()?;
    ensure!(!timer.arm(soon()));
    spin(fixture, 100);
    ensure_eq!(notification.poll(), 0);
    irq.set_notification(badged)?;
    unmask(irq, notification)?;
    let deadline = soon();
    ensure!(!timer.arm(deadline));
    if notification.wait() != BADGE {
        return Err(Failure::from("another badge"));
    }
    Ok(())
}

/// A pin issued under two vectors, level-triggered: once the second handler is gone, the first
/// one's acknowledgement must not open the pin for a vector that nobody handles, which would
/// interrupt as long as the line is asserted (ABI 03, section 7.6: inactive interrupts are masked). The
/// line is the interval timer's, which is asserted for milliseconds in each of its periods.
fn shared_pin(fixture: &mut Fixture) -> TestResult {
    const PERIOD_US: u64 = 55_000;
    const LONGEST_GAP_US: u64 = 1_000;
    let issue = |fixture: &mut Fixture, vector| {
        fixture.process.resources.ioapic_irq(IoApicPin {
            ioapic: 0,
            pin: 2,
            level: true,
            active_low: false,
            vector,
        })
    };
    let first = issue(fixture, 90)?;
    let second = issue(fixture, 91)?;
    fixture.process.resources.delete(second)?;
    first.ack()?;
    let start = time::ticks();
    let (mut last, mut longest) = (start, 0);
    while last - start < fixture.ticks(2 * PERIOD_US) {
        let now = time::ticks();
        longest = longest.max(now - last);
        last = now;
    }
    fixture.process.resources.delete(first)?;
    ensure!(longest < fixture.ticks(LONGEST_GAP_US), "{longest} ticks");
    Ok(())
}
