//! Invocations of kernel objects whose arguments all lie at the end of deep capability spaces, those
//! that search a table, and those that one architecture has alone ([`crate::isa`]).

use sandglass::abi::invocation as label;
use sandglass::abi::message::{MessageInfo, REGISTER_MRS};
use sandglass::abi::object as object_type;
use sandglass::abi::syscall::Syscall;
use sandglass::arch::label as arch_label;
use sandglass::cap::{
    AsidPool, Attributes, Endpoint, FrameSize, ObjectType, Pdpt, Pml4, Rights, Tcb,
};
use sandglass::{boot, println, SetupError};

use crate::crowd::{nth, MIDDLE};
use crate::isa;
use crate::lab::{deep, single, Cost, Lab, LONG};
use crate::messages::LEVELS;
use crate::program::Call;
use crate::space::{Dweller, Space};

/// Identifiers in a pool.
const POOL: u64 = 512;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for levels in LEVELS {
        println!("bounds: invocations through {levels} levels");
        deep_arguments(lab, levels)?;
    }
    println!("bounds: tables");
    isa::measure(lab)?;
    pools(lab)
}

// Leaves. The first is free.
const ROOT: u64 = 1;
const UNTYPED: u64 = 2;
const THREAD: u64 = 3;
const AUTHORITY: u64 = 4;
const VSPACE: u64 = 5;
const FRAME: u64 = 6;
const ENDPOINT: u64 = 7;
const CONTEXT: u64 = 8;
const ASID_CONTROL: u64 = 9;
const POOL_UNTYPED: u64 = 10;
const CONTROL: u64 = 11;
const FREE: u64 = 12;
const OTHER_FREE: u64 = 13;

/// Where the frame is mapped.
const VADDR: u64 = 0x5000_0000_0000;

struct Invoker<'l> {
    lab: &'l Lab,
    space: Space,
    dweller: Dweller,
}

impl Invoker<'_> {
    fn address(&self, leaf: u64) -> u64 {
        self.space.address(leaf)
    }

    /// The invocation `label` of leaf `target`, measured.
    fn invoke<const W: usize, const C: usize>(
        &self,
        name: &str,
        target: u64,
        label: u64,
        words: [u64; W],
        caps: [u64; C],
    ) -> Result<(), SetupError> {
        let mut registers = [0; REGISTER_MRS];
        for (i, word) in words.into_iter().enumerate() {
            match registers.get_mut(i) {
                Some(register) => *register = word,
                None => self.dweller.set_word(i, word),
            }
        }
        self.dweller.set_caps(&caps.map(|leaf| self.address(leaf)));
        let call = Call::new(Syscall::Call, self.address(target))
            .info(MessageInfo::new(label, 0, C, W))
            .words(registers);
        self.dweller.member.start(&call.measured())?;
        deep(name, u64::from(self.space.levels), Cost::First, || {
            self.lab.settle()
        })
    }
}

