//! Endpoints: where senders and receivers meet (01, sections 5.3 and 5.4).
//!
//! 16 bytes: the queue, with the state in the flags of its root word. Invariants: an idle endpoint
//! has an empty queue; in the other states every queued thread is blocked on this endpoint, all
//! as senders or all as receivers. An endpoint that is being emptied admits nobody.

use super::Queue;
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

const SENDERS: u64 = 1;
const DYING: u64 = 2;

impl Endpoint {
    pub const fn new() -> Self {
        Endpoint {
            queue: Queue::new(),
        }
    }

    #[inline(always)]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    #[inline(always)]
    pub fn state(&self) -> EndpointState {
        if self.queue.is_empty() {
            EndpointState::Idle
        } else if self.queue.flags() & SENDERS != 0 {
            EndpointState::Senders
        } else {
            EndpointState::Receivers
        }
    }

    /// Whether threads may send and receive here: not once the deletion of the last capability has
    /// begun.
    #[inline(always)]
    pub fn admits(&self) -> bool {
        self.queue.flags() & DYING == 0
    }

    /// The next threads to be queued are senders, or receivers; the endpoint admits them.
    #[inline(always)]
    pub fn expect_senders(&self, k: &Kernel, senders: bool) {
        self.queue.set_flags(k, if senders { SENDERS } else { 0 });
    }

    /// Marks whether the endpoint is being emptied.
    pub fn set_dying(&self, k: &Kernel, dying: bool) {
        let rest = self.queue.flags() & !DYING;
        self.queue
            .set_flags(k, if dying { rest | DYING } else { rest });
    }
}
