//! Interrupt lines: what the kernel does with its own masks.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{IoApicPin, ObjectType, SchedParams};
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{boot, ensure, time};

use crate::fixture::Fixture;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "devices",
        &[
            ("a_pin_obeys_its_last_handler_alone", shared_pin),
            (
                "a_line_that_stays_asserted_takes_its_drivers_budget_alone",
                asserted_line,
            ),
            ("a_long_operation_looks_for_every_vector", every_vector),
        ],
    );
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

/// A level-triggered line that stays asserted, for its driver acknowledges it and does nothing about the device: it
/// interrupts again as soon as it is acknowledged, in the driver's time. Once the budget is spent it is masked, and a thread
/// far below has all of the rest. The line is the interval timer's, at the end of its count.
fn asserted_line(fixture: &mut Fixture) -> TestResult {
    const BUDGET_US: u64 = 200;
    const PERIOD_US: u64 = 2_000;
    const PERIODS: u64 = 20;
    /// Of the time that the driver has not.
    const LEAST_PERCENT: u64 = 97;
    let ports = fixture.process.resources.io_ports(0x40, 0x43)?;
    // Channel 0 counts once; its line is asserted from the end on.
    for (port, value) in [(0x43, 0x30), (0x40, 0xff), (0x40, 0)] {
        ports.out8(port, value)?;
    }
    let handler = fixture.process.resources.ioapic_irq(IoApicPin {
        ioapic: 0,
        pin: 2,
        level: true,
        active_low: false,
        vector: 92,
    })?;
    let notification = fixture.process.resources.notification()?;
    handler.set_notification(notification)?;
    let interrupts: &AtomicU64 = shared();
    let context = fixture.context(SchedParams::new(BUDGET_US, PERIOD_US))?;
    fixture.spawn(ThreadParams::new(200, context), move || loop {
        notification.wait();
        interrupts.fetch_add(1, Relaxed);
        // Nobody takes the handler away.
        let _ = handler.ack();
    })?;
    let had: &AtomicU64 = shared();
    let done = fixture.done;
    let all = fixture.ticks(PERIODS * PERIOD_US);
    let pause = fixture.ticks(BUDGET_US) / 2;
    fixture.spawn_full(1, move || {
        let start = time::ticks();
        let mut last = start;
        while last - start < all {
            let now = time::ticks();
            if now - last < pause {
                had.fetch_add(now - last, Relaxed);
            }
            last = now;
        }
        done.signal();
    })?;
    fixture.done.wait();
    fixture.process.resources.delete(handler)?;
    fixture.process.resources.delete(ports)?;
    let (interrupts, had) = (interrupts.load(Relaxed), had.load(Relaxed));
    let rest = all / PERIOD_US * (PERIOD_US - BUDGET_US);
    ensure!(interrupts > 10 * PERIODS, "only {interrupts} interrupts");
    ensure!(
        had >= rest / 100 * LEAST_PERCENT,
        "{had} of {rest} ticks, beside {interrupts} interrupts"
    );
    Ok(())
}

/// An interrupt that arrives while a long operation is carried out is heard soon, whatever its vector: the look for interrupts reads
/// a register for each 32 of the processor's.
fn every_vector(fixture: &mut Fixture) -> TestResult {
    /// The processor's are 48 higher: one in each register.
    const VECTORS: [u64; 4] = [0, 20, 52, 100];
    const OBJECTS: u64 = 256;
    /// Of 1.19 MHz: about 50 µs, of the hundreds that the operation takes.
    const COUNT: u8 = 60;
    const LATEST_US: u64 = 100;
    const LOW: u8 = 50;
    let resources = &mut fixture.process.resources;
    let ports = resources.io_ports(0x40, 0x43)?;
    let memory = resources.untyped(19)?;
    let objects = resources.slot_of(memory);
    let first = resources.allocate_slots(OBJECTS)?;
    for vector in VECTORS {
        let resources = &mut fixture.process.resources;
        memory.retype(ObjectType::Tcb, first, OBJECTS)?;
        let handler = resources.ioapic_irq(IoApicPin {
            ioapic: 0,
            pin: 2,
            level: false,
            active_low: false,
            vector,
        })?;
        let notification = resources.notification()?;
        handler.set_notification(notification)?;
        let heard: &AtomicU64 = shared();
        fixture.spawn_full(200, move || loop {
            notification.wait();
            heard.store(time::ticks(), Relaxed);
        })?;
        fixture.settle();
        heard.store(0, Relaxed);
        handler.ack()?;
        boot::TCB.set_priority(boot::TCB, LOW)?;
        let start = time::ticks();
        // Channel 0 counts once.
        for (port, value) in [(0x43, 0x30), (0x40, COUNT), (0x40, 0)] {
            ports.out8(port, value)?;
        }
        let revoked = objects.revoke();
        let end = time::ticks();
        boot::TCB.set_priority(boot::TCB, 255)?;
        revoked?;
        fixture.process.resources.delete(handler)?;
        let heard = heard.load(Relaxed);
        ensure!(
            end - start > 2 * fixture.ticks(LATEST_US),
            "the operation took only {} ticks",
            end - start
        );
        ensure!(
            (start..start + fixture.ticks(LATEST_US)).contains(&heard),
            "vector {vector}: heard at {heard}, in an operation from {start} to {end}"
        );
    }
    fixture.process.resources.delete(ports)?;
    Ok(())
}
