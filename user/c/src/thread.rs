//! The component's further threads.

use sandglass::cap::Notification;
use sandglass::heap;

use crate::environment::{self, Capability};
use crate::foreign::{Context, Text};

#[no_mangle]
pub extern "C" fn sg_prepare_thread(
    name: Text,
    body: extern "C" fn(context: Context),
    context: Context,
) {
    environment::get()
        .thread(name.text())
        .prepare(move || body(context));
}

#[no_mangle]
pub extern "C" fn sg_share_heap(wait: Capability, signal: Capability) {
    heap::share_by(Notification::at(wait), Notification::at(signal));
}
