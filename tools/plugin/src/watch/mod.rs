//! The witness of a machine in the emulator: tells the [oracle](sandglass_oracle) who executes when, and
//! on which context's time.
//!
//! It sees which code runs and what the kernel writes, and reads the objects in the machine's memory. Time
//! is that of the machine's clock: what it showed at each reading by the kernel, and executed
//! instructions from there to the borders of user code. The kernel's time between is told as the witness of the
//! hosted machine does it: it is whoever caused the event that executes until the clock is read for the last
//! time, and from then on whoever runs next.
//!
//! A context is configured when the kernel writes its period, which it does at no other time. If no thread has
//! it then, it is forgotten: something else may lie there from now on.
//!
//! For one core: several share a clock that counts what all of them execute.

mod counts;
mod layout;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use sandglass_oracle::{Configuration, Finding, Limits, Oracle, Place as Where, Stretch, Ticks};

use counts::Counts;
pub use layout::{ContextView, Layout, Memory};

use crate::meter::{Block, Place};

/// The longest path of the kernel that does not end in a look: half of the least budget.
const PATH: Ticks = 10_000;
/// The least budget.
const LEAST_BUDGET: Ticks = 20_000;
/// Findings that are told one by one.
const TOLD: u64 = 20;
/// By how much the clock may differ from executed instructions over a stretch of user code. The emulator begins
/// some a second time, when it has found that they change their own code or speak to a device: it takes the
/// first time back from the clock, and the count knows of both. So the clock may also have passed by as
/// little as one in [`COUNTED`] says.
const CLOCK_ERROR: Ticks = 1_000;
const COUNTED: u64 = 2;

/// What is special about a block's last instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Last {
    /// Nothing.
    Other,
    /// The processor's counter is read.
    ReadsCounter,
    /// The kernel is left for user code, whose first instruction may fault before it is executed.
    Returns,
    /// The kernel lets interrupts arrive: from now on it idles.
    Opens,
    /// User code waits for an interrupt, on its own time: what passes is no instructions.
    Waits,
}

/// Who runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    thread: u64,
    context: u64,
    /// Since when in user code.
    since: Ticks,
    /// Instructions executed until then.
    count: u64,
    /// It has waited for an interrupt.
    waited: bool,
}

/// A reading of the clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Instructions executed until then.
    count: u64,
    time: Ticks,
}

impl Reading {
    fn time_at(self, count: u64) -> Ticks {
        let passed = count.wrapping_sub(self.count) as i64;
        self.time.saturating_add_signed(passed)
    }
}

/// An event under way.
#[derive(Clone, Copy, Debug)]
struct Event {
    causer: Option<Running>,
    /// Instructions executed until the kernel was entered.
    count: u64,
    /// The causer's time is told until then.
    told: Option<Ticks>,
    /// When the clock was read first.
    first: Option<Ticks>,
}

/// What is known of a context.
#[derive(Clone, Copy, Debug)]
struct Known {
    configuration: Option<Configuration>,
    consumed: Ticks,
}

/// Watches a machine.
pub struct Watch<M> {
    memory: M,
    layout: Layout,
    oracle: Oracle,
    known: HashMap<u64, Known>,
    /// A bit for each 16 bytes of memory: there is the period of a context that is known.
    periods: Vec<u64>,
    /// Contexts that were configured in this event.
    configured: Vec<u64>,
    /// Threads that wait for budget, with their contexts.
    waiting: Vec<(u64, u64)>,
    /// Executed instructions.
    count: u64,
    /// Those until the processor's counter was last read.
    counter_read: u64,
    /// What was read of it has been stored.
    is_stored: bool,
    /// The registers that the kernel loads, to leave with them.
    loaded: Option<u64>,
    reading: Option<Reading>,
    running: Option<Running>,
    event: Option<Event>,
    counts: Counts,
    text: String,
}

impl<M: Memory> Watch<M> {
    pub fn new(memory: M, layout: Layout) -> Self {
        let limits = Limits {
            least_budget: LEAST_BUDGET,
            path: PATH,
            // No other core waits.
            turn: 0,
        };
        let words = memory.end().div_ceil(16 * 64);
        Watch {
            memory,
            layout,
            oracle: Oracle::new(limits),
            known: HashMap::new(),
            periods: vec![0; words as usize],
            configured: Vec::new(),
            waiting: Vec::new(),
            count: 0,
            counter_read: 0,
            is_stored: false,
            loaded: None,
            reading: None,
            running: None,
            event: None,
            counts: Counts::default(),
            text: String::new(),
        }
    }

    pub fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    /// What there is to write since this was last called.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The last line, as [`Counts::line`] has it.
    pub fn summary(&self) -> String {
        self.counts.line(self.oracle.stretches())
    }

