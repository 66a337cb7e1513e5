//! The analyser on programs whose bounds are known.

mod errors;
mod known;
mod networks;
mod programs;
mod random;
