//! User memory, as far as it is compared.
//!
//! What the kernel reads and writes of user memory are IPC buffers. So frames of 4 KiB are looked at
//! as a whole, and of larger ones only the buffers that threads have in them ([`windows`]).

use std::collections::BTreeMap;

use sandglass_kernel::mem;
use sandglass_kernel::mem::user::BUFFER_BYTES;
use sandglass_kernel::object::tcb::TcbSlot;
use sandglass_model::state::{Address, Cap, SlotId, State, ThreadSlot};

use crate::census::Census;

const PAGE_BITS: u8 = 12;

/// Ranges of physical memory that are compared, as start and bytes; sorted, without overlaps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Windows(Vec<(Address, u64)>);

impl Windows {
    fn new(mut ranges: Vec<(Address, u64)>) -> Windows {
        ranges.sort_unstable();
        ranges.dedup();
        // A buffer in a larger frame lies in no page, and buffers are aligned to their size.
        Windows(ranges)
    }

    /// The words of `memory` inside the windows.
    pub fn restrict(&self, memory: &BTreeMap<Address, u64>) -> BTreeMap<Address, u64> {
        self.0
            .iter()
            .flat_map(|&(start, bytes)| memory.range(start..start + bytes))
            .map(|(&address, &word)| (address, word))
            .collect()
    }

    /// Whether `memory` inside the windows is what `seen` has there; `seen` has nothing outside.
    pub fn agree(&self, memory: &BTreeMap<Address, u64>, seen: &BTreeMap<Address, u64>) -> bool {
        let inside = self
            .0
            .iter()
            .flat_map(|&(start, bytes)| memory.range(start..start + bytes));
        inside.eq(seen.iter())
    }
}

/// The words of user memory in the windows that are not 0.
pub fn words(census: &Census) -> BTreeMap<Address, u64> {
    let k = census.k;
    let mut words = Vec::new();
    for &(start, bytes) in &census_windows(census).0 {
        k.machine.look_at(start, bytes / 8, |values| {
            let addressed = (start..).step_by(8).zip(values.iter().copied());
            words.extend(addressed.filter(|&(_, word)| word != 0));
        });
    }
    words.into_iter().collect()
}

fn census_windows(census: &Census) -> Windows {
    let frames = census.sites.iter().filter_map(|site| site.view.cap.frame());
    let mut ranges: Vec<_> = frames
        .filter(|frame| frame.bits() == PAGE_BITS && !frame.is_device())
        .map(|frame| (frame.start().get(), 1 << PAGE_BITS))
        .collect();
    for &thread in &census.threads {
        let slot = mem::objects::tcb_slot(thread, TcbSlot::Buffer).at(census.k);
        if let Some(frame) = slot.cap().frame() {
            let address = thread.at(census.k).buffer_address();
            ranges.extend(buffer(
                frame.start().get(),
                frame.bits(),
                frame.is_device(),
                address,
            ));
        }
    }
    Windows::new(ranges)
}

/// The window of an IPC buffer at user address `vaddr` in a frame that is larger than a page.
fn buffer(start: Address, bits: u8, device: bool, vaddr: u64) -> Option<(Address, u64)> {
    if bits == PAGE_BITS || device {
        return None;
    }
    let offset = vaddr & ((1 << bits) - 1) & !(BUFFER_BYTES - 1);
    Some((start + offset, BUFFER_BYTES))
}

/// The windows of a state of the specification: the same as those of a kernel with this state.
pub fn windows(state: &State) -> Windows {
    let mut ranges = Vec::new();
    for (id, held) in &state.caps.slots {
        let Cap::Frame {
            start,
            bits,
            device,
            ..
        } = held.cap
        else {
            continue;
        };
        if bits == PAGE_BITS && !device {
            ranges.push((start, 1 << PAGE_BITS));
        }
        if let SlotId::Thread(thread, ThreadSlot::Buffer) = *id {
            let address = state.threads.get(&thread).map(|t| t.buffer_address);
            ranges.extend(buffer(start, bits, device, address.unwrap_or(0)));
        }
    }
    Windows::new(ranges)
}
