//! The memory that a component is made of, as its loader finds it again: its image, its stacks, its IPC buffers.

use alloc::vec::Vec;

use crate::cap::{CPtr, Capability, Frame};
use crate::image::PAGE;

/// Pages in a row, of frames in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    address: u64,
    first: u64,
    pages: u64,
}

/// Which frames are where.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(Vec<Run>);

impl Pages {
    /// Notes that `frame` is mapped at `address`.
    pub fn add(&mut self, address: u64, frame: Frame) {
        let frame = frame.cptr().raw();
        match self.0.last_mut() {
            Some(run)
                if run.address + run.pages * PAGE == address && run.first + run.pages == frame =>
            {
                run.pages += 1;
            }
            _ => self.0.push(Run {
                address,
                first: frame,
                pages: 1,
            }),
        }
    }

    /// All pages, with their frames.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Frame)> + '_ {
        self.0.iter().flat_map(|run| {
            (0..run.pages).map(|page| {
                let frame = Frame::from_cptr(CPtr::new(run.first + page));
                (run.address + page * PAGE, frame)
            })
        })
    }

    /// The frame of the page at `address`.
    pub fn at(&self, address: u64) -> Option<Frame> {
        let covers = |run: &&Run| (run.address..run.address + run.pages * PAGE).contains(&address);
        let run = self.0.iter().find(covers)?;
        let frame = run.first + (address - run.address) / PAGE;
        Some(Frame::from_cptr(CPtr::new(frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_by_any_address_in_their_pages_and_nothing_else() {
        let mut pages = Pages::default();
        for (address, frame) in [
            (0x40_0000, 7),
            (0x40_1000, 8),
            (0x40_3000, 9),
            (0x40_4000, 11),
        ] {
            pages.add(address, Frame::from_cptr(CPtr::new(frame)));
        }
        let frame = |address| pages.at(address).map(|frame| frame.cptr().raw());
        assert_eq!(pages.0.len(), 3);
        assert_eq!(frame(0x40_0fff), Some(7));
        assert_eq!(frame(0x40_1000), Some(8));
        assert_eq!(frame(0x40_2000), None);
        assert_eq!(frame(0x40_3008), Some(9));
        assert_eq!(frame(0x40_4000), Some(11));
        assert_eq!(frame(0x40_5000), None);
        assert_eq!(frame(0x3f_ffff), None);
    }
}
