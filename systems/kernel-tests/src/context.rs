//! What belongs to a thread and is kept for it: FPU state, FS base, flags, all registers.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::abi::context::x86_64 as register;
use sandglass::cap::{CopyRegisters, SchedParams};
use sandglass::context::UserContext;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, sys, time};

use crate::fixture::{Fixture, FULL};

const PRIORITY: u8 = 100;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "context",
        &[
            ("fpu_state_is_kept_across_threads", fpu),
            ("thread_local_storage_is_each_threads_own", tls),
            ("the_fs_base_can_be_set", fs_base),
            ("all_registers_survive_preemption", preemption),
            ("all_registers_can_be_written_and_read", round_trip),
            ("written_registers_are_made_safe", sanitised),
            ("registers_are_copied_in_groups", copied),
            ("a_system_call_keeps_the_other_registers", syscall_keeps),
        ],
    );
}

/// Loads FPU and SSE registers with values of the thread's own, runs until `end` while others do
/// the same, and returns whether all are as they were.
fn fpu_holds(value: u64, end: u64) -> bool {
    let (first, last, x87): (u64, u64, u64);
    let control: u32 = 0x1f80 | (value as u32 % 4) << 13;
    let (mut control_after, mut lane): (u32, u64) = (0, 0);
    // SAFETY: only registers that are declared, and the FPU stack, which is left as it was.
    unsafe {
        asm!(
            "ldmxcsr [{control}]",
            "movq xmm0, {value}",
            "movq xmm15, {value}",
            "punpcklqdq xmm7, xmm15",
            "push {value}",
            "fild qword ptr [rsp]",
            "2: rdtsc",
            "shl rdx, 32",
            "or rax, rdx",
            "cmp rax, {end}",
            "jb 2b",
            "fistp qword ptr [rsp]",
            "pop {x87}",
            "movq {first}, xmm0",
            "movq {last}, xmm15",
            "movhlps xmm7, xmm7",
            "movq [{lane}], xmm7",
            "stmxcsr [{after}]",
            value = in(reg) value,
            end = in(reg) end,
            control = in(reg) &control,
            after = in(reg) &mut control_after,
            lane = in(reg) &mut lane,
            first = out(reg) first,
            last = out(reg) last,
            x87 = out(reg) x87,
            out("rax") _, out("rdx") _,
            out("xmm0") _, out("xmm7") _, out("xmm15") _,
        );
        let default = 0x1f80u32;
        asm!("ldmxcsr [{}]", in(reg) &default);
    }
    [first, last, x87, lane] == [value; 4] && control_after == control
}

fn fpu(fixture: &mut Fixture) -> TestResult {
    let held: &AtomicU64 = shared();
    let end = time::ticks() + fixture.ticks(4_000);
    for number in 1..=4 {
        // Slices that end often and at different times.
        let slice = 40 + 3 * number;
        let context = fixture.context(SchedParams::new(slice, slice))?;
        fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
            let value = number * 0x0101_0101_0101;
            held.fetch_add(u64::from(fpu_holds(value, end)), Relaxed);
        })?;
    }
    fixture.settle();
    ensure_eq!(held.load(Relaxed), 4);
    Ok(())
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

fn fs_base(fixture: &mut Fixture) -> TestResult {
    let words: &'static [u64; 2] = &[0x1234, 0x5678];
    let seen: &[AtomicU64; 3] = shared();
    let own = thread_block();
    let context = fixture.context(FULL)?;
    let go = fixture.process.resources.notification()?;
    let tcb = fixture.spawn(ThreadParams::new(PRIORITY, context), move || {
        let block = thread_block();
        // SAFETY: nothing uses the thread block until it is set again.
        unsafe {
            sys::set_tls_base(&raw const words[0] as u64);
            seen[0].store(thread_block(), Relaxed);
            // Not canonical: ignored.
            sys::set_tls_base(1 << 63);
            seen[1].store(thread_block(), Relaxed);
        }
        go.wait();
        seen[2].store(thread_block(), Relaxed);
        // SAFETY: as it was.
        unsafe { sys::set_tls_base(block) };
    })?;
    fixture.settle();
    tcb.set_tls_base(&raw const words[1] as u64)?;
    go.signal();
    fixture.settle();
    let seen = seen.each_ref().map(|word| word.load(Relaxed));
    ensure_eq!(seen, [0x1234, 0x1234, 0x5678]);
    ensure_eq!(thread_block(), own);
    Ok(())
}

