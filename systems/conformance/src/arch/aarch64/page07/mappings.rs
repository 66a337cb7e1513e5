//! 07, section 6: what entries say of execution.

use crate::page07::scene::{add_tables, map, marked, VADDR};
use crate::page07::visitor::{forbidden, Seen, Visitor};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("07/6/pages-are-executed-unless-never", executed)];

/// Whatever the rights; and the bit for parity makes no difference.
fn executed(f: &mut Fixture) -> TestResult {
    let root = f.vspace()?.root();
    add_tables(f, root, 3)?;
    // An undefined instruction.
    let (frame, visitor) = (marked(f, 0x0b0f)?, Visitor::new(f, root)?);
    for rights in [3, 2, 0, 1] {
        for (attributes, is_executed) in [(1, true), (3, true), (5, false), (7, false)] {
            let map = map(frame, root).with_word(1, rights);
            map.with_word(2, attributes).expect_ok(&[])?;
            let expected = if is_executed {
                Seen::Word(VADDR)
            } else {
                forbidden(VADDR, 0)
            };
            let seen = visitor.jump(f, VADDR)?;
            ensure_eq!((rights, attributes, seen), (rights, attributes, expected));
        }
    }
    Ok(())
}
