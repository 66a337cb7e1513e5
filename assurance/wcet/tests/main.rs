//! The analyser on programs whose bounds are known.

mod caches;
mod errors;
mod known;
mod networks;
mod pages;
mod paths;
mod platforms;
mod programs;
mod random;
