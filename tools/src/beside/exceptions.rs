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
        figure: ": rollbacks",
        reason: "each interruption splits the client's budget, and it pays for a rollback at the end of each piece",
    },
    Exception {
        subject: "demo",
        figure: ": longest_rollback_ns",
        reason: "the longest is one that the control task interrupts, if any",
    },
    Exception {
        subject: "sharing",
        figure: "best effort, starved: cost",
        reason: "a thread is ready below while the requests are measured, which makes each switch cost the kernel more",
    },
    Exception {
        subject: "edf",
        figure: ": most",
        reason: "the longest of some thousand switches is one that an interrupt came in, or waited for",
    },
    Exception {
        subject: "isolation",
        figure: ": rollbacks",
        reason: "each interruption splits the client's budget, and it pays for a rollback at the end of each piece",
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
