//! Bounds that the analysis of worst-case execution time reads from the binary: on the bare machine each becomes a record
//! in a section that is not loaded, and no instruction; on a host it is checked wherever it is met.
//!
//! A record has three words: an address, what is said of it, and a number. `assurance/wcet` reads them.

/// What a record says of its address.
#[cfg(target_os = "none")]
pub(in crate::arch) mod kind {
    /// The loop around it comes here at most so many times whenever it is entered.
    pub const TURNS: u64 = 1;
    /// The instruction repeats itself at most so many times: where there are such instructions.
    #[cfg(target_arch = "x86_64")]
    pub const REPEATS: u64 = 2;
    /// The next call has at most this as third argument.
    pub const ARGUMENT: u64 = 3;
    /// It is reached at most so many times between two checks for interrupts: the lower half; the upper one says what is
    /// counted together.
    pub const STEPS: u64 = 4;
    /// It is reached at most so many times in each call of the function that it is in: the lower 40 bits; those above say
    /// as how many it counts, besides one.
    pub const TOGETHER: u64 = 6;
    /// Limits of paths name it.
    pub const MARK: u64 = 5;
    /// A register holds an address in an object, which is aligned: [`in_object`](super::in_object).
    pub const POINTER: u64 = 7;
}

/// What a record says of a register, by its number in instructions, that holds the address of what is so many bytes from the
/// beginning of a `T`: assembly has no debugging information.
#[cfg(target_os = "none")]
pub(in crate::arch) const fn in_object<T>(register: u64, offset: usize) -> u64 {
    assert!(offset < 1 << 32 && register < 32);
    register << 40 | (align_of::<T>().trailing_zeros() as u64) << 32 | offset as u64
}

/// As the bound of a loop: the levels of capability spaces, a parameter of the analysis.
pub const LEVELS: u64 = 1 << 32;
/// As the bound of a loop: the levels of capability spaces but for the first.
pub const DEEPER: u64 = 1 << 33;
/// As the bound of a loop, with a number of bytes: as many as the third argument of the function has of them.
#[cfg(all(target_os = "none", target_arch = "aarch64"))]
pub const OF_ARGUMENT: u64 = 1 << 34;
/// The most levels that there can be: a bit of an address leads through one, at least.
#[cfg(not(target_os = "none"))]
const MOST_LEVELS: u64 = 64;

/// A bound, whatever the depth of capability spaces.
#[cfg(not(target_os = "none"))]
const fn at_any_depth(most: u64) -> u64 {
    match most {
        LEVELS => MOST_LEVELS,
        DEEPER => MOST_LEVELS - 1,
        most => most,
    }
}

/// Says something of the place where it is called. A macro, as the text of assembly is one.
#[cfg(target_os = "none")]
macro_rules! record {
    ($kind:expr, $value:expr) => {
        // SAFETY: no instruction, and no section that is loaded.
        unsafe {
            core::arch::asm!(
                "2:",
                ".pushsection .sandglass.wcet, \"\", @progbits",
                ".quad 2b, {kind}, {value}",
                ".popsection",
                kind = const $kind, value = const $value,
                options(nomem, nostack, preserves_flags)
            )
        }
    };
}

/// The turns that a loop may take whenever it is entered: `MOST`, or [`LEVELS`], or [`DEEPER`].
pub struct Turns<const MOST: u64> {
    #[cfg(not(target_os = "none"))]
    taken: u64,
}

impl<const MOST: u64> Turns<MOST> {
    /// Before the loop.
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            #[cfg(not(target_os = "none"))]
            taken: 0,
        }
    }

    /// In the loop, on the way that every turn takes.
    #[inline(always)]
    pub fn turn(&mut self) {
        #[cfg(target_os = "none")]
        record!(kind::TURNS, MOST);
        #[cfg(not(target_os = "none"))]
        {
            self.taken += 1;
            let most = at_any_depth(MOST);
            assert!(self.taken <= most, "a loop takes more than {most} turns");
        }
    }
}

/// What `turns` yields, for a loop that takes at most `MOST` turns over it: a number, [`LEVELS`] or [`DEEPER`].
#[inline(always)]
pub fn turns<const MOST: u64, I: Iterator>(turns: I) -> impl Iterator<Item = I::Item> {
    let mut taken = Turns::<MOST>::new();
    turns.inspect(move |_| taken.turn())
}

/// The turns that several loops of a function, which is never inlined, may take together in one call: `MOST`, or [`DEEPER`].
pub struct Together<const MOST: u64> {
    #[cfg(not(target_os = "none"))]
    taken: u64,
}

impl<const MOST: u64> Together<MOST> {
    /// Before the loops; not `bounded`: where the bound does not hold, because the machine is not one that is analysed.
    #[inline(always)]
    pub const fn new(bounded: bool) -> Self {
        let _ = bounded;
        Self {
            #[cfg(not(target_os = "none"))]
            taken: if bounded { 0 } else { u64::MAX },
        }
    }

    /// In each of the loops, on the way that every turn takes.
    #[inline(always)]
    pub fn turn(&mut self) {
        self.turns::<1>();
    }

