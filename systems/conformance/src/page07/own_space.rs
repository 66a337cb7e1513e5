//! 07, section 8: when a running thread leaves its own address space.
//!
//! The reference takes the address space from the thread's slot when it switches to the thread, and
//! when a pool or a root goes; Sandglass whenever the slot changes (README, "Where Sandglass
//! differs", 6). Programs can rely on neither, but on what both do.

use conformance_kit::arch::order::{R10, R8, R9, RDI, RIP, RSI};
use sandglass::abi::fault::user_exception;
use sandglass::cap::{AsidPool, Pml4};
use sandglass::vspace::VSpace;

use super::visitor::{absent, fault_of, Visitor};
use crate::page03::stale::pool;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/8/a-thread-can-lose-its-pool", |f| {
        let scene = Scene::new(f)?;
        let slot = f.slot_of(scene.pool);
        scene.expect_nothing(f, label::CNODE_DELETE, slot)
    }),
    check("07/8/a-thread-can-lose-its-root's-memory", |f| {
        let scene = Scene::new(f)?;
        let slot = f.slot_of(scene.memory);
        scene.expect_nothing(f, label::CNODE_REVOKE, slot)
    }),
    check("07/8/a-thread-can-lose-its-own", lost),
    check("07/8/a-thread-can-leave-its-own", left),
    check("07/8/a-thread-can-leave-the-last-of-its-own", left_last),
    check("07/8/configuring-oneself-takes-effect-at-once", configured),
    check("07/8/a-thread-that-waits-can-be-given-another", given),
];

// Behind the system call in each space: an undefined instruction in the thread's first one, a breakpoint in the other.
use conformance_kit::arch::{BREAKPOINT, BREAKPOINT_BEHIND, INVALID_OPCODE, SYSCALL_THEN_BREAK};

/// Where the instruction behind a system call was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    First,
    Other,
    /// Nowhere: there is no such page.
    Nothing,
}

/// A thread in an address space of a pool, and another address space of it.
struct Scene {
    visitor: Visitor,
    pool: AsidPool,
    root: Pml4,
    /// That of the root alone.
    memory: Untyped,
    other: Pml4,
}

impl Scene {
    fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let pool = pool(f)?;
        let (memory, slot) = (f.untyped(ObjectType::Pml4.size_bits())?, f.empty_slot()?);
        memory.retype(ObjectType::Pml4, slot, 1)?;
        let root: Pml4 = slot.capability();
        let other = f.pml4()?;
        pool.assign(root)?;
        pool.assign(other)?;
        let visitor = Visitor::new(f, root)?;
        let page = visitor.system_call() & !0xfff;
        let mut code = vec![0; (visitor.system_call() - page) as usize];
        code.extend(SYSCALL_THEN_BREAK);
        f.code_in(VSpace::from_root(other), page, &code)?;
        Ok(Self {
            visitor,
            pool,
            root,
            memory,
            other,
        })
    }

    /// Lets the thread Call with these words and capabilities; returns what it stops at.
    fn call(
        &self,
        f: &mut Fixture,
        cap: impl Capability,
        label: u64,
        words: [u64; 3],
        caps: &[CPtr],
    ) -> Result<Stopped, Failure> {
        let buffer = f.buffer()?;
        buffer.set_caps(caps);
        let tcb = self.visitor.tcb;
        tcb.set_ipc_buffer(buffer.address, buffer.frame)?;
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        let [first, second, third] = words;
        let named = [
            (RIP, self.visitor.system_call()),
            (RDI, cap.cptr().raw()),
            (RSI, info.raw()),
            (R10, first),
            (R8, second),
            (R9, third),
        ];
        tcb.write_registers(&entry(Syscall::Call, &named), true)?;
        self.visitor.stopped(f)
    }

    /// Where the thread stopped behind its system call, if it did.
    fn behind(&self, stopped: &Stopped) -> Result<Behind, Failure> {
        let next = self.visitor.system_call() + conformance_kit::arch::SYSCALL.len() as u64;
        if stopped.label == fault::VM_FAULT {
            ensure_eq!(fault_of(stopped)?, absent(next, 0));
            ensure_eq!(stopped.registers.get(RIP), next);
            return Ok(Behind::Nothing);
        }
        let ip = stopped.words[user_exception::FAULT_IP];
        match stopped.exception() {
            Some(INVALID_OPCODE) if ip == next => Ok(Behind::First),
            Some(BREAKPOINT) if ip == next + BREAKPOINT_BEHIND => Ok(Behind::Other),
            other => Err(Failure::from(format!("exception {other:?} at {ip:#x}"))),
        }
    }

    /// Where the thread is when it has been switched to anew.
    fn switched(&self, f: &Fixture) -> Result<Behind, Failure> {
        let registers = entry(
            Syscall::Call,
            &[(
                RIP,
                self.visitor.system_call() + conformance_kit::arch::SYSCALL.len() as u64,
            )],
        );
        self.visitor.tcb.write_registers(&registers, true)?;
        let stopped = self.visitor.stopped(f)?;
        self.behind(&stopped)
    }

    /// Lets the thread invoke its CNode for a slot.
    fn operate(&self, f: &mut Fixture, label: u64, slot: Slot) -> Result<Behind, Failure> {
        let words = [slot.index(), u64::from(slot.depth()), 0];
        let stopped = self.call(f, boot::CNODE, label, words, &[])?;
        self.behind(&stopped)
    }

    /// Fails unless that takes its address space away at once.
    fn expect_nothing(&self, f: &mut Fixture, label: u64, slot: Slot) -> TestResult {
        ensure_eq!(self.operate(f, label, slot)?, Behind::Nothing);
        ensure_eq!(self.switched(f)?, Behind::Nothing);
        Ok(())
    }

    /// SetSpace of the thread by itself, to the other address space.
    fn leave(&self, f: &mut Fixture) -> Result<Behind, Failure> {
        let handler = self.visitor.endpoint.cptr();
        let caps = [handler, boot::CNODE.cptr(), self.other.cptr()];
        let stopped = self.call(f, self.visitor.tcb, label::TCB_SET_SPACE, [0; 3], &caps)?;
        self.behind(&stopped)
    }
}

