//! How much was asked, so that nobody takes silence for proof.

/// How much was asked.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    pub windows: u64,
    /// The same of sporadic contexts, which may be behind.
    pub sporadic: u64,
    pub payments: u64,
    pub contexts: u64,
    /// Contexts of which from then on nothing is asked of what they used before.
    pub begun: u64,
    /// Configurations of contexts in use.
    pub changed: u64,
    pub findings: u64,
}

impl Counts {
    /// The line `seen STRETCHES WINDOWS SPORADIC PAYMENTS CONTEXTS BEGUN CHANGED FINDINGS`, for so many
    /// stretches of execution.
    pub fn line(&self, stretches: u64) -> String {
        let Counts {
            windows,
            sporadic,
            payments,
            contexts,
            begun,
            changed,
            findings,
        } = self;
        format!("seen {stretches} {windows} {sporadic} {payments} {contexts} {begun} {changed} {findings}\n")
    }
}
