use std::cell::RefCell;
use std::collections::HashMap;

use super::*;

const LAYOUT: Layout = Layout {
    clock: IMAGE + 0x100,
    loads: IMAGE + 0x200,
    loads_from: 0x18,
    window_base: WINDOW,
    image_base: IMAGE,
    thread_registers: 0x40,
    thread_context: 0x10,
    thread_place: 0x18,
    waits_for_budget: 2,
    period: 0,
    consumed: 8,
    user: 16,
    head_amount: 24,
    head_time: 32,
    end: 64,
    first: 40,
    queued: 41,
    max_refills: 42,
    sporadic: 44,
    refills: 48,
};
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const WINDOW: u64 = 0xffff_ff80_0000_0000;
const THREAD: u64 = 0x1000;
const CONTEXT: u64 = 0x2000;
const OTHER_THREAD: u64 = 0x3000;
const OTHER_CONTEXT: u64 = 0x4000;
const BUDGET: u64 = 10_000;
const PERIOD: u64 = 100_000;
/// Instructions of an event.
const PATH: u64 = 30;

/// Words, by their addresses.
#[derive(Default)]
struct Words(RefCell<HashMap<u64, u64>>);

impl Words {
    fn set(&self, address: u64, word: u64) {
        self.0.borrow_mut().insert(address, word);
    }
}

impl Memory for &Words {
    fn end(&self) -> u64 {
        1 << 20
    }

    fn word(&self, address: u64) -> u64 {
        self.0.borrow().get(&address).copied().unwrap_or(0)
    }
}

/// A machine whose kernel does as it is told.
struct Machine<'w> {
    words: &'w Words,
    watch: Watch<&'w Words>,
    /// What the clock shows.
    now: u64,
}

impl<'w> Machine<'w> {
    /// With two threads on contexts of the same kind, of which the first runs.
    fn new(words: &'w Words) -> Self {
        for (thread, context) in [(THREAD, CONTEXT), (OTHER_THREAD, OTHER_CONTEXT)] {
            words.set(thread + LAYOUT.thread_context, context);
            words.set(context + LAYOUT.user, thread);
            configure(words, context, BUDGET, 0);
        }
        let mut machine = Machine {
            words,
            watch: Watch::new(words, LAYOUT),
            now: 0,
        };
        machine.event(THREAD, |_| {});
        machine
    }

    fn block(&mut self, place: Place, length: u64, last: Last) {
        let block = Block {
            start: 0,
            length: length as u32,
            place,
        };
        self.now += length;
        self.watch.run(block, last);
    }

    fn user(&mut self, ticks: u64) {
        self.block(Place::User, ticks, Last::Other);
        self.executes(ticks);
    }

    /// So many instructions of a block of user code are executed.
    fn executes(&mut self, instructions: u64) {
        for _ in 0..instructions {
            self.watch.executes();
        }
    }

    /// The kernel runs, does something, and returns to `next`.
    fn event(&mut self, next: u64, does: impl FnOnce(&mut Self)) {
        self.enter();
        does(self);
        // Two words.
        let registers = WINDOW + next + LAYOUT.thread_registers + LAYOUT.loads_from;
        self.watch.loads(registers);
        self.watch.loads(registers + 8);
        self.returns();
    }

    fn returns(&mut self) {
        self.block(Place::Kernel, PATH / 3, Last::Returns);
    }

    /// The kernel runs and reads the clock.
    fn enter(&mut self) {
        self.block(Place::Kernel, PATH / 3, Last::ReadsCounter);
        self.words.set(LAYOUT.clock - IMAGE, self.now);
        self.watch.wrote(LAYOUT.clock, 8);
        self.block(Place::Kernel, PATH / 3, Last::Other);
    }

    /// The kernel writes the period of `context`, whose budget is there from now on.
    fn configures(&mut self, context: u64, budget: u64) {
        let read = (&self.words).word(LAYOUT.clock - IMAGE);
        configure(self.words, context, budget, read);
        self.watch.wrote(WINDOW + context + LAYOUT.period, 8);
    }

    /// The kernel waits for an interrupt, for so long.
    fn idles(&mut self, ticks: u64) {
        self.enter();
        self.block(Place::Halt, 1, Last::Other);
        self.now += ticks;
    }

    fn findings(&mut self) -> String {
        self.watch.take_text()
    }
}

fn configure(words: &Words, context: u64, budget: u64, head_time: u64) {
    words.set(context + LAYOUT.period, PERIOD);
    words.set(context + LAYOUT.head_amount, budget);
    words.set(context + LAYOUT.head_time, head_time);
    // 2 refills of 2, no queue.
    words.set(context + LAYOUT.first, 2 << 16 | 2 << 24);
}

#[test]
fn a_budget_in_each_period_is_no_finding() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    for _ in 0..50 {
        machine.user(BUDGET - PATH);
        machine.idles(PERIOD - BUDGET);
        machine.event(THREAD, |_| {});
    }
    assert_eq!(machine.findings(), "");
    assert!(machine.watch.counts.windows > 50);
}

#[test]
fn more_than_the_budget_in_a_period_is_found_and_told_of_the_right_context() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.user(BUDGET / 2);
    machine.event(OTHER_THREAD, |_| {});
    machine.user(BUDGET - 3 * PATH);
    machine.event(THREAD, |_| {});
    machine.user(BUDGET / 2 - 3 * PATH);
    machine.event(OTHER_THREAD, |_| {});
    assert_eq!(machine.findings(), "");
    machine.user(3 * PATH);
    machine.event(THREAD, |_| {});
    let found = machine.findings();
    assert!(found.starts_with("finding windows: the context at 0x4000"));
    assert_eq!(found.lines().count(), 1);
    assert!(machine.watch.summary().ends_with(" 1\n"));
}

