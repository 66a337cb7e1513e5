//! Worst-case execution time of the kernel, computed from its binary.
//!
//! Implicit path enumeration (Li, Malik and Wolfe 1995), as in *Protected Hard Real-Time: The Next Frontier*:
//! the control flow of the binary is a network through which one unit flows from an entry to an exit; bounds of loops and
//! paths that cannot be taken are linear constraints; what the flow costs at most is the bound.

#[cfg(feature = "solver")]
pub mod analysis;
pub mod annotations;
#[cfg(feature = "solver")]
pub mod caches;
pub mod code;
#[cfg(feature = "solver")]
pub mod compare;
#[cfg(feature = "solver")]
mod data;
#[cfg(feature = "solver")]
mod expand;
#[cfg(feature = "solver")]
pub mod flow;
pub mod graph;
pub mod image;
#[cfg(feature = "solver")]
pub mod kernel;
pub mod limits;
pub mod lines;
#[cfg(feature = "solver")]
pub mod loops;
pub mod model;
#[cfg(feature = "solver")]
pub mod must;
#[cfg(feature = "solver")]
pub mod platform;
#[cfg(feature = "solver")]
pub mod program;
#[cfg(feature = "solver")]
pub mod record;
#[cfg(feature = "solver")]
pub mod reduce;
#[cfg(feature = "solver")]
mod repeats;
#[cfg(feature = "solver")]
pub mod report;
#[cfg(feature = "solver")]
pub mod results;
#[cfg(feature = "solver")]
pub mod seen;
#[cfg(feature = "solver")]
pub mod show;
pub mod stamp;
#[cfg(feature = "solver")]
pub mod tree;
pub mod watch;
