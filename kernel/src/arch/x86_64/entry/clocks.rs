//! The clocks of a PC, by which the time-stamp counter is measured ([`clock`](crate::arch::x86_64::machine::clock)).

use core::hint::black_box;

use sandglass_abi::boot::extra::{clock_flag, Clock};

use super::legacy;
use crate::arch::x86_64::machine::acpi::{self, Rsdp};
use crate::arch::x86_64::machine::apic::{self, LOCAL_APIC};
use crate::arch::x86_64::machine::clock::{self, Clocks, Kind, Source, Unknown, SOURCES};
use crate::arch::x86_64::machine::cpu;
use crate::arch::x86_64::machine::layout::PAGE_SIZE;
use crate::arch::x86_64::machine::paging::{map_hpet, unmap_hpet};
use crate::arch::x86_64::machine::platform::{Machine, Timer};
use crate::arch::x86_64::machine::rate::megahertz;
use crate::arch::x86_64::machine::window::Window;
use crate::boot::{List, Refusal};

/// Frequency of ACPI's power-management timer in Hz, and the bits that every one has.
const POWER_TIMER_HZ: u64 = 3_579_545;
const POWER_TIMER_MASK: u64 = 0xff_ffff;

/// The time-stamp counter is told by a known clock in units of so many ticks (a power of two), so that it
/// is not too fast to be one.
const UNIT_BITS: u32 = 4;

/// Steps between two looks: some tens of nanoseconds, which is little beside a look. An emulator leaves
/// its fast path for each look, and would spend most of a boot on them.
const STEPS: u32 = 64;

/// The clocks that the machine may have.
struct Devices {
    hpet: Option<Hpet>,
    power_timer: u16,
}

impl Clocks for Devices {
    fn time_stamp(&self) -> u64 {
        cpu::ordered_time_stamp()
    }

    fn prepare(&self, source: Kind) {
        if source == Kind::Pit {
            legacy::start_pit();
        }
        LOCAL_APIC.set_count(apic::mode(), u32::MAX);
    }

    fn timer(&self) -> u32 {
        LOCAL_APIC.count()
    }

    fn read(&self, source: Kind) -> u64 {
        match source {
            Kind::Processor => cpu::time_stamp() >> UNIT_BITS,
            Kind::Hpet => self.hpet.as_ref().map_or(0, Hpet::count),
            // SAFETY: the port that the firmware's tables name, whose reading has no effect.
            Kind::PowerTimer => unsafe { cpu::in32(self.power_timer) }.into(),
            Kind::Pit => legacy::pit_count(),
        }
    }

    /// (PAUSE would be another way out of an emulator's fast path.)
    fn pass(&self) {
        for step in 0..STEPS {
            black_box(step);
        }
    }
}

/// The HPET (Intel's IA-PC HPET specification 1.0a), while the kernel measures by it.
struct Hpet {
    address: u64,
    /// How it was found.
    configuration: u32,
}

/// Byte offsets of its registers of 64 bits, of which the kernel reads halves: counters of 32 bits have
/// no other.
const HPET_CAPABILITIES: u64 = 0x000;
const HPET_PERIOD: u64 = 0x004;
const HPET_CONFIGURATION: u64 = 0x010;
const HPET_COUNTER: u64 = 0x0f0;
const HPET_LENGTH: u64 = 0x100;
/// The counter runs.
const HPET_ENABLED: u32 = 1 << 0;
const FS_PER_SECOND: u64 = 1_000_000_000_000_000;
/// Periods that its specification allows, in fs, and those of emulators.
const HPET_PERIODS: core::ops::RangeInclusive<u64> = 2_000_000..=100_000_000;

