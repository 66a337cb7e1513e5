//! What clients of gates take of a core on which turns are given out.

use sandglass_description::policy::allocations::Ahead;

use super::super::super::super::document::{ClientKind, TimeManager};
use super::super::super::Checker;
use super::{is_gated, kind};

impl Checker<'_> {
    /// The reservations of clients of gates above turns, on the time manager's core.
    pub(in super::super) fn ahead_of_turns(&self, manager: &TimeManager) -> Vec<Ahead> {
        let mut counted: Vec<usize> = Vec::new();
        let mut ahead = Vec::new();
        let document = self.document;
        let gates = document.resources.iter().filter(|of| is_gated(of));
        for member in gates.flat_map(|gate| self.members_of(gate)) {
            let is_above = i64::from(member.priority) > *manager.priority.get_ref();
            // The manager is on the first core.
            if member.core != 0 || !is_above || counted.contains(&member.index) {
                continue;
            }
            counted.push(member.index);
            let time = self.threads[member.index][0].time;
            ahead.extend(match kind(member.described) {
                ClientKind::Sporadic => Some(Ahead {
                    budget_us: time.budget_us,
                    period_us: time.period_us,
                }),
                ClientKind::TableDriven => {
                    let slots = self.slots_in_cycle(member.name());
                    slots.map(|(budget_us, period_us)| Ahead {
                        budget_us,
                        period_us,
                    })
                }
                // Whatever others leave, and a rule of its own forbids it above clients with budgets.
                ClientKind::BestEffort => None,
            });
        }
        ahead
    }
}
