//! Endpoints: where senders and receivers meet (01, sections 5.3 and 5.4).
//!
//! 16 bytes: the queue, whose mark says that it has senders. Invariants: an idle endpoint
//! has an empty queue; in the other states every queued thread is blocked on this endpoint, all
//! as senders or all as receivers. An endpoint that is being emptied admits nobody.

use super::{Queue, Tcb};
use crate::mem::Ref;
use crate::Kernel;

/// Who is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointState {
    Idle,
    Senders,
    Receivers,
}

/// An endpoint.
#[repr(C, align(16))]
pub struct Endpoint {
    queue: Queue,
}

const _: () = assert!(size_of::<Endpoint>() == 1 << sandglass_abi::object::ENDPOINT_BITS);

impl Endpoint {
    pub const fn new() -> Self {
        Endpoint {
            queue: Queue::new(),
        }
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    #[inline(always)]
    pub fn state(&self) -> EndpointState {
        if self.queue.is_empty() {
            EndpointState::Idle
        } else if self.queue.mark() {
            EndpointState::Senders
        } else {
            EndpointState::Receivers
        }
    }

    /// The thread that waits for a message, if it is the only one in the queue, and the endpoint admits senders.
    #[inline(always)]
    pub fn only_receiver(&self) -> Option<Ref<Tcb>> {
        self.queue.only_unflagged()
    }

    /// The next threads to be queued are senders, or receivers; the endpoint admits them.
    pub fn expect_senders(&self, k: &Kernel, senders: bool) {
        self.queue.set_mark(k, senders);
    }
}
