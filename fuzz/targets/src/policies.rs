//! The state machines of policies, under hostile scripts: each of `sandglass-hostile` is a target.

use sandglass_hostile::SCRIPTS;

use crate::Target;

pub fn targets() -> impl Iterator<Item = Target> {
    SCRIPTS.iter().map(|script| Target {
        name: script.name,
        what: script.what,
        run: script.check,
        explain: script.explain,
    })
}
