//! The kernel's tests on the hosted machine, one program: it is built, and linked, once.

#[cfg(feature = "aarch64")]
mod aarch64;
mod calls_only;
mod capabilities;
#[cfg(feature = "smp")]
mod cores;
#[cfg(feature = "smp")]
mod cores_in_time;
#[cfg(feature = "debug")]
mod debug_calls;
mod derivation;
#[cfg(not(feature = "aarch64"))]
mod devices;
mod domains;
mod endings;
mod explore;
mod fpu;
mod gifts;
mod identifiers;
mod instants;
mod interrupts;
mod long_operations;
mod looks;
#[cfg(not(feature = "aarch64"))]
mod mappings;
mod messages;
mod one_context;
mod order;
mod periodic;
mod queue;
mod refills;
mod registers;
mod spaces;
mod temporal;
mod terms;
mod time;
#[cfg(feature = "trace")]
mod trace;
mod within_events;
#[cfg(not(feature = "aarch64"))]
mod x86_64;