/// It revokes its root, and so its own slot: the root and its identifier stay.
fn lost(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let slot = f.slot_of(scene.root);
    let behind = scene.operate(f, label::CNODE_REVOKE, slot)?;
    ensure!(behind != Behind::Other, "it is in another address space");
    f.choice = Some(Choice::of(
        behind == Behind::Nothing,
        "a revoked address space is left at once",
        "a revoked address space is left at the next switch",
    ));
    ensure_eq!(scene.switched(f)?, Behind::Nothing);
    // It can return to it.
    ensure!(!f.is_empty(slot)?);
    scene.visitor.enter(scene.root)?;
    ensure_eq!(scene.switched(f)?, Behind::First);
    Ok(())
}

fn left(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    let behind = scene.leave(f)?;
    ensure!(behind != Behind::Nothing, "it is in no address space");
    f.choice = Some(Choice::of(
        behind == Behind::Other,
        "SetSpace on oneself takes effect at once",
        "SetSpace on oneself takes effect at the next switch",
    ));
    ensure_eq!(scene.switched(f)?, Behind::Other);
    Ok(())
}

/// Its slot held the last capability of its root, which goes.
fn left_last(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    f.slot_of(scene.root).delete()?;
    let behind = scene.leave(f)?;
    ensure!(
        behind != Behind::First,
        "it is in an address space that is gone"
    );
    f.choice = Some(Choice::of(
        behind == Behind::Other,
        "after the last of its own, the new address space takes effect at once",
        "after the last of its own, the new address space takes effect at the next switch",
    ));
    ensure_eq!(scene.switched(f)?, Behind::Other);
    Ok(())
}

/// It has run in the first, and gets another one while it waits.
fn given(f: &mut Fixture) -> TestResult {
    let scene = Scene::new(f)?;
    ensure_eq!(scene.switched(f)?, Behind::First);
    scene.visitor.enter(scene.other)?;
    ensure_eq!(scene.switched(f)?, Behind::Other);
    Ok(())
}

/// With a buffer, and without.
fn configured(f: &mut Fixture) -> TestResult {
    for with_buffer in [false, true] {
        let scene = Scene::new(f)?;
        let buffer = f.buffer()?;
        let address = if with_buffer { buffer.address } else { 0 };
        let caps = [boot::CNODE.cptr(), scene.other.cptr(), buffer.frame.cptr()];
        let words = [0, 0, address];
        let tcb = scene.visitor.tcb;
        let stopped = scene.call(f, tcb, label::TCB_CONFIGURE, words, &caps)?;
        ensure_eq!(scene.behind(&stopped)?, Behind::Other);
    }
    Ok(())
}
