//! What belongs to a thread is kept for it wherever its code is interrupted.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::SchedParams;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, time};

use crate::arch::{spin_with_registers, thread_block};
use crate::fixture::Fixture;

const PRIORITY: u8 = 100;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "preemption",
        &[
            ("thread_local_storage_is_each_threads_own", tls),
            ("all_registers_survive", registers),
        ],
    );
}

fn tls(fixture: &mut Fixture) -> TestResult {
    let blocks: &[AtomicU64; 3] = shared();
    for block in blocks {
        let context = fixture.context(SchedParams::new(40, 40))?;
        fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
            let own = thread_block();
            for _ in 0..2_000 {
                if thread_block() != own {
                    return;
                }
            }
            block.store(own, Relaxed);
        })?;
    }
    fixture.settle();
    let own = thread_block();
    let mut seen = alloc::vec![own];
    for block in blocks {
        let block = block.load(Relaxed);
        ensure!(block != 0, "a thread saw the block of another");
        ensure!(!seen.contains(&block), "two threads have one block");
        seen.push(block);
    }
    Ok(())
}

/// Registers with values of their own, spinning until the count in memory changes.
fn registers(fixture: &mut Fixture) -> TestResult {
    let good: &AtomicU64 = shared();
    let end = time::ticks() + fixture.ticks(3_000);
    for number in 1..=3u64 {
        let slice = 37 + 2 * number;
        let context = fixture.context(SchedParams::new(slice, slice))?;
        fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
            let seed = number << 40;
            let out = spin_with_registers(seed, end);
            let kept = (1..).zip(out).all(|(i, word)| word == seed + i);
            good.fetch_add(u64::from(kept), Relaxed);
        })?;
    }
    fixture.settle();
    ensure_eq!(good.load(Relaxed), 3);
    Ok(())
}
