//! What the kernel does against speculation on each of its visits: whether each address space is entered only after what
//! belongs before it, and that nothing is done where none is entered.
//!
//! Of each core it knows which address space user code was in last, by the root that the exit loads, which it reads from the
//! machine's memory: it does not believe the kernel's own idea of that.
//!
//! [`BarrierMeter::summary`] has a line for each core that has come to user code:
//! `core NUMBER exits NUMBER switches NUMBER returns NUMBER`, and, with the name of each measure, a line
//! `core NUMBER NAME done NUMBER missed NUMBER needless NUMBER`.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

/// Calls that make a fill of the stack of returns.
const CALLS: u64 = 32;

/// IRETQ and SYSRETQ.
const LEAVES: [&[u8]; 2] = [&[0x48, 0xcf], &[0x48, 0x0f, 0x07]];

/// Most instructions between VERW and user code: the load of CR3, what restores the last register, and the way out itself.
const MOST_AFTER_CLEAR: u64 = 3;

/// What an instruction of the kernel does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Writes the register that controls speculation: at an exit, or before.
    Control { at_exit: bool },
    /// The barrier for indirect branches.
    Barrier,
    /// Flushes the first data cache.
    Flush,
    /// A call that nobody returns from.
    Fill,
    /// VERW.
    Clear,
    /// Loads CR3.
    Root,
    /// Returns to a caller.
    Return,
    /// Returns to user code, whether an instruction of that can be executed or not.
    Leave,
    /// Anything else at an exit.
    Step,
}

/// Finds events in the kernel's code, as the emulator translates it: from any instruction on, also between the one that says which
/// register is written and the one that writes it, if one translation ended there.
#[derive(Default)]
pub struct Finder {
    /// The code of the ways out.
    exits: Vec<Range<u64>>,
    /// What ECX is before the instructions at these addresses, from where it is set to where it has served.
    ecx: HashMap<u64, u32>,
}

impl Finder {
    /// `exits` is the code of the ways out.
    pub fn new(exits: Vec<Range<u64>>) -> Self {
        Self {
            exits,
            ecx: HashMap::new(),
        }
    }

    /// What the instruction at `address` does.
    pub fn event(&mut self, address: u64, bytes: &[u8]) -> Option<Event> {
        const SPEC_CTRL: u32 = 0x48;
        const PRED_CMD: u32 = 0x49;
        const FLUSH_CMD: u32 = 0x10b;
        const WRMSR: &[u8] = &[0x0f, 0x30];
        let at_exit = self.exits.iter().any(|exit| exit.contains(&address));
        let before = self.ecx.get(&address).copied();
        let behind = match *bytes {
            [0xb9, a, b, c, d] => Some(u32::from_le_bytes([a, b, c, d])),
            _ => before.filter(|_| bytes != WRMSR),
        };
        if let Some(ecx) = behind {
            self.ecx.insert(address + bytes.len() as u64, ecx);
        }
        match (bytes, before) {
            (WRMSR, Some(SPEC_CTRL)) => Some(Event::Control { at_exit }),
            (WRMSR, Some(PRED_CMD)) => Some(Event::Barrier),
            (WRMSR, Some(FLUSH_CMD)) => Some(Event::Flush),
            ([0xe8, 1, 0, 0, 0], _) => Some(Event::Fill),
            ([0x0f, 0x00, operand, ..], _) if operand >> 3 & 7 == 5 => Some(Event::Clear),
            ([0x0f, 0x22, operand], _) if operand >> 3 & 7 == 3 => Some(Event::Root),
            ([0xc3], _) => Some(Event::Return),
            (bytes, _) if LEAVES.contains(&bytes) => Some(Event::Leave),
            _ => at_exit.then_some(Event::Step),
        }
    }
}

/// How often something was done where it belongs, was not, and was done where nothing asks for it.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
struct Tally {
    done: u64,
    missed: u64,
    needless: u64,
}

