//! The analyser on programs whose bounds are known.

mod aarch64;
mod caches;
mod cases;
mod errors;
mod known;
mod networks;
mod pages;
mod paths;
mod platforms;
mod programs;
mod random;
