//! Where frames and paging structures are mapped, as their capabilities say it.

/// Where a frame or paging structure is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Address-space identifier, not 0.
    pub asid: u16,
    /// Virtual address, below 2^48.
    pub vaddr: u64,
}

const ASID_SHIFT: u32 = 48;

impl Mapping {
    pub fn decode(data: u64) -> Option<Self> {
        let asid = (data >> ASID_SHIFT) as u16;
        (asid != 0).then_some(Mapping {
            asid,
            vaddr: data & ((1 << ASID_SHIFT) - 1),
        })
    }

    pub fn encode(mapping: Option<Self>) -> u64 {
        mapping.map_or(0, |m| {
            u64::from(m.asid) << ASID_SHIFT | m.vaddr & ((1 << ASID_SHIFT) - 1)
        })
    }
}