    /// `block` runs.
    #[inline]
    pub fn run(&mut self, block: Block, last: Last) {
        if block.place == Place::User {
            // The kernel begins below its addresses. User code is counted as it is executed.
            self.event = None;
            if let (Last::Waits, Some(running)) = (last, &mut self.running) {
                running.waited = true;
            }
            return;
        }
        if self.event.is_none() {
            self.enters();
        }
        if self.is_stored {
            self.reads_clock();
        }
        self.count += u64::from(block.length);
        match last {
            Last::ReadsCounter => self.counter_read = self.count,
            Last::Returns => self.leaves(true),
            Last::Opens => self.leaves(false),
            _ if block.place == Place::Halt => self.leaves(false),
            Last::Other | Last::Waits => {}
        }
    }

    /// An instruction of user code is executed. A block of it need not be to its end: it may change itself,
    /// over and over.
    #[inline]
    pub fn executes(&mut self) {
        self.count += 1;
    }

    /// The instruction of the kernel that first loads from somebody's registers reads at this virtual address. On aarch64 it
    /// reads two words, of which the first counts.
    #[inline]
    pub fn loads(&mut self, address: u64) {
        let registers = address.wrapping_sub(self.layout.loads_from);
        self.loaded.get_or_insert(registers);
    }

    /// The kernel has written `size` bytes at this virtual address.
    #[inline]
    pub fn wrote(&mut self, address: u64, size: u64) {
        if overlaps(address, size, self.layout.clock) {
            self.is_stored = true;
            return;
        }
        let physical = address.wrapping_sub(self.layout.window_base);
        if physical < self.memory.end() {
            self.wrote_object(physical, size);
        }
    }

    #[inline]
    fn wrote_object(&mut self, address: u64, size: u64) {
        let (first, last) = (address / 16, (address + size - 1) / 16);
        for unit in first..=last {
            let word = self.periods.get((unit / 64) as usize).copied();
            if word.unwrap_or(0) >> (unit % 64) & 1 == 0 {
                continue;
            }
            let context = (unit * 16).wrapping_sub(self.layout.period & !15);
            let period = context.wrapping_add(self.layout.period);
            if overlaps(address, size, period) && !self.configured.contains(&context) {
                self.configured.push(context);
            }
        }
    }

    /// The kernel is entered.
    fn enters(&mut self) {
        self.event = Some(Event {
            causer: self.running.take(),
            count: self.count,
            told: None,
            first: None,
        });
    }

    /// The kernel has stored what the clock showed when the counter was last read.
    fn reads_clock(&mut self) {
        self.is_stored = false;
        let reading = Reading {
            count: self.counter_read,
            time: self.layout.clock(&self.memory),
        };
        self.reading = Some(reading);
        let Some(mut event) = self.event else { return };
        event.first.get_or_insert(reading.time);
        self.causes(&mut event, reading, reading.time, true);
        self.event = Some(event);
    }

    /// The causer executes until `until`; user code, too, if that is not told yet.
    fn causes(&mut self, event: &mut Event, reading: Reading, until: Ticks, checked: bool) {
        let Some(causer) = event.causer else { return };
        let from = match event.told {
            Some(told) => told,
            None => {
                let entry = reading.time_at(event.count);
                self.agrees(causer, event.count, entry);
                let entry = entry.max(causer.since);
                self.ran(causer, causer.since, entry, Where::User, true);
                entry
            }
        };
        let until = until.max(from);
        self.ran(causer, from, until, Where::Kernel, checked);
        event.told = Some(until);
    }

    /// The clock says that user code ran until `entry`: so should the instructions that it executed.
    fn agrees(&mut self, causer: Running, count: u64, entry: Ticks) {
        let since = causer.since;
        let (counted, passed) = (count - causer.count, entry.saturating_sub(since));
        let least = (counted / COUNTED).saturating_sub(CLOCK_ERROR);
        let most = match causer.waited {
            true => Ticks::MAX,
            false => counted + CLOCK_ERROR,
        };
        if !(least..=most).contains(&passed) {
            self.tell(&format!(
                "clock: user code ran from {since} to {entry} as the kernel reads the clock, which is {passed} ticks, and \
                 executed {counted} instructions"
            ));
        }
    }

    /// The kernel is left: for user code, or to idle.
    fn leaves(&mut self, is_user: bool) {
        if self.is_stored {
            self.reads_clock();
        }
        let (Some(mut event), Some(reading)) = (self.event.take(), self.reading) else {
            // It has not read the clock yet: it boots.
            self.event = None;
            return;
        };
        let exit = reading.time_at(self.count);
        if event.told.is_none() {
            self.causes(&mut event, reading, exit, false);
        }
        let read = event.told.unwrap_or(reading.time);
        self.configures(event, read);
        let next = match is_user {
            true => self.layout.running(&self.memory, self.loaded),
            false => None,
        };
        self.loaded = None;
        if let Some(causer) = event.causer {
            let goes_on = next.is_some_and(|(_, context)| context == causer.context);
            self.pays(causer.context, goes_on, read);
            let seat = (causer.thread, causer.context);
            if !goes_on && !self.waiting.contains(&seat) {
                self.waiting.push(seat);
            }
        }
        self.wait_on(reading.time);
        let Some((thread, context)) = next else {
            return;
        };
        self.meets(context, reading.time);
        let since = read.max(reading.time);
        let exit = exit.max(since);
        let next = Running {
            thread,
            context,
            since: exit,
            count: self.count,
            waited: false,
        };
        self.ran(next, since, exit, Where::Kernel, false);
        self.running = Some(next);
    }

