//! Starts the other cores (Intel's manual, volume 3, section on the initialisation of several
//! processors): what the core that boots does. What each of them does is in [`super::cores`].
//!
//! The core that boots resets all others, and then starts one after the other until there are as many
//! as the kernel is built for. One that does not answer is reset again, and does not count; so it
//! never begins when nobody expects it.
//!
//! Of the hardware threads of one core, only the first of the table is started: they would share
//! execution units and caches, and what one does would take time from the other, on nobody's budget.

use core::sync::atomic::Ordering;

use super::cores::{
    LOCAL_APICS, LOW_CODE, MEMORY_TYPES, MEMORY_TYPES_DIFFER, OFFER, START_EFER, TAKEN,
};
use super::same_time;
use crate::arch::x86_64::machine::acpi::{Madt, BROADCAST, NOBODY};
use crate::arch::x86_64::machine::apic::{self, Mode, Signal, LOCAL_APIC};
use crate::arch::x86_64::machine::layout::{PAGE_SIZE, WINDOW_BASE};
use crate::arch::x86_64::machine::platform::Machine;
use crate::arch::x86_64::machine::window::Window;
use crate::arch::x86_64::machine::{cpu, mtrr, paging};
use crate::arch::Platform;
use crate::boot::{List, Refusal};
use crate::cores::CoreId;

/// Time between a reset and the start, in microseconds, as the manual wants it.
const RESET_US: u64 = 10_000;
/// Time after which a core that has not answered is told to start once more.
const FIRST_START_US: u64 = 200;
/// Time after which it is given up. It answers after a few dozen instructions, but an emulator on a busy
/// host may begin with them late.
const LAST_START_US: u64 = 1_000_000;

/// Most that the time-stamp counters of two cores may be seen to differ by, in microseconds: a tenth
/// of the longest kernel path that the ABI's constants allow for (04, section 1).
const MAX_DISAGREEMENT_US: u64 = 1;

/// Time after which a core that has started, and was asked for its counter, is taken to have stopped.
/// It answers at once, but an emulator on a busy host may not let it for long.
const LAST_ANSWER_US: u64 = 10_000_000;

unsafe extern "C" {
    static sandglass_low_start: [u8; LOW_CODE];
}

/// Most cores that are tried.
const MAX_TRIED: usize = 255;

/// Starts other processors of the table, as many as the kernel is built for, and leaves the rest
/// reset. `page` is the physical address of a page of RAM below 1 MiB; it is as before on return.
/// `local_apics` is the physical address of the local APICs.
///
/// # Errors
/// The time-stamp counter of one that has started does not agree with this core's, or its memory types are others.
pub fn start(machine: &Machine, madt: Madt, local_apics: u64, page: u64) -> Result<(), Refusal> {
    LOCAL_APICS.store(local_apics, Ordering::Relaxed);
    MEMORY_TYPES.store(mtrr::digest(), Ordering::Relaxed);
    let own = apic::id_of(CoreId::BOOT);
    let end = if apic::mode() == Mode::X2Apic {
        NOBODY
    } else {
        BROADCAST
    };
    let thread_bits = cpu::thread_bits();
    let core_of = |id: u32| id.wrapping_shr(thread_bits);
    let mut is_alone = true;
    let mut firsts: List<u32, MAX_TRIED> = List::new();
    madt.processors(&Window, end, |id| {
        if id == own {
            return;
        }
        is_alone = false;
        LOCAL_APIC.send(id, Signal::Reset);
        let is_other = |&first: &u32| core_of(first) != core_of(id);
        if is_other(&own) && firsts.iter().all(is_other) {
            firsts.push(id).unwrap_or(());
        }
    });
    if is_alone {
        return Ok(());
    }
    paging::init_start();
    START_EFER.store(cpu::efer() as u32, Ordering::Relaxed);
    let before = read_low(page);
    // SAFETY: constant bytes of the kernel's image.
    write_low(page, unsafe { sandglass_low_start });
    pass(machine, RESET_US);
    let mut ids = firsts.iter();
    let mut cores = CoreId::all().skip(1);
    let mut next = cores.next();
    while let (Some(core), Some(&id)) = (next, ids.next()) {
        same_time::prepare();
        if start_one(machine, core, id, page) {
            check_time(machine)?;
            if MEMORY_TYPES_DIFFER.load(Ordering::Relaxed) {
                return Err(Refusal::Machine(
                    "the memory-type range registers (MTRRs) of two cores differ: the firmware must set them alike, or \
                     the single-core kernel be booted",
                ));
            }
            machine.add_core();
            next = cores.next();
        }
    }
    write_low(page, before);
    Ok(())
}

/// Whether the core that was just started has the same time as this one.
fn check_time(machine: &Machine) -> Result<(), Refusal> {
    let us = machine.ticks_per_us.get();
    match same_time::ask(
        LAST_ANSWER_US.wrapping_mul(us),
        MAX_DISAGREEMENT_US.wrapping_mul(us),
    ) {
        Some(true) => Ok(()),
        Some(false) => Err(Refusal::Machine(
            "the time-stamp counters of two cores are more than 1 us apart: the firmware must set \
             them alike, or the single-core kernel be booted",
        )),
        None => Err(Refusal::Machine(
            "a core has stopped in the middle of its start",
        )),
    }
}

/// Starts the processor with the local APIC number `id` as `core`. Whether one has answered, which might be one that was
/// given up before.
fn start_one(machine: &Machine, core: CoreId, id: u32, page: u64) -> bool {
    OFFER.store(core.index() as u32, Ordering::Release);
    let first_page = (page / PAGE_SIZE) as u8;
    for patience in [FIRST_START_US, LAST_START_US] {
        LOCAL_APIC.send(id, Signal::Start { page: first_page });
        await_answer(machine, patience);
        if is_taken() {
            return true;
        }
    }
    // Acquire: if it is taken just now.
    if OFFER.swap(0, Ordering::Acquire) & TAKEN != 0 {
        return true;
    }
    LOCAL_APIC.send(id, Signal::Reset);
    false
}

/// Whether somebody has taken the offer.
fn is_taken() -> bool {
    OFFER.load(Ordering::Acquire) & TAKEN != 0
}

/// Waits until the offer is taken, for `us` microseconds at most.
fn await_answer(machine: &Machine, us: u64) {
    let end = deadline(machine, us);
    while !is_taken() && machine.now() < end {
        core::hint::spin_loop();
    }
}

/// Lets `us` microseconds pass.
fn pass(machine: &Machine, us: u64) {
    let end = deadline(machine, us);
    while machine.now() < end {
        // An emulator reads clocks slowly.
        for i in 0..1_000 {
            core::hint::black_box(i);
        }
    }
}

fn deadline(machine: &Machine, us: u64) -> u64 {
    let ticks = us.wrapping_mul(machine.ticks_per_us.get());
    machine.now().wrapping_add(ticks)
}

/// The first bytes of the page of low memory at `page`.
fn read_low(page: u64) -> [u8; LOW_CODE] {
    let address = WINDOW_BASE.wrapping_add(page) as *const [u8; LOW_CODE];
    // SAFETY: RAM, through the window. Volatile, since no Rust object is known to lie there.
    unsafe { address.read_volatile() }
}

/// Writes them.
fn write_low(page: u64, bytes: [u8; LOW_CODE]) {
    let address = WINDOW_BASE.wrapping_add(page) as *mut [u8; LOW_CODE];
    // SAFETY: as for reading; nobody uses the page meanwhile.
    unsafe { address.write_volatile(bytes) }
}
