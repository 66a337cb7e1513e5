//! Communication: messages, endpoints, notifications, faults (01, sections 2 to 6; 05).

pub mod endpoint;
pub mod fault;
pub mod message;
pub mod notification;
pub mod queue;
pub mod transfer;
