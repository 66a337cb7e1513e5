//! What holds of the raw state of a kernel between any two events, also while a long operation is
//! half done.
//!
//! Every invariant is a function of its own, of the [`Census`] of a kernel; [`INVARIANTS`] names
//! them all. They look at the kernel itself and not at its abstraction, which would not show broken
//! links.

pub mod budgets;
pub mod derivation;
pub mod devices;
pub mod memory;
pub mod objects;
pub mod queues;
pub mod refills;
pub mod replies;
pub mod running;
pub mod spaces;
pub mod threads;

use crate::isa;
use std::fmt;

use sandglass_kernel::Kernel;

use crate::census::{Anchor, Census};

/// What an invariant finds: `Err` says what is wrong.
pub type Finding = Result<(), String>;

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Name of the invariant, as in [`INVARIANTS`].
    pub invariant: &'static str,
    /// What is wrong, and where.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant `{}`: {}", self.invariant, self.what)
    }
}

impl std::error::Error for Violation {}

/// Fails with the formatted message unless the condition holds.
macro_rules! require {
    ($holds:expr, $($message:tt)*) => {
        if !$holds {
            return Err(format!($($message)*));
        }
    };
}
pub(crate) use require;

macro_rules! invariants {
    ($($module:ident::$name:ident,)*) => {
        /// All invariants, by name.
        pub const INVARIANTS: &[(&str, fn(&Census) -> Finding)] =
            &[$((stringify!($name), $module::$name),)*];
    };
}

invariants! {
    derivation::neighbours_name_each_other,
    derivation::lists_have_an_end,
    derivation::capabilities_to_one_object_are_neighbours,
    derivation::children_follow_their_parent,
    objects::references_are_to_live_objects,
    objects::objects_do_not_overlap,
    objects::bindings_are_mutual,
    queues::ready_queues_are_linked,
    queues::ordered_queues_are_trees,
    queues::release_times_are_those_of_the_refills,
    queues::the_tournament_knows_the_earliest,
    threads::each_thread_is_in_one_place,
    threads::threads_are_where_their_contexts_are,
    threads::a_fault_waits_for_its_handler,
    replies::who_waits_for_a_reply_is_named_by_it,
    replies::stacks_are_linked,
    refills::refills_are_in_order,
    refills::heads_have_the_least_budget,
    running::the_current_thread_has_budget,
    running::nobody_better_waits,
    running::cores_are_asked_to_look,
    running::the_machine_runs_the_current_thread,
    running::the_state_in_the_fpu_is_of_its_core,
    spaces::tables_have_one_owner,
    spaces::identifiers_name_their_roots,
    spaces::threads_remember_their_own,
    memory::objects_lie_below_the_watermark,
    memory::free_memory_is_zero,
    devices::issued_interrupts_have_handlers,
    isa::issued_devices_are_as_capabilities_say,
}

/// Checks every invariant of `k`.
///
/// # Errors
/// The first that does not hold.
pub fn sweep(k: &Kernel, anchor: Anchor) -> Result<(), Violation> {
    sweep_census(&Census::of(k, anchor))
}

/// Checks every invariant of the kernel that `census` is of.
///
/// # Errors
/// As for [`sweep`].
pub fn sweep_census(census: &Census) -> Result<(), Violation> {
    for &(invariant, holds) in INVARIANTS {
        holds(census).map_err(|what| Violation { invariant, what })?;
    }
    Ok(())
}
