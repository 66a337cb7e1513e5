//! 06, sections 3 and 4: the chunk that is the device tree, and where boot information is.

use crate::page06::extra::clock_is_right;
use crate::page06::image::{Image, PAGE};
use crate::prelude::*;

use super::tree;

pub const CHECKS: &[Check] = &[
    check("06/4/the-device-tree-describes-this-machine", describes),
    check("06/3/buffer-and-boot-info-are-not-executed", not_executed),
    check("06/7/the-counter-runs-at-its-frequency", clock_is_right),
];

/// The user image lies in its memory.
fn describes(f: &mut Fixture) -> TestResult {
    let frame = Frame::at(f.boot.user_image_frames().start).physical_address()?;
    let memory = tree(f)?.memory();
    let holds = |&(at, bytes): &(u64, u64)| at <= frame && frame < at + bytes;
    ensure_eq!(memory.into_iter().filter(holds).count(), 1);
    Ok(())
}

/// Instructions there are not fetched; those of extra boot information are.
fn not_executed(f: &mut Fixture) -> TestResult {
    let (end, prober) = (Image::own().end, f.prober()?);
    for (page, is_executed) in [(0, false), (1, false), (2, true)] {
        // A word that is zero, an undefined instruction, if it is fetched.
        let address = end + page * PAGE + if page == 2 { 8 + 4 } else { PAGE - 8 };
        let stopped = prober.execute(f, address)?;
        let expected = if is_executed {
            fault::USER_EXCEPTION
        } else {
            fault::VM_FAULT
        };
        ensure_eq!((page, stopped.label), (page, expected));
    }
    Ok(())
}
