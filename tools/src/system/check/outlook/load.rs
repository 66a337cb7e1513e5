//! The demand on each core: what its threads may take of it.

use sandglass_abi::sched::MIN_BUDGET_US;

use super::super::super::findings::Finding;
use super::super::super::warning::Warning;
use super::super::names::ThreadIndex;
use super::super::Checker;

/// A whole core, in the units of [`CoreLoad::millionths`].
const WHOLE: u64 = 1_000_000;

/// What the threads of a core may take of its time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreLoad {
    /// The sum of budget over period of all threads whose budget is below their period, each rounded down, in
    /// millionths of the core.
    pub millionths: u64,
    /// Paths of the threads whose budget is their period: they take what is left.
    pub unlimited: Vec<String>,
}

impl CoreLoad {
    /// For people.
    pub fn demand(&self) -> String {
        percent(self.millionths)
    }
}

impl Checker<'_> {
    /// The demand on each core, in the lowest mode.
    pub(super) fn loads(&self) -> Vec<CoreLoad> {
        let mut loads = vec![CoreLoad::default(); self.cores as usize];
        for component in 0..self.threads.len() {
            for thread in self.active_threads(component) {
                let core = self.made(thread).time.core as usize;
                match self.share_of(thread) {
                    Some(share) => loads[core].millionths += share,
                    None => loads[core].unlimited.push(self.path(thread)),
                }
            }
        }
        loads
    }

    /// Budget over period of a thread, in millionths; `None` if nothing limits it.
    fn share_of(&self, thread: ThreadIndex) -> Option<u64> {
        let time = self.made(thread).time;
        let (budget, period) = match self.cooperative_job(thread) {
            Some(job) => job,
            None if self.slots_of_thread(thread).is_some() => self.slots_of_thread(thread)?,
            None if time.budget_us < time.period_us => (time.budget_us, time.period_us),
            None => return None,
        };
        let share = u128::from(budget) * u128::from(WHOLE) / u128::from(period.max(1));
        Some(share as u64)
    }

    /// What the slots of a client of a gate take, and of which time, µs.
    fn slots_of_thread(&self, thread: ThreadIndex) -> Option<(u64, u64)> {
        let name = &self.document.components[thread.component].name;
        self.slots_in_cycle(name.get_ref())
            .filter(|_| thread.thread == 0)
    }

    /// The longest job and the period of a task whose budget is not enforced, µs.
    pub(super) fn cooperative_job(&self, thread: ThreadIndex) -> Option<(u64, u64)> {
        if thread.thread != 0 {
            return None;
        }
        let name = self.document.components[thread.component].name.get_ref();
        let tasks = self.document.edf.iter().flat_map(|edf| edf.tasks.get_ref());
        let mut own = tasks.filter(|task| task.component.get_ref() == name);
        let task = own.next()?;
        Some((task.longest.as_ref()?.get_ref().0, task.period.get_ref().0))
    }

    /// Cores that are promised more than once.
    pub(super) fn overloads(&self, loads: &[CoreLoad]) -> Vec<Finding> {
        let over = loads
            .iter()
            .enumerate()
            .filter(|(_, load)| load.millionths > WHOLE);
        over.filter_map(|(core, load)| self.overload(core, load.millionths))
            .collect()
    }

    /// Threads that never make a system call: the kernel lets nobody in who has less left than the least budget (04, section
    /// 2.4), and theirs is that, of which something is used on the way to the call.
    pub(super) fn least_budgets(&self) -> impl Iterator<Item = Finding> + '_ {
        let threads = (0..self.threads.len()).flat_map(|component| self.active_threads(component));
        let least = threads.filter(|&thread| {
            self.made(thread).time.budget_us == MIN_BUDGET_US
                && self.cooperative_job(thread).is_none()
                && self.slots_of_thread(thread).is_none()
        });
        least.map(|thread| {
            let path = self.path(thread);
            Finding::new(
                self.place_of_time(thread),
                format!("`{path}` never gets to a system call"),
            )
            .warning(Warning::LeastBudget)
            .label(format!("the kernel lets nobody in with less than {MIN_BUDGET_US} µs left"))
            .help(format!(
                "give it more: {MIN_BUDGET_US} µs beyond what it uses before its last system call of a period"
            ))
            .about(path)
        })
    }

    fn overload(&self, core: usize, demand: u64) -> Option<Finding> {
        let components = 0..self.threads.len();
        let threads = components.flat_map(|component| self.active_threads(component));
        let here = threads.filter(|thread| self.made(*thread).time.core as usize == core);
        let shares = here.filter_map(|thread| Some((self.share_of(thread)?, thread)));
        let (share, largest) =
            shares.max_by_key(|(share, thread)| (*share, std::cmp::Reverse(*thread)))?;
        Some(
            Finding::new(
                self.place_of_time(largest),
                format!("the budgets on core {core} add up to {} of its time", percent(demand)),
            )
            .warning(Warning::Overload)
            .label(format!("the largest: {}", percent(share)))
            .help(
                "not all threads can have their budgets at a time, and the lowest priorities go short; lower budgets, \
                 lengthen periods, or move threads to another core",
            ),
        )
    }
}

/// Millionths as per cent, with one decimal.
fn percent(millionths: u64) -> String {
    let tenths = millionths / 1000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}
