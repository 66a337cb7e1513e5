//! IRQ control: the lines that interrupts come from, and software-generated interrupts (03, sections 7.1 and 7.3 to 7.5).

use sandglass_abi::invocation as label;
use sandglass_abi::invocation::aarch64 as arch_label;
use sandglass_abi::vspace::aarch64::{FIRST_SPI, SGIS};

use crate::arch::abi::cap::Sgi;
use crate::arch::abi::context::Context;
use crate::arch::abi::devices::Trigger;
use crate::arch::abi::irq;
use crate::arch::abi::{Devices, Line};
use crate::arch::Platform;
use crate::cap::{derivation, Capability};
use crate::cores::{CoreId, CORES};
use crate::invoke::irq::{issue, Issue};
use crate::invoke::{empty_slot, Error, Invocation, Outcome};
use crate::{Kernel, View};

/// Invokes IRQ control.
///
/// # Errors
/// The first check that failed, in the order of the ABI.
pub fn invoke_control(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    if CORES == 1 && call.label() == arch_label::IRQ_CONTROL_ISSUE_SGI_SIGNAL {
        return issue_sgi(k, call);
    }
    Ok(issue(k, decode_control(k, call)?))
}

/// Checks an invocation that issues the handler of an interrupt.
fn decode_control(k: &View, call: &Invocation) -> Result<Issue, Error> {
    match call.label() {
        label::IRQ_CONTROL_GET => decode(
            k,
            call,
            Arguments {
                trigger: None,
                index: 1,
                core: None,
            },
        ),
        arch_label::IRQ_CONTROL_GET_TRIGGER => decode(
            k,
            call,
            Arguments {
                trigger: Some(1),
                index: 2,
                core: None,
            },
        ),
        arch_label::IRQ_CONTROL_GET_TRIGGER_CORE if CORES > 1 => decode(
            k,
            call,
            Arguments {
                trigger: Some(1),
                index: 2,
                core: Some(4),
            },
        ),
        _ => Err(Error::IllegalOperation),
    }
}

/// Which message words are what.
#[derive(Clone, Copy)]
struct Arguments {
    trigger: Option<usize>,
    /// Index and, behind it, depth of the slot.
    index: usize,
    core: Option<usize>,
}

/// GetTriggerCore must have its words and its root, too, of which the ABI says that they are not checked (03, section 7.4;
/// deliberate difference 16).
#[inline(never)]
fn decode(k: &View, call: &Invocation, arguments: Arguments) -> Result<Issue, Error> {
    let Arguments {
        trigger,
        index,
        core,
    } = arguments;
    call.need(core.unwrap_or(index + 1) + 1)?;
    let root = call.extra_cap(k, 0)?;
    let id = call.word(k, 0);
    Error::check_range(id, 0, k.machine.max_irq())?;
    let target = match core {
        Some(core) => {
            let target = call.word(k, core);
            let known = CoreId::all().find(|core| core.index() as u64 == target);
            known
                .filter(|core| core.index() < usize::from(k.machine.cores()))
                .ok_or(Error::InvalidArgument(4))?
        }
        // Shared interrupts go to the first core, and the private ones of others are asked for with the core.
        None if CORES > 1 && trigger.is_some() && id < FIRST_SPI => {
            return Err(Error::IllegalOperation)
        }
        None => CoreId::BOOT,
    };
    let irq = irq::number(target, id).ok_or(Error::IllegalOperation)?;
    if irq::is_reserved(id) || k.irqs.line(irq).is_some() {
        return Err(Error::RevokeFirst);
    }
    let depth = call.word(k, index + 1);
    let depth = if core.is_some() { depth & 0xff } else { depth };
    let slot = empty_slot(k, root, call.word(k, index), depth)?;
    let is_edge = |word| call.word(k, word) != 0;
    Ok(Issue {
        control: call.slot,
        slot,
        irq,
        line: Line {
            id: id as u16,
            core: target,
            trigger: trigger.map(|word| {
                if is_edge(word) {
                    Trigger::Edge
                } else {
                    Trigger::Level
                }
            }),
        },
    })
}

/// DebugSendIPI of a thread with these registers (01, section 7): raises the software-generated interrupt that its message info
/// says at the core that its capability register says. Whether there are both.
pub fn send_ipi(k: &Kernel, caller: &Context) -> bool {
    let (core, number) = (caller.cap_register(), caller.info());
    let known = CoreId::all().take(k.machine.cores().into());
    let core = known.into_iter().find(|known| known.index() as u64 == core);
    let sent = core.filter(|_| number < SGIS);
    if let Some(core) = sent {
        k.machine.signal(core, number as u8);
    }
    sent.is_some()
}

/// Issues a capability that raises a software-generated interrupt (03, section 7.5).
fn issue_sgi(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    call.need(4)?;
    let root = call.extra_cap(k, 0)?;
    let (number, target) = (call.word(k, 0), call.word(k, 1));
    Error::check_range(number, 0, SGIS - 1)?;
    if target > k.machine.max_sgi_target() {
        return Err(Error::InvalidArgument(1));
    }
    let slot = empty_slot(k, root, call.word(k, 2), call.word(k, 3))?;
    let sgi = Sgi {
        number: number as u8,
        target: target as u32,
    };
    derivation::insert_copy(k, call.slot, slot, Capability::sgi_signal(sgi));
    Ok(Outcome::Done)
}
