//! Checks of what is x86_64's: interrupts, address spaces, ports.

use alloc::vec::Vec;

use sandglass_abi::error::ErrorNumber::*;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::x86_64 as arch;

use crate::catalogue::{Catalogue, CAPS, WORDS};

/// All: several cores have no others.
pub fn checks(c: &mut Catalogue, _is_for_several_cores: bool) {
    interrupts(c);
    address_spaces(c);
    ports(c);
}

/// 03, section 7.
fn interrupts(c: &mut Catalogue) {
    let (pin, message) = (arch::IRQ_CONTROL_GET_IOAPIC, arch::IRQ_CONTROL_GET_MSI);
    c.add(
        &[label::IRQ_CONTROL_GET],
        &[WORDS, CAPS, ("not with an I/O APIC", IllegalOperation)],
    );
    c.add(
        &[pin, message],
        &[WORDS, CAPS, ("vector", RangeError), ("issued", RevokeFirst)],
    );
    c.add_destination(&[pin, message]);
    c.add(
        &[pin],
        &[
            ("I/O APIC", RangeError),
            ("pin", RangeError),
            ("level", RangeError),
            ("polarity", RangeError),
        ],
    );
    c.add(
        &[message],
        &[
            ("bus", RangeError),
            ("device", RangeError),
            ("function", RangeError),
        ],
    );
}

/// 03, sections 8.2 and 8.3.
fn address_spaces(c: &mut Catalogue) {
    use arch::*;
    c.add(
        &[PDPT_UNMAP, PAGE_DIRECTORY_UNMAP, PAGE_TABLE_UNMAP],
        &[("not the last capability", RevokeFirst)],
    );
    let tables = &[PDPT_MAP, PAGE_DIRECTORY_MAP, PAGE_TABLE_MAP];
    let all = &[PDPT_MAP, PAGE_DIRECTORY_MAP, PAGE_TABLE_MAP, PAGE_MAP];
    c.add(all, &[WORDS, CAPS]);
    c.add(tables, &[("mapped", InvalidCapability)]);
    c.add(
        all,
        &[
            ("space: no root table", InvalidCapability),
            ("space: no identifier", InvalidCapability),
        ],
    );
    c.add(
        &[PAGE_MAP],
        &[
            ("mapped in another space", InvalidCapability),
            ("mapped elsewhere", InvalidArgument),
        ],
    );
    c.add(all, &[("address", InvalidArgument)]);
    c.add(
        &[PAGE_MAP],
        &[("end of the address space", InvalidArgument)],
    );
    c.add(
        all,
        &[
            ("space: gone", FailedLookup),
            ("space: replaced", InvalidCapability),
        ],
    );
    c.add(&[PAGE_MAP], &[("alignment", AlignmentError)]);
    c.add(
        &[PAGE_DIRECTORY_MAP, PAGE_TABLE_MAP, PAGE_MAP],
        &[("no PDPT", FailedLookup)],
    );
    c.add(
        &[PAGE_TABLE_MAP, PAGE_MAP],
        &[
            ("no directory", FailedLookup),
            ("no directory: page", FailedLookup),
        ],
    );
    c.add(tables, &[("entry in use: table", DeleteFirst)]);
    c.add(
        &[PAGE_DIRECTORY_MAP, PAGE_TABLE_MAP],
        &[("entry in use: page", DeleteFirst)],
    );
    c.add(
        &[PAGE_MAP],
        &[
            ("no table", FailedLookup),
            ("no table: page", FailedLookup),
            ("2 MiB over a table", DeleteFirst),
            ("1 GiB over a directory", DeleteFirst),
        ],
    );
}

/// 03, sections 8.6 and 8.7.
fn ports(c: &mut Catalogue) {
    use arch::*;
    let issue = &[IO_PORT_CONTROL_ISSUE];
    c.add(
        issue,
        &[
            WORDS,
            CAPS,
            ("last before first", InvalidArgument),
            ("issued", RevokeFirst),
        ],
    );
    c.add_destination(issue);
    let accesses: Vec<_> = (IO_PORT_IN8..=IO_PORT_OUT32).collect();
    c.add(&accesses, &[WORDS, ("out of range", IllegalOperation)]);
}
