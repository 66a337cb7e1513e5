//! A witness beside each canary: a thread whose GS base is 0, as it is of most threads. The kernel
//! knows of bases that programs ask it for; a program that loads a base from a descriptor must not
//! hand it on to the next thread. In the witness's address space a page is mapped at address 0, so
//! that it can tell a base of 0 from others.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Attributes, FrameSize, Rights, SchedParams};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{println, sys, BootInfo, Process, SetupError};

use crate::canary::{self, Watch};

/// Often enough to follow many threads of the storm, and far less than the canary can spare.
const PARAMS: SchedParams = SchedParams::new(40, 700);
/// Where the page is mapped, and the word that is looked at.
const PAGE_ADDRESS: u64 = 0;
const WORD: u64 = 8;
const PATTERN: u64 = 0x5a1d_91a5_5000_0001;

/// Starts the witness of each core.
pub fn start_all(
    process: &mut Process,
    boot: &'static BootInfo,
    watch: &'static Watch,
) -> Result<(), SetupError> {
    let frame = process.resources.frame(FrameSize::Small)?;
    process
        .space
        .fill_frame(&mut process.resources, frame, |page| {
            let at = WORD as usize;
            page[at..at + 8].copy_from_slice(&PATTERN.to_le_bytes());
        })?;
    let (rights, attributes) = (Rights::READ, Attributes::WriteBack);
    let vspace = process.space.vspace();
    vspace.map(
        &mut process.resources,
        frame,
        PAGE_ADDRESS,
        rights,
        attributes,
    )?;
    for core in 0..boot.cores() {
        let context = process.resources.sched_context(PARAMS.size_bits())?;
        boot.sched_control(core)
            .expect("there is an authority for every core that runs")
            .configure(context, PARAMS)?;
        let params = ThreadParams::new(canary::PRIORITY, context);
        Thread::spawn(process, params, move || witness(core as usize, watch))?;
    }
    Ok(())
}

fn witness(core: usize, watch: &Watch) {
    let looks: &AtomicU64 = &watch.jobs[core].looks;
    loop {
        sys::yield_now();
        let word: u64;
        // SAFETY: the page is mapped at the base that GS has; with another, the pattern or a fault
        // shows.
        unsafe { asm!("mov {}, gs:[{word}]", out(reg) word, word = const WORD, options(nostack)) };
        if word != PATTERN {
            let seed = watch.seed.load(Relaxed);
            println!("\nthe witness of core {core} has another GS base, with seed {seed}");
            watch.is_broken.store(true, Relaxed);
        }
        looks.store(looks.load(Relaxed) + 1, Relaxed);
    }
}
