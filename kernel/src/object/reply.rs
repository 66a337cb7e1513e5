//! Reply objects: who waits for a reply, and on whose time the server runs (02, section 9;
//! 04, section 7; thesis, section 7.2.2).
//!
//! A scheduling context that was lent over several calls has a stack of reply objects: replying
//! through the topmost returns it to the caller there. Invariants: `below` and `above` of
//! neighbours name each other; only the topmost names the context, which names it.

use crate::Kernel;
use core::cell::Cell;

use super::{SchedContext, Tcb};
use crate::mem::Ref;

/// What is above a reply object in its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Above {
    /// Nothing: it is in no stack, or its stack has lost its context.
    Nothing,
    Reply(Ref<Reply>),
    /// It is the topmost of this context's stack.
    Context(Ref<SchedContext>),
}

/// A reply object.
#[repr(C, align(32))]
pub struct Reply {
    thread: Cell<Option<Ref<Tcb>>>,
    below: Cell<Option<Ref<Reply>>>,
    above: Cell<Above>,
}

const _: () = assert!(size_of::<Reply>() == 1 << sandglass_abi::object::REPLY_BITS);

impl Reply {
    pub const fn new() -> Self {
        Reply {
            thread: Cell::new(None),
            below: Cell::new(None),
            above: Cell::new(Above::Nothing),
        }
    }

    cells! {
        /// The thread that is blocked on this reply, or that waits to receive with it.
        thread, set_thread: Option<Ref<Tcb>>;
        below, set_below: Option<Ref<Reply>>;
        above, set_above: Above;
    }
}
