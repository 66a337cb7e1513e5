//! The catalogue of refused invocations, as data: every check of every invocation (`catalogue`), a scene with an
//! object of every kind in every state that some check asks for (`scene`), and invocations that fail at each of the
//! checks, with what their caller is told (`cases`).
//!
//! The same cases are run by
//!
//! * the specification and the hosted kernel, whose state is compared byte by byte
//!   (`assurance/tests/failed_decodes`);
//! * the kernel on the machine, from a root task (`systems/kernel-tests/src/decode.rs`).
//!
//! The conformance suite has its own (`systems/conformance/src/page03` and others): it states the ABI for any kernel,
//! a check for each sentence of the pages, and must not depend on how this kernel is tested.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod case;
pub mod cases;
pub mod catalogue;
pub mod isa;
pub mod pairs;
pub mod scene;
