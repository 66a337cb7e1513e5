//! 03, sections 8.6 and 8.7: I/O ports.

use sandglass::cap::IoPort;

use crate::prelude::*;

use crate::page03::common::{
    destination_refused, refuses_other_labels, truncated, works_in_first_phase,
    works_without_answer, Destination,
};

pub const CHECKS: &[Check] = &[
    check("03/8.6/1-other-labels", control_other_labels),
    check("03/8.6/2-truncated", issue_truncated),
    check("03/8.6/3-last-below-first", issue_backwards),
    check("03/8.6/4-ports-in-use", issue_in_use),
    check("03/8.6/5-destinations", issue_destinations),
    check("03/8.6/ports-are-cut-to-16-bits", issue_masks),
    check("03/8.6/a-refusal-takes-no-port", issue_refusal),
    check("03/8.6/deleting-frees-the-ports", issue_freed),
    check("03/8.6/by-send-and-in-a-first-phase", issue_without_answer),
    check("03/8.7/other-labels", port_other_labels),
    check("03/8.7/truncated", access_truncated),
    check("03/8.7/all-bytes-in-the-range", access_range),
    check("03/8.7/widths", access_widths),
    check("03/8.7/no-wrap-at-the-last-port", access_last_port),
    check("03/8.7/by-send-and-in-a-first-phase", access_without_answer),
];

/// Ports that no device listens to.
const FREE: u64 = 0x5a00;

/// Issues 8 ports to an empty slot.
fn scene(f: &mut Fixture) -> Result<(Invocation, Slot), Failure> {
    let slot = f.empty_slot()?;
    let words = [FREE, FREE + 7, slot.index(), 64];
    let issue = Invocation::new(
        boot::IO_PORT_CONTROL,
        arch_label::IO_PORT_CONTROL_ISSUE,
        &words,
        &[boot::CNODE.cptr()],
    );
    Ok((issue, slot))
}

/// Words of Issue.
mod word {
    pub const FIRST: usize = 0;
    pub const LAST: usize = 1;
    pub const INDEX: usize = 2;
    pub const DEPTH: usize = 3;
}

fn control_other_labels(f: &mut Fixture) -> TestResult {
    let (issue, _) = scene(f)?;
    refuses_other_labels(&issue, &[arch_label::IO_PORT_CONTROL_ISSUE])
}

fn issue_truncated(f: &mut Fixture) -> TestResult {
    let (issue, _) = scene(f)?;
    truncated(&issue)?;
    truncated(&issue.with_word(word::LAST, 0))
}

fn issue_backwards(f: &mut Fixture) -> TestResult {
    let (issue, slot) = scene(f)?;
    issue.expect_ok(&[])?;
    for last in [0, FREE - 1, 1 << 16, (1 << 16) | (FREE - 1)] {
        // Before the ports in use and the destination, which is in use too.
        issue
            .with_word(word::LAST, last)
            .expect_error(InvalidArgument, &[1])?;
        issue
            .with_word(word::LAST, last)
            .with_word(word::DEPTH, 65)
            .expect_error(InvalidArgument, &[1])?;
    }
    slot.delete()?;
    // A single port.
    issue.with_word(word::LAST, FREE).expect_ok(&[])
}

fn issue_in_use(f: &mut Fixture) -> TestResult {
    let (issue, _) = scene(f)?;
    issue.expect_ok(&[])?;
    for (first, last) in [(0, 7), (0, 0), (7, 7), (3, 4), (7, 9), (-3, 0), (-3, 9)] {
        let port = |offset: i64| FREE.wrapping_add_signed(offset);
        let again = issue
            .with_word(word::FIRST, port(first))
            .with_word(word::LAST, port(last));
        again.expect_error(RevokeFirst, &[])?;
        // Before the destination.
        again
            .with_word(word::DEPTH, 65)
            .expect_error(RevokeFirst, &[])?;
    }
    for (first, last) in [(FREE + 8, FREE + 9), (FREE - 3, FREE - 1)] {
        let slot = f.empty_slot()?;
        issue
            .with_word(word::FIRST, first)
            .with_word(word::LAST, last)
            .with_word(word::INDEX, slot.index())
            .expect_ok(&[])?;
    }
    Ok(())
}

