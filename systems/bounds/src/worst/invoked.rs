//! What a server invokes in its first phase, as far as it may: made ready such that it costs the most.

use super::*;

/// Identifiers in a pool.
const POOL: u64 = 512;
/// Objects that one Retype may make.
const MOST_OBJECTS: u64 = 256;
/// What Retype zeroes between two checks for interrupts, log2 bytes.
const PIECE_BITS: u32 = 8;
/// Where a page is mapped.
const VADDR: u64 = 0x5000_0000_0000;

/// An invocation: its label, the leaves that it names, and its words.
pub(super) struct Invoked {
    label: u64,
    caps: [u64; MAX_EXTRA_CAPS],
    words: [u64; 6],
}

impl Scene {
    /// An invocation, and the words that are in registers.
    pub(super) fn invokes(&self, call: Call, invoked: Invoked) -> (Call, [u64; 4]) {
        let Invoked { label, caps, words } = invoked;
        self.server.speak(caps);
        for (i, &word) in words.iter().enumerate().skip(REGISTER_MRS) {
            self.server.dweller.set_word(i, word);
        }
        let info = MessageInfo::new(label, 0, MAX_EXTRA_CAPS, words.len());
        (call.info(info), [words[0], words[1], words[2], words[3]])
    }

    /// A copy of a capability of this task becomes that of a leaf of the server.
    pub(super) fn put(&self, lab: &Lab, leaf: u64, cap: u64) -> Result<(), SetupError> {
        let from = lab.process.cspace().slot(cap);
        Ok(self.server.space.leaf(leaf).copy_from(from, Rights::ALL)?)
    }

    /// Memory of which so many bytes (log2) were used, which are zeroed before they are used again.
    fn used(&self, lab: &mut Lab, bits: u32, used_bits: u32) -> Result<Untyped, SetupError> {
        let resources = &mut lab.process.resources;
        let memory = resources.untyped(bits)?;
        let first = resources.allocate_slots(1)?;
        memory.retype(ObjectType::Untyped(used_bits), first, 1)?;
        first.delete()?;
        Ok(memory)
    }

    pub(super) fn makes(&self, lab: &mut Lab) -> Result<Invoked, SetupError> {
        let memory = self.used(lab, 16, PIECE_BITS)?;
        self.put(lab, TARGET, memory.address())?;
        // A CNode without anything, all of whose slots are looked at. Only then it is found that the memory is too small.
        let empty = lab.process.resources.cnode(MOST_OBJECTS.ilog2())?;
        let node = (self.server.space).put(&lab.process, FIRST, empty, Rights::ALL)?;
        Ok(Invoked {
            label: label::UNTYPED_RETYPE,
            caps: [ROOT_TOO, PASSED, PASSED_TOO[0]],
            words: [object_type::TCB, 0, node, 64, 0, MOST_OBJECTS],
        })
    }

    pub(super) fn makes_pool(&self, lab: &mut Lab) -> Result<Invoked, SetupError> {
        let memory = self.used(lab, 12, 12)?;
        self.put(lab, TARGET, boot::ASID_CONTROL.address())?;
        self.put(lab, FIRST, memory.address())?;
        Ok(Invoked {
            label: arch_label::ASID_CONTROL_MAKE_POOL,
            caps: [FIRST, ROOT_TOO, PASSED],
            words: [self.server.address(FREE), 64, 0, 0, 0, 0],
        })
    }

    pub(super) fn assigns(&self, lab: &mut Lab) -> Result<Invoked, SetupError> {
        let resources = &mut lab.process.resources;
        let memory = resources.untyped(12)?;
        let pool: AsidPool =
            resources.fill_slot(|slot| boot::ASID_CONTROL.make_pool(memory, slot))?;
        let (batch, last) = (POOL / 2, POOL - 1);
        let roots: [Pml4; 2] = [
            resources.create_many(ObjectType::Pml4, batch)?,
            resources.create_many(ObjectType::Pml4, batch)?,
        ];
        let root = |i: u64| nth(roots[(i / batch) as usize], i % batch);
        for i in 0..last {
            pool.assign(root(i))?;
        }
        // There are few, so it is to go when the leaf is cleared.
        let pool = lab.process.resources.slot_of(pool);
        self.server.space.leaf(TARGET).move_from(pool)?;
        // It can be copied only when it has an identifier.
        let root = lab.process.resources.slot_of(root(last));
        self.server.space.leaf(FIRST).move_from(root)?;
        Ok(Invoked {
            label: arch_label::ASID_POOL_ASSIGN,
            caps: [FIRST, PASSED, PASSED_TOO[0]],
            words: [0; 6],
        })
    }

    pub(super) fn maps(&self, lab: &mut Lab) -> Result<Invoked, SetupError> {
        let (process, rights) = (&mut lab.process, Rights::READ_WRITE);
        let (vspace, resources) = (process.space.vspace(), &mut process.resources);
        let frame = resources.frame(FrameSize::Small)?;
        let beside = resources.frame(FrameSize::Small)?;
        // Its page table is made by mapping something beside it.
        let address = VADDR + 0x1000 * (1 + self.seed);
        vspace.map(resources, beside, address, rights, Attributes::WriteBack)?;
        self.put(lab, TARGET, frame.address())?;
        self.put(lab, FIRST, vspace.root().address())?;
        let attributes = Attributes::WriteBack.raw();
        Ok(Invoked {
            label: arch_label::PAGE_MAP,
            caps: [FIRST, PASSED, PASSED_TOO[0]],
            words: [VADDR, Rights::ALL.raw(), attributes, 0, 0, 0],
        })
    }
}
