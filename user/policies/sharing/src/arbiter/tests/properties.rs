//! What the textbook proves of the protocols, for random systems with nested sections.

use std::vec::Vec;

use proptest::prelude::*;
use sandglass_description::policy::sharing::Protocol;

use super::simulation::{entries, jobs, Job, Section, Simulation};
use crate::arbiter::priority::ceilings;
use sandglass_description::policy::sharing::Sharing;

const RESOURCES: u32 = 4;

/// For each job: the longest section of each lower job that can block it, 0 for none. It can if the
/// ceiling of a resource in it is not below the job's priority.
fn longest_by_lower(jobs: &[Job], job: usize) -> Vec<u64> {
    let ceilings = ceilings(&Sharing {
        protocol: Protocol::Inheritance,
        clients: (1..=jobs.len() as u8).collect(),
        resources: RESOURCES,
        entries: entries(jobs),
    });
    let priority = job as u8 + 1;
    let can_block = |section: &&Section| {
        let mut all = section.all().into_iter();
        all.any(|section| ceilings[section.resource as usize] >= priority)
    };
    jobs[..job]
        .iter()
        .map(|lower| {
            let sections = lower.parts.iter().map(|(_, section)| section);
            let lengths = sections.filter(can_block).map(Section::length);
            lengths.max().unwrap_or(0)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Theorem 12 of Sha et al.: at most one section of a lower job; no deadlock; and all that was
    /// asked for is served in the end.
    #[test]
    fn under_the_original_ceiling_a_job_is_blocked_by_one_section_at_most(
        jobs in jobs(RESOURCES, false)
    ) {
        let (outcomes, idle) = Simulation::new(Protocol::OriginalCeiling, RESOURCES, &jobs).run();
        prop_assert!(idle);
        for (job, outcome) in outcomes.iter().enumerate() {
            prop_assert!(outcome.is_done && outcome.refused == 0, "{job}: {outcome:?}");
            prop_assert!(outcome.blocked_by <= 1, "{job}: {outcome:?}");
            let bound = longest_by_lower(&jobs, job).into_iter().max().unwrap_or(0);
            prop_assert!(outcome.blocked <= bound, "{job}: {outcome:?}, bound {bound}");
        }
    }

    /// Theorem 6 of Sha et al.: one section of each lower job at most. Where resources are taken
    /// in order, no request is refused.
    #[test]
    fn under_inheritance_a_job_is_blocked_by_one_section_of_each_lower_job(
        jobs in jobs(RESOURCES, true)
    ) {
        let (outcomes, idle) = Simulation::new(Protocol::Inheritance, RESOURCES, &jobs).run();
        prop_assert!(idle);
        for (job, outcome) in outcomes.iter().enumerate() {
            prop_assert!(outcome.is_done && outcome.refused == 0, "{job}: {outcome:?}");
            prop_assert!(outcome.blocked_by <= job, "{job}: {outcome:?}");
            let bound = longest_by_lower(&jobs, job).into_iter().sum();
            prop_assert!(outcome.blocked <= bound, "{job}: {outcome:?}, bound {bound}");
        }
    }

    /// Deadlocks are refused, and so everybody is done in the end.
    #[test]
    fn under_inheritance_nobody_waits_for_ever(jobs in jobs(RESOURCES, false)) {
        for protocol in [Protocol::Inheritance, Protocol::BandwidthInheritance] {
            let (outcomes, idle) = Simulation::new(protocol, RESOURCES, &jobs).run();
            prop_assert!(idle);
            prop_assert!(outcomes.iter().all(|outcome| outcome.is_done), "{outcomes:?}");
        }
    }
}
