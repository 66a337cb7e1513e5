//! Checks of what is aarch64's: interrupts, address spaces, caches.

use sandglass_abi::error::ErrorNumber::*;
use sandglass_abi::invocation::aarch64::*;
use sandglass_abi::invocation::IRQ_CONTROL_GET;

use crate::catalogue::{Catalogue, CAPS, WORDS};

/// All.
pub fn checks(c: &mut Catalogue, is_for_several_cores: bool) {
    if is_for_several_cores {
        interrupts_of_cores(c);
    } else {
        interrupts(c);
    }
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

/// 03, sections 7.1, 7.3 and 7.4: the interrupts that the kernel has for itself are private to a core, so who asks for them
/// without one is told that of all private ones. That the message of GetTriggerCore is checked is deliberate difference 16.
fn interrupts_of_cores(c: &mut Catalogue) {
    let number = &[WORDS, CAPS, ("interrupt", RangeError)];
    let taken = ("issued", RevokeFirst);
    let reserved = ("the kernel's", RevokeFirst);
    let get = &[IRQ_CONTROL_GET];
    c.add(get, number);
    c.add(get, &[taken, reserved]);
    c.add_destination(get);
    let trigger = &[IRQ_CONTROL_GET_TRIGGER];
    c.add(trigger, number);
    c.add(trigger, &[("private", IllegalOperation), taken]);
    c.add_destination(trigger);
    let of_core = &[IRQ_CONTROL_GET_TRIGGER_CORE];
    c.add(of_core, number);
    c.add(of_core, &[("core", InvalidArgument), taken, reserved]);
    c.add_destination(of_core);
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
