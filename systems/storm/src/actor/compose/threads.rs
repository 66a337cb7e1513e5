//! Arguments of invocations of threads, scheduling contexts and domains.

use sandglass::abi::cnode::GuardData;
use sandglass::abi::invocation::*;
use sandglass::abi::sched;
use sandglass::arch::order;

use super::{Composer, Draft};
use crate::arch::gate;
use crate::area::{area_address, buffer_address, stack_top, AREAS};
use crate::catalogue::{Kind, Node};

/// The storm's priorities: well below the canary and the supervisor, and few, so that equal ones
/// meet. Every thread's maximum controlled priority is among them.
pub const PRIORITIES: [u8; 6] = [2, 20, 20, 60, 120, 200];

impl Composer<'_> {
    pub(super) fn thread(&mut self, draft: &mut Draft) {
        match draft.label {
            TCB_READ_REGISTERS => {
                let flags = u64::from(self.dice.one_in(4));
                let count = 1 + self.dice.below(order::COUNT as u64 + 1);
                draft.words([flags, count]);
            }
            TCB_WRITE_REGISTERS => self.registers(draft),
            TCB_COPY_REGISTERS => {
                let flags = self.dice.below(16);
                draft.word(flags);
                self.add(draft, Kind::Tcb);
            }
            TCB_CONFIGURE => {
                let (data, address) = (self.space_data(), self.buffer());
                draft.words([data, 0, address]);
                self.add_space(draft);
                self.add(draft, Kind::Frame);
            }
            TCB_SET_PRIORITY | TCB_SET_MC_PRIORITY => {
                let priority = self.priority();
                draft.word(priority);
                self.add(draft, Kind::Tcb);
            }
            TCB_SET_SCHED_PARAMS => {
                let words = [self.priority(), self.priority()];
                draft.words(words);
                self.add(draft, Kind::Tcb);
                self.add_or_null(draft, Kind::SchedContext);
                self.add_or_null(draft, Kind::Endpoint);
            }
            TCB_SET_TIMEOUT_ENDPOINT => self.add_or_null(draft, Kind::Endpoint),
            TCB_SET_IPC_BUFFER => {
                let address = self.buffer();
                draft.word(address);
                self.add(draft, Kind::Frame);
            }
            TCB_SET_SPACE => {
                let data = self.space_data();
                draft.words([data, 0]);
                self.add_or_null(draft, Kind::Endpoint);
                self.add_space(draft);
            }
            TCB_BIND_NOTIFICATION => self.add(draft, Kind::Notification),
            TCB_SET_TLS_BASE => {
                let address = self.dice.wild();
                draft.word(address);
            }
            TCB_SET_BREAKPOINT => {
                let address = match self.dice.below(4) {
                    0 => self.dice.wild(),
                    1 => gate::entry_address(),
                    _ => area_address(self.dice.index(AREAS)) + 8 * self.dice.below(64),
                };
                let size = self.dice.choose([0, 0, 1, 2, 4]);
                let words = [
                    self.dice.below(5),
                    address,
                    self.dice.below(2),
                    size,
                    self.dice.below(3),
                ];
                draft.words(words);
            }
            TCB_GET_BREAKPOINT | TCB_UNSET_BREAKPOINT => {
                let number = self.dice.below(5);
                draft.word(number);
            }
            TCB_CONFIGURE_SINGLE_STEPPING => {
                let words = [self.dice.below(4), self.dice.below(500)];
                draft.words(words);
            }
            TCB_SET_FLAGS => {
                let words = [self.dice.below(4), self.dice.below(2)];
                draft.words(words);
            }
            _ => {}
        }
    }

    /// Registers to write: mostly such that the thread joins the storm, else anything.
    fn registers(&mut self, draft: &mut Draft) {
        let mut registers = [0; order::COUNT];
        if self.dice.one_in(4) {
            registers.fill_with(|| self.dice.wild());
        } else {
            let index = self.dice.index(AREAS);
            registers[order::IP] = gate::entry_address();
            registers[order::SP] = stack_top(index);
            registers[order::ARGUMENT] = area_address(index);
            registers[order::FLAGS] = self.dice.wild();
        }
        let resume = u64::from(!self.dice.one_in(4));
        draft.words([resume, order::COUNT as u64]);
        draft.words(registers);
    }

    /// Guard of a CSpace root: mostly the one that makes slot numbers capability pointers.
    fn space_data(&mut self) -> u64 {
        match self.dice.below(8) {
            0 => self.dice.wild(),
            1 => 0,
            _ => GuardData::new(0, 64 - Node::Main.radix()).raw(),
        }
    }

    fn buffer(&mut self) -> u64 {
        match self.dice.below(6) {
            0 => 0,
            1 => self.dice.wild(),
            _ => buffer_address(self.dice.index(AREAS)) + 1024 * self.dice.below(4),
        }
    }

    fn priority(&mut self) -> u64 {
        match self.dice.below(8) {
            0 => self.dice.below(256),
            _ => u64::from(self.dice.choose(PRIORITIES)),
        }
    }

    fn add(&mut self, draft: &mut Draft, kind: Kind) {
        let cap = self.pick(kind);
        draft.cap(cap);
    }

    fn add_or_null(&mut self, draft: &mut Draft, kind: Kind) {
        let kind = if self.dice.one_in(3) {
            Kind::Null
        } else {
            kind
        };
        self.add(draft, kind);
    }

    fn add_space(&mut self, draft: &mut Draft) {
        self.add(draft, Kind::MainNode);
        self.add(draft, Kind::VSpace);
    }

    pub(super) fn time(&mut self, draft: &mut Draft) {
        match draft.label {
            DOMAIN_SET => {
                let domain = u64::from(self.dice.one_in(4));
                draft.word(domain);
                self.add(draft, Kind::Tcb);
            }
            DOMAIN_SCHEDULE_CONFIGURE => {
                let words = [
                    self.dice.below(2),
                    u64::from(self.dice.one_in(4)),
                    self.dice.wild(),
                ];
                draft.words(words);
            }
            DOMAIN_SCHEDULE_SET_START => {
                let index = self.dice.below(3);
                draft.word(index);
            }
            SCHED_CONTROL_CONFIGURE_FLAGS => self.budget(draft),
            SCHED_CONTEXT_BIND | SCHED_CONTEXT_UNBIND_OBJECT => {
                let kind = self.dice.choose([Kind::Tcb, Kind::Notification]);
                self.add(draft, kind);
            }
            _ => {}
        }
    }

    fn budget(&mut self, draft: &mut Draft) {
        let period = sched::MIN_BUDGET_US + self.dice.below(2_000);
        let budget = match self.dice.below(4) {
            0 => period,
            1 => self.dice.below(period + 20),
            _ => sched::MIN_BUDGET_US + self.dice.below(period - sched::MIN_BUDGET_US + 1),
        };
        let extra_refills = match self.dice.below(3) {
            0 => self.dice.below(12),
            _ => 0,
        };
        let badge = self.dice.below(16);
        let flags = self.dice.below(2);
        draft.words([budget, period, extra_refills, badge, flags]);
        self.add(draft, Kind::SchedContext);
    }
}