fn issue_destinations(f: &mut Fixture) -> TestResult {
    let (issue, _) = scene(f)?;
    let at = Destination {
        index: word::INDEX,
        depth: word::DEPTH,
        root: 0,
    };
    destination_refused(f, &issue, at)?;
    issue.expect_ok(&[])
}

fn issue_masks(f: &mut Fixture) -> TestResult {
    let (issue, slot) = scene(f)?;
    issue
        .with_word(word::FIRST, 0xabcd << 16 | FREE)
        .with_word(word::LAST, (1 << 63) | (FREE + 3))
        .expect_ok(&[])?;
    let port: IoPort = slot.capability();
    port.out8(FREE as u16 + 3, 0)?;
    let beyond = Invocation::new(port, arch_label::IO_PORT_IN8, &[FREE + 4], &[]);
    beyond.expect_error(IllegalOperation, &[])
}

fn issue_refusal(f: &mut Fixture) -> TestResult {
    let (issue, slot) = scene(f)?;
    issue
        .with_word(word::DEPTH, 65)
        .expect_error(RangeError, &[1, 64])?;
    ensure!(f.is_empty(slot)?, "a refused Issue filled its slot");
    issue.expect_ok(&[])
}

fn issue_freed(f: &mut Fixture) -> TestResult {
    let (issue, slot) = scene(f)?;
    issue.expect_ok(&[])?;
    let copy = f.copy(slot.capability::<IoPort>())?;
    slot.delete()?;
    issue.expect_error(RevokeFirst, &[])?;
    f.slot_of(copy).delete()?;
    issue.expect_ok(&[])
}

/// Whether there is a capability in the slot; takes it back.
fn take_back(f: &mut Fixture, slot: Slot) -> Result<bool, Failure> {
    let made = !f.is_empty(slot)?;
    slot.delete()?;
    Ok(made)
}

fn issue_without_answer(f: &mut Fixture) -> TestResult {
    let (issue, slot) = scene(f)?;
    works_without_answer(f, &issue, |f| take_back(f, slot))?;
    works_in_first_phase(f, &issue, |f| take_back(f, slot))
}

/// Configuration space of the PCI: the address register, which keeps what is written, and the
/// register it selects.
const ADDRESS: u64 = 0xcf8;
const DATA: u64 = 0xcfc;
/// The identity of device 0.
const IDENTITY: u64 = 0x8000_0000;

const IN: [(u64, u64); 3] = [
    (arch_label::IO_PORT_IN8, 1),
    (arch_label::IO_PORT_IN16, 2),
    (arch_label::IO_PORT_IN32, 4),
];
const OUT: [(u64, u64); 3] = [
    (arch_label::IO_PORT_OUT8, 1),
    (arch_label::IO_PORT_OUT16, 2),
    (arch_label::IO_PORT_OUT32, 4),
];

fn ports(f: &mut Fixture, first: u64, last: u64) -> Result<IoPort, Failure> {
    let ports = f.process.resources.io_ports(first as u16, last as u16)?;
    Ok(ports)
}

fn input(ports: IoPort, label: u64, port: u64) -> Invocation {
    Invocation::new(ports, label, &[port], &[])
}

fn output(ports: IoPort, label: u64, port: u64, value: u64) -> Invocation {
    Invocation::new(ports, label, &[port, value], &[])
}

fn port_other_labels(f: &mut Fixture) -> TestResult {
    let ports = ports(f, FREE, FREE + 7)?;
    let own: Vec<u64> = IN.iter().chain(&OUT).map(|&(label, _)| label).collect();
    refuses_other_labels(&output(ports, label::INVALID, FREE, 0), &own)
}

