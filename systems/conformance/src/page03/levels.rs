//! The paging structures of an address space, which every architecture has three levels of below the root (07, section 7).

use crate::prelude::*;

/// A kind of paging structure.
#[derive(Clone, Copy)]
pub struct Level {
    pub kind: ObjectType,
    pub map: u64,
    pub unmap: u64,
    /// Log2 of the bytes that one covers.
    pub coverage: u32,
}

/// From the root down.
pub const LEVELS: [Level; 3] = [
    Level {
        kind: ObjectType::Pdpt,
        map: arch_label::PDPT_MAP,
        unmap: arch_label::PDPT_UNMAP,
        coverage: 39,
    },
    Level {
        kind: ObjectType::PageDirectory,
        map: arch_label::PAGE_DIRECTORY_MAP,
        unmap: arch_label::PAGE_DIRECTORY_UNMAP,
        coverage: 30,
    },
    Level {
        kind: ObjectType::PageTable,
        map: arch_label::PAGE_TABLE_MAP,
        unmap: arch_label::PAGE_TABLE_UNMAP,
        coverage: 21,
    },
];

/// Where the checks map, aligned for every level.
pub const VADDR: u64 = 0x1280_0000_0000;

impl Level {
    /// Maps a new structure at [`VADDR`].
    pub fn map(self, f: &mut Fixture, root: CPtr) -> Result<Invocation, Failure> {
        let structure: CPtr = f.make(self.kind)?;
        Ok(Invocation::new(structure, self.map, &[VADDR, 0], &[root]))
    }

    /// Unmap of the structure.
    pub fn unmap(self, structure: CPtr) -> Invocation {
        Invocation::new(structure, self.unmap, &[], &[])
    }
}

/// A root whose structures above `depth` levels are there at [`VADDR`].
pub fn root_above(f: &mut Fixture, depth: usize) -> Result<CPtr, Failure> {
    let root = f.vspace()?.root().cptr();
    for level in &LEVELS[..depth] {
        level.map(f, root)?.expect_ok(&[])?;
    }
    Ok(root)
}

/// What is no root with an identifier.
pub fn no_roots(f: &mut Fixture) -> Result<[CPtr; 4], Failure> {
    Ok([
        f.null()?,
        f.pml4()?.cptr(),
        f.make(ObjectType::Pdpt)?,
        f.me.cptr(),
    ])
}
