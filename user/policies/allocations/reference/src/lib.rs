//! What judges the admission test of `sandglass-allocations`, and is compared with it. Nothing here runs in a system.
//!
//! - [`straightforward`]: invariants 1 and 2 of the paper as they are written;
//! - [`cost`], [`loss`]: what is measured in the experiment;
//! - [`exact`]: the processor-demand test of a set of tasks (equation 2.1), by quick processor-demand analysis;
//! - [`simulation`]: constant-bandwidth servers under earliest deadline first, with tasks that misbehave;
//! - [`matching`]: hierarchies whose allowances match (theorem 2);
//! - [`reweighting`]: reservations that are replaced on a full processor;
//! - [`sequence`]: random operations of clients that are not trusted, judged after every step;
//! - [`tasks`]: random tasks.

#![forbid(unsafe_code)]

pub mod cost;
pub mod exact;
pub mod loss;
pub mod matching;
pub mod reweighting;
pub mod sequence;
pub mod simulation;
pub mod straightforward;
pub mod tasks;
