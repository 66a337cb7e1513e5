//! What belongs to a thread is kept for it wherever its code is interrupted.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::SchedParams;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, time};

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

/// Reads the first word of the thread block.
fn thread_block() -> u64 {
    let block;
    // SAFETY: every thread of the runtime has a block there.
    unsafe { asm!("mov {}, fs:[0]", out(reg) block, options(nostack, readonly)) };
    block
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
            let mut out = [0u64; 10];
            // SAFETY: only registers that are declared.
            unsafe {
                asm!(
                    "2: rdtsc",
                    "shl rdx, 32",
                    "or rax, rdx",
                    "cmp rax, rdi",
                    "jb 2b",
                    in("rdi") end,
                    out("rax") _,
                    out("rdx") _,
                    inout("rcx") seed + 1 => out[0],
                    inout("rsi") seed + 2 => out[1],
                    inout("r8") seed + 3 => out[2],
                    inout("r9") seed + 4 => out[3],
                    inout("r10") seed + 5 => out[4],
                    inout("r11") seed + 6 => out[5],
                    inout("r12") seed + 7 => out[6],
                    inout("r13") seed + 8 => out[7],
                    inout("r14") seed + 9 => out[8],
                    inout("r15") seed + 10 => out[9],
                );
            }
            let kept = (1..).zip(out).all(|(i, word)| word == seed + i);
            good.fetch_add(u64::from(kept), Relaxed);
        })?;
    }
    fixture.settle();
    ensure_eq!(good.load(Relaxed), 3);
    Ok(())
}
