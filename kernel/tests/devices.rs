//! I/O ports and interrupts: who may touch which, and what the machine is told (03, sections 7 and
//! 8.6; 07, section 9).

use proptest::prelude::*;
use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation::x86_64 as arch;
use sandglass_abi::vspace::x86_64::{IRQ_USER_OFFSET, MAX_IRQ_VECTOR};
use sandglass_kernel::arch::abi::Line;
use sandglass_testkit::world::{Refused, World};

fn refused(error: ErrorNumber, details: &[u64]) -> Result<Vec<u64>, Refused> {
    Err(Refused {
        error,
        details: details.to_vec(),
    })
}

/// Issues the ports from `first` to `last`; the slot of their capability.
fn issue(w: &mut World, first: u64, last: u64) -> Result<u64, Refused> {
    let slot = w.fresh_slot();
    let words = [first, last, slot, 64];
    w.invoke(
        slot::IO_PORT_CONTROL,
        arch::IO_PORT_CONTROL_ISSUE,
        &words,
        &[slot::CNODE],
    )?;
    Ok(slot)
}

/// Ranges in words of the table that meet, end at its words' ends, and cover whole words.
fn range() -> impl Strategy<Value = (u16, u16)> {
    let edge = prop_oneof![Just(0u16), Just(1), Just(62), Just(63)];
    let port = (0u16..6, edge, any::<bool>()).prop_map(|(word, bit, end)| {
        let word = if end { 1018 + word } else { word };
        word * 64 + bit
    });
    (port.clone(), port).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A range is issued exactly if none of its ports is, and they are free when it is deleted.
    #[test]
    fn every_port_is_issued_once(steps in prop::collection::vec((range(), any::<bool>()), 1..40)) {
        let mut w = World::new();
        let mut held: Vec<(u64, u16, u16)> = Vec::new();
        for ((first, last), releases) in steps {
            if releases && !held.is_empty() {
                let (slot, ..) = held.swap_remove(usize::from(first) % held.len());
                w.delete(slot).expect("deleted");
                continue;
            }
            let is_free = held.iter().all(|&(_, from, to)| last < from || to < first);
            match issue(&mut w, first.into(), last.into()) {
                Ok(slot) => {
                    prop_assert!(is_free, "{first:#x}..={last:#x} twice");
                    let ports = w.cap(slot).io_ports().expect("ports");
                    prop_assert_eq!((ports.first, ports.last), (first, last));
                    held.push((slot, first, last));
                }
                Err(error) => {
                    prop_assert!(!is_free, "{first:#x}..={last:#x} refused");
                    prop_assert_eq!(error.error, ErrorNumber::RevokeFirst);
                }
            }
        }
    }
}

/// Issued ports are found wherever in a range they are, also where others look the same.
#[test]
fn issued_ports_are_found_anywhere_in_a_range() {
    let mut w = World::new();
    let (first, last) = (0x1000, 0x1000 + 64 * 11 - 1);
    for i in 0..11 {
        for j in 0..11 {
            let ports = [i, j].map(|word| first + 64 * word + 5);
            let one = issue(&mut w, ports[0], ports[0]).expect("a port");
            let other = issue(&mut w, ports[1], ports[1]);
            assert_eq!(other.is_err(), i == j);
            let all = issue(&mut w, first, last).map_err(|refused| refused.error);
            assert_eq!(all, Err(ErrorNumber::RevokeFirst), "{i} and {j}");
            for slot in [one].into_iter().chain(other) {
                w.delete(slot).expect("deleted");
            }
        }
    }
    issue(&mut w, first, last).expect("all are free");
}

#[test]
fn a_range_of_ports_does_not_end_before_it_begins() {
    let mut w = World::new();
    assert_eq!(
        issue(&mut w, 9, 8).unwrap_err().error,
        ErrorNumber::InvalidArgument
    );
    issue(&mut w, 9, 9).expect("one port");
}

