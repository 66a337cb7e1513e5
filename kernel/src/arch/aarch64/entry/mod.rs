//! Entry and exit, and the start of the machine.

mod code;
mod cores;
pub mod fatal;
mod handlers;
mod head;
mod start;

pub use handlers::leave;
