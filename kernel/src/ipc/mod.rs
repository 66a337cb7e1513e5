//! How it is said: messages, signals, replies, and faults as messages (ABI pages 01 and 05).

#![forbid(unsafe_code)]

pub mod cancel;
pub mod caps;
pub mod endpoint;
pub mod fault;
pub mod message;
pub mod notification;
pub mod phases;
pub mod reply;
pub mod stall;
pub mod timeout;

pub use caps::ExtraCaps;
pub use message::{Message, Writer};
pub use phases::Phases;
