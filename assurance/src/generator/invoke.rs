//! Arguments of operations, such as they might well be.

use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::sched::domain::{DOMAINS, SCHEDULE_LENGTH};
use sandglass_model::isa::COUNT;
use sandglass_model::state::Cap;

use super::{Generator, View, ADDRESSES};
use crate::isa;
use crate::operations::{Kind, Operation};

/// Lengths of turns, in ticks: with several domains, some end while the kernel runs.
const DURATIONS: &[u64] = match DOMAINS {
    1 => &[0, 1, 1000, (1 << 56) - 1, 1 << 56],
    _ => &[0, 1, 1000, 300_000, 300_000, 2_000_000, 2_000_000, 1 << 56],
};

/// Message words and extra capabilities.
pub(crate) type Arguments = (Vec<u64>, Vec<u64>);
impl Generator {
    /// Arguments for `operation` of the capability at `cptr`; `None` if there is nothing to use it
    /// on.
    pub(super) fn arguments(
        &mut self,
        view: &View,
        operation: &Operation,
        cptr: u64,
    ) -> Option<Arguments> {
        match operation.kind {
            Kind::Untyped => self.retype(view, cptr),
            Kind::Thread => self.thread_arguments(view, operation.label, cptr),
            Kind::CNode => self.cnode_arguments(view, operation.label, cptr),
            Kind::IrqControl => self.irq_control(view, operation.label),
            Kind::IrqHandler => {
                let notification =
                    self.pick(view, |cap| matches!(cap, Cap::Notification { .. }))?;
                Some((vec![], vec![notification]))
            }
            Kind::Domain => self.domain(view, operation.label),
            Kind::SchedControl => self.configure(view),
            Kind::SchedContext => self.context_arguments(view, operation.label, cptr),
            Kind::Pdpt | Kind::PageDirectory | Kind::PageTable => {
                let space = self.address_space(view)?;
                let address = self.choose(&ADDRESSES)?;
                Some((vec![address, self.rng.u64(0..8)], vec![space]))
            }
            Kind::Frame if isa::maintains(operation.label) => {
                let start = self.rng.u64(0..4096);
                Some((vec![start, self.rng.u64(0..4200)], vec![]))
            }
            Kind::Frame => self.page_arguments(view, cptr),
            Kind::AsidControl => {
                let page = |cap: &Cap| matches!(cap, Cap::Untyped { bits, .. } if u32::from(*bits) == types::ASID_POOL_BITS);
                let memory = self.pick(view, page)?;
                let (node, index, depth) = self.empty_slot(view)?;
                Some((vec![index, depth], vec![memory, node]))
            }
            Kind::AsidPool => {
                let root = self.pick(view, |cap| matches!(cap, Cap::Root { .. }))?;
                Some((vec![], vec![root]))
            }
            kind => self.arch_arguments(view, kind, cptr),
        }
    }

    /// An endpoint that can be a handler, or none.
    fn handler(&mut self, view: &View) -> u64 {
        let handler = |cap: &Cap| match cap {
            Cap::Endpoint { rights, .. } => rights.write && (rights.grant || rights.grant_reply),
            _ => false,
        };
        if self.chance(25) {
            0
        } else {
            self.pick(view, handler).unwrap_or(0)
        }
    }

    pub(crate) fn address_space(&mut self, view: &View) -> Option<u64> {
        let assigned = |cap: &Cap| matches!(cap, Cap::Root { asid: Some(_), .. });
        self.pick(view, assigned)
    }

