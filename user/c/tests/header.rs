//! Header and library agree: every function of one is in the other, with the same type; structures have the same layout; and
//! constants the same values.
//!
//! What the library has is told by `cbindgen` from its sources. A C compiler compares: a second declaration of another type
//! is an error.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use sandglass_c::edf::Job;
use sandglass_c::environment::Region;
use sandglass_c::message::{Message, Request};
use sandglass_c::objects::{Reservation, SlotAddress};
use sandglass_c::releases::{Release, Releases};
use sandglass_c::server::DeviceFunctions;
use sandglass_c::timeouts::{TimeoutEvent, TimeoutFunctions};
use sandglass_c::timers::Timer;

/// The types of the library, as the header calls them.
const NAMES: &[(&str, &str)] = &[
    ("Capability", "sg_cap"),
    ("Code", "sg_error"),
    ("Completions", "sg_completions"),
    ("Context", "sg_context"),
    ("DeviceFunctions", "sg_device"),
    ("Handler", "sg_handler"),
    ("Job", "sg_job"),
    ("Message", "sg_message"),
    ("Region", "sg_region"),
    ("Release", "sg_release"),
    ("Releases", "sg_releases"),
    ("Request", "sg_request"),
    ("Reservation", "sg_reservation"),
    ("SlotAddress", "sg_slot"),
    ("Text", "sg_text"),
    ("TimeoutEvent", "sg_timeout_event"),
    ("Timer", "sg_timer"),
    ("TimeoutFunctions", "sg_timeout_functions"),
    ("ArgumentList", "sg_va_list"),
];

/// The types of `foreign` with a parameter, as `cbindgen` leaves them, and what they are in C.
const POINTERS: &[(&str, &str)] = &[
    ("Elements<uint64_t>", "const uint64_t *"),
    ("Elements<uint8_t>", "const uint8_t *"),
    ("Elements<sg_text>", "const sg_text *"),
    ("Room<uint64_t>", "uint64_t *"),
    ("Room<char>", "char *"),
];

/// What the others of `foreign` and `format` are.
const FOREIGN: &str = "
typedef const char *sg_text;
typedef void *sg_context;
extern va_list sg_some_arguments;
typedef __typeof__(sg_some_arguments[0]) sg_va_list;
";

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn header() -> String {
    fs::read_to_string(crate_folder().join("include/sandglass.h")).unwrap()
}

/// The declarations of the library's functions in C.
fn declarations() -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        no_includes: true,
        usize_is_size_t: true,
        style: cbindgen::Style::Type,
        ..cbindgen::Config::default()
    };
    config.export.item_types = vec![cbindgen::ItemType::Functions];
    let names = NAMES
        .iter()
        .map(|(ours, theirs)| ((*ours).to_owned(), (*theirs).to_owned()));
    config.export.rename = names.collect();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for entry in fs::read_dir(crate_folder().join("src")).unwrap() {
        let path = entry.unwrap().path();
        // What a program has once is not for C to call.
        let is_face = path.is_file()
            && !["lib.rs", "start.rs"]
                .iter()
                .any(|name| path.ends_with(name));
        if is_face {
            builder = builder.with_src(path);
        }
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    let with_pointers =
        |text: String, (generic, pointer): &(&str, &str)| text.replace(generic, pointer);
    POINTERS.iter().fold(text, with_pointers)
}

/// Has the C compiler look at `text`, behind the header.
fn compile(name: &str, text: &str) -> Result<(), String> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, format!("#include <sandglass.h>\n{text}")).unwrap();
    let out = Command::new("cc")
        .args(["-std=c11", "-ffreestanding", "-fsyntax-only"])
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        // A `va_list` is an array, and a pointer to its element where it is passed.
        .arg("-Wno-array-parameter")
        .arg("-I")
        .arg(crate_folder().join("include"))
        .arg(&path)
        .output()
        .unwrap();
    match out.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    }
}

/// The names of functions that `text` declares.
fn functions(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices('(') {
        let before = &text[..at];
        let name = &before[before.rfind(|c| !is_name(c)).map_or(0, |end| end + 1)..];
        if name.starts_with("sg_") {
            names.insert(name);
        }
    }
    names
}

#[test]
fn every_function_has_the_declared_type() {
    let declarations = declarations();
    let text = format!("{FOREIGN}\n{declarations}");
    compile("declarations.c", &text).unwrap_or_else(|said| panic!("{said}\n{text}"));
    // The comparison notices.
    let wrong = text.replacen("uint64_t sg_wait(", "uint32_t sg_wait(", 1);
    assert_ne!(wrong, text);
    let said = compile("wrong.c", &wrong).unwrap_err();
    assert!(
        said.contains("conflicting types for 'sg_wait'") || said.contains("sg_wait"),
        "{said}"
    );
}

