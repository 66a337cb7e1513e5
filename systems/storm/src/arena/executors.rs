//! Arenas of the storm of instructions: threads that hold a few notifications and nothing else.

use alloc::vec::Vec;

use sandglass::cap::{GuardData, ObjectType, SchedContext, SchedParams};
use sandglass::SetupError;

use super::builder::Builder;
use super::Member;
use crate::actor::compose::PRIORITIES;
use crate::arch::instructions::low;
use crate::area::{AREAS, THREADS};
use crate::catalogue::{Kind, Node};
use crate::ground::SPACES;

/// Notifications that the threads hold, in a CNode of 64 slots.
const NOTIFICATIONS: usize = 8;

impl Builder<'_> {
    /// Threads that execute instructions.
    pub(super) fn for_instructions(&mut self) -> Result<Vec<Member>, SetupError> {
        let mut spaces = Vec::new();
        for space in 0..SPACES {
            spaces.push(self.space(space)?);
        }
        let (kind, object) = (Kind::Notification, ObjectType::Notification);
        self.make(Node::Small, kind, object, NOTIFICATIONS)?;
        let table = &self.ground.low_memory()[..low::TABLE_WORDS];
        low::renew(table, &mut self.dice());
        let mut members = Vec::new();
        for index in 0..THREADS {
            let tcb = self.resources.tcb()?;
            let space = index % SPACES;
            let timeout_handler = self.ground.timeout_handlers[index];
            members.push(Member {
                tcb,
                context: Some(self.limited_context(index)?),
                core: index % self.ground.controls.len(),
                priority: self.dice().choose(PRIORITIES),
                cspace: (self.small, GuardData::new(0, 64 - Node::Small.radix())),
                space,
                vspace: spaces[space],
                fault_handler: Some(self.ground.fault_handlers[index]),
                timeout_handler: (index % 2 == 0).then_some(timeout_handler),
            });
        }
        for index in 0..AREAS {
            self.area(index);
        }
        Ok(members)
    }

    /// A context for thread `index`, with constant bandwidth, or sporadic. Its budget is that of a few
    /// batches, so that one that is an endless loop does not take long to be found. The budgets of all
    /// threads together are more than there is time.
    fn limited_context(&mut self, index: usize) -> Result<(SchedContext, SchedParams), SetupError> {
        let period = 100 + self.dice().below(300);
        let budget = 20 + self.dice().below(40);
        let params = SchedParams::new(budget, period);
        let params = match index % 3 {
            0 => params,
            1 => params.sporadic(),
            _ => params.extra_refills(6).sporadic(),
        };
        let context = self.resources.sched_context(params.size_bits())?;
        Ok((context, params))
    }
}
