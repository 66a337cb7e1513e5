//! Several cores: which one acts next, and when it looks at its queues.

use sandglass_abi::syscall::Syscall;
use sandglass_model::state::{Core, State};

use super::Generator;
use crate::isa;
use crate::script::{Action, Call};

impl Generator {
    /// A look, or another core's turn; nothing on one core.
    pub(super) fn of_cores(&mut self, state: &State) -> Option<Action> {
        let cores = self.cores.min(state.cores.len());
        if cores == 1 {
            return None;
        }
        if std::mem::take(&mut self.is_late) {
            return self.another(state);
        }
        let core = state.core();
        let (looks, leaves) = match (core.look, core.thread) {
            (true, None) => (40, 15),
            (true, Some(_)) => (20, 15),
            (false, None) => (1, 85),
            (false, Some(_)) => (1, 12),
        };
        match self.rng.u32(0..100) {
            at if at < looks => Some(Action::Look),
            at if at < looks + leaves => self.another(state),
            at if at < 80 && core.look && core.thread.is_none() => Some(self.entry()),
            _ => None,
        }
    }

    /// On several cores, a system call may have to wait until another core had its turn.
    pub(super) fn maybe_late(&mut self, action: Action) -> Action {
        match action {
            Action::Call(call) if self.cores > 1 && self.chance(8) => {
                self.is_late = true;
                Action::Late(call)
            }
            action => action,
        }
    }

    /// The turn of a core on which something can happen, or now and then of any.
    fn another(&mut self, state: &State) -> Option<Action> {
        let any = self.chance(5);
        let acts = |core: &Core| core.thread.is_some() || core.look;
        let cores = state.cores.iter().enumerate().take(self.cores);
        let others: Vec<usize> = cores
            .filter(|&(i, core)| i != state.executing.0 && (any || acts(core)))
            .map(|(i, _)| i)
            .collect();
        self.choose(&others).map(|core| Action::On(core as u8))
    }

    /// What a core whose thread was taken away had come for.
    fn entry(&mut self) -> Action {
        match self.rng.u32(0..8) {
            0..5 => Action::Call(Call {
                number: Syscall::Yield as i64,
                ..Call::default()
            }),
            5 => isa::odd_event(&mut self.rng),
            6 => isa::exception_event(&mut self.rng),
            _ => Action::PageFault(self.edge(), isa::fault_code(&mut self.rng)),
        }
    }
}