    fn thread_arguments(&mut self, view: &View, label: u64, cptr: u64) -> Option<Arguments> {
        let thread = |cap: &Cap| matches!(cap, Cap::Thread(_));
        let page = |cap: &Cap| matches!(cap, Cap::Frame { device: false, .. });
        let cnode = |cap: &Cap| matches!(cap, Cap::CNode { .. });
        let buffer = 0x7000_0000 + self.rng.u64(0..4) * 1024;
        let roots = |generator: &mut Self| {
            let root = if generator.chance(70) {
                Some(sandglass_abi::boot::slot::CNODE)
            } else {
                generator.pick(view, cnode)
            };
            let data = if generator.chance(85) {
                0
            } else {
                generator.data()
            };
            Some((root?, generator.address_space(view)?, data))
        };
        Some(match label {
            label::TCB_READ_REGISTERS => (
                vec![self.rng.u64(0..8) / 7, self.rng.u64(1..COUNT as u64 + 1)],
                vec![],
            ),
            label::TCB_WRITE_REGISTERS => {
                let count = self.rng.u64(0..COUNT as u64 + 1);
                let mut words = vec![self.rng.u64(0..4), count];
                words.extend((0..count).map(|_| self.edge()));
                (words, vec![])
            }
            label::TCB_COPY_REGISTERS => {
                (vec![self.rng.u64(0..16)], vec![self.pick(view, thread)?])
            }
            label::TCB_CONFIGURE => {
                let (cspace, vspace, data) = roots(self)?;
                let frame = self.pick(view, page)?;
                (vec![data, 0, buffer], vec![cspace, vspace, frame])
            }
            label::TCB_SET_PRIORITY | label::TCB_SET_MC_PRIORITY => {
                let priority = self.choose(&[20, 99, 100, 119, 120, 140, 150, 160, 200, 255])?;
                (vec![priority], vec![self.pick(view, thread)?])
            }
            label::TCB_SET_SCHED_PARAMS => {
                let priority = self.choose(&[20, 100, 120, 140, 150, 160, 200])?;
                let context = if self.chance(30) {
                    0
                } else {
                    self.pick(view, |cap| matches!(cap, Cap::SchedContext { .. }))?
                };
                let authority = self.pick(view, thread)?;
                let handler = self.handler(view);
                (vec![255, priority], vec![authority, context, handler])
            }
            label::TCB_SET_TIMEOUT_ENDPOINT => (vec![], vec![self.handler(view)]),
            label::TCB_SET_IPC_BUFFER => {
                let address = if self.chance(10) { 0 } else { buffer };
                (vec![address], vec![self.pick(view, page)?])
            }
            label::TCB_SET_SPACE => {
                let (cspace, vspace, data) = roots(self)?;
                (vec![data, 0], vec![self.handler(view), cspace, vspace])
            }
            label::TCB_RESUME => {
                // One that is stopped, if the choice can be made.
                let chosen = view.entries.iter().find(|entry| entry.cptr == cptr)?;
                if !Self::is_stopped(view, chosen.cap) && self.chance(50) {
                    return None;
                }
                (vec![], vec![])
            }
            label::TCB_BIND_NOTIFICATION => {
                let any = |cap: &Cap| matches!(cap, Cap::Notification { .. });
                let free = |cap: &Cap| match cap {
                    Cap::Notification { object, rights, .. } => {
                        let bound = view.state.notifications.get(object);
                        rights.read && bound.is_some_and(|other| other.thread.is_none())
                    }
                    _ => false,
                };
                let found = self.pick(view, free).or_else(|| self.pick(view, any));
                (vec![], vec![found?])
            }
            label::TCB_SET_TLS_BASE => (vec![self.edge()], vec![]),
            label::TCB_SET_FLAGS => (vec![self.rng.u64(0..4), self.rng.u64(0..4)], vec![]),
            _ => (vec![], vec![]),
        })
    }

    fn domain(&mut self, view: &View, label: u64) -> Option<Arguments> {
        Some(match label {
            label::DOMAIN_SET => {
                let thread = self.pick(view, |cap| matches!(cap, Cap::Thread(_)))?;
                (vec![self.any_domain()], vec![thread])
            }
            label::DOMAIN_SCHEDULE_CONFIGURE => {
                let duration = self.choose(DURATIONS)?;
                (vec![self.any_entry(), self.any_domain(), duration], vec![])
            }
            _ => (vec![self.any_entry()], vec![]),
        })
    }