fn deep_arguments(lab: &mut Lab, levels: u32) -> Result<(), SetupError> {
    let context = lab.context(LONG)?;
    let spare_context = lab.context(LONG)?;
    let process = &mut lab.process;
    let space = Space::new(process, levels)?;
    let dweller = Dweller::new(process, &space, MIDDLE, context)?;
    let untyped = process.resources.untyped(16)?;
    let pool_untyped = process.resources.untyped(12)?;
    let thread: Tcb = process.resources.tcb()?;
    let frame = process.resources.frame(FrameSize::Small)?;
    let endpoint: Endpoint = process.resources.endpoint()?;
    // Its page table is made by mapping something beside it.
    let vspace = process.space.vspace();
    let beside = process.resources.frame(FrameSize::Small)?;
    vspace.map(
        &mut process.resources,
        beside,
        VADDR + 0x1000,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    let process = &lab.process;
    let put = |leaf, cap: u64| {
        let from = process.cspace().slot(cap);
        space.leaf(leaf).copy_from(from, Rights::ALL)
    };
    space.put_root(process, ROOT)?;
    // Untyped memory with children cannot be copied, nor can a control capability.
    for (leaf, cap) in [
        (UNTYPED, untyped.address()),
        (POOL_UNTYPED, pool_untyped.address()),
        (THREAD, thread.address()),
        (AUTHORITY, process.authority().address()),
        (VSPACE, vspace.root().address()),
        (FRAME, frame.address()),
        (ENDPOINT, endpoint.address()),
        (CONTEXT, spare_context.address()),
        (ASID_CONTROL, boot::ASID_CONTROL.address()),
        (CONTROL, lab.control.address()),
    ] {
        put(leaf, cap)?;
    }
    let invoker = Invoker {
        lab,
        space,
        dweller,
    };
    let free = invoker.address(FREE);
    let other_free = invoker.address(OTHER_FREE);
    let source = invoker.address(ENDPOINT);
    let all = Rights::ALL.raw();
    invoker.invoke(
        "mint",
        ROOT,
        label::CNODE_MINT,
        [free, 64, source, 64, all, 1],
        [ROOT],
    )?;
    invoker.invoke(
        "rotate",
        ROOT,
        label::CNODE_ROTATE,
        [other_free, 64, 0, source, 64, 0, free, 64],
        [ROOT, ROOT],
    )?;
    invoker.invoke("delete", ROOT, label::CNODE_DELETE, [source, 64], [])?;
    invoker.invoke(
        "retype",
        UNTYPED,
        label::UNTYPED_RETYPE,
        [object_type::ENDPOINT, 0, invoker.address(ROOT), 64, 0, 1],
        [ROOT],
    )?;
    invoker.invoke(
        "tcb-configure",
        THREAD,
        label::TCB_CONFIGURE,
        [invoker.space.guard.raw(), 0, 0],
        [ROOT, VSPACE, FRAME],
    )?;
    invoker.invoke(
        "tcb-set-sched-params",
        THREAD,
        label::TCB_SET_SCHED_PARAMS,
        [0, u64::from(MIDDLE)],
        [AUTHORITY, CONTEXT, OTHER_FREE],
    )?;
    invoker.invoke(
        "sched-control-configure",
        CONTROL,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        [1_000, 10_000, 0, 0, 0],
        [CONTEXT],
    )?;
    invoker.invoke(
        "page-map",
        FRAME,
        arch_label::PAGE_MAP,
        [VADDR, all, Attributes::WriteBack.raw()],
        [VSPACE],
    )?;
    invoker.invoke(
        "make-pool",
        ASID_CONTROL,
        arch_label::ASID_CONTROL_MAKE_POOL,
        [source, 64],
        [POOL_UNTYPED, ROOT],
    )?;
    invoker.dweller.member.tcb.suspend()?;
    frame.unmap()?;
    beside.unmap()?;
    lab.process.resources.delete(beside)
}

/// A pool in which every identifier but one is in use.
fn pools(lab: &mut Lab) -> Result<(), SetupError> {
    let resources = &mut lab.process.resources;
    let memory = resources.untyped(12)?;
    let pool: AsidPool = resources.fill_slot(|slot| boot::ASID_CONTROL.make_pool(memory, slot))?;
    let first: Pml4 = resources.create_many(ObjectType::Pml4, POOL / 2)?;
    let second: Pml4 = resources.create_many(ObjectType::Pml4, POOL / 2)?;
    let root = |i: u64| nth(if i < POOL / 2 { first } else { second }, i % (POOL / 2));
    for i in 0..POOL - 1 {
        pool.assign(root(i))?;
    }
    single("pool-assign-the-last", POOL, Cost::First, || {
        pool.assign(root(POOL - 1))
    })?;
    // A table in one of the spaces, which nobody uses.
    let table: Pdpt = lab.process.resources.pdpt()?;
    table.map(root(0), 0, Attributes::WriteBack)?;
    let root_slot = lab.process.resources.slot_of(root(0));
    single("address-space-delete", POOL, Cost::First, || {
        root_slot.delete()
    })?;
    let slot = lab.process.resources.slot_of(pool);
    single("pool-delete", POOL, Cost::Stretch, || slot.delete())?;
    let memory = lab.process.resources.slot_of(memory);
    single("pool-revoke", POOL, Cost::Stretch, || memory.revoke())?;
    Ok(())
}