    /// A turn that counts as so many.
    #[inline(always)]
    pub fn turns<const COUNT: u64>(&mut self) {
        #[cfg(target_os = "none")]
        record!(kind::TOGETHER, (COUNT - 1) << 40 | MOST);
        #[cfg(not(target_os = "none"))]
        if self.taken != u64::MAX {
            self.taken += COUNT;
            let most = at_any_depth(MOST);
            assert!(
                self.taken <= most,
                "loops take more than {most} turns together"
            );
        }
    }
}

/// `bytes`, which is how much the call that follows copies or fills: at most `MOST`.
#[inline(always)]
pub fn at_most<const MOST: u64>(bytes: usize) -> usize {
    #[cfg(target_os = "none")]
    record!(kind::ARGUMENT, MOST);
    #[cfg(not(target_os = "none"))]
    assert!(
        bytes as u64 <= MOST,
        "{bytes} bytes where {MOST} is the most"
    );
    bytes
}

/// Steps of long operations: those of one kind are counted together.
pub mod kind_of_step {
    /// A part of an operation that consists of such parts.
    pub const PART: u64 = 0;
    /// A capability goes.
    pub const COPY: u64 = 1;
    /// An object is taken apart.
    pub const OBJECT: u64 = 2;
    /// A zombie is moved.
    pub const MOVE: u64 = 3;
    /// A child of a capability that is revoked goes.
    pub const CHILD: u64 = 4;
    /// A capability is replaced.
    pub const REPLACED: u64 = 5;
}

/// A step of a kind of which there are at most `MOST` between two checks for interrupts: `taken` with this one.
#[inline(always)]
pub fn step<const KIND: u64, const MOST: u64>(taken: u64) {
    #[cfg(target_os = "none")]
    {
        record!(kind::STEPS, KIND << 32 | MOST);
        let _ = taken;
    }
    #[cfg(not(target_os = "none"))]
    assert!(
        taken <= MOST,
        "{taken} steps without a check for interrupts"
    );
}

/// Marks: an object that the kernel implements is invoked.
pub const INVOCATION: u64 = 1;
/// Marks: what was invoked was checked, and is done now.
pub const COMMIT: u64 = 2;
/// Marks: a receive phase begins.
pub const RECEPTION: u64 = 3;
/// Marks: a send phase begins.
pub const SENDING: u64 = 4;
/// Marks: capabilities of a message are looked up.
pub const CAPABILITIES: u64 = 5;
/// Marks: a straight line plans an interrupt, or the longest of them a system call, since the budget lasts.
pub const PLANNING: u64 = 6;
/// Marks: the reply object of a receive phase is looked up.
pub const OFFER: u64 = 7;
/// Marks: somebody is answered who has no fault.
pub const MESSAGE: u64 = 8;
/// Marks: a straight line has found the reply object in one step.
pub const DIRECT: u64 = 9;
/// Marks: the current thread could go on when it is decided who runs.
pub const STAYING: u64 = 10;
/// Marks: the first of those that are ready is to run.
pub const READY: u64 = 11;
/// Marks: somebody is due when the current thread is to go on.
pub const PREEMPTION: u64 = 12;
/// Marks: Retype has made the last of its objects.
pub const LAST_OBJECT: u64 = 13;
/// Marks: the current thread does not go on, and another was woken.
pub const CANDIDATE: u64 = 14;
/// Marks: nothing has been decided against the current thread when an event ends.
pub const KEEPING: u64 = 15;
/// Marks: somebody is told of a fault that is no timeout.
pub const FAULT: u64 = 16;
/// Marks: a straight line has found that what is sent has no capabilities.
pub const PLAIN: u64 = 17;
/// Marks: a straight line has found that what is named first takes messages or signals, and somebody waits for the message.
pub const SENDABLE: u64 = 18;

/// What was invoked was checked, and is done now: no slot that it named was missing.
#[inline(always)]
pub fn commit() {
    mark::<COMMIT>();
}

/// A place that limits of paths name.
#[inline(always)]
pub fn mark<const NAME: u64>() {
    #[cfg(target_os = "none")]
    record!(kind::MARK, NAME);
}

/// What the analysis found of this binary: the longest path and the interrupt latency, in instructions and in ns; and the
/// least budget of its platform, in µs, if that is not the ABI's. Zeros, until a tool has analysed the kernel's file and
/// writes it there (`assurance/binary`, `stamp`).
#[cfg(target_os = "none")]
#[used]
#[unsafe(export_name = "sandglass_analysed")]
static ANALYSED: [u64; 5] = [0; 5];

/// What the analysis found of this binary, in the order of [`sandglass_abi::boot::extra::Timing`], and the least budget.
pub fn analysed() -> [u64; 5] {
    #[cfg(not(target_os = "none"))]
    return [0; 5];
    #[cfg(target_os = "none")]
    // SAFETY: it is initialised and nobody writes it while the kernel runs. Volatile, as the file is changed behind the
    // compiler's back.
    unsafe {
        core::ptr::read_volatile(&raw const ANALYSED)
    }
}

/// The least budget, in µs: of the platform that the binary was analysed for, if it has its own.
pub fn min_budget_us() -> u64 {
    match analysed() {
        [.., 0] => sandglass_abi::sched::MIN_BUDGET_US,
        [.., own] => own,
    }
}
