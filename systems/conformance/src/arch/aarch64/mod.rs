//! aarch64.

pub mod page01;
pub mod page02;
pub mod page03;
pub mod page05;
pub mod page06;
pub mod page07;
pub mod page08;
