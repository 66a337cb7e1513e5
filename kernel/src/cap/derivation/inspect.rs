//! The relations between capabilities that derivation lists are built on.

use crate::cap::Capability;
use crate::mem::{Ref, Slot};
use crate::Kernel;

/// Whether the capability in `parent` is a parent of that in `child`, which comes after it in
/// their list (02, section 5.2).
pub fn is_parent(k: &Kernel, parent: Ref<Slot>, child: Ref<Slot>) -> bool {
    super::is_parent(parent.at(k), child.at(k))
}

/// Whether `a` and `b` name the very same object (02, section 5.3).
pub fn same_object(a: Capability, b: Capability) -> bool {
    super::same_object(a, b)
}
