//! Checks of what is aarch64's: interrupts, address spaces, caches.

use sandglass_abi::error::ErrorNumber::*;
use sandglass_abi::invocation::aarch64::*;
use sandglass_abi::invocation::IRQ_CONTROL_GET;

use crate::catalogue::{Catalogue, CAPS, WORDS};

/// All.
pub fn checks(c: &mut Catalogue) {
    interrupts(c);
    address_spaces(c);
    caches(c);
}

/// 03, sections 7.1, 7.3 and 7.5.
fn interrupts(c: &mut Catalogue) {
    let lines = &[IRQ_CONTROL_GET, IRQ_CONTROL_GET_TRIGGER];
    c.add(
        lines,
        &[
            WORDS,
            CAPS,
            ("interrupt", RangeError),
            ("issued", RevokeFirst),
            ("the kernel's", RevokeFirst),
        ],
    );
    c.add_destination(lines);
    let signal = &[IRQ_CONTROL_ISSUE_SGI_SIGNAL];
    c.add(
        signal,
        &[
            WORDS,
            CAPS,
            ("interrupt", RangeError),
            ("target", InvalidArgument),
        ],
    );
    c.add_destination(signal);
}

/// 03, sections 9.2 and 9.3.
fn address_spaces(c: &mut Catalogue) {
    c.add(
        &[PAGE_TABLE_UNMAP],
        &[("not the last capability", RevokeFirst)],
    );
    let all = &[PAGE_TABLE_MAP, PAGE_MAP];
    c.add(all, &[WORDS, CAPS]);
    c.add(&[PAGE_TABLE_MAP], &[("mapped", InvalidCapability)]);
    c.add(
        all,
        &[
            ("space: no root table", InvalidCapability),
            ("space: no identifier", InvalidCapability),
        ],
    );
    c.add(&[PAGE_TABLE_MAP], &[("address", InvalidArgument)]);
    c.add(
        all,
        &[
            ("space: gone", FailedLookup),
            ("space: replaced", InvalidCapability),
        ],
    );
    c.add(
        &[PAGE_TABLE_MAP],
        &[
            ("all levels are there", DeleteFirst),
            ("entry in use: page", DeleteFirst),
        ],
    );
    c.add(
        &[PAGE_MAP],
        &[
            ("alignment", AlignmentError),
            ("mapped in another space", InvalidCapability),
            ("mapped elsewhere", InvalidArgument),
            ("end of the address space", InvalidArgument),
            ("level", FailedLookup),
        ],
    );
}

/// 03, sections 9.1 and 9.3.
fn caches(c: &mut Catalogue) {
    let spaces = &[
        VSPACE_CLEAN_DATA,
        VSPACE_INVALIDATE_DATA,
        VSPACE_CLEAN_INVALIDATE_DATA,
        VSPACE_UNIFY_INSTRUCTION,
    ];
    c.add(
        spaces,
        &[
            WORDS,
            ("end before start", InvalidArgument),
            ("end of the address space", IllegalOperation),
            ("no identifier", InvalidCapability),
            ("gone", FailedLookup),
            ("replaced", InvalidCapability),
            ("beyond the page", RangeError),
        ],
    );
    let pages = &[
        PAGE_CLEAN_DATA,
        PAGE_INVALIDATE_DATA,
        PAGE_CLEAN_INVALIDATE_DATA,
        PAGE_UNIFY_INSTRUCTION,
    ];
    c.add(
        pages,
        &[
            WORDS,
            ("not mapped", IllegalOperation),
            ("space: gone", FailedLookup),
            ("end before start", InvalidArgument),
            ("beyond the page", InvalidArgument),
            ("another page is there", InvalidCapability),
        ],
    );
    c.add(
        &[VSPACE_INVALIDATE_DATA, PAGE_INVALIDATE_DATA],
        &[("not to be written", IllegalOperation)],
    );
}