    /// The only domain, seldom one behind it; of several the first, one of the next two, or seldom one behind the last.
    fn any_domain(&mut self) -> u64 {
        if DOMAINS == 1 {
            return self.rng.u64(0..4) / 3;
        }
        match self.rng.u64(0..16) {
            0 => DOMAINS,
            1..7 => 1,
            7..9 => 2,
            _ => 0,
        }
    }

    /// An entry of the schedule, seldom the last; of many, one of the first.
    fn any_entry(&mut self) -> u64 {
        let last = SCHEDULE_LENGTH as u64 - 1;
        if last == 1 {
            return self.rng.u64(0..3) / 2;
        }
        match self.rng.u64(0..16) {
            0 => last,
            1 => last - 1,
            _ => self.rng.u64(0..3),
        }
    }

    fn configure(&mut self, view: &View) -> Option<Arguments> {
        let context = self.pick(view, |cap| matches!(cap, Cap::SchedContext { .. }))?;
        let entry = view.entries.iter().find(|entry| entry.cptr == context)?;
        let bits = match entry.cap {
            Cap::SchedContext { bits, .. } => u32::from(bits),
            _ => return None,
        };
        let period = self.choose(&[100, 200, 500, 1_000, 5_000, 10_000, 1_000_000])?;
        let budget = match self.rng.u32(0..32) {
            // Such a context suffices for no entry to the kernel, and its thread would repeat its
            // first system call for ever: few of them are enough.
            0 => 20,
            1..12 => period,
            _ => self.rng.u64(60..=period),
        };
        let period = if self.chance(2) { budget + 1 } else { period };
        let most = sandglass_abi::sched::max_extra_refills(bits);
        let extra = self.rng.u64(0..=most.min(12));
        let (badge, flags) = (self.edge(), self.rng.u64(0..2));
        Some((vec![budget, period, extra, badge, flags], vec![context]))
    }

    fn context_arguments(&mut self, view: &View, label: u64, cptr: u64) -> Option<Arguments> {
        let entry = view.entries.iter().find(|entry| entry.cptr == cptr)?;
        let Cap::SchedContext { object, .. } = entry.cap else {
            return None;
        };
        let context = view.state.contexts.get(&object)?;
        let thread = |cap: &Cap| matches!(cap, Cap::Thread(_));
        let notification = |cap: &Cap| matches!(cap, Cap::Notification { .. });
        match label {
            label::SCHED_CONTEXT_BIND => {
                let passive = |cap: &Cap| view.thread_of(*cap).is_some_and(|t| t.context.is_none());
                let bound = if self.chance(25) {
                    self.pick(view, notification)
                } else {
                    self.pick(view, passive).or_else(|| self.pick(view, thread))
                };
                Some((vec![], vec![bound?]))
            }
            label::SCHED_CONTEXT_UNBIND_OBJECT => {
                let own = |cap: &Cap| match cap {
                    Cap::Thread(thread) => context.thread == Some(*thread),
                    Cap::Notification { object, .. } => context.notification == Some(*object),
                    _ => false,
                };
                let bound = self.pick(view, own);
                Some((vec![], vec![bound.or_else(|| self.pick(view, thread))?]))
            }
            _ => Some((vec![], vec![])),
        }
    }

    fn page_arguments(&mut self, view: &View, cptr: u64) -> Option<Arguments> {
        let entry = view.entries.iter().find(|entry| entry.cptr == cptr)?;
        let Cap::Frame { mapping, bits, .. } = entry.cap else {
            return None;
        };
        let space = self.address_space(view)?;
        let address = match mapping {
            Some(mapping) if self.chance(80) => mapping.vaddr,
            _ => {
                let page = self.rng.u64(0..4) << 12;
                let address = self.choose(&ADDRESSES)? + page;
                if self.chance(90) {
                    address & !((1 << bits) - 1)
                } else {
                    address
                }
            }
        };
        let words = vec![address, self.rng.u64(0..16), self.rng.u64(0..8)];
        Some((words, vec![space]))
    }
}
