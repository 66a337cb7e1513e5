//! Kinds of objects, their sizes, and their initial states (02, sections 1 and 2; 03, section 3).

use crate::error::Error;
use crate::isa;
use crate::state::{
    Above, Address, CNodeId, Cap, ContextId, CoreId, Endpoint, EndpointId, FrameRights, Level,
    Notification, NotificationId, Registers, Reply, ReplyId, Rights, SchedContext, Signals, State,
    Table, TableId, Thread, ThreadId, ThreadState,
};
use sandglass_abi::object;
use std::collections::BTreeMap;

/// What is to be made (02, sections 1 and 2), with what its size argument chooses.
#[derive(Clone, Copy)]
pub enum Kind {
    Untyped { bits: u8 },
    Thread,
    Endpoint,
    Notification,
    CNode { radix: u8 },
    SchedContext { bits: u8 },
    Reply,
    Paging { level: Level },
    Frame { bits: u32 },
}

impl Kind {
    /// The kind that the arguments `type` and `size_bits` of Retype ask for.
    ///
    /// # Errors
    /// Checks 3 to 7 of 03, section 3.
    pub fn of(number: u64, size: u64) -> Result<Self, Error> {
        if number >= isa::FIRST_INVALID {
            return Err(Error::InvalidArgument(0));
        }
        let too_large = Error::Range {
            min: 0,
            max: object::MAX_UNTYPED_BITS.into(),
        };
        if size >= object::SIZE_ARGUMENT_LIMIT {
            return Err(too_large);
        }
        let kind = Self::with_size(number, size as u8);
        if kind.bits() > object::MAX_UNTYPED_BITS {
            return Err(too_large);
        }
        let least = match kind {
            Self::CNode { .. } => object::MIN_CNODE_RADIX,
            Self::Untyped { .. } => object::MIN_UNTYPED_BITS,
            Self::SchedContext { .. } => object::MIN_SCHED_CONTEXT_BITS,
            _ => 0,
        };
        if size < least.into() {
            return Err(Error::InvalidArgument(1));
        }
        Ok(kind)
    }

    /// The kind with a number that exists.
    fn with_size(number: u64, size: u8) -> Self {
        match number {
            object::UNTYPED => Self::Untyped { bits: size },
            object::TCB => Self::Thread,
            object::ENDPOINT => Self::Endpoint,
            object::NOTIFICATION => Self::Notification,
            object::CNODE => Self::CNode { radix: size },
            object::SCHED_CONTEXT => Self::SchedContext { bits: size },
            object::REPLY => Self::Reply,
            _ => isa::kind(number),
        }
    }

    /// log2 of the object's bytes (02, section 2).
    pub fn bits(self) -> u32 {
        match self {
            Self::Untyped { bits } | Self::SchedContext { bits } => bits.into(),
            Self::Thread => object::TCB_BITS,
            Self::Endpoint => object::ENDPOINT_BITS,
            Self::Notification => object::NOTIFICATION_BITS,
            Self::CNode { radix } => u32::from(radix) + object::SLOT_BITS,
            Self::Reply => object::REPLY_BITS,
            Self::Paging { .. } => object::PAGING_STRUCTURE_BITS,
            Self::Frame { bits } => bits,
        }
    }
}

/// Makes an object at `address`, in its initial state (03, section 3). Returns the first capability to
/// it.
pub fn create(s: &mut State, kind: Kind, address: Address, device: bool) -> Cap {
    match kind {
        Kind::Untyped { bits } => Cap::Untyped {
            start: address,
            bits,
            device,
            watermark: 0,
        },
        Kind::Thread => create_thread(s, ThreadId(address)),
        Kind::Endpoint => {
            let object = EndpointId(address);
            s.endpoints.insert(object, Endpoint::Idle);
            let rights = Rights {
                write: true,
                read: true,
                grant: true,
                grant_reply: true,
                call: false,
            };
            Cap::Endpoint {
                object,
                badge: 0,
                rights,
            }
        }
        Kind::Notification => {
            let object = NotificationId(address);
            let idle = Notification {
                state: Signals::Idle,
                thread: None,
                context: None,
            };
            s.notifications.insert(object, idle);
            let rights = Rights {
                write: true,
                read: true,
                grant: false,
                grant_reply: false,
                call: false,
            };
            Cap::Notification {
                object,
                badge: 0,
                rights,
            }
        }
        Kind::CNode { radix } => {
            let object = CNodeId(address);
            s.cnodes.insert(object, radix);
            Cap::CNode {
                object,
                radix,
                guard: 0,
                guard_size: 0,
            }
        }
        Kind::SchedContext { bits } => create_context(s, ContextId(address), bits),
        Kind::Reply => {
            let object = ReplyId(address);
            s.replies.insert(
                object,
                Reply {
                    thread: None,
                    above: Above::Nothing,
                    below: None,
                },
            );
            Cap::Reply {
                object,
                can_grant: true,
            }
        }
        Kind::Paging { level } => {
            let object = TableId(address);
            s.tables.insert(
                object,
                Table {
                    level,
                    entries: BTreeMap::new(),
                },
            );
            match level {
                Level::Pml4 => Cap::Root { object, asid: None },
                level => Cap::Paging {
                    object,
                    level,
                    mapping: None,
                },
            }
        }
        Kind::Frame { bits } => Cap::Frame {
            start: address,
            bits: bits as u8,
            device,
            rights: FrameRights::ReadWrite,
            mapping: None,
        },
    }
}

/// A new thread (03, section 4.0; 07, section 1.4).
fn create_thread(s: &mut State, object: ThreadId) -> Cap {
    let mut registers = Registers {
        user: [0; isa::COUNT],
        next_ip: 0,
    };
    let (register, value) = isa::INITIAL;
    registers.user[register] = value;
    let thread = Thread {
        state: ThreadState::Inactive,
        registers,
        priority: 0,
        mcp: 0,
        domain: s.domains.current,
        core: CoreId(0),
        fpu_disabled: false,
        buffer_address: 0,
        fault: None,
        context: None,
        notification: None,
        yield_to: None,
    };
    s.threads.insert(object, thread);
    Cap::Thread(object)
}

/// A new scheduling context, not configured (04, section 5.1).
fn create_context(s: &mut State, object: ContextId, bits: u8) -> Cap {
    let context = SchedContext {
        bits,
        period: 0,
        max_refills: 0,
        refills: Vec::new(),
        consumed: 0,
        badge: 0,
        sporadic: false,
        core: CoreId(0),
        thread: None,
        notification: None,
        reply: None,
        yield_from: None,
    };
    s.contexts.insert(object, context);
    Cap::SchedContext { object, bits }
}
