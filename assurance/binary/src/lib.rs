//! The kernel's binary, as its worst-case analysis and what watches it in an emulator read it: without a solver, so that the
//! command can do it.
//!
//! - [`image`] is the file; [`code`] decodes instructions, [`graph`] is the control flow, and [`lines`] are its sources;
//! - [`annotations`] and [`stamp`] are what it says of itself, and [`limits`] what is said of it;
//!   [`pointers`] is what its compiler says of registers;
//! - [`model`] is what instructions cost on a processor;
//! - [`watch`] is what an emulator is to look for.

pub mod annotations;
pub mod code;
pub mod graph;
pub mod image;
pub mod limits;
pub mod lines;
pub mod model;
pub mod pointers;
pub mod stamp;
pub mod watch;
