//! Worst-case execution time of the kernel, computed from its binary.
//!
//! Implicit path enumeration (Li, Malik and Wolfe 1995), as in *Protected Hard Real-Time: The Next Frontier*:
//! the control flow of the binary is a network through which one unit flows from an entry to an exit; bounds of loops and
//! paths that cannot be taken are linear constraints; what the flow costs at most is the bound.

mod ahead;
pub mod analysis;
pub mod caches;
pub mod cases;
pub mod compare;
mod data;
mod expand;
pub mod flow;
mod given;
mod held;
pub mod kernel;
pub mod loops;
mod meeting;
pub mod must;
mod persistence;
pub mod platform;
mod prices;
pub mod program;
pub mod record;
pub mod reduce;
mod repeats;
pub mod report;
pub mod results;
pub mod seen;
pub mod show;
mod states;
mod streams;
pub mod tree;
mod values;

pub use sandglass_binary::{
    annotations, code, graph, image, limits, lines, model, pointers, stamp, watch,
};
