//! What only x86_64 has: software interrupts, capabilities to I/O ports, tables of a kind for each level.

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::fault;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::x86_64 as arch;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_kernel::arch::abi::object::paging::Pml4;
use sandglass_kernel::arch::abi::object::table::Child;
use sandglass_kernel::arch::abi::pte::{Access, Level};
use sandglass_kernel::arch::abi::Exception;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{Event, Trap};
use sandglass_testkit::isa;
use sandglass_testkit::world::{Refused, World};

const ALL: u64 = 0b1111;

/// A software interrupt is numbered by its vector and 24 bits of EAX (05, section 2.2).
#[test]
fn a_software_interrupt_is_an_unknown_system_call() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let thread = w.start_thread(100, 5_000, 10_000);
    let caps = [endpoint, slot::CNODE, slot::VSPACE];
    w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("a fault handler");
    w.recv(endpoint, reply);
    assert_eq!(w.running(), Some(thread.handle));
    w.registers().set(&*w.k, Register::Rax, 0x1_2345_6789);
    let interrupt = Exception::SoftwareInterrupt { vector: 0x9e };
    w.event(Event::Trap(Trap::Exception(interrupt)));
    let handler = w.running().expect("the handler");
    assert_eq!(
        MessageInfo::from_raw(w.registers().info()).label(),
        fault::UNKNOWN_SYSCALL
    );
    assert_eq!(w.message_of(handler)[18], 0xffff_ffff_9e45_6789);
}

fn ports(w: &mut World, first: u64, last: u64) -> Result<u64, Refused> {
    let slot = w.fresh_slot();
    let words = [first, last, slot, 64];
    let issue = arch::IO_PORT_CONTROL_ISSUE;
    w.invoke(slot::IO_PORT_CONTROL, issue, &words, &[slot::CNODE])?;
    Ok(slot)
}

#[test]
fn handlers_and_ports_are_derived_from_their_controls() {
    let mut w = World::new();
    let handlers = [3, 4].map(|number| w.issue_irq(number).expect("a handler"));
    let ranges = [(8, 9), (10, 10)].map(|(a, b)| ports(&mut w, a, b).expect("ports"));
    for control in [slot::IRQ_CONTROL, slot::IO_PORT_CONTROL] {
        assert_eq!(
            w.copy(control, ALL).map_err(|refused| refused.error),
            Err(ErrorNumber::IllegalOperation),
            "there is one control"
        );
    }
    w.revoke(slot::IRQ_CONTROL).expect("revoked");
    assert!(handlers.iter().all(|&slot| w.cap(slot).is_null()));
    assert!(ranges.iter().all(|&slot| !w.cap(slot).is_null()));
    w.revoke(slot::IO_PORT_CONTROL).expect("revoked");
    assert!(ranges.iter().all(|&slot| w.cap(slot).is_null()));
    w.issue_irq(3).expect("free again");
    ports(&mut w, 8, 10).expect("free again");
}

/// An interrupt, or a range of ports, is free when the last of its capabilities is gone: those of
/// others that stand beside it do not count.
#[test]
fn the_last_capability_of_a_device_frees_it() {
    let mut w = World::new();
    type Issue = fn(&mut World, u64) -> Result<u64, Refused>;
    let issues: [Issue; 2] = [World::issue_irq, |w, number| ports(w, number, number)];
    for issue in issues {
        let [below, middle, above] = [5, 6, 7].map(|i| issue(&mut w, i).expect("issued"));
        let copy = w.copy(middle, ALL).expect("copied");
        w.delete(middle).expect("deleted");
        let taken = issue(&mut w, 6).map_err(|refused| refused.error);
        assert_eq!(taken, Err(ErrorNumber::RevokeFirst), "there is a copy");
        w.revoke(copy).expect("revoked");
        w.delete(copy).expect("deleted");
        let middle = issue(&mut w, 6).expect("free");
        for slot in [below, above, middle] {
            w.delete(slot).expect("deleted");
        }
        for number in [5, 6, 7] {
            issue(&mut w, number).expect("free");
        }
    }
}

/// `mem`: only what was mapped as a table is followed as one, at whatever level it is read.
#[test]
fn a_page_is_not_followed_as_a_table() {
    let mut w = World::new();
    let page = w.make(isa::types::PAGE, 0);
    let page = w.cap(page).word();
    let root = w.cap(slot::VSPACE).word().get::<Pml4>().expect("a root");
    let table = root.at(&w.k).as_ref();
    let access = Access {
        user: true,
        write: true,
    };
    table.set_page(&w.k, Level::PAGE_TABLE, 300, page, access, 0);
    for level in [Level::PML4, Level::PDPT, Level::PAGE_DIRECTORY] {
        let child = table.child(&w.k, level, 300);
        assert!(!matches!(child, Child::Table(_)), "followed at {level:?}");
    }
    table.clear_entry(&w.k, 300);
}
