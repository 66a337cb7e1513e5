//! Interrupts that nobody asked the kernel for: a device writes a message with a vector that is not its
//! own, as whoever programs it can make it do. The thread that runs on that core has nothing to do with
//! it, and the interrupts that the kernel lives by go on.
//!
//! The device is timer 1 of the HPET, which can write such messages: one of 32 bits, as to a local APIC.

use core::arch::asm;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::SchedParams;
use sandglass::fault::Fault;
use sandglass::hpet::{Hpet, HPET_PADDR};
use sandglass::testing::{shared, Failure, Suite, TestResult};
use sandglass::{ensure, ensure_eq, time};

use crate::fixture::Fixture;
use crate::patient::Patient;

const BREAKPOINT: u64 = 3;
const PRIORITY: u8 = 100;

/// Vectors of exceptions without and with a code, the machine check's among them; of the legacy controllers, that of a
/// spurious line 7; of a device that has no handler; of the kernel's timer and of its interrupts between cores; of none; and
/// of the spurious interrupt.
const VECTORS: [u32; 13] = [16, 17, 18, 21, 31, 0x27, 80, 157, 158, 159, 160, 200, 255];

/// Budget and period of the thread that is disturbed, µs.
const BUDGET_US: u64 = 100;
const PERIOD_US: u64 = 500;
/// When the message comes, counted from the thread's start: while it runs, and while it waits.
const MOMENTS_US: [u64; 2] = [50, 300];

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "stray",
        &[
            ("a_devices_wrong_vector_disturbs_nobody", wrong_vectors),
            ("the_spurious_vector_does_nothing", spurious_instruction),
        ],
    );
}

/// Timer 1 of the HPET whose registers are mapped at this address.
#[derive(Clone, Copy)]
struct Messenger {
    registers: u64,
    hpet: Hpet,
}

const CONFIGURATION: u64 = 0x120;
const COMPARATOR: u64 = 0x128;
const MESSAGE: u64 = 0x130;

const INTERRUPT_ENABLE: u64 = 1 << 2;
const MESSAGES_ENABLE: u64 = 1 << 14;
const CAN_SEND_MESSAGES: u64 = 1 << 15;

impl Messenger {
    fn open(fixture: &mut Fixture) -> Result<Self, Failure> {
        let process = &mut fixture.process;
        let (_, registers) = process
            .space
            .map_device(&mut process.resources, HPET_PADDR)?;
        // SAFETY: mapped, and never unmapped.
        let hpet = unsafe { Hpet::open(registers as *mut u8)? };
        let messenger = Self { registers, hpet };
        ensure!(
            messenger.read(CONFIGURATION) & CAN_SEND_MESSAGES != 0,
            "the HPET cannot send messages: QEMU's `-global hpet.msi=on`"
        );
        Ok(messenger)
    }

    /// Has the interrupt `vector` raised at the local APIC `target` after `us` µs.
    fn send_after(self, us: u64, target: u8, vector: u32) {
        let address = 0xfee0_0000 | u64::from(target) << 12;
        self.write(CONFIGURATION, 0);
        self.write(MESSAGE, address << 32 | u64::from(vector));
        self.write(CONFIGURATION, INTERRUPT_ENABLE | MESSAGES_ENABLE);
        self.write(COMPARATOR, self.hpet.now() + self.hpet.us_to_ticks(us));
    }

    fn read(self, offset: u64) -> u64 {
        // SAFETY: a register of the HPET.
        unsafe { ptr::read_volatile((self.registers + offset) as *const u64) }
    }

    fn write(self, offset: u64, value: u64) {
        // SAFETY: as in `read`.
        unsafe { ptr::write_volatile((self.registers + offset) as *mut u64, value) }
    }
}

/// Number of the local APIC of the core that executes this.
fn own_apic() -> u8 {
    (core::arch::x86_64::__cpuid(1).ebx >> 24) as u8
}

/// Runs for three periods, and returns the longest pause, in ticks: until the budget was there again,
/// if the timer ended it.
fn longest_pause(period: u64) -> u64 {
    let start = time::ticks();
    let (mut last, mut longest) = (start, 0);
    while last - start < 3 * period {
        let now = time::ticks();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

fn wrong_vectors(fixture: &mut Fixture) -> TestResult {
    let messenger = Messenger::open(fixture)?;
    let period = fixture.ticks(PERIOD_US);
    let least_pause = fixture.ticks(PERIOD_US - BUDGET_US) / 2;
    let params = SchedParams::new(BUDGET_US, PERIOD_US);
    for core in 0..fixture.boot.cores() {
        let control = fixture.boot.sched_control(core).ok_or("no such core")?;
        for vector in VECTORS {
            let patient = Patient::on(fixture, control, params, move || {
                for us in MOMENTS_US {
                    messenger.send_after(us, own_apic(), vector);
                    if longest_pause(period) < least_pause {
                        // SAFETY: never continues here.
                        unsafe { asm!("ud2") }
                    }
                }
                // SAFETY: likewise.
                unsafe { asm!("int3") }
            })?;
            let fault = patient.next()?;
            ensure!(
                matches!(
                    fault,
                    Fault::Exception {
                        number: BREAKPOINT,
                        ..
                    }
                ),
                "core {core}, vector {vector}: {fault:?}"
            );
        }
    }
    messenger.write(CONFIGURATION, 0);
    Ok(())
}

/// `int 255` is a no-op (ABI 05, section 7), also behind SYSRET, which leaves another code segment.
fn spurious_instruction(fixture: &mut Fixture) -> TestResult {
    let survived: &AtomicU64 = shared();
    fixture.spawn_full(PRIORITY, move || {
        sandglass::sys::yield_now();
        // SAFETY: changes nothing.
        unsafe { asm!("int 255") };
        survived.store(1, Relaxed);
    })?;
    fixture.settle();
    ensure_eq!(survived.load(Relaxed), 1);
    Ok(())
}