#[test]
fn every_function_is_in_both() {
    let header = header();
    // Comments name functions too, but only those that there are.
    let mut declared = functions(&header);
    // Those that are in the header itself.
    for own in [
        "sg_panic",
        "sg_assert",
        "sg_panic_at",
        "sg_printf",
        "sg_snprintf",
        "sg_log",
    ] {
        assert!(declared.remove(own), "{own}");
    }
    let library = declarations();
    assert_eq!(declared, functions(&library));
    assert!(declared.len() > 60, "{declared:?}");
}

/// Assertions that a structure of C is as ours.
macro_rules! layout {
    ($text:ident, $type:ty, $name:literal, $($field:ident),*) => {{
        let size = size_of::<$type>();
        writeln!($text, "_Static_assert(sizeof({}) == {size}, \"{}\");", $name, $name).unwrap();
        $(
            let (field, offset) = (stringify!($field), offset_of!($type, $field));
            writeln!($text, "_Static_assert(offsetof({}, {field}) == {offset}, \"{field}\");", $name).unwrap();
        )*
    }};
}

#[test]
fn structures_have_the_same_layout() {
    let mut text = String::new();
    layout!(text, Region, "sg_region", address, length);
    layout!(
        text,
        Message,
        "sg_message",
        label,
        length,
        capabilities,
        unwrapped,
        words
    );
    layout!(text, Request, "sg_request", badge, message);
    layout!(
        text,
        DeviceFunctions,
        "sg_device",
        request,
        interrupt,
        context
    );
    layout!(text, SlotAddress, "sg_slot", root, index, depth);
    layout!(
        text,
        Reservation,
        "sg_reservation",
        budget_us,
        period_us,
        extra_refills,
        badge,
        sporadic
    );
    layout!(text, Job, "sg_job", number, release, deadline);
    layout!(
        text,
        Releases,
        "sg_releases",
        number,
        at,
        period,
        skip_missed
    );
    layout!(text, Release, "sg_release", number, at);
    layout!(text, Timer, "sg_timer", service, signal, number);
    layout!(
        text,
        TimeoutEvent,
        "sg_timeout_event",
        what,
        badge,
        consumed_us,
        budget_us
    );
    layout!(
        text,
        TimeoutFunctions,
        "sg_timeout_functions",
        rolled_back,
        reset,
        killed,
        observe,
        context
    );
    compile("layout.c", &text).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn constants_have_the_same_values() {
    use sandglass::abi::message::{MAX_EXTRA_CAPS, MAX_LENGTH};
    use sandglass::cap::Rights;
    use sandglass_c::timeouts::what;
    let pairs = [
        ("SG_MESSAGE_WORDS", MAX_LENGTH as u64),
        ("SG_MESSAGE_CAPS", MAX_EXTRA_CAPS as u64),
        ("SG_FAILED", sandglass::server::FAILED),
        ("SG_BUSY", sandglass_sharing::blocking::BUSY),
        ("SG_TIMED_OUT", sandglass_timeouts::TIMED_OUT),
        ("SG_WRITE", Rights::WRITE.raw()),
        ("SG_READ", Rights::READ.raw()),
        ("SG_GRANT", Rights::GRANT.raw()),
        ("SG_GRANT_REPLY", Rights::GRANT_REPLY.raw()),
        ("SG_ALL_RIGHTS", Rights::ALL.raw()),
        ("SG_NO_DEVICE", sandglass_c::error::NO_DEVICE as u64),
        ("SG_TOO_FREQUENT", sandglass_c::error::TOO_FREQUENT as u64),
        ("SG_NO_SUCH_TIMER", sandglass_c::error::NO_SUCH_TIMER as u64),
        (
            "SG_INVALID_ARGUMENT",
            sandglass_c::error::INVALID_ARGUMENT as u64,
        ),
        (
            "SG_NOT_ENOUGH_MEMORY",
            sandglass::abi::error::ErrorNumber::NotEnoughMemory as u64,
        ),
        ("SG_TIMEOUT_OTHER", what::OTHER as u64),
        ("SG_TIMEOUT_ROLLED_BACK", what::ROLLED_BACK as u64),
        ("SG_TIMEOUT_RESET", what::RESET as u64),
        ("SG_TIMEOUT_KILLED", what::KILLED as u64),
        ("SG_TIMEOUT_EMERGENCY", what::EMERGENCY as u64),
        ("SG_TIMEOUT_EXTENDED", what::EXTENDED as u64),
        ("SG_TIMEOUT_FAULT", what::FAULT as u64),
    ];
    let assertions =
        pairs.map(|(name, value)| format!("_Static_assert({name} == {value}, \"{name}\");\n"));
    compile("constants.c", &assertions.concat()).unwrap_or_else(|said| panic!("{said}"));
}
