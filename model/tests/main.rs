//! The specification's tests, one program.

#[cfg(feature = "aarch64")]
mod aarch64;
mod capabilities;
mod communication;
mod cores;
mod refills;
mod scene;
mod schedule;
mod world;
#[cfg(not(feature = "aarch64"))]
mod x86_64;