#[test]
fn an_access_stays_within_the_ports() {
    let mut w = World::new();
    let ports = issue(&mut w, 0x3f8, 0x3ff).expect("ports");
    let illegal = refused(ErrorNumber::IllegalOperation, &[]);
    let accesses = [
        (arch::IO_PORT_IN8, arch::IO_PORT_OUT8, 1, 0xff),
        (arch::IO_PORT_IN16, arch::IO_PORT_OUT16, 2, 0xffff),
        (arch::IO_PORT_IN32, arch::IO_PORT_OUT32, 4, 0xffff_ffff),
    ];
    for (read, write, bytes, mask) in accesses {
        let value = 0x8765_4321_u64;
        for port in [0x3f7, 0x3ff - bytes + 2, 0x400] {
            assert_eq!(w.invoke(ports, read, &[port], &[]), illegal, "{port:#x}");
            assert_eq!(w.invoke(ports, write, &[port, value], &[]), illegal);
        }
        for port in [0x3f8, 0x3ff - bytes + 1] {
            w.invoke(ports, write, &[port, value], &[])
                .expect("written");
            assert_eq!(w.k.machine.port(port as u16), Some((value & mask) as u32));
            w.k.machine.set_port(port as u16, !0);
            let read = w.invoke(ports, read, &[port], &[]).expect("read");
            assert_eq!(read, [mask]);
        }
    }
    let top = issue(&mut w, 0xfffe, 0xffff).expect("the last ports");
    assert_eq!(w.invoke(top, arch::IO_PORT_IN32, &[0xfffe], &[]), illegal);
    w.invoke(top, arch::IO_PORT_IN16, &[0xfffe], &[])
        .expect("read");
}

/// Arguments of an interrupt of the I/O APIC: pin, level or edge, polarity, vector.
fn pin(w: &mut World, pin: u64, level: u64, low: u64, vector: u64) -> Result<u64, Refused> {
    let slot = w.fresh_slot();
    let words = [slot, 64, 0, pin, level, low, vector];
    let get = arch::IRQ_CONTROL_GET_IOAPIC;
    w.invoke(slot::IRQ_CONTROL, get, &words, &[slot::CNODE])?;
    Ok(slot)
}

fn msi(w: &mut World, device: [u64; 3], vector: u64) -> Result<u64, Refused> {
    let slot = w.fresh_slot();
    let words = [slot, 64, device[0], device[1], device[2], 0, vector];
    let get = arch::IRQ_CONTROL_GET_MSI;
    w.invoke(slot::IRQ_CONTROL, get, &words, &[slot::CNODE])?;
    Ok(slot)
}

#[test]
fn arguments_of_interrupts_have_ranges() {
    let mut w = World::new();
    let range = |max| refused(ErrorNumber::RangeError, &[0, max]).unwrap_err();
    assert_eq!(pin(&mut w, 24, 0, 0, 0), Err(range(23)));
    assert_eq!(pin(&mut w, 0, 2, 0, 0), Err(range(1)));
    assert_eq!(pin(&mut w, 0, 0, 2, 0), Err(range(1)));
    assert_eq!(pin(&mut w, 0, 0, 0, 108), Err(range(MAX_IRQ_VECTOR)));
    assert_eq!(msi(&mut w, [256, 0, 0], 0), Err(range(255)));
    assert_eq!(msi(&mut w, [0, 32, 0], 0), Err(range(31)));
    assert_eq!(msi(&mut w, [0, 0, 8], 0), Err(range(7)));
    assert_eq!(
        msi(&mut w, [255, 31, 7], MAX_IRQ_VECTOR).map(|_| ()),
        Ok(())
    );
    assert_eq!(pin(&mut w, 23, 1, 1, 0).map(|_| ()), Ok(()));
}

#[test]
fn an_interrupt_is_programmed_as_asked_and_issued_once() {
    let mut w = World::new();
    for (number, level, low) in [(3, 0, 1), (4, 1, 0)] {
        let vector = 10 + number;
        let irq = (vector + IRQ_USER_OFFSET) as u8;
        assert_eq!(w.k.machine.route_of(irq), None);
        let handler = pin(&mut w, number, level, low, vector).expect("issued");
        let line = Line::IoApic {
            ioapic: 0,
            pin: number as u8,
            level: level == 1,
            active_low: low == 1,
        };
        assert_eq!(w.k.machine.route_of(irq), Some(line));
        assert_eq!(w.cap(handler).irq(), Some(irq));
        let again = pin(&mut w, 20, 0, 0, vector).unwrap_err();
        assert_eq!(again.error, ErrorNumber::RevokeFirst);
        assert!(!w.k.machine.is_masked(number as u8));
        w.delete(handler).expect("deleted");
        assert!(w.k.machine.is_masked(number as u8));
        pin(&mut w, number, level, low, vector).expect("issued again");
    }
}