#[test]
fn a_path_of_the_kernel_is_allowed_once() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.user(BUDGET - 6 * PATH);
    machine.event(THREAD, |machine| {
        machine.block(Place::Kernel, 5_000, Last::Other);
        machine.enter();
    });
    machine.event(THREAD, |_| {});
    assert_eq!(machine.findings(), "");
    machine.user(2 * PATH);
    machine.event(THREAD, |_| {});
    assert_eq!(machine.findings(), "");
    machine.user(6_000);
    machine.event(THREAD, |_| {});
    assert!(machine.findings().starts_with("finding windows"));
}

#[test]
fn a_context_that_is_configured_while_it_does_not_run_begins_anew() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.event(OTHER_THREAD, |_| {});
    machine.user(BUDGET - 4 * PATH);
    machine.event(THREAD, |_| {});
    machine.event(THREAD, |machine| {
        machine.configures(OTHER_CONTEXT, BUDGET / 2);
    });
    machine.event(OTHER_THREAD, |_| {});
    machine.user(BUDGET / 2 - 4 * PATH);
    machine.event(THREAD, |_| {});
    assert_eq!(machine.findings(), "");
    assert_eq!(machine.watch.counts.begun, 3);
    machine.event(OTHER_THREAD, |_| {});
    machine.user(8 * PATH);
    machine.event(THREAD, |_| {});
    assert!(machine.findings().contains("its budget is 5000"));
}

#[test]
fn who_configures_its_own_context_keeps_what_it_has_used() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.user(BUDGET - 3 * PATH);
    machine.event(THREAD, |machine| machine.configures(CONTEXT, BUDGET));
    assert_eq!(machine.findings(), "");
    assert_eq!(machine.watch.counts.changed, 1);
    machine.user(4 * PATH);
    machine.event(THREAD, |_| {});
    assert!(machine.findings().starts_with("finding windows"));
}

#[test]
fn what_lies_where_a_context_was_is_not_looked_at() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.event(OTHER_THREAD, |machine| {
        machine.words.set(CONTEXT + LAYOUT.user, 0);
        machine.configures(CONTEXT, BUDGET);
    });
    let counts = machine.watch.counts;
    machine.event(OTHER_THREAD, |machine| machine.configures(CONTEXT, 1));
    assert_eq!(machine.watch.counts.begun, counts.begun);
    assert_eq!(machine.watch.counts.changed, 0);
}

#[test]
fn a_charge_for_what_others_used_is_found() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.user(BUDGET / 2);
    machine.event(OTHER_THREAD, |machine| {
        machine.words.set(CONTEXT + LAYOUT.consumed, BUDGET / 2);
    });
    assert_eq!(machine.findings(), "");
    machine.event(THREAD, |_| {});
    machine.event(OTHER_THREAD, |machine| {
        machine.words.set(CONTEXT + LAYOUT.consumed, 3 * BUDGET);
    });
    assert!(machine.findings().starts_with("finding payment"));
}

#[test]
fn user_code_whose_first_instruction_faults_ends_the_turn_of_who_ran_before() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.user(BUDGET - 2 * PATH);
    for _ in 0..100 {
        machine.event(OTHER_THREAD, |_| {});
    }
    assert_eq!(machine.findings(), "");
}

/// Code that changes its own block at each turn: the emulator begins the whole block and leaves it.
#[test]
fn a_block_of_user_code_counts_as_far_as_it_is_executed() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    for _ in 0..2_000 {
        machine.block(Place::User, 50, Last::Other);
        machine.executes(2);
        machine.now -= 49;
    }
    machine.event(THREAD, |_| {});
    assert_eq!(machine.findings(), "");
}

#[test]
fn a_clock_that_leaves_out_executed_instructions_is_found() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    machine.user(8_000);
    machine.now -= 7_500;
    machine.event(THREAD, |_| {});
    assert!(machine.findings().starts_with("finding clock"));
}

/// User code of aarch64 may wait for an interrupt, on its own time.
#[test]
fn time_without_instructions_is_that_of_whoever_waits() {
    for (last, is_found) in [(Last::Other, true), (Last::Waits, false)] {
        let words = Words::default();
        let mut machine = Machine::new(&words);
        machine.user(100);
        machine.block(Place::User, 1, last);
        machine.now += 5_000;
        machine.event(THREAD, |_| {});
        let found = machine.findings();
        assert_eq!(found.starts_with("finding clock"), is_found, "{found}");
        // It is paid for.
        machine.user(BUDGET - 5_000);
        machine.event(THREAD, |_| {});
        let found = machine.findings();
        assert!(found.contains("windows"), "{found}");
    }
}

/// The kernel's first load of registers tells who runs.
#[test]
fn who_runs_next_is_whose_registers_are_loaded() {
    let words = Words::default();
    let mut machine = Machine::new(&words);
    for thread in [THREAD, OTHER_THREAD] {
        machine.event(thread, |_| {});
        let running = machine.watch.running.map(|running| running.thread);
        assert_eq!(running, Some(thread));
    }
    // Nobody's have been: it goes unseen, rather than to the last.
    machine.enter();
    machine.returns();
    assert!(machine.watch.running.is_none());
}

/// Where interrupts are let in before the core waits, one may come between: what it takes is nobody's.
#[test]
fn an_event_ends_when_interrupts_may_come() {
    for (last, goes_on) in [(Last::Other, true), (Last::Opens, false)] {
        let words = Words::default();
        let mut machine = Machine::new(&words);
        machine.user(100);
        machine.enter();
        machine.block(Place::Kernel, PATH / 3, last);
        assert_eq!(machine.watch.event.is_some(), goes_on);
        machine.enter();
        let event = machine.watch.event.unwrap();
        assert_eq!(event.causer.is_some(), goes_on);
    }
}
