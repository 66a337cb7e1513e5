//! Who was built for another profile of the ABI is told so by the debug kernel (09, section 2.2): the first invocation with a
//! label that its object does not know, but would in that profile.

use core::fmt::Write;

use sandglass_abi::invocation::{self, x86_64, Label};
use sandglass_abi::profile::{ALL, THIS};

use crate::debug::{Console, AVAILABLE};
use crate::invoke::{Error, Invocation};
use crate::mem::Kind;
use crate::Kernel;

/// What names of invocations of `kind` begin with (03, section 2).
fn object(kind: Kind) -> &'static str {
    match kind {
        Kind::Untyped => "Untyped",
        Kind::Tcb => "TCB",
        Kind::CNode => "CNode",
        Kind::IrqControl => "IRQControl",
        Kind::IrqHandler => "IRQHandler",
        Kind::Domain => "Domain",
        Kind::SchedControl => "SchedControl",
        Kind::SchedContext => "SchedContext",
        Kind::Pdpt => "PDPT",
        Kind::PageDirectory => "PageDirectory",
        Kind::PageTable => "PageTable",
        Kind::IoPageTable => "IOPageTable",
        Kind::Frame => "Page",
        Kind::AsidControl => "ASIDControl",
        Kind::AsidPool => "ASIDPool",
        Kind::IoPortControl => "IOPortControl",
        Kind::IoPort => "IOPort",
        _ => "",
    }
}

/// Whether `label` is an invocation of what is called `object`.
fn is_of(label: &Label, object: &str) -> bool {
    let rest = label.name.strip_prefix(object);
    rest.is_some_and(|rest| rest.starts_with('_'))
        || object == "Domain" && label.name == "DomainSet_Set"
}

/// Says on the console of a debug kernel, once, that `call`, refused with `error`, is one of another profile.
pub fn tell(k: &Kernel, call: &Invocation, error: Error) {
    if !AVAILABLE || error != Error::IllegalOperation || k.arch.told.get() {
        return;
    }
    let (number, object) = (call.label(), object(call.cap.kind()));
    let fits = |&(other, label): &(u64, &Label)| other == number && is_of(label, object);
    if invocation::all(&THIS, x86_64::TABLE).any(|label| fits(&label)) {
        return;
    }
    let fitting = ALL.iter().filter_map(|profile| {
        let (_, label) = invocation::all(profile, x86_64::TABLE).find(fits)?;
        Some((label.name, profile.name))
    });
    let mut console = Console(&k.machine);
    for (name, profile) in fitting {
        // The console cannot fail.
        let _ = match k.arch.told.replace(true) {
            true => write!(console, ", {profile}"),
            false => write!(
                console,
                "sandglass: {object} has no invocation {number} in this kernel's profile, {}; {name} is {number} in {profile}",
                THIS.name
            ),
        };
    }
    if k.arch.told.get() {
        let _ = writeln!(console, ": was the program built for that?");
    }
}
