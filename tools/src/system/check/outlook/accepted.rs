//! The warnings that a description accepts, with its reasons.

use super::super::super::document::Accept;
use super::super::super::findings::Finding;
use super::super::super::warning::Warning;
use super::super::{text, Checker};

/// A warning that the description accepts.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub finding: Finding,
    /// Why.
    pub reason: String,
}

impl Checker<'_> {
    /// Checks what is said about accepted warnings.
    pub(in super::super) fn accepts(&mut self) {
        for accept in &self.document.accept {
            if text(&accept.reason).trim().is_empty() {
                self.found(
                    Finding::new(
                        accept.reason.span(),
                        "a warning is accepted without a reason",
                    )
                    .label("must not be empty")
                    .help(
                        "say why this is right here: whoever reads the description next will ask",
                    ),
                );
            }
            if let Some(of) = &accept.of {
                self.find_thread(of);
            }
        }
    }

    /// Divides warnings into those that remain, and those that are accepted.
    pub(super) fn without_accepted(&self, warnings: Vec<Finding>) -> (Vec<Finding>, Vec<Accepted>) {
        let accepts = &self.document.accept;
        let mut used = vec![false; accepts.len()];
        let (mut remaining, mut accepted) = (Vec::new(), Vec::new());
        for finding in warnings {
            let Some(index) = accepts.iter().position(|accept| covers(accept, &finding)) else {
                remaining.push(finding);
                continue;
            };
            used[index] = true;
            let reason = text(&accepts[index].reason).to_owned();
            accepted.push(Accepted { finding, reason });
        }
        let unused = accepts.iter().zip(&used).filter(|(_, used)| !**used);
        remaining.extend(unused.map(|(accept, _)| unused_accept(accept)));
        (remaining, accepted)
    }
}

fn covers(accept: &Accept, finding: &Finding) -> bool {
    let about = accept.of.as_ref().map(text);
    finding.warning == Some(*accept.warning.get_ref())
        && (about.is_none() || about == finding.about.as_deref())
}

fn unused_accept(accept: &Accept) -> Finding {
    let name = accept.warning.get_ref().name();
    Finding::new(
        accept.warning.span(),
        format!("there is no warning `{name}` here to accept"),
    )
    .warning(Warning::UnusedAccept)
    .label("accepts nothing")
    .help("remove this `[[accept]]`, so that it does not hide a warning that comes later")
}
