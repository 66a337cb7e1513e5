//! What nearly every check uses.

pub use alloc::vec::Vec;
pub use alloc::{format, vec};

pub use sandglass::abi::error::ErrorNumber::{self, *};
pub use sandglass::abi::error::LookupFailureType;
pub use sandglass::abi::invocation as label;
pub use sandglass::abi::message::{ipc_buffer, MessageInfo};
pub use sandglass::abi::syscall::Syscall;
pub use sandglass::abi::{fault, object};
pub use sandglass::cap::{
    Attributes, CNode, CPtr, Capability, Endpoint, Frame, FrameSize, GuardData, Notification,
    ObjectType, Reply, Rights, SchedContext, SchedParams, Slot, Tcb, Untyped,
};
pub use sandglass::context::UserContext;
pub use sandglass::testing::{shared, spin, Failure, TestResult, Trace};
pub use sandglass::thread::ThreadParams;
pub use sandglass::{boot, ensure, ensure_eq, sys, time, Message, SetupError};

pub use crate::arch::{arch_label, arch_object};

/// The profile that kernel and suite are built for.
pub use sandglass::abi::profile::THIS as PROFILE;

/// Bits of the guard of the root CNode's capability (ABI 06, section 1.1).
pub const ROOT_GUARD: u64 = 64 - PROFILE.root_cnode_bits as u64;
pub use crate::fixture::raw::{
    changed, distinct, entry, fresh, registers, sanitised, Buffer, RawThread,
};
pub use crate::fixture::{runs_on, Choice, Fixture, Invocation, Prober, Stopped, FULL};
pub use crate::fixture::{FIRST_PHASE, SENDING};
pub use crate::harness::{check, Check};
