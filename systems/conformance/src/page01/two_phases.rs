//! 01, sections 5 and 5.1: system calls of two phases, and what their first phase may invoke.

use conformance_kit::arch::order::{R12, R13, RDI, RSI};

use super::cspaces::OddSpace;
use conformance_kit::arch;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/5/the-receive-phase-runs-whatever-the-send-phase-did",
        receive_phase_always_runs,
    ),
    check(
        "01/5/a-failing-walk-of-the-first-phase-is-silent",
        first_phase_walks,
    ),
    check(
        "01/5/a-failing-extra-capability-of-the-first-phase-is-silent",
        first_phase_extra_caps,
    ),
    check("01/5.1/the-first-phase-invokes-no-tcb", no_tcb),
    check("01/5.1/the-first-phase-invokes-no-cnode", no_cnode),
    check(
        "01/5.1/the-first-phase-invokes-no-scheduling-context",
        no_sched_context,
    ),
    check(
        "01/5.1/the-first-phase-invokes-no-scheduling-control",
        no_sched_control,
    ),
    check("01/5.1/the-first-phase-invokes-untyped-memory", untyped),
    check(
        "01/5.1/the-first-phase-invokes-interrupt-control",
        interrupts,
    ),
    check(
        "01/5.1/the-first-phase-invokes-architecture-capabilities",
        architecture,
    ),
    check("01/5.1/the-first-phase-signals", signals),
];

/// The system calls of two phases, and the register that names what the first one invokes.
const TWO_PHASES: [(Syscall, usize); 3] = [
    (Syscall::ReplyRecv, R12),
    (Syscall::NBSendRecv, R13),
    (Syscall::NBSendWait, R12),
];

/// Badge of the signal that ends the receive phase.
const SIGNAL: u64 = 0x519;

/// A first phase: what it invokes, label, words, extra capabilities.
struct First<'a> {
    target: CPtr,
    label: u64,
    words: &'a [u64],
    caps: &'a [CPtr],
}

impl First<'_> {
    /// Lets a thread make it as the first phase of `call`, with a receive phase that finds a
    /// signal. Fails unless the thread returns with the signal and nothing else.
    fn make(&self, f: &mut Fixture, call: Syscall, register: usize) -> TestResult {
        let notification = f.notification()?;
        f.badged(notification, SIGNAL)?.signal();
        let info = MessageInfo::new(self.label, 0, self.caps.len(), self.words.len());
        let mut before = entry(
            call,
            &[
                (RDI, notification.address()),
                (RSI, info.raw()),
                (register, self.target.raw()),
            ],
        );
        let buffer = f.buffer()?;
        buffer.set_caps(self.caps);
        let order = conformance_kit::arch::order::MESSAGE_REGISTERS;
        for (i, &word) in self.words.iter().enumerate() {
            match order.get(i) {
                Some(&register) => before.set(register, word),
                None => buffer.write(ipc_buffer::MESSAGE + i, word),
            }
        }
        let thread = f.caller(&before)?;
        thread.use_buffer(buffer)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, SIGNAL)])
    }

    /// Makes it in all system calls of two phases.
    fn make_each(&self, f: &mut Fixture) -> TestResult {
        TWO_PHASES
            .iter()
            .try_for_each(|&(call, register)| self.make(f, call, register))
    }
}

fn receive_phase_always_runs(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let weak = f.with_rights(endpoint, Rights::READ)?;
    let tcb = f.tcb()?;
    let null: CPtr = f.null()?;
    // Nothing, no right, nobody who waits, an error.
    for target in [
        null,
        weak.cptr(),
        endpoint.cptr(),
        tcb.cptr(),
        boot::ASID_POOL.cptr(),
    ] {
        let first = First {
            target,
            label: label::INVALID,
            words: &[],
            caps: &[],
        };
        first.make_each(f)?;
    }
    Ok(())
}

fn first_phase_walks(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let notification = f.notification()?;
    let badged = f.badged(notification, SIGNAL)?;
    let source = space.add(f, notification)?;
    for (call, register) in TWO_PHASES {
        for case in &space.failing {
            badged.signal();
            let before = entry(call, &[(RDI, source), (RSI, 0), (register, case.address)]);
            let thread = f.caller(&before)?;
            space.give_to(thread)?;
            let stopped = thread.run(f)?;
            thread.expect_return(&stopped, &before, &[(RDI, SIGNAL)])?;
        }
    }
    Ok(())
}

