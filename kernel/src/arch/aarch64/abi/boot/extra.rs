//! Extra boot information: the device tree, and what the kernel's time is made of, in chunks (06, section 4).

use sandglass_abi::boot::extra::{DEVICE_TREE, HEADER_LEN, TIMING, TIMING_LEN};

use super::FirmwareInfo;
use crate::arch::abi::clock::UNIT_US;
use crate::arch::{bounds, Platform};
use crate::mem::objects::Ram;
use crate::mem::{user, Tagged};
use crate::Kernel;

const PAGE: u64 = 4096;

/// The pages that the chunks take, all together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pages(u64);

impl Pages {
    pub fn of(firmware: &FirmwareInfo) -> Self {
        Pages(length(firmware).div_ceil(PAGE))
    }

    pub const fn count(self) -> u64 {
        self.0
    }

    /// Pages for which there are tables: a power of two (06, section 3).
    pub const fn span(self) -> u64 {
        self.0.next_power_of_two()
    }
}

/// Bytes of the chunk of the device tree.
fn tree_length(firmware: &FirmwareInfo) -> u64 {
    let length = |tree: &Ram| HEADER_LEN as u64 + tree.length();
    firmware.tree.as_ref().map_or(0, length)
}

/// Bytes of all chunks.
pub fn length(firmware: &FirmwareInfo) -> u64 {
    tree_length(firmware) + TIMING_LEN as u64
}

/// Writes what is in page `page` of the chunks into the zeroed frame of RAM `frame`.
pub fn write(k: &mut Kernel, frame: Tagged, page: u64, firmware: &FirmwareInfo) {
    let mut page = Writer {
        k,
        frame,
        start: page * PAGE,
        offset: 0,
    };
    if let Some(tree) = &firmware.tree {
        page.long(DEVICE_TREE);
        page.long(tree_length(firmware));
        page.tree(tree);
    }
    page.long(TIMING);
    page.long(TIMING_LEN as u64);
    let constants = page.k.constants;
    let [path, latency, path_ns, latency_ns, _] = bounds::analysed();
    for number in [
        page.k.machine.ticks_per_unit() * (1_000_000 / UNIT_US),
        constants.min_budget() / 2,
        constants.min_budget(),
        constants.ticks(constants.max_period_us()),
        path,
        latency,
        path_ns,
        latency_ns,
    ] {
        page.long(number);
    }
}

/// Writes what of the chunks is in a page, one thing behind the other.
struct Writer<'k> {
    k: &'k mut Kernel,
    frame: Tagged,
    /// Where the page starts in the chunks.
    start: u64,
    /// Where the next thing is.
    offset: u64,
}

impl Writer<'_> {
    #[inline(never)]
    fn long(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// The bytes of the tree that are in this page.
    fn tree(&mut self, tree: &Ram) {
        let begin = self.offset;
        let end = begin + tree.length();
        let last = end.min(self.start + PAGE);
        self.offset = begin.max(self.start);
        while self.offset < last {
            let mut piece = [0; 64];
            let length = (last - self.offset).min(piece.len() as u64) as usize;
            let from = (self.offset - begin) as usize;
            let source = tree.bytes(&self.k.machine).get(from..).unwrap_or_default();
            for (to, &byte) in piece.iter_mut().zip(source) {
                *to = byte;
            }
            self.bytes(piece.get(..length).unwrap_or_default());
        }
        self.offset = end;
    }

    /// The page may begin or end amid `bytes`.
    #[inline(never)]
    fn bytes(&mut self, bytes: &[u8]) {
        for (at, byte) in (self.offset..).zip(bytes) {
            if at >= self.start && at < self.start + PAGE {
                user::fill_frame(self.k, self.frame, at - self.start, &[*byte]);
            }
        }
        self.offset += bytes.len() as u64;
    }
}
