//! The `sandglass` command as a library: one module for each subcommand, and what they share.
//!
//! - [`cli`] is the command line, and hands each subcommand to its module;
//! - [`toolchain`] finds compilers, [`workspace`] knows where things are;
//! - [`kernel`] builds kernels, for one core or for [`cores`], [`program`] builds user programs, those of a [`project`] outside of
//!   the repository too, [`c_program`] those in C, [`c_roots`] the root tasks in C, [`qemu`] boots them;
//!   [`elf`] tells programs for this kernel from other files; [`stripped`] files are what machines get;
//! - [`abi_pages`] reads the sections of the specification, [`conformance`] knows what the conformance
//!   suite checks of them;
//! - [`sdk`] writes what other people's tools want of a kernel;
//! - [`system`] builds described systems, [`demo`] measures one of them, [`image`] makes disks of
//!   them;
//! - [`trace`] runs them on a kernel that records what happens, shows and checks that; [`debug`] runs them under gdb;
//! - [`assure`] compares the kernel with its specification, [`coverage`] measures what the host's
//!   tests execute;
//! - [`storm`] runs the kernel against hostile programs, [`bounds`] measures it against hostile
//!   arrangements, [`fuzz`] looks for bytes that reach new code of it;
//! - [`experiment`] repeats experiments of the papers; what is independent in them is done
//!   [`side_by_side`];
//! - [`visits`] counts what the kernel executes in all tests against what was computed of its binary;
//! - [`mutants`] changes the kernel, to see whether its tests notice.

pub mod abi_pages;
pub mod arch;
pub mod assure;
mod backtrace;
pub mod bench;
pub mod beside;
pub mod board;
pub mod boot;
pub mod bounds;
pub mod built;
pub mod c_program;
pub mod c_roots;
pub mod check;
pub mod cli;
pub mod conformance;
pub mod cores;
pub mod coverage;
pub mod debug;
pub mod demo;
mod elf;
pub mod experiment;
pub mod fuzz;
pub mod image;
pub mod isolation;
pub mod kernel;
pub mod machine;
pub mod mutants;
pub mod new;
pub mod profile;
pub mod program;
pub mod project;
pub mod qemu;
pub mod sdk;
pub mod side_by_side;
pub mod speculation;
pub mod storm;
pub mod stripped;
pub mod system;
pub mod test;
pub mod times;
pub mod toolchain;
pub mod trace;
pub mod values;
pub mod visits;
pub mod wcet;
pub mod workspace;
