//! A witness beside each canary: a thread that looks at what the canary cannot, since it has something of its own there.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::SchedParams;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{println, sys, BootInfo, Process, SetupError};

use crate::arch::witness as arch;
use crate::canary::{self, Watch};

/// Often enough to follow many threads of the storm, and far less than the canary can spare.
const PARAMS: SchedParams = SchedParams::new(40, 700);

/// Starts the witness of each core.
pub fn start_all(
    process: &mut Process,
    boot: &'static BootInfo,
    watch: &'static Watch,
) -> Result<(), SetupError> {
    arch::prepare(process)?;
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
        if !arch::look() {
            let seed = watch.seed.load(Relaxed);
            println!(
                "\nthe witness of core {core} has another {}, with seed {seed}",
                arch::LOOKED_AT
            );
            watch.is_broken.store(true, Relaxed);
        }
        looks.store(looks.load(Relaxed) + 1, Relaxed);
    }
}