fn first_phase_extra_caps(f: &mut Fixture) -> TestResult {
    let mut space = OddSpace::new(f)?;
    let (notification, target) = (f.notification()?, f.notification()?);
    let badged = f.badged(notification, SIGNAL)?;
    let (source, to) = (space.add(f, notification)?, space.add(f, target)?);
    let info = MessageInfo::new(0, 0, 1, 0).raw();
    for (call, register) in TWO_PHASES {
        badged.signal();
        let before = entry(call, &[(RDI, source), (RSI, info), (register, to)]);
        let (thread, buffer) = (f.caller(&before)?, f.buffer()?);
        buffer.write(ipc_buffer::CAPS_OR_BADGES, space.failing[0].address);
        thread.use_buffer(buffer)?;
        space.give_to(thread)?;
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[(RDI, SIGNAL)])?;
    }
    Ok(())
}

fn no_tcb(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let first = First {
        target: tcb.cptr(),
        label: label::TCB_SET_FLAGS,
        words: &[0, 1],
        caps: &[],
    };
    first.make_each(f)?;
    ensure_eq!(tcb.set_flags(0, 0)?, 0);
    Ok(())
}

fn no_cnode(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let slot = f.slot_of(endpoint);
    let first = First {
        target: boot::CNODE.cptr(),
        label: label::CNODE_DELETE,
        words: &[slot.index(), 64],
        caps: &[],
    };
    first.make_each(f)?;
    ensure!(!f.is_empty(slot)?, "the capability was deleted");
    Ok(())
}

fn no_sched_context(f: &mut Fixture) -> TestResult {
    let (context, one, two) = (f.context(FULL)?, f.tcb()?, f.tcb()?);
    context.bind(one)?;
    let first = First {
        target: context.cptr(),
        label: label::SCHED_CONTEXT_UNBIND,
        words: &[],
        caps: &[],
    };
    first.make_each(f)?;
    // It still has its thread.
    Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[two.cptr()])
        .expect_error(IllegalOperation, &[])
}

fn no_sched_control(f: &mut Fixture) -> TestResult {
    let context = f.unconfigured_context(7)?;
    let first = First {
        target: f.control.cptr(),
        label: label::SCHED_CONTROL_CONFIGURE_FLAGS,
        words: &[1000, 1000, 0, 0, 0],
        caps: &[context.cptr()],
    };
    first.make_each(f)?;
    // It is still not configured: no blocked thread can be bound to it (ABI 03, section 6.2).
    let endpoint = f.endpoint()?;
    let (tcb, own) = (f.active(100)?, f.context(FULL)?);
    let waiting = f.spawn(tcb, move || {
        endpoint.wait();
    })?;
    f.settle()?;
    tcb.sched_context
        .expect("an active thread has one")
        .unbind()?;
    let bind = Invocation::new(context, label::SCHED_CONTEXT_BIND, &[], &[waiting.cptr()]);
    bind.expect_error(IllegalOperation, &[])?;
    bind.on(own).expect_ok(&[])
}

fn untyped(f: &mut Fixture) -> TestResult {
    for (call, register) in TWO_PHASES {
        let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
        let first = First {
            target: memory.cptr(),
            label: label::UNTYPED_RETYPE,
            words: &[object::ENDPOINT, 0, 0, 0, slot.index(), 1],
            caps: &[boot::CNODE.cptr()],
        };
        first.make(f, call, register)?;
        ensure!(!f.is_empty(slot)?, "nothing was made");
    }
    Ok(())
}

fn interrupts(f: &mut Fixture) -> TestResult {
    for (i, (call, register)) in TWO_PHASES.into_iter().enumerate() {
        let (slot, vector) = (f.empty_slot()?, 90 + i as u64);
        let (label, words) = arch::get_irq(vector, slot);
        let first = First {
            target: boot::IRQ_CONTROL.cptr(),
            label,
            words: &words,
            caps: &[boot::CNODE.cptr()],
        };
        first.make(f, call, register)?;
        ensure!(!f.is_empty(slot)?, "no handler was made");
    }
    Ok(())
}

fn architecture(f: &mut Fixture) -> TestResult {
    for (call, register) in TWO_PHASES {
        let buffer = f.buffer()?;
        let first = First {
            target: buffer.frame.cptr(),
            label: arch_label::PAGE_UNMAP,
            words: &[],
            caps: &[],
        };
        first.make(f, call, register)?;
        // Mapped, it could not be mapped elsewhere (ABI 03, section 8.3), where there are tables.
        let process = &mut f.process;
        let other = process.space.map_new(&mut process.resources, 1)?.address();
        let map = Invocation::new(
            buffer.frame,
            arch_label::PAGE_MAP,
            &[other, Rights::READ_WRITE.raw(), 0],
            &[boot::VSPACE.cptr()],
        );
        map.expect_ok(&[])?;
    }
    Ok(())
}

fn signals(f: &mut Fixture) -> TestResult {
    for (call, register) in TWO_PHASES {
        let target = f.notification()?;
        let badged = f.badged(target, 0x70)?;
        let first = First {
            target: badged.cptr(),
            label: 0,
            words: &[1],
            caps: &[],
        };
        first.make(f, call, register)?;
        ensure_eq!(target.poll(), 0x70);
    }
    Ok(())
}
