//! Where things are in the memory of a machine that runs the kernel.

/// The machine's memory, as it is now.
pub trait Memory {
    /// Physical address behind the memory.
    fn end(&self) -> u64;
    /// The 8 bytes at this physical address, or 0 where there is no memory.
    fn word(&self, address: u64) -> u64;

    /// The byte at this physical address.
    fn byte(&self, address: u64) -> u8 {
        (self.word(address & !7) >> ((address & 7) * 8)) as u8
    }
}

/// What the kernel's file says of itself, as `sandglass_watch_NAME` in its table of symbols.
#[derive(Clone, Copy, Default, Debug)]
pub struct Layout {
    /// Virtual address of the time that the clock showed when the kernel last read it.
    pub clock: u64,
    /// Virtual address of the kernel's instruction that first loads from the registers of the thread that runs next, and where
    /// it does so in them.
    pub loads: u64,
    pub loads_from: u64,
    /// Virtual address of physical address 0, for objects.
    pub window_base: u64,
    /// What the image adds to its physical addresses.
    pub image_base: u64,
    /// Fields of threads.
    pub thread_registers: u64,
    pub thread_context: u64,
    pub thread_place: u64,
    /// The place of a thread that waits for budget.
    pub waits_for_budget: u64,
    /// Fields of contexts.
    pub period: u64,
    pub consumed: u64,
    /// The thread that has it.
    pub user: u64,
    pub head_amount: u64,
    pub head_time: u64,
    pub end: u64,
    pub first: u64,
    pub queued: u64,
    pub max_refills: u64,
    pub sporadic: u64,
    pub refills: u64,
}

impl Layout {
    /// Whether there is what no kernel has at 0.
    pub fn is_whole(&self) -> bool {
        [
            self.clock,
            self.loads,
            self.window_base,
            self.image_base,
            self.thread_context,
            self.refills,
        ]
        .iter()
        .all(|&number| number != 0)
    }

    /// The number of this name.
    pub fn field(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "clock" => &mut self.clock,
            "loads" => &mut self.loads,
            "loads_from" => &mut self.loads_from,
            "window_base" => &mut self.window_base,
            "image_base" => &mut self.image_base,
            "thread_registers" => &mut self.thread_registers,
            "thread_context" => &mut self.thread_context,
            "thread_place" => &mut self.thread_place,
            "waits_for_budget" => &mut self.waits_for_budget,
            "period" => &mut self.period,
            "consumed" => &mut self.consumed,
            "user" => &mut self.user,
            "head_amount" => &mut self.head_amount,
            "head_time" => &mut self.head_time,
            "end" => &mut self.end,
            "first" => &mut self.first,
            "queued" => &mut self.queued,
            "max_refills" => &mut self.max_refills,
            "sporadic" => &mut self.sporadic,
            "refills" => &mut self.refills,
            _ => return None,
        })
    }
}

/// Bytes of a refill behind the head: where it starts, of all the context's budget, and its time.
const REFILL_SIZE: u64 = 16;

/// A context, as it lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextView {
    pub period: u64,
    pub consumed: u64,
    /// All of its refills together, which is the budget that it was given.
    pub budget: u64,
    pub head_amount: u64,
    pub head_time: u64,
    pub is_active: bool,
    pub is_sporadic: bool,
}

impl Layout {
    /// The context at this physical address.
    pub fn context(&self, memory: &impl Memory, at: u64) -> ContextView {
        let head_amount = memory.word(at + self.head_amount);
        let first = u64::from(memory.byte(at + self.first));
        let queued = match memory.byte(at + self.queued) {
            0 => 0,
            _ => {
                let start = memory.word(at + self.refills + first * REFILL_SIZE);
                memory.word(at + self.end).wrapping_sub(start)
            }
        };
        ContextView {
            period: memory.word(at + self.period),
            consumed: memory.word(at + self.consumed),
            budget: head_amount.wrapping_add(queued),
            head_amount,
            head_time: memory.word(at + self.head_time),
            is_active: memory.byte(at + self.max_refills) > 0,
            is_sporadic: memory.byte(at + self.sporadic) != 0,
        }
    }

    /// Physical addresses of the thread whose registers, at this virtual address, the kernel has `loaded`, and of its context.
    pub fn running(&self, memory: &impl Memory, loaded: Option<u64>) -> Option<(u64, u64)> {
        let thread = loaded?
            .checked_sub(self.window_base)?
            .checked_sub(self.thread_registers)?;
        let context = self.context_of(memory, thread);
        (context != 0).then_some((thread, context))
    }

    /// The context of `thread`, or 0.
    pub fn context_of(&self, memory: &impl Memory, thread: u64) -> u64 {
        memory.word(thread.wrapping_add(self.thread_context))
    }

    /// Whether a thread has `context`: then they name each other, which what has come to lie there instead
    /// does not.
    pub fn is_in_use(&self, memory: &impl Memory, context: u64) -> bool {
        let thread = memory.word(context + self.user);
        thread != 0 && self.context_of(memory, thread) == context
    }

    /// Whether `thread` has `context` and waits for budget that comes after `now`.
    pub fn waits(&self, memory: &impl Memory, (thread, context): (u64, u64), now: u64) -> bool {
        u64::from(memory.byte(thread.wrapping_add(self.thread_place))) == self.waits_for_budget
            && self.context_of(memory, thread) == context
            && memory.word(context + self.head_time) > now
    }

    /// The time that the clock showed when the kernel last read it.
    pub fn clock(&self, memory: &impl Memory) -> u64 {
        memory.word(self.clock.wrapping_sub(self.image_base))
    }
}
