//! The tests of the lock step, one program. What judges mutants is by itself.

mod boot;
mod corruption;
mod lines;
mod lockstep;
mod refills;
mod regressions;
mod world;