fn access_truncated(f: &mut Fixture) -> TestResult {
    let ports = ports(f, FREE, FREE + 7)?;
    // Also where the port is out of range.
    for port in [FREE, FREE + 8] {
        for (label, _) in IN {
            truncated(&input(ports, label, port))?;
        }
        for (label, _) in OUT {
            truncated(&output(ports, label, port, 0))?;
        }
    }
    Ok(())
}

fn access_range(f: &mut Fixture) -> TestResult {
    const LAST: u64 = FREE + 7;
    let ports = ports(f, FREE, LAST)?;
    for (label, bytes) in IN {
        for port in FREE - 4..LAST + 4 {
            let access = input(ports, label, port);
            if (FREE..=LAST).contains(&port) && port + bytes - 1 <= LAST {
                ensure_eq!(access.ok()?.len(), 1);
            } else {
                access.expect_error(IllegalOperation, &[])?;
            }
        }
        // Bits beyond the 16th do not count.
        ensure_eq!(input(ports, label, 0x7_0000 | FREE).ok()?.len(), 1);
    }
    for (label, bytes) in OUT {
        for port in FREE - 4..LAST + 4 {
            let access = output(ports, label, port, 0);
            if (FREE..=LAST).contains(&port) && port + bytes - 1 <= LAST {
                access.expect_ok(&[])?;
            } else {
                access.expect_error(IllegalOperation, &[])?;
            }
        }
        output(ports, label, 0x7_0000 | FREE, 0).expect_ok(&[])?;
    }
    Ok(())
}

fn access_widths(f: &mut Fixture) -> TestResult {
    let ports = ports(f, ADDRESS, DATA + 3)?;
    // Only 32 bits of the value are written.
    output(
        ports,
        arch_label::IO_PORT_OUT32,
        ADDRESS,
        0xff << 32 | IDENTITY,
    )
    .expect_ok(&[])?;
    input(ports, arch_label::IO_PORT_IN32, ADDRESS).expect_ok(&[IDENTITY])?;
    let identity = input(ports, arch_label::IO_PORT_IN32, DATA).ok()?[0];
    ensure!(identity >> 32 == 0, "{identity:#x} has more than 32 bits");
    ensure!(identity & 0xffff != 0xffff, "there is no device 0");
    for offset in [0, 2] {
        input(ports, arch_label::IO_PORT_IN16, DATA + offset)
            .expect_ok(&[identity >> (8 * offset) & 0xffff])?;
    }
    for offset in 0..4 {
        input(ports, arch_label::IO_PORT_IN8, DATA + offset)
            .expect_ok(&[identity >> (8 * offset) & 0xff])?;
    }
    Ok(())
}

fn access_last_port(f: &mut Fixture) -> TestResult {
    let ports = ports(f, 0xfff8, 0xffff)?;
    input(ports, arch_label::IO_PORT_IN8, 0xffff).ok()?;
    input(ports, arch_label::IO_PORT_IN16, 0xfffe).ok()?;
    for (label, port) in [
        (arch_label::IO_PORT_IN16, 0xffff),
        (arch_label::IO_PORT_IN32, 0xfffd),
        (arch_label::IO_PORT_IN32, 0xffff),
    ] {
        input(ports, label, port).expect_error(IllegalOperation, &[])?;
    }
    Ok(())
}

fn access_without_answer(f: &mut Fixture) -> TestResult {
    let ports = ports(f, ADDRESS, DATA + 3)?;
    let write = output(ports, arch_label::IO_PORT_OUT32, ADDRESS, IDENTITY);
    let read = input(ports, arch_label::IO_PORT_IN32, ADDRESS);
    let written = |_: &mut Fixture| {
        let written = read.ok()? == [IDENTITY];
        write.with_word(1, 0).expect_ok(&[])?;
        Ok(written)
    };
    works_without_answer(f, &write, written)?;
    works_in_first_phase(f, &write, written)?;
    // What is read goes nowhere.
    for call in SENDING {
        read.send(call)?;
    }
    Ok(())
}
