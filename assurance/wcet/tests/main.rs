//! The analyser on programs whose bounds are known.

mod errors;
mod known;
mod networks;
mod paths;
mod programs;
mod random;
