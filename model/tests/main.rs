//! The specification's tests, one program.

mod capabilities;
mod communication;
mod cores;
mod refills;
mod scene;
mod schedule;
mod world;
