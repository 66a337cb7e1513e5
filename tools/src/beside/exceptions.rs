//! Figures that a client changes by right, each with the reason.

/// Figures of a subject whose names contain a text.
struct Exception {
    subject: &'static str,
    figure: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        subject: "demo",
        figure: ": longest_rollback_ns",
        reason: "a release of the control task may fall into one; into which, if any, depends on when the clients start",
    },
    Exception {
        subject: "edf",
        figure: ": most",
        reason: "the longest of some thousand switches is one that an interrupt came in, or waited for",
    },
    Exception {
        subject: "examples/monitor",
        figure: "top: _ us",
        reason: "when `top` looks is not fixed: the monitor is below everybody else",
    },
    // A thread's row of `top`.
    Exception {
        subject: "examples/monitor",
        figure: "     _    _",
        reason: "who used how much time until `top` looked: one more component changes when that is, and takes idle time",
    },
    Exception {
        subject: "timeouts",
        figure: ": most",
        reason: "a request of the client waits in the server's queue when the handler sends the server back to it",
    },
];

/// Why a figure of a subject may differ, if it may.
pub fn reason(subject: &str, figure: &str) -> Option<&'static str> {
    let is_it =
        |exception: &&Exception| exception.subject == subject && figure.contains(exception.figure);
    EXCEPTIONS
        .iter()
        .find(is_it)
        .map(|exception| exception.reason)
}