impl Tally {
    fn count(&mut self, is_due: bool, times: u64) {
        match (is_due, times) {
            (true, 0) => self.missed += 1,
            (true, times) => {
                self.done += 1;
                self.needless += times - 1;
            }
            (false, times) => self.needless += times,
        }
    }
}

#[derive(Default, Clone, Debug)]
struct Core {
    /// Root of the address space whose user code ran last, and what CR3 was loaded with since.
    last: Option<u64>,
    root: u64,
    /// Since user code ran.
    barriers: u64,
    flushes: u64,
    fills: u64,
    is_restricted: bool,
    /// Instructions since VERW.
    cleared: Option<u64>,
    exits: u64,
    switches: u64,
    returns: u64,
    barrier: Tally,
    flush: Tally,
    fill: Tally,
    clear: Tally,
    /// Done at a return in the kernel while the register is set; missed at one while it is not, or at an exit while it is.
    control: Tally,
}

impl Core {
    fn happens(&mut self, event: Event, root: u64) {
        self.cleared = self.cleared.map(|since| since + 1);
        match event {
            Event::Control { at_exit } => self.is_restricted = !at_exit,
            Event::Barrier => self.barriers += 1,
            Event::Flush => self.flushes += 1,
            Event::Fill => self.fills += 1,
            Event::Clear => self.cleared = Some(0),
            Event::Root => self.root = root,
            Event::Return => {
                // Of the boot, no user knows anything.
                if self.last.is_some() {
                    self.returns += 1;
                    self.control.count(true, u64::from(self.is_restricted));
                }
            }
            Event::Leave => self.leaves(),
            Event::Step => {}
        }
    }

    fn leaves(&mut self) {
        let is_other = self.last != Some(self.root);
        self.last = Some(self.root);
        self.exits += 1;
        self.switches += u64::from(is_other);
        self.barrier
            .count(is_other, std::mem::take(&mut self.barriers));
        self.flush
            .count(is_other, std::mem::take(&mut self.flushes));
        let fills = match std::mem::take(&mut self.fills) {
            0..CALLS => 0,
            calls => calls.div_ceil(CALLS),
        };
        self.fill.count(is_other, fills);
        let cleared = std::mem::take(&mut self.cleared);
        let in_time = cleared.is_some_and(|since| since <= MOST_AFTER_CLEAR);
        self.clear.count(true, in_time.into());
        if self.is_restricted {
            self.control.missed += 1;
        }
    }
}

/// Watches all cores.
#[derive(Default)]
pub struct BarrierMeter(Vec<Core>);

impl BarrierMeter {
    fn core(&mut self, core: usize) -> &mut Core {
        if self.0.len() <= core {
            self.0.resize_with(core + 1, Core::default);
        }
        &mut self.0[core]
    }

    /// `core` executes an instruction of the kernel; `root` is that of the address space that it is to return to.
    pub fn happens(&mut self, core: usize, event: Event, root: u64) {
        self.core(core).happens(event, root);
    }

