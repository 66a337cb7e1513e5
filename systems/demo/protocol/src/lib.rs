//! What the components of the shared cipher server agree on, among themselves and with the host:
//! messages, the layout of shared memory, and the record that the host reads.
//!
//! | module | between |
//! | --- | --- |
//! | [`cipher`], [`request`] | clients and server |
//! | [`twin`] | the server and its timeout handler |
//! | [`board`], [`trace`] | each component and the recorder |
//! | [`digest`], [`record`] | the machine and the host |
//!
//! Memory that components share consists of 64-bit atomics only ([`board::Board`]): whatever the
//! other side does there, a reader gets numbers, which are claims until they are checked.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod board;
pub mod cipher;
pub mod digest;
pub mod record;
pub mod request;
pub mod trace;
pub mod twin;
