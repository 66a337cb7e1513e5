//! Scripts: what users and devices do, as plain data that prints as Rust source.

use sandglass_model::isa::IrqNumber;
use std::fmt;

pub use sandglass_testkit::call::Call;

/// Something that happens, on the core that was named last, at first the one that booted. What a
/// thread does, the current thread does; nothing happens if nobody runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// What follows happens on this core.
    On(u8),
    /// In every event from now on, each time that the kernel reads the clock or waits for other cores,
    /// some ticks pass before: these, one after the other and from the beginning again.
    Delays(Vec<u64>),
    /// The core looks at its queues, whether or not another one has asked it to.
    Look,
    /// User code runs, or nobody, for so many ticks; the timers of all cores fire on the way.
    Pass(u64),
    /// A system call.
    Call(Call),
    /// A system call for which the core has to wait for its turn: it has it when something else is to
    /// happen there.
    Late(Call),
    /// A system call, with an interrupt pending at every preemption point of the kernel but the
    /// first ones, as many as the number says. The thread repeats it until it is done.
    Preempted(u64, Call),
    /// The thread names a slot to receive a capability in: CNode, index, depth.
    ReceiveSlot(u64, u64, u64),
    /// `int vector`.
    SoftwareInterrupt(u8),
    /// An exception: number and code.
    Exception(u32, u32),
    /// A page fault: address and the processor's code.
    PageFault(u64, u32),
    /// A device interrupt, by kernel IRQ number.
    Interrupt(IrqNumber),
}

impl Action {
    /// Whether the current thread does this, so that nothing happens while nobody runs.
    pub fn needs_thread(&self) -> bool {
        !matches!(
            self,
            Action::On(_)
                | Action::Delays(_)
                | Action::Look
                | Action::Pass(_)
                | Action::Interrupt(_)
        )
    }
}

/// A script as the list of actions that `run` takes.
pub struct Source<'a>(pub &'a [Action]);

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "&[")?;
        for action in self.0 {
            writeln!(f, "        {action},")?;
        }
        write!(f, "    ]")
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Call(call) => write!(f, "Call({call})"),
            Action::Delays(delays) => write!(f, "Delays(vec!{delays:?})"),
            Action::Late(call) => write!(f, "Late({call})"),
            Action::Preempted(looks, call) => write!(f, "Preempted({looks}, {call})"),
            // The others print as they are written.
            other => write!(f, "{other:?}"),
        }
    }
}