    /// What was seen.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (number, core) in self.0.iter().enumerate().filter(|(_, core)| core.exits > 0) {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "core {number} exits {} switches {} returns {}",
                core.exits, core.switches, core.returns
            );
            let tallies = [
                ("ibpb", core.barrier),
                ("l1d", core.flush),
                ("rsb", core.fill),
                ("verw", core.clear),
                ("ibrs", core.control),
            ];
            for (name, tally) in tallies {
                let Tally {
                    done,
                    missed,
                    needless,
                } = tally;
                let _ = writeln!(
                    text,
                    "core {number} {name} done {done} missed {missed} needless {needless}"
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Event = Event::Control { at_exit: false };
    const OFF: Event = Event::Control { at_exit: true };

    /// Visits, each with what it does and the root that it leaves for.
    fn after(visits: &[(&[Event], u64)]) -> Core {
        let mut core = Core::default();
        for (events, root) in visits {
            core.happens(Event::Step, 0);
            for &event in *events {
                core.happens(event, 0);
            }
            core.happens(Event::Root, *root);
            core.happens(Event::Leave, 0);
        }
        core
    }

    fn tally(done: u64, missed: u64, needless: u64) -> Tally {
        Tally {
            done,
            missed,
            needless,
        }
    }

    #[test]
    fn a_barrier_is_due_where_the_address_space_is_another() {
        let visits: [(&[Event], u64); 5] = [
            (&[Event::Barrier], 1),
            (&[], 1),
            (&[], 2),
            (&[Event::Barrier], 2),
            (&[Event::Barrier, Event::Barrier], 1),
        ];
        let core = after(&visits);
        assert_eq!((core.exits, core.switches), (5, 3));
        assert_eq!(core.barrier, tally(2, 1, 2));
        assert_eq!(core.flush, tally(0, 3, 0));
    }

    #[test]
    fn a_fill_has_all_its_calls() {
        let calls = |number| vec![Event::Fill; number];
        assert_eq!(after(&[(&calls(32), 1)]).fill, tally(1, 0, 0));
        assert_eq!(after(&[(&calls(31), 1)]).fill, tally(0, 1, 0));
        assert_eq!(after(&[(&calls(33), 1)]).fill, tally(1, 0, 1));
    }

    #[test]
    fn buffers_are_cleared_last() {
        // Two more follow.
        let late = [Event::Clear, Event::Step, Event::Step];
        assert_eq!(after(&[(&late[..2], 1)]).clear, tally(1, 0, 0));
        assert_eq!(after(&[(&late, 1), (&[], 1)]).clear, tally(0, 2, 0));
    }

    #[test]
    fn no_return_is_predicted_by_user_code() {
        let core = after(&[
            (&[Event::Return, ON, OFF], 1),
            (&[ON, Event::Return, Event::Return, OFF], 1),
            (&[Event::Return, ON, OFF], 1),
            (&[ON], 1),
        ]);
        assert_eq!((core.returns, core.control), (3, tally(2, 2, 0)));
    }

    #[test]
    fn events_are_found_in_code() {
        let mut finder = Finder::new(vec![Range {
            start: 0x100,
            end: 0x200,
        }]);
        let wrmsr = [0x0f, 0x30];
        assert_eq!(finder.event(0x50, &wrmsr), None);
        assert_eq!(finder.event(0x50, &[0xb9, 0x48, 0, 0, 0]), None);
        assert_eq!(finder.event(0x55, &wrmsr), Some(ON));
        let step = Some(Event::Step);
        assert_eq!(finder.event(0x150, &[0xb9, 0x48, 0, 0, 0]), step);
        assert_eq!(finder.event(0x155, &[0x31, 0xd2]), step);
        assert_eq!(finder.event(0x157, &wrmsr), Some(OFF));
        // Translated again, from the middle on; what is behind it has nothing of it.
        assert_eq!(finder.event(0x155, &[0x31, 0xd2]), step);
        assert_eq!(finder.event(0x157, &wrmsr), Some(OFF));
        assert_eq!(finder.event(0x159, &wrmsr), step);
        assert_eq!(finder.event(0x60, &[0xb9, 0x0b, 1, 0, 0]), None);
        assert_eq!(finder.event(0x65, &wrmsr), Some(Event::Flush));
        // verw word ptr [rip + 16]; mov cr3, rsp; mov cr0, rax
        let verw = [0x0f, 0x00, 0x2d, 0x10, 0, 0, 0];
        assert_eq!(finder.event(0x155, &verw), Some(Event::Clear));
        assert_eq!(finder.event(0x55, &[0x0f, 0x22, 0xdc]), Some(Event::Root));
        assert_eq!(finder.event(0x55, &[0x0f, 0x22, 0xc0]), None);
        assert_eq!(finder.event(0x155, &[0x48, 0xcf]), Some(Event::Leave));
    }
}