    /// Who waits for budget is not behind; who does not wait is looked at again when it has run.
    fn wait_on(&mut self, now: Ticks) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|&seat| self.layout.waits(&self.memory, seat, now));
        for &(_, context) in &waiting {
            self.oracle.is_on_time(context, now);
        }
        self.waiting = waiting;
    }

    /// Contexts were configured in `event`.
    fn configures(&mut self, event: Event, at: Ticks) {
        for context in std::mem::take(&mut self.configured) {
            let view = self.layout.context(&self.memory, context);
            let configuration = configuration(view);
            let is_own = event.causer.is_some_and(|causer| causer.context == context);
            let from = event.first.unwrap_or(at);
            // One whose thread cannot run has its whole budget at once.
            let is_whole = view.head_amount == view.budget && (from..=at).contains(&view.head_time);
            if !view.is_active || !self.layout.is_in_use(&self.memory, context) {
                self.forgets(context, at);
                continue;
            }
            if is_own || !is_whole {
                self.oracle.changes(context, configuration, at);
                self.counts.changed += 1;
            } else {
                self.oracle.starts(context, configuration, at);
                self.counts.begun += 1;
            }
            let known = Known {
                configuration,
                consumed: view.consumed,
            };
            self.known.insert(context, known);
        }
    }

    /// `context` runs next.
    fn meets(&mut self, context: u64, at: Ticks) {
        let consumed = self.memory.word(context + self.layout.consumed);
        if let Some(known) = self.known.get_mut(&context) {
            known.consumed = consumed;
            return;
        }
        let configuration = configuration(self.layout.context(&self.memory, context));
        self.oracle.knows(context, configuration, at);
        self.counts.contexts += 1;
        self.counts.begun += 1;
        let known = Known {
            configuration,
            consumed,
        };
        self.known.insert(context, known);
        if let Some((word, bit)) = self.period_of(context) {
            *word |= bit;
        }
    }

    /// Nothing is known of `context` any more.
    fn forgets(&mut self, context: u64, at: Ticks) {
        self.oracle.knows(context, None, at);
        self.known.remove(&context);
        if let Some((word, bit)) = self.period_of(context) {
            *word &= !bit;
        }
    }

    /// The bit for the period of `context`, and the word that has it.
    fn period_of(&mut self, context: u64) -> Option<(&mut u64, u64)> {
        let unit = (context + self.layout.period) / 16;
        let word = self.periods.get_mut((unit / 64) as usize)?;
        Some((word, 1 << (unit % 64)))
    }

    /// What the kernel charged the context that caused the event is compared with what it executed.
    fn pays(&mut self, context: u64, goes_on: bool, at: Ticks) {
        let consumed = self.memory.word(context + self.layout.consumed);
        if let Some(known) = self.known.get_mut(&context) {
            let before = std::mem::replace(&mut known.consumed, consumed);
            // A report makes the count start anew.
            let charged = consumed.checked_sub(before).unwrap_or(consumed);
            self.counts.payments += 1;
            let answer = self.oracle.charged(context, charged, at);
            self.hears(answer, context, at);
        }
        if !goes_on {
            self.oracle.has_paid(context);
        }
    }

    fn ran(&mut self, who: Running, start: Ticks, end: Ticks, place: Where, checked: bool) {
        let known = self.known.get(&who.context);
        let configuration = known.and_then(|known| known.configuration);
        match configuration {
            Some(Configuration { sporadic, .. }) if start < end => match sporadic {
                false => self.counts.windows += 1,
                true => self.counts.sporadic += 1,
            },
            _ => {}
        }
        let answer = self.oracle.ran(&Stretch {
            core: 0,
            thread: who.thread,
            context: who.context,
            start,
            end,
            place,
            checked,
        });
        self.hears(answer, who.context, end);
    }

    /// What the oracle says of `context`. After a finding its history starts anew.
    fn hears(&mut self, answer: Result<(), Finding>, context: u64, at: Ticks) {
        let Err(finding) = answer else { return };
        self.tell(&format!("{}: {finding}", finding.kind()));
        let known = self.known.get(&context);
        let configuration = known.and_then(|known| known.configuration);
        self.oracle.knows(context, configuration, at);
        if matches!(finding, Finding::Payment { .. }) {
            self.oracle.has_paid(context);
        }
        self.counts.begun += 1;
    }

    fn tell(&mut self, finding: &str) {
        self.counts.findings += 1;
        if self.counts.findings <= TOLD {
            self.text += &format!("finding {finding}\n");
        }
    }
}

/// How a context is configured; `None` if that means no windows.
fn configuration(view: ContextView) -> Option<Configuration> {
    (view.is_active && view.period > 0).then_some(Configuration {
        budget: view.budget,
        period: view.period,
        sporadic: view.is_sporadic,
    })
}

/// Whether `size` bytes at `address` are some of those of the word at `word`.
#[inline]
fn overlaps(address: u64, size: u64, word: u64) -> bool {
    address < word.wrapping_add(8) && word < address.wrapping_add(size)
}
