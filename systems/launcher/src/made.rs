//! What there is once everything that is described has been made, and before it starts.

use alloc::vec::Vec;

use sandglass::component::Component;
use sandglass::BootInfo;
use sandglass_description::archive::Archive;
use sandglass_description::System;

use crate::launch::Thread;
use crate::objects::Objects;

/// All that the launcher made of the description.
pub struct Made<'a> {
    pub info: &'a BootInfo,
    pub system: &'a System,
    pub archive: &'a Archive<'static>,
    pub components: &'static [Component],
    /// Of each component, in the description's order; the first is the main thread.
    pub threads: &'a [Vec<Thread>],
    pub objects: &'a Objects,
}
