//! Typed capabilities.
//!
//! A capability of this library is a *name*: a capability pointer of the current CSpace together
//! with the type that the program believes it has. It is one word, copyable, and frees nothing
//! when dropped; whether it is true is checked by the kernel at each use, which answers with an
//! [`Error`](crate::Error). Each type's methods are its invocations (ABI page 03), named as there.
//!
//! Invocations with more than four words or with capabilities use the current thread's IPC buffer
//! ([`crate::thread_block`]).

mod cnode;
mod domain;
mod io_port;
mod ipc;
mod irq;
mod memory;
mod sched;
mod tcb;
mod untyped;

pub use cnode::{CNode, RotateData, Slot};
pub use domain::Domain;
pub use io_port::{IoPort, IoPortControl};
pub use ipc::{nb_send_recv, nb_send_wait, Endpoint, Notification, Reply};
pub use irq::{IoApicPin, IrqControl, IrqHandler, MessageSource};
pub use memory::{
    AsidControl, AsidPool, Attributes, Frame, FrameSize, PageDirectory, PageTable, Pdpt, Pml4,
};
pub use sched::{SchedContext, SchedControl, SchedParams, TimeSlice};
pub use tcb::{CopyRegisters, SchedArguments, Tcb};
pub use untyped::{ObjectType, Untyped};

pub use sandglass_abi::cnode::GuardData;
pub use sandglass_abi::rights::Rights;

use sandglass_abi::message::{ipc_buffer, MessageInfo, REGISTER_MRS};

use crate::error::Result;
use crate::message::Message;
use crate::{sys, thread_block};

/// A capability pointer: the address of a slot, resolved from the CSpace root with 64 bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CPtr(u64);

impl CPtr {
    /// The pointer that, by convention, names no capability.
    pub const NULL: Self = Self(0);

    #[inline(always)]
    pub const fn new(address: u64) -> Self {
        Self(address)
    }

    #[inline(always)]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

/// A typed capability.
pub trait Capability: Copy {
    /// Believes that the slot at `pointer` holds a capability of this type.
    fn from_cptr(pointer: CPtr) -> Self;
    fn cptr(self) -> CPtr;
}

impl Capability for CPtr {
    #[inline(always)]
    fn from_cptr(pointer: CPtr) -> Self {
        pointer
    }

    #[inline(always)]
    fn cptr(self) -> CPtr {
        self
    }
}

/// Defines a capability type.
macro_rules! capability {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name($crate::cap::CPtr);

        impl $name {
            /// Believes that the slot at this address holds a capability of this type.
            #[inline(always)]
            pub const fn at(address: u64) -> Self {
                Self($crate::cap::CPtr::new(address))
            }

            /// Address of the slot, in the CSpace of whoever uses it.
            #[inline(always)]
            pub const fn address(self) -> u64 {
                self.0.raw()
            }
        }

        impl $crate::cap::Capability for $name {
            #[inline(always)]
            fn from_cptr(pointer: $crate::cap::CPtr) -> Self {
                Self(pointer)
            }

            #[inline(always)]
            fn cptr(self) -> $crate::cap::CPtr {
                self.0
            }
        }
    };
}
use capability;

/// The pointer to pass for an optional capability argument.
#[inline(always)]
fn or_null<C: Capability>(capability: Option<C>) -> CPtr {
    capability.map_or(CPtr::NULL, C::cptr)
}

/// Invokes `cap`: the operation `label` with the argument words `words` and the capability
/// arguments `caps`. Returns the answer's words, or the error that the kernel reports.
#[inline(always)]
fn invoke<const W: usize, const C: usize>(
    cap: CPtr,
    label: u64,
    words: [u64; W],
    caps: [CPtr; C],
) -> Result<Message> {
    let mut registers = [0; REGISTER_MRS];
    for (i, word) in words.into_iter().enumerate() {
        match registers.get_mut(i) {
            Some(register) => *register = word,
            None => thread_block::write_word(ipc_buffer::MESSAGE + i, word),
        }
    }
    for (i, cap) in caps.into_iter().enumerate() {
        thread_block::write_word(ipc_buffer::CAPS_OR_BADGES + i, cap.raw());
    }
    let answer = sys::call(cap.raw(), MessageInfo::new(label, 0, C, W), registers);
    crate::error::Error::check(label, Message::from_parts(answer.info, answer.registers))
}

/// As [`invoke`], for operations that answer with nothing.
#[inline(always)]
fn invoke_unit<const W: usize, const C: usize>(
    cap: CPtr,
    label: u64,
    words: [u64; W],
    caps: [CPtr; C],
) -> Result<()> {
    invoke(cap, label, words, caps).map(|_| ())
}
