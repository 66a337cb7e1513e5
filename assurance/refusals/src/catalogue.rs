//! Every check of every invocation, from the pages of the ABI: 03, sections 3 to 8, and 02, sections
//! 4 and 6. In the order of the pages, which is that in which they are made.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sandglass_abi::error::ErrorNumber::{self, *};
use sandglass_abi::invocation as label;

use crate::isa;

/// A check of an operation, and the error that tells of its failure.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Check {
    pub label: u64,
    pub check: String,
    /// The error's number.
    pub error: u64,
}

pub type Row = (&'static str, ErrorNumber);

pub const WORDS: Row = ("too few words", TruncatedMessage);
pub const CAPS: Row = ("too few capabilities", TruncatedMessage);

/// How the lookup of a slot for `which` fails; the root may be the invoked capability, which is a
/// CNode then (02, section 4).
fn lookups(which: &str, invoked: bool) -> Vec<(String, ErrorNumber)> {
    let root: &[Row] = if invoked {
        &[]
    } else {
        &[("the root is no CNode", FailedLookup)]
    };
    let walk = [
        ("depth", RangeError),
        ("guard", FailedLookup),
        ("less bits than the CNode has", FailedLookup),
        ("bits left", FailedLookup),
    ];
    root.iter()
        .chain(&walk)
        .map(|(how, error)| (format!("{which}: {how}"), *error))
        .collect()
}

/// Collects the checks.
pub struct Catalogue(Vec<Check>);

impl Catalogue {
    pub fn add(&mut self, labels: &[u64], rows: &[Row]) {
        for &(check, error) in rows {
            self.add_named(labels, check, error);
        }
    }

    pub fn add_named(&mut self, labels: &[u64], check: &str, error: ErrorNumber) {
        self.0.extend(labels.iter().map(|&label| Check {
            label,
            check: check.to_owned(),
            error: error as u64,
        }));
    }

    /// `which` is looked up below a root that is the `invoked` capability, or an extra one.
    pub fn add_lookup(&mut self, labels: &[u64], which: &str, invoked: bool) {
        for (check, error) in lookups(which, invoked) {
            self.add_named(labels, &check, error);
        }
    }

    /// A slot for a new capability.
    pub fn add_destination(&mut self, labels: &[u64]) {
        self.add_lookup(labels, "destination", false);
        self.add(labels, &[("destination: occupied", DeleteFirst)]);
    }
}

/// Operations that cannot fail, but for invocations by another label.
pub const INFALLIBLE: [u64; 7] = [
    label::TCB_SUSPEND,
    label::TCB_RESUME,
    label::IRQ_HANDLER_ACK,
    label::IRQ_HANDLER_CLEAR,
    label::SCHED_CONTEXT_CONSUMED,
    isa::PAGE_UNMAP,
    isa::PAGE_GET_ADDRESS,
];

/// Checks that nothing can fail at in this configuration, and why.
pub const OUT_OF_REACH: [(u64, &str, &str); 4] = [
    (
        label::TCB_SET_SCHED_PARAMS,
        "blocked on a context of its own that is not released",
        "a thread blocks while its context's refill is ready, and that stays ready",
    ),
    (
        label::DOMAIN_SCHEDULE_CONFIGURE,
        "no duration for a domain other than 0",
        "there is one domain",
    ),
    (
        isa::ASID_POOL_ASSIGN,
        "the pool is gone",
        "a pool goes with its last capability",
    ),
    (
        isa::ASID_POOL_ASSIGN,
        "the pool was replaced",
        "a pool goes with its last capability",
    ),
];

/// The catalogue of a kernel for one core, or for several.
pub fn catalogue(is_for_several_cores: bool) -> Vec<Check> {
    let mut catalogue = Catalogue(Vec::new());
    memory(&mut catalogue);
    cnodes(&mut catalogue);
    threads(&mut catalogue);
    spaces_of_threads(&mut catalogue);
    time(&mut catalogue);
    domains(&mut catalogue);
    handlers(&mut catalogue);
    isa::catalogue::checks(&mut catalogue, is_for_several_cores);
    identifiers(&mut catalogue);
    catalogue.0
}

/// 03, section 3.
fn memory(c: &mut Catalogue) {
    let retype = &[label::UNTYPED_RETYPE];
    c.add(
        retype,
        &[
            WORDS,
            CAPS,
            ("type", InvalidArgument),
            ("size argument of 64", RangeError),
            ("object too large", RangeError),
            ("CNode of one slot", InvalidArgument),
            ("untyped memory too small", InvalidArgument),
            ("scheduling context too small", InvalidArgument),
        ],
    );
    c.add_lookup(retype, "CNode", false);
    c.add(
        retype,
        &[
            ("CNode: the root is none", FailedLookup),
            ("CNode: another capability", FailedLookup),
            ("CNode: empty slot", FailedLookup),
            ("offset", RangeError),
            ("number of objects", RangeError),
            ("window", RangeError),
            ("window: occupied", DeleteFirst),
            ("memory without children", NotEnoughMemory),
            ("memory with children", NotEnoughMemory),
            ("device memory", InvalidArgument),
        ],
    );
}

/// 02, section 6.
fn cnodes(c: &mut Catalogue) {
    use label::extension::CNODE_MINT_CALL;
    use label::*;
    let all: Vec<_> = (CNODE_REVOKE..=CNODE_ROTATE)
        .chain([CNODE_MINT_CALL])
        .collect();
    let insertions = [
        CNODE_COPY,
        CNODE_MINT,
        CNODE_MINT_CALL,
        CNODE_MOVE,
        CNODE_MUTATE,
    ];
    c.add(&all, &[WORDS]);
    c.add_lookup(&all, "destination", true);
    c.add(
        &[CNODE_CANCEL_BADGED_SENDS],
        &[
            ("no endpoint", IllegalOperation),
            ("a right is missing", IllegalOperation),
        ],
    );
    c.add(&insertions, &[CAPS, ("destination: occupied", DeleteFirst)]);
    c.add_lookup(&insertions, "source", false);
    c.add(&insertions, &[("source: empty", FailedLookup)]);
    c.add(
        &[CNODE_COPY, CNODE_MINT],
        &[
            ("derive: memory with children", RevokeFirst),
            ("derive: not copied", IllegalOperation),
            ("derive: table that is not mapped", IllegalOperation),
            ("derive: space without identifier", IllegalOperation),
        ],
    );
    c.add(
        &[CNODE_MINT, CNODE_MINT_CALL, CNODE_MUTATE],
        &[("update: badged", IllegalOperation)],
    );
    c.add(
        &[CNODE_MINT, CNODE_MUTATE],
        &[("update: guard too large", IllegalOperation)],
    );
    c.add(&[CNODE_MINT_CALL], &[("no endpoint", IllegalOperation)]);
    c.add(&[CNODE_MUTATE], &[("update: unbadged", IllegalOperation)]);
    let rotate = &[CNODE_ROTATE];
    c.add(rotate, &[CAPS]);
    c.add_lookup(rotate, "source", false);
    c.add_lookup(rotate, "pivot", false);
    c.add(
        rotate,
        &[
            ("pivot: is the source", IllegalOperation),
            ("pivot: is the destination", IllegalOperation),
            ("destination: occupied", DeleteFirst),
            ("source: empty", FailedLookup),
            ("pivot: empty", FailedLookup),
            ("update: source", IllegalOperation),
            ("update: pivot", IllegalOperation),
        ],
    );
}

/// 03, sections 4.1 to 4.6, 4.11 to 4.13.
fn threads(c: &mut Catalogue) {
    use label::*;
    c.add(
        &[TCB_READ_REGISTERS],
        &[
            WORDS,
            ("number of registers", RangeError),
            ("itself", IllegalOperation),
        ],
    );
    c.add(
        &[TCB_WRITE_REGISTERS],
        &[
            WORDS,
            ("fewer registers than said", TruncatedMessage),
            ("itself", IllegalOperation),
        ],
    );
    c.add(
        &[TCB_COPY_REGISTERS],
        &[WORDS, CAPS, ("source: no thread", InvalidCapability)],
    );
    let authority = [WORDS, CAPS, ("authority: no thread", InvalidCapability)];
    c.add(&[TCB_SET_PRIORITY, TCB_SET_MC_PRIORITY], &authority);
    c.add(
        &[TCB_SET_PRIORITY, TCB_SET_MC_PRIORITY],
        &[("above the authority", RangeError)],
    );
    c.add(&[TCB_SET_SCHED_PARAMS], &authority);
    c.add(
        &[TCB_SET_SCHED_PARAMS],
        &[
            ("limit above the authority", RangeError),
            ("priority above the authority", RangeError),
            ("context: the thread has another", IllegalOperation),
            ("context: of another thread", IllegalOperation),
            ("context: blocked, and it is not released", IllegalOperation),
            ("context: none for itself", IllegalOperation),
            ("context: another capability", InvalidCapability),
            ("fault handler", InvalidCapability),
        ],
    );
    c.add(
        &[TCB_SET_TIMEOUT_ENDPOINT],
        &[CAPS, ("timeout handler", InvalidCapability)],
    );
    c.add(
        &[TCB_BIND_NOTIFICATION],
        &[
            CAPS,
            ("the thread has one", IllegalOperation),
            ("no notification", IllegalOperation),
            ("no right to read", IllegalOperation),
            ("somebody waits", IllegalOperation),
            ("of another thread", IllegalOperation),
        ],
    );
    c.add(
        &[TCB_UNBIND_NOTIFICATION],
        &[("none is bound", IllegalOperation)],
    );
    c.add(&[TCB_SET_TLS_BASE, TCB_SET_FLAGS], &[WORDS]);
}

/// 03, sections 4.4, 4.8 and 4.9.
fn spaces_of_threads(c: &mut Catalogue) {
    use label::*;
    let buffers = &[TCB_CONFIGURE, TCB_SET_IPC_BUFFER];
    let roots = &[TCB_CONFIGURE, TCB_SET_SPACE];
    c.add(
        &[TCB_CONFIGURE, TCB_SET_IPC_BUFFER, TCB_SET_SPACE],
        &[WORDS, CAPS],
    );
    c.add(
        buffers,
        &[
            ("buffer: derive", RevokeFirst),
            ("buffer: derive", IllegalOperation),
            ("buffer: no frame", IllegalOperation),
            ("buffer: device", IllegalOperation),
            ("buffer: alignment", AlignmentError),
        ],
    );
    c.add(
        roots,
        &[
            ("its space would be deleted", IllegalOperation),
            ("capability space: guard too large", IllegalOperation),
            ("capability space: derive", RevokeFirst),
            ("capability space: no CNode", IllegalOperation),
            ("address space: update", IllegalOperation),
            ("address space: derive", RevokeFirst),
            ("address space: no identifier", IllegalOperation),
            ("address space: no root table", IllegalOperation),
        ],
    );
    c.add(&[TCB_SET_SPACE], &[("fault handler", InvalidCapability)]);
}

/// 03, sections 6.1 and 6.2.
fn time(c: &mut Catalogue) {
    use label::*;
    c.add(
        &[SCHED_CONTROL_CONFIGURE_FLAGS],
        &[
            WORDS,
            CAPS,
            ("budget too long", RangeError),
            ("period too long", RangeError),
            ("budget too short", RangeError),
            ("period too short", RangeError),
            ("budget longer than the period", RangeError),
            ("no context", InvalidCapability),
            ("refills", RangeError),
        ],
    );
    c.add(
        &[SCHED_CONTEXT_BIND],
        &[
            CAPS,
            ("thread: the context has one", IllegalOperation),
            ("thread: it has a context", IllegalOperation),
            ("thread: blocked, and not released", IllegalOperation),
            ("notification: the context has one", IllegalOperation),
            ("notification: it has a context", IllegalOperation),
            ("another capability", InvalidCapability),
        ],
    );
    c.add(
        &[SCHED_CONTEXT_UNBIND],
        &[("of the caller", IllegalOperation)],
    );
    c.add(
        &[SCHED_CONTEXT_UNBIND_OBJECT],
        &[
            CAPS,
            ("thread: not bound", IllegalOperation),
            ("thread: the caller", IllegalOperation),
            ("notification: not bound", IllegalOperation),
            ("another capability", InvalidCapability),
        ],
    );
    c.add(
        &[SCHED_CONTEXT_YIELD_TO],
        &[
            ("no thread", IllegalOperation),
            ("of the caller", IllegalOperation),
            ("above the caller", IllegalOperation),
        ],
    );
}

/// 03, section 6.3.
fn domains(c: &mut Catalogue) {
    use label::*;
    c.add(
        &[DOMAIN_SET],
        &[
            WORDS,
            ("domain", InvalidArgument),
            CAPS,
            ("no thread", InvalidArgument),
        ],
    );
    c.add(
        &[DOMAIN_SCHEDULE_CONFIGURE],
        &[
            WORDS,
            ("index", RangeError),
            ("domain", RangeError),
            ("duration", InvalidArgument),
            ("end at the start", InvalidArgument),
        ],
    );
    c.add(
        &[DOMAIN_SCHEDULE_SET_START],
        &[WORDS, ("index", RangeError), ("end", InvalidArgument)],
    );
}

/// 03, section 7.6.
fn handlers(c: &mut Catalogue) {
    c.add(
        &[label::IRQ_HANDLER_SET_NOTIFICATION],
        &[
            CAPS,
            ("no notification", InvalidCapability),
            ("no right to write", InvalidCapability),
        ],
    );
}

/// 03, sections 8.4, 8.5 and 9.4.
fn identifiers(c: &mut Catalogue) {
    let make = &[isa::ASID_CONTROL_MAKE_POOL];
    c.add(
        make,
        &[
            WORDS,
            CAPS,
            ("all pools are in use", DeleteFirst),
            ("no memory", InvalidCapability),
            ("memory of another size", InvalidCapability),
            ("device memory", InvalidCapability),
            ("memory with children", RevokeFirst),
        ],
    );
    c.add_destination(make);
    c.add(
        &[isa::ASID_POOL_ASSIGN],
        &[
            CAPS,
            ("no root table", InvalidCapability),
            ("assigned", InvalidCapability),
            ("the pool is full", DeleteFirst),
        ],
    );
}
