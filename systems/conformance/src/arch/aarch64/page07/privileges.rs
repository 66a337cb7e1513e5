//! 07, sections 2, 3, 5 and 9: what user code may do to the processor, TLS, the debug API that is not there, and caches.

use conformance_kit::arch::code;
use conformance_kit::arch::order::{FS_BASE, RAX, RDI, RIP};
use sandglass::abi::fault::user_exception;

use super::super::page05::exceptions::is_refused;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/2/caches-can-be-maintained", caches),
    check("07/2/the-type-of-caches-is-read", cache_type),
    check("07/2/unaligned-accesses-are-made", unaligned),
    check("07/2/counters-and-timers-are-kept", timers),
    check("07/2/performance-counters-are-kept", performance),
    check("07/3/the-tls-base-is-tpidr", tls_base),
    check("07/5/labels-are-those-without-the-debug-api", labels),
    check("07/9/written-code-is-executed-after-unify", written_code),
];

const UDF: u32 = 0;

fn caches(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    buffer.write(1, 0x5eed);
    // dc cvau, x0; dc civac, x0; dc cvac, x0; ic ivau, x0
    for instruction in [0xd50b_7b20, 0xd50b_7e20, 0xd50b_7a20, 0xd50b_7520] {
        let before = registers(&[(RDI, buffer.address)]);
        let thread = f.raw(&code(&[instruction, UDF]), &before)?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(stopped.registers.get(RIP), thread.code + 4);
    }
    ensure_eq!(buffer.read(1), 0x5eed);
    Ok(())
}

fn cache_type(f: &mut Fixture) -> TestResult {
    // mrs x9, ctr_el0
    let stopped = f.raw(&code(&[0xd53b_0029, UDF]), &distinct())?.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    // A bit that is always set; lines of 4 to 2^15 words.
    ensure!(stopped.registers.get(RAX) >> 31 & 1 == 1);
    Ok(())
}

fn unaligned(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    buffer.write(0, 0x0807_0605_0403_0201);
    buffer.write(1, 0x100f_0e0d_0c0b_0a09);
    for (offset, word) in [(1, 0x0908_0706_0504_0302), (3, 0x0b0a_0908_0706_0504)] {
        // ldr x9, [x0]
        let before = registers(&[(RDI, buffer.address + offset)]);
        let stopped = f.raw(&code(&[0xf940_0009, UDF]), &before)?.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!((offset, stopped.registers.get(RAX)), (offset, word));
    }
    Ok(())
}

/// Fails unless the instruction is an exception.
fn expect_refused(f: &mut Fixture, instruction: u32) -> TestResult {
    let thread = f.raw(&code(&[instruction, UDF]), &distinct())?;
    let stopped = thread.run(f)?;
    ensure!(
        stopped.label == fault::USER_EXCEPTION
            && stopped.words[user_exception::FAULT_IP] == thread.code
            && is_refused(stopped.words[user_exception::NUMBER]),
        "{instruction:#x} is the fault {} {:x?}",
        stopped.label,
        stopped.words
    );
    Ok(())
}

/// All but the counters, their frequency, and the physical timer, which the kernel that the suite runs on leaves to user level:
/// the suite needs a clock, and an interrupt (an option that the kernel is built with).
fn timers(f: &mut Fixture) -> TestResult {
    for instruction in [
        0xd53b_e329, // mrs x9, cntv_ctl_el0
        0xd51b_e329, // msr cntv_ctl_el0, x9
        0xd53b_e349, // mrs x9, cntv_cval_el0
        0xd51b_e349, // msr cntv_cval_el0, x9
        0xd51b_e309, // msr cntv_tval_el0, x9
    ] {
        expect_refused(f, instruction)?;
    }
    Ok(())
}

fn performance(f: &mut Fixture) -> TestResult {
    for instruction in [
        0xd53b_9d09, // mrs x9, pmccntr_el0
        0xd53b_9c09, // mrs x9, pmcr_el0
        0xd51b_9c09, // msr pmcr_el0, x9
        0xd51b_9e09, // msr pmuserenr_el0, x9
    ] {
        expect_refused(f, instruction)?;
    }
    Ok(())
}

fn tls_base(f: &mut Fixture) -> TestResult {
    // mrs x9, tpidr_el0
    let thread = f.raw(
        &code(&[0xd53b_d049, UDF]),
        &registers(&[(FS_BASE, 0x1234_5001)]),
    )?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.registers.get(RAX), 0x1234_5001);
    thread.tcb.set_tls_base(u64::MAX - 7)?;
    let again = changed(&thread.registers()?, &[(RIP, thread.code)]);
    thread
        .tcb
        .write_registers(&changed(&again, &[(FS_BASE, u64::MAX - 7)]), true)?;
    ensure_eq!(thread.stopped(f)?.registers.get(RAX), u64::MAX - 7);
    Ok(())
}

/// Label 16 is SetTLSBase, and those behind the last are none.
fn labels(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    Invocation::new(tcb, 16, &[0x1000], &[]).expect_ok(&[])?;
    ensure_eq!(tcb.read_registers(false)?.get(FS_BASE), 0x1000);
    for label in 57..=60 {
        Invocation::new(tcb, label, &[0, 0, 0, 0], &[]).expect_error(IllegalOperation, &[])?;
        let words = [5, 0, 0, 64, 0];
        Invocation::new(boot::IRQ_CONTROL, label, &words, &[boot::CNODE.cptr()])
            .expect_error(IllegalOperation, &[])?;
    }
    Ok(())
}

/// By the invocation of a page and of an address space, and by instructions.
fn written_code(f: &mut Fixture) -> TestResult {
    // movz x9, #n; udf
    let movz = |n: u32| 0xd280_0009 | n << 5;
    let page = f.buffer()?;
    let run = f.raw(&code(&[UDF]), &distinct())?;
    run.start()?;
    run.stopped(f)?;
    for n in 1..=6 {
        page.write(0, u64::from(movz(n)));
        match n % 3 {
            0 => {
                let unify = arch_label::PAGE_UNIFY_INSTRUCTION;
                Invocation::new(page.frame, unify, &[0, 8], &[]).expect_ok(&[])?;
            }
            1 => {
                let words = [page.address, page.address + 8];
                let unify = arch_label::VSPACE_UNIFY_INSTRUCTION;
                Invocation::new(boot::VSPACE, unify, &words, &[]).expect_ok(&[])?;
            }
            // SAFETY: the page is mapped; these maintain caches and nothing else.
            _ => unsafe {
                core::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) page.address);
            },
        }
        let registers = registers(&[(RIP, page.address)]);
        run.tcb.write_registers(&registers, true)?;
        let stopped = run.stopped(f)?;
        ensure_eq!(stopped.registers.get(RIP), page.address + 4);
        ensure_eq!(stopped.registers.get(RAX), u64::from(n));
    }
    Ok(())
}
