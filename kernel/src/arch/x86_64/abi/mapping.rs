//! Where frames and paging structures are mapped, as their capabilities say it.

/// Where a frame or paging structure is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Address-space identifier, 1 to 4095.
    pub asid: u16,
    /// Virtual address, aligned to 4 KiB at least.
    pub vaddr: u64,
}

const ASID_MASK: u64 = 0xfff;

impl Mapping {
    pub fn decode(data: u64) -> Option<Self> {
        let asid = (data & ASID_MASK) as u16;
        (asid != 0).then_some(Mapping {
            asid,
            vaddr: data & !ASID_MASK,
        })
    }

    pub fn encode(mapping: Option<Self>) -> u64 {
        mapping.map_or(0, |m| {
            (m.vaddr & !ASID_MASK) | (u64::from(m.asid) & ASID_MASK)
        })
    }
}