impl Hpet {
    /// Lets the HPET at `paddr` run. `None` if there is none, and nothing done. With its frequency in Hz.
    fn open(paddr: u64) -> Option<(Hpet, u64)> {
        // Registers below the first MiB, or astride two pages, are a mistake of the tables.
        if paddr < 1 << 20 || paddr % 8 != 0 || paddr % PAGE_SIZE > PAGE_SIZE - HPET_LENGTH {
            return None;
        }
        let mut hpet = Hpet {
            address: map_hpet(paddr),
            configuration: 0,
        };
        let period = u64::from(hpet.read(HPET_PERIOD));
        // A revision of 0 is reserved.
        if !HPET_PERIODS.contains(&period) || hpet.read(HPET_CAPABILITIES) & 0xff == 0 {
            unmap_hpet();
            return None;
        }
        hpet.configuration = hpet.read(HPET_CONFIGURATION);
        hpet.write(HPET_CONFIGURATION, hpet.configuration | HPET_ENABLED);
        Some((hpet, FS_PER_SECOND.checked_div(period)?))
    }

    fn count(&self) -> u64 {
        self.read(HPET_COUNTER).into()
    }

    /// Leaves it as it was, but for its counter.
    fn close(&self) {
        self.write(HPET_CONFIGURATION, self.configuration);
        unmap_hpet();
    }

    fn read(&self, register: u64) -> u32 {
        // SAFETY: a device register, mapped uncached by `open`.
        unsafe { (self.address.wrapping_add(register) as *const u32).read_volatile() }
    }

    fn write(&self, register: u64, value: u32) {
        // SAFETY: as in `read`.
        unsafe { (self.address.wrapping_add(register) as *mut u32).write_volatile(value) }
    }
}

/// Finds out the frequency of the clock and how the timer is set by it, and starts the timer. Returns
/// what the root task is told.
pub fn start(machine: &Machine, rsdp: Rsdp) -> Result<Clock, Refusal> {
    let stated = cpu::tsc_hz();
    let mut sources: List<Source, SOURCES> = List::new();
    let mut add = |kind, hz, mask| sources.push(Source { kind, hz, mask }).unwrap_or(());
    let mut devices = Devices {
        hpet: None,
        power_timer: 0,
    };
    if let Some((hpet, hz)) = acpi::hpet(&Window, rsdp).and_then(Hpet::open) {
        devices.hpet = Some(hpet);
        add(Kind::Hpet, hz, u32::MAX.into());
    }
    if let Some(port) = acpi::power_timer(&Window, rsdp) {
        devices.power_timer = port;
        add(Kind::PowerTimer, POWER_TIMER_HZ, POWER_TIMER_MASK);
    }
    add(Kind::Pit, legacy::PIT_HZ, legacy::PIT_MASK);
    if let Some(hz) = stated {
        add(Kind::Processor, hz >> UNIT_BITS, u64::MAX >> UNIT_BITS);
    }
    let found = clock::find(&devices, &sources, stated);
    if let Some(hpet) = &devices.hpet {
        hpet.close();
    }
    LOCAL_APIC.set_count(apic::mode(), 0);
    let known = found.map_err(|unknown: Unknown| Refusal::Machine(unknown.message()))?;
    start_timer(machine, &known)?;
    Ok(describe(machine, &known))
}

fn start_timer(machine: &Machine, known: &clock::Known) -> Result<(), Refusal> {
    let timer = match known.rate {
        _ if cpu::has_tsc_deadline() => Timer::Deadline,
        Some(rate) => Timer::Count(rate, apic::mode()),
        None => {
            return Err(Refusal::Machine(
                "the timer of the local APIC stands still, and has no TSC-deadline mode",
            ))
        }
    };
    machine
        .ticks_per_us
        .set(megahertz(known.hz.middle(), 1, 1).unwrap_or(1));
    machine.timer.set(timer);
    machine.start_timer();
    Ok(())
}

fn describe(machine: &Machine, known: &clock::Known) -> Clock {
    let flags = [
        (
            cpu::has_invariant_tsc() == Some(true),
            clock_flag::INVARIANT,
        ),
        (
            matches!(machine.timer.get(), Timer::Deadline),
            clock_flag::DEADLINE,
        ),
        (cpu::has_lasting_timer(), clock_flag::LASTING_TIMER),
    ];
    Clock {
        hz: known.hz.middle(),
        least_hz: known.hz.least,
        most_hz: known.hz.most,
        sources: known.sources,
        windows: known.windows,
        repeated: known.repeated,
        flags: flags
            .iter()
            .filter(|(is_so, _)| *is_so)
            .fold(0, |flags, (_, flag)| flags | flag),
    }
}
