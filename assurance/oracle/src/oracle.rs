//! The oracle: all contexts and all cores.

use rustc_hash::FxHashMap;

use crate::account::Account;
use crate::finding::Finding;
use crate::Ticks;

/// What a context was given, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration {
    pub budget: Ticks,
    pub period: Ticks,
    pub sporadic: bool,
}

/// What is published of the kernel, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A context with less than this left is refused.
    pub least_budget: Ticks,
    /// The longest way through the kernel that is not its work's.
    pub path: Ticks,
    /// The longest that a core may keep another one waiting.
    pub turn: Ticks,
}

/// Where a context executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    User,
    /// In the kernel, which does on this context's time what somebody wanted.
    Kernel,
}

/// Somebody executed without interruption, on the time of one context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub core: usize,
    pub thread: u64,
    pub context: u64,
    pub start: Ticks,
    pub end: Ticks,
    pub place: Place,
    /// In the kernel: whether it looked at what is left of the budget at the end.
    pub checked: bool,
}

/// Checks what it is told, as it is told it: each context's stretches in the order of time.
#[derive(Clone, Debug)]
pub struct Oracle {
    limits: Limits,
    accounts: FxHashMap<u64, Account>,
    stretches: u64,
}

impl Oracle {
    pub fn new(limits: Limits) -> Oracle {
        Oracle {
            limits,
            accounts: FxHashMap::default(),
            stretches: 0,
        }
    }

    /// Number of stretches of execution that were checked.
    pub fn stretches(&self) -> u64 {
        self.stretches
    }

    /// There is a context, of which it is not known what it has used so far; without a configuration
    /// it has no windows.
    pub fn knows(&mut self, context: u64, configuration: Option<Configuration>, at: Ticks) {
        match self.accounts.get_mut(&context) {
            Some(account) => account.start_unknown(configuration, at),
            None => {
                let account = Account::new(context, configuration, at);
                self.accounts.insert(context, account);
            }
        }
    }

    /// Whether the context is known.
    pub fn is_known(&self, context: u64) -> bool {
        self.accounts.contains_key(&context)
    }

    /// The contexts that are known, of which those are forgotten that are not `kept`.
    pub fn retain(&mut self, kept: impl Fn(u64) -> bool) {
        self.accounts.retain(|&context, _| kept(context));
    }

    /// The context is configured, and has its whole budget at once.
    pub fn starts(&mut self, context: u64, configuration: Option<Configuration>, at: Ticks) {
        match self.accounts.get_mut(&context) {
            Some(account) => account.start(configuration, at),
            None => {
                let mut account = Account::new(context, configuration, at);
                account.start(configuration, at);
                self.accounts.insert(context, account);
            }
        }
    }

    /// The context, in use, is configured, and keeps its history.
    pub fn changes(&mut self, context: u64, configuration: Option<Configuration>, at: Ticks) {
        match self.accounts.get_mut(&context) {
            Some(account) => account.update(configuration, at),
            None => self.knows(context, configuration, at),
        }
    }

    /// Somebody executed.
    ///
    /// # Errors
    /// The context was used for more than it may, or on two cores at once.
    pub fn ran(&mut self, stretch: &Stretch) -> Result<(), Finding> {
        if stretch.start >= stretch.end {
            return Ok(());
        }
        self.stretches += 1;
        match self.accounts.get_mut(&stretch.context) {
            Some(account) => account.ran(stretch),
            None => Ok(()),
        }
    }

    /// The kernel charged the context for `ticks` more, until `at`.
    ///
    /// # Errors
    /// It did not execute for that.
    pub fn charged(&mut self, context: u64, ticks: Ticks, at: Ticks) -> Result<(), Finding> {
        match self.accounts.get_mut(&context) {
            Some(account) => account.charged(ticks, at, &self.limits),
            None => Ok(()),
        }
    }

    /// The context was charged for all that it executed: what comes is compared anew.
    pub fn has_paid(&mut self, context: u64) {
        if let Some(account) = self.accounts.get_mut(&context) {
            account.has_paid();
        }
    }

    /// The thread of the context wakes from waiting for somebody, or waits for budget: the context is
    /// not behind others.
    pub fn is_on_time(&mut self, context: u64, at: Ticks) {
        if let Some(account) = self.accounts.get_mut(&context) {
            account.is_on_time(at);
        }
    }

    /// The thread of the context gives up some budget that it has.
    pub fn gives_up(&mut self, context: u64, at: Ticks) {
        if let Some(account) = self.accounts.get_mut(&context) {
            account.void(at);
        }
    }

    /// The thread of the context has to wait for budget, or raises a timeout fault.
    ///
    /// # Errors
    /// It has budget.
    pub fn refused(&mut self, context: u64, at: Ticks) -> Result<(), Finding> {
        match self.accounts.get_mut(&context) {
            Some(account) => account.refused(at, &self.limits),
            None => Ok(()),
        }
    }

    /// `core` had the kernel until `end`, while another one waited from `since` on.
    ///
    /// # Errors
    /// That was too long.
    pub fn turn(&mut self, core: usize, since: Ticks, end: Ticks) -> Result<(), Finding> {
        if end.saturating_sub(since) > self.limits.turn {
            return Err(Finding::Turn {
                core,
                since,
                until: end,
                longest: self.limits.turn,
            });
        }
        Ok(())
    }
}
