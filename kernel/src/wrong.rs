//! Rules that a kernel can be made to break, one at a time, so that the conformance suite can show
//! that it notices; and one of the processor's state, which the storm of instructions must notice.
//!
//! A kernel with the feature `wrong` breaks the rule whose position in [`Rule`], counted from 1, the
//! environment variable `SANDGLASS_WRONG_RULE` gives when the binary is built; without the variable
//! it does not build. Every other kernel breaks none: `broken!` is a literal `false` there, so that
//! not a byte of its code depends on this list.

/// Whether this kernel is to break the rule of this name.
#[cfg(not(feature = "wrong"))]
macro_rules! broken {
    ($rule:ident) => {
        false
    };
}

/// Whether this kernel is to break the rule of this name.
#[cfg(feature = "wrong")]
macro_rules! broken {
    ($rule:ident) => {
        $crate::wrong::is_broken($crate::wrong::Rule::$rule)
    };
}

/// Whether this kernel is to break the rule about time of this name.
#[cfg(not(feature = "wrong"))]
macro_rules! broken_in_time {
    ($rule:ident) => {
        false
    };
}

/// Whether this kernel is to break the rule about time of this name.
#[cfg(feature = "wrong")]
macro_rules! broken_in_time {
    ($rule:ident) => {
        $crate::wrong::position_is($crate::wrong::TimeRule::$rule as usize)
    };
}

/// Rules about time, for the oracle to notice (docs, "An oracle for time"): in the emulator, and on the hosted
/// machine, where the environment variable says at run time which one is broken. No answer of the ABI tells of them.
#[cfg(feature = "wrong")]
#[derive(Clone, Copy)]
#[repr(usize)]
pub enum TimeRule {
    /// A deletion that is done at its last look does not say that the budget is over.
    DeletionForgetsTheEnd = 101,
    /// Who waits for its turn in the kernel pays for it.
    WaitingIsPaid,
    /// Long operations do not make way for cores that wait.
    NobodyMakesWay,
    /// Who has stalled another core judges its refills by an earlier time.
    StallsAreInTheFuture,
    /// Half of what is used is charged.
    HalfIsFree,
}

/// What the wrong kernel does instead of what the ABI says. (`sandglass test` reads this list, in
/// this order.)
#[cfg(feature = "wrong")]
#[derive(Clone, Copy)]
#[repr(usize)]
pub enum Rule {
    /// 01/1: system call numbers are compared as 32 bits.
    NarrowNumbers = 1,
    /// 02/3: a frame capability masked to write without read keeps both.
    WriteAloneReads,
    /// 02/5.1: copies count as originals, of which the next ones are children.
    CopiesAreOriginals,
    /// 02/6: Copy looks at its source before it refuses an occupied destination.
    OccupiedTooLate,
    /// 02/7.4: CancelBadgedSends cancels the sends of every badge.
    CancelsEveryBadge,
    /// 02/8: capabilities to the endpoint that carries them are not unwrapped.
    NothingUnwrapped,
    /// 03/3: the range error of Retype's window says how many objects there may be in any call.
    WindowOfAnySize,
    /// 03/4.2: WriteRegisters of no registers leaves the next instruction as it is.
    NextIpKept,
    /// 03/4.5: a thread may be given any maximum controlled priority.
    McpUnchecked,
    /// 03/8.3: a frame that is mapped may be mapped somewhere else.
    RemapsAnywhere,
    /// 04/4: used time that a full queue merges comes back with its tail, too early.
    MergedTooEarly,
    /// 04/5.4: sporadic contexts do not start anew when their threads wake.
    SporadicSleeps,
    /// 04/7.3: plain sends of the two-phase system calls do not donate.
    NoDonationBySend,
    /// 04/7.5: the context is not returned when the topmost reply object is deleted.
    DeletedReplyKeeps,
    /// 04/8.1: what belongs at the tail of a ready queue goes to its head.
    TailIsHead,
    /// 04/8.5: a woken thread preempts one of its own priority.
    EqualsPreempt,
    /// 04/9.3: the consumed time is reported again and again.
    ConsumedKept,
    /// 05/2.4: timeout faults do not tell the consumed time.
    TimeoutsWithoutTime,
    /// 05/6: the reply to a fault writes all registers, however short it is.
    ReplyLengthIgnored,
    /// 06/2: the boot information reports no levels of I/O page tables instead of no IOMMU.
    IommuWithoutLevels,
    /// 07/6: read-only mappings can be written.
    ReadOnlyIsWritable,
    /// 07/8: a pool gives out only half of its identifiers.
    PoolsHalfUsed,
    /// storm: the local descriptor table stays as a reset leaves it, 64 KiB at address 0.
    LdtUsable,
}

#[cfg(feature = "wrong")]
#[inline(always)]
pub fn is_broken(rule: Rule) -> bool {
    position_is(rule as usize)
}

#[cfg(feature = "wrong")]
#[inline(always)]
pub fn position_is(position: usize) -> bool {
    position == crate::arch::broken_rule::position()
}