/// Registers with values of their own, spinning until the count in memory changes.
fn preemption(fixture: &mut Fixture) -> TestResult {
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

/// A context with a value of its own in every register, sane where the kernel insists on it.
fn marked() -> UserContext {
    let mut context = UserContext::default();
    for index in 0..register::COUNT {
        context.set(index, 0x10_0000 + index as u64);
    }
    context.set(register::RFLAGS, register::INITIAL_RFLAGS | 0xc1);
    context
}

fn round_trip(fixture: &mut Fixture) -> TestResult {
    let tcb = fixture.prepare(ThreadParams::passive(PRIORITY), || ())?;
    tcb.write_registers(&marked(), false)?;
    ensure_eq!(tcb.read_registers(false)?, marked());
    // The first registers alone.
    tcb.write_first_registers(&[7, 8], false)?;
    let mut expected = marked();
    expected.set(register::RIP, 7);
    expected.set(register::RSP, 8);
    ensure_eq!(tcb.read_registers(false)?, expected);
    Ok(())
}

fn sanitised(fixture: &mut Fixture) -> TestResult {
    let tcb = fixture.prepare(ThreadParams::passive(PRIORITY), || ())?;
    let mut context = marked();
    context.set(register::RFLAGS, u64::MAX);
    context.set(register::RIP, register::FIRST_NON_CANONICAL);
    context.set(register::FS_BASE, register::LAST_NON_CANONICAL);
    context.set(register::GS_BASE, register::LAST_NON_CANONICAL + 1);
    tcb.write_registers(&context, false)?;
    let read = tcb.read_registers(false)?;
    ensure_eq!(read.get(register::RFLAGS), 0xed7);
    ensure_eq!((read.ip(), read.get(register::FS_BASE)), (0, 0));
    ensure_eq!(
        read.get(register::GS_BASE),
        register::LAST_NON_CANONICAL + 1
    );
    Ok(())
}

fn copied(fixture: &mut Fixture) -> TestResult {
    let source = fixture.prepare(ThreadParams::passive(PRIORITY), || ())?;
    let target = fixture.prepare(ThreadParams::passive(PRIORITY), || ())?;
    source.write_registers(&marked(), false)?;
    target.write_registers(&UserContext::default(), false)?;
    let frame = CopyRegisters {
        frame: true,
        ..CopyRegisters::default()
    };
    target.copy_registers(source, frame)?;
    let mut expected = marked();
    expected.set(register::FS_BASE, 0);
    expected.set(register::GS_BASE, 0);
    ensure_eq!(target.read_registers(false)?, expected);
    let integer = CopyRegisters {
        integer: true,
        ..CopyRegisters::default()
    };
    target.copy_registers(source, integer)?;
    ensure_eq!(target.read_registers(false)?, marked());
    Ok(())
}

/// A system call without results changes rcx, r11 and rsp, and nothing else (ABI 01, section 4.1).
fn syscall_keeps(_: &mut Fixture) -> TestResult {
    let (rsp, mut out) = (0u64, [0u64; 10]);
    let mut rsp_after = rsp;
    // SAFETY: rsp is kept in r14; only declared registers change.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov {rsp_after}, rsp",
            "mov rsp, r14",
            rsp_after = out(reg) rsp_after,
            in("rdx") sandglass::abi::syscall::Syscall::Yield.raw(),
            inout("rax") 1u64 => out[0],
            inout("rsi") 2u64 => out[1],
            inout("rdi") 3u64 => out[2],
            inout("r8") 4u64 => out[3],
            inout("r9") 5u64 => out[4],
            inout("r10") 6u64 => out[5],
            inout("r12") 7u64 => out[6],
            inout("r13") 8u64 => out[7],
            inout("r15") 9u64 => out[8],
            out("r14") out[9],
            out("rcx") _,
            out("r11") _,
        );
    }
    ensure_eq!(out[..9], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // The ABI's kernel returns with 0; one that restores the real value is compatible.
    ensure!(rsp_after == 0 || rsp_after == out[9]);
    Ok(())
}
