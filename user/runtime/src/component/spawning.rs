//! The loader's side of [`crate::spawning`]: what a component makes threads of.

use sandglass_abi::cnode::LOOKUP_DEPTH;

use super::Component;
use crate::cap::{Attributes, FrameSize, GuardData, Rights};
use crate::image::PAGE;
use crate::process::Process;
use crate::resources::SetupError;
use crate::spawning::{name, Share};

impl Component {
    /// Lets the component make up to `threads` threads of `priority` at run time, each with
    /// `stack_bytes` of stack, a multiple of the page size: see [`crate::spawning`]. What their faults
    /// are sent to, it must be granted as `spawning.faults`.
    pub fn give_spawning(
        &mut self,
        process: &mut Process,
        threads: u64,
        stack_bytes: u64,
        priority: u8,
    ) -> Result<(), SetupError> {
        let share = Share::of(stack_bytes);
        let guard = GuardData::new(0, LOOKUP_DEPTH - self.radix);
        let cspace = process.resources.slot_of(self.cnode);
        self.fill(name::CSPACE, |slot| {
            slot.mint_from(cspace, Rights::ALL, guard.raw())
        })?;
        self.grant(process, name::VSPACE, self.vspace.root(), Rights::ALL)?;
        self.grant(process, name::AUTHORITY, self.tcb, Rights::ALL)?;
        let slot = self.next_slot;
        self.next_slot += threads * share.slots();
        if self.next_slot > 1 << self.radix {
            return Err(SetupError::ComponentSlots { radix: self.radix });
        }
        for number in 0..threads {
            let memory = process.resources.untyped(share.memory_bits())?;
            let source = process.resources.slot_of(memory);
            let index = slot + number * share.slots();
            self.cnode
                .slot_at(index, self.radix as u8)
                .move_from(source)?;
            process.resources.free_slot(source);
            self.spawning.push(index);
        }
        let address = self.next_address;
        self.next_address += threads * share.addresses() + PAGE;
        self.make_tables(process, address, self.next_address)?;
        for (name, value) in [
            (name::THREADS, threads),
            (name::STACK, stack_bytes),
            (name::PRIORITY, priority.into()),
            (name::SLOT, slot),
            (name::ADDRESS, address),
        ] {
            self.set_parameter(name, value)?;
        }
        Ok(())
    }

    /// Ends all threads that the component made at run time.
    ///
    /// # Errors
    /// The component has given away the memory that they are made of.
    pub fn end_spawned(&self) -> Result<(), SetupError> {
        for &index in &self.spawning {
            self.cnode.slot_at(index, self.radix as u8).revoke()?;
        }
        Ok(())
    }

    /// Makes the paging structures for pages from `start` to `end`.
    fn make_tables(&self, process: &mut Process, start: u64, end: u64) -> Result<(), SetupError> {
        let table = FrameSize::Large.bytes();
        for address in (start / table * table..end).step_by(table as usize) {
            let page = address.max(start);
            let (_, frame) = self.buffer_page;
            let copy = process.resources.copy(frame, Rights::ALL)?;
            let rights = Rights::READ;
            let attributes = Attributes::WriteBack;
            let resources = &mut process.resources;
            self.vspace.map(resources, copy, page, rights, attributes)?;
            // Deleting the copy unmaps it, and leaves the structures.
            resources.delete(copy)?;
        }
        Ok(())
    }
}
