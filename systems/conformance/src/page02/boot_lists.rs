//! 02, section 5 for the capabilities of the boot: the lists that they begin.

use super::support::{alive, revoke};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("02/5.1/boot-capabilities-stand-alone", stand_alone)];

fn stand_alone(f: &mut Fixture) -> TestResult {
    let info = *f.boot.raw();
    let (frames, tables) = (info.user_image_frames, info.user_image_paging);
    // Frames of one image and tables of one address space are nobody's children. The buffer's
    // frame and the VSpace are parents of what threads have.
    let caps = [
        boot::ASID_POOL.cptr(),
        CPtr::new(9),
        CPtr::new(tables.start),
        CPtr::new(tables.start + 1),
        CPtr::new(tables.end - 1),
        CPtr::new(info.extra_bi_pages.start),
        CPtr::new(frames.start),
        CPtr::new(frames.start + 1),
        CPtr::new(frames.end - 1),
    ];
    for cap in caps {
        revoke(f, cap)?;
        ensure_eq!(alive(f, caps)?, [true; 9]);
    }
    Ok(())
}
