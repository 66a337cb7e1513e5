//! Execution traces: the records that a kernel built for traces writes, and its system calls.
//!
//! None of this is part of the seL4 ABI. A kernel without traces knows none of the calls; they have
//! the numbers that the ABI keeps for a benchmark log, where what they do is what those do, and one
//! number beyond all of the ABI's.
//!
//! A *record* is five words ([`RECORD_WORDS`]):
//!
//! | word | content |
//! | --- | --- |
//! | 0 | the [`Tag`]: sequence number, kind, core, detail; the number is 0 if there is no record |
//! | 1 | time in ticks: of entry to the kernel |
//! | 2 | the subject: address of a kernel object, in most kinds a thread or a scheduling context |
//! | 3, 4 | what the kind says |
//!
//! The number is written last, and is 0 while the rest changes: whoever reads the same number, not 0,
//! before and after the rest has read one record.

/// Words of a record.
pub const RECORD_WORDS: usize = 5;
/// Bytes of a record.
pub const RECORD_BYTES: u64 = RECORD_WORDS as u64 * 8;

/// A system call of a trace kernel.
#[repr(i64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Forgets what a core recorded, and records again if that had ended. Capability register:
    /// scheduling control of the core. Answer, there: 0, or 3 (IllegalOperation) if it is something
    /// else, or the core has no buffer.
    ResetLog = -22,
    /// Ends the recording of a core. Capability register: scheduling control of the core. Answer,
    /// there: the number of the last record of all cores; unchanged if it is something else, or the
    /// core records nothing.
    FinalizeLog = -23,
    /// Gives a core memory for its records. Capability register: a frame of RAM of 2 MiB, with the
    /// rights to read and to write it; info register: [`STOP_WHEN_FULL`] or not; message register 0:
    /// scheduling control of the core. A frame that begins where the core's buffer ends makes that
    /// longer; any other is the buffer from now on. Answer, in the capability register: 0, or 3
    /// (IllegalOperation).
    SetLogBuffer = -24,
    /// Writes a record of kind [`Kind::Mark`]. Capability register: a thread or scheduling context,
    /// the subject; nothing that can be found stands for the caller. Info register: detail. Message
    /// registers 0 and 1: the last two words of the record.
    Mark = -100,
}

impl Call {
    /// The call whose register value is `raw`, if it is one.
    #[inline]
    pub const fn from_raw(raw: u64) -> Option<Self> {
        Some(match raw as i64 {
            -22 => Self::ResetLog,
            -23 => Self::FinalizeLog,
            -24 => Self::SetLogBuffer,
            -100 => Self::Mark,
            _ => return None,
        })
    }

    /// The register value of this call.
    #[inline]
    pub const fn raw(self) -> u64 {
        self as i64 as u64
    }
}

/// Flag of [`Call::SetLogBuffer`]: what comes when the buffer is full is lost, and counted, by the
/// last place of the buffer, which has the last record. Without the flag the oldest records are
/// overwritten.
pub const STOP_WHEN_FULL: u64 = 1 << 8;

/// What happened. "Subject" is word 2, "first" and "second" words 3 and 4, "detail" a field of the
/// tag; what is not named is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Recording starts; of the core that was asked to, what it runs follows, as [`Kind::Switch`] and
    /// [`Kind::Pays`]. First: ticks in a µs. Second: the least budget in ticks, twice the longest
    /// kernel path (04, section 1).
    Start = 1,
    /// The core runs another thread. Subject: the thread, 0 to idle. First: its context. Detail: its
    /// priority.
    Switch,
    /// A context pays from now on: another one, or the same again after the timer was programmed
    /// anew. Subject: the context, 0 to idle. First: ticks that its head refill has.
    Pays,
    /// A context paid. Subject: the context. First: ticks that were consumed until now, since the
    /// core last charged or changed its context. Second: ticks that were taken from its refills: as
    /// many, or more if the thread yielded. Detail: 1 for round-robin, whose second is 0.
    Charge,
    /// What was used comes back. Subject: the context. First: ticks. Second: the time.
    Refill,
    /// A thread waits for a refill of its context. Subject: the thread. First: the time. Second: the
    /// context. Detail: the thread's priority.
    Wait,
    /// The wait of a thread for a refill is over: its time has come, or it waits for something else.
    /// Subject: the thread. First: the time until which it would have waited.
    Release,
    /// A context goes to another thread. Subject: the context. First: the thread that had it, 0 if
    /// none. Second: the thread that gets it. Detail: [`Gift`].
    Donate,
    /// A context that was lent with a call goes back. Subject: the context. First: the thread that had
    /// it, 0 if none. Second: the thread that lent it.
    Return,
    /// A context is taken from its thread and goes nowhere. Subject: the context. First: the thread.
    Unbind,
    /// The caller of a call that lent a context does not wait any more and will not get it back.
    /// Subject: the context. First: the thread that lent it.
    Abandon,
    /// A context has new parameters. Subject: the context. First: budget in ticks. Second: period in
    /// ticks, 0 for round-robin. Bit 0 of the detail: it starts full now, else it
    /// keeps its history. Bit 1: it is sporadic.
    Configure,
    /// A thread could run, if it has time. Subject: the thread. First: its context, 0 if none.
    /// Detail: its priority.
    Wake,
    /// A thread cannot run. Subject: the thread. First: the object that it waits for, 0 if it is
    /// stopped. Detail: [`Blocked`].
    Block,
    /// A thread has used up its budget, and its timeout handler is told. Subject: the thread. First:
    /// the badge of the context. Second: the context.
    Timeout,
    /// A thread faults. Subject: the thread. First: address or number. Detail: label of the fault
    /// (05, section 2).
    Fault,
    /// An interrupt. Detail: [`Source`]. First: of a device, its number.
    Interrupt,
    /// A thread has another priority. Subject: the thread. Detail: the priority.
    Priority,
    /// The domain schedule goes on, or a thread changes its domain. Subject: the thread, 0 for the
    /// schedule. Detail: the domain.
    Domain,
    /// A thread belongs to another core from now on; at first to core 0. Subject: the thread. Detail:
    /// the core.
    Migrate,
    /// User level says something. Subject: a thread or context. Detail: [`MarkKind`], and in the bits
    /// above its eight what the kind says.
    Mark,
}

impl Kind {
    /// The kind of this number.
    pub const fn from_raw(raw: u8) -> Option<Self> {
        use Kind::*;
        const ALL: [Kind; 21] = [
            Start, Switch, Pays, Charge, Refill, Wait, Release, Donate, Return, Unbind, Abandon,
            Configure, Wake, Block, Timeout, Fault, Interrupt, Priority, Domain, Migrate, Mark,
        ];
        if raw >= 1 && raw as usize <= ALL.len() {
            Some(ALL[raw as usize - 1])
        } else {
            None
        }
    }
}

/// Why a context goes to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Gift {
    /// It is bound to it.
    Bind,
    /// A call lends it until the reply.
    Call,
    /// A send gives it.
    Send,
    /// A signal gives the notification's.
    Signal,
}

/// Why a thread cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Blocked {
    /// It is stopped.
    Inactive,
    /// It waits until somebody receives; or its fault does.
    Send,
    /// It waits for a message.
    Receive,
    /// It waits for an answer.
    Reply,
    /// It waits for a signal.
    Notification,
}

/// Where an interrupt comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Source {
    Device,
    Timer,
    /// Another core.
    Core,
}

/// What user level says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MarkKind {
    /// A job of the thread is released. First: its number. Second: the time, in ticks.
    Release = 1,
    /// The deadline of a job. First: its number. Second: the time, in ticks.
    Deadline,
    /// A job ends. First: its number.
    End,
    /// The system's mode changes. First: the level that it leaves. Second: the one that it enters.
    Mode,
    /// Anything. First and second: whatever the program likes.
    Note,
    /// The subject's name: 16 bytes of it, padded with zeroes; which 16, the detail says above its
    /// eight bits.
    Name,
    /// A parameter of the subject as the system's description has it. First: [`Parameter`]. Second:
    /// its value.
    Parameter,
    /// The time from which on the plan of the subject, a scheduler of partitions, counts. First: the
    /// time, in ticks.
    Origin,
    /// The partition whose context is the subject has the processor, and nobody who had it before.
    /// First: the time at which that was decided, in ticks. Second: when it is used up, in ticks. The
    /// detail above its eight bits: the number of the release or the frame, modulo 256.
    Window,
    /// The window of the subject ends, and no other one begins. First: the time at which that was
    /// decided, in ticks.
    WindowEnd,
    /// The partition whose context is the subject has had more than its window, and is charged. First:
    /// the time at which that was decided. Second: ticks.
    Overrun,
    /// The thread of the subject, a context, has a reservation from now on, in place of the one before.
    /// First: budget and, above 32 bits, period, µs; 0: none. Second: relative deadline, µs, and in bit
    /// 63 whether it is hard.
    Reservation,
    /// A gate of a resource server did something about the client whose context is the subject, or about none. The detail
    /// above its eight bits: what. First and second: what that says (`sandglass_mc_ipc::marks`).
    Gate,
}

impl MarkKind {
    /// The kind of this number.
    pub const fn from_raw(raw: u8) -> Option<Self> {
        use MarkKind::*;
        const ALL: [MarkKind; 13] = [
            Release,
            Deadline,
            End,
            Mode,
            Note,
            Name,
            Parameter,
            Origin,
            Window,
            WindowEnd,
            Overrun,
            Reservation,
            Gate,
        ];
        if raw >= 1 && raw as usize <= ALL.len() {
            Some(ALL[raw as usize - 1])
        } else {
            None
        }
    }
}

/// Bit of a reservation's second word: it is hard.
pub const HARD: u64 = 1 << 63;

/// A described parameter of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Parameter {
    /// Relative deadline of its jobs, µs.
    Deadline = 1,
    /// Level of criticality, 0 for the lowest.
    Criticality,
    /// 1 for a passive server, which runs on the time of its clients.
    Passive,
}

impl Parameter {
    /// The parameter of this number.
    pub const fn from_raw(raw: u64) -> Option<Self> {
        Some(match raw {
            1 => Self::Deadline,
            2 => Self::Criticality,
            3 => Self::Passive,
            _ => return None,
        })
    }
}

/// Where the logs are, for a reader of the machine's memory: a page that the launcher of a described
/// system fills. Words, little endian.
pub mod header {
    /// The first words, which find it; no other page of the machine begins so, and has its own
    /// address at [`ADDRESS`].
    pub const MAGIC: [u64; 4] = [
        u64::from_le_bytes(*b"sandglas"),
        u64::from_le_bytes(*b"s-trace-"),
        u64::from_le_bytes(*b"header-1"),
        0x9d3c_55a6_10f8_e27b,
    ];
    /// Physical address of the page.
    pub const ADDRESS: usize = 4;
    /// Number of logs.
    pub const LOGS: usize = 5;
    /// Of each log, from here on: core, physical address, bytes.
    pub const FIRST_LOG: usize = 6;
    /// Words of a log.
    pub const LOG_WORDS: usize = 3;
    /// Bytes of the page.
    pub const BYTES: usize = 4096;
}

/// The first word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Number of the record among those of all cores, from 1, modulo 2^32; 0 if there is no record,
    /// so that one of 2^32 cannot be read.
    pub sequence: u32,
    /// Number of a [`Kind`].
    pub kind: u8,
    pub core: u8,
    pub detail: u16,
}

impl Tag {
    /// The upper half of the word, that is all but the sequence number.
    #[inline(always)]
    pub const fn about(kind: Kind, core: u8, detail: u16) -> u32 {
        kind as u32 | (core as u32) << 8 | (detail as u32) << 16
    }

    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.sequence as u64
            | (self.kind as u64) << 32
            | (self.core as u64) << 40
            | (self.detail as u64) << 48
    }

    pub const fn from_word(word: u64) -> Self {
        Tag {
            sequence: word as u32,
            kind: (word >> 32) as u8,
            core: (word >> 40) as u8,
            detail: (word >> 48) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for raw in 0..=u8::MAX {
            assert!(Kind::from_raw(raw).is_none_or(|kind| kind as u8 == raw));
            assert!(MarkKind::from_raw(raw).is_none_or(|kind| kind as u8 == raw));
        }
        assert_eq!(Kind::from_raw(21), Some(Kind::Mark));
        assert_eq!(Kind::from_raw(22), None);
        for call in [
            Call::ResetLog,
            Call::FinalizeLog,
            Call::SetLogBuffer,
            Call::Mark,
        ] {
            assert_eq!(Call::from_raw(call.raw()), Some(call));
            assert_eq!(crate::syscall::Syscall::from_raw(call.raw()), None);
        }
    }

    #[test]
    fn tags_round_trip() {
        let tag = Tag {
            sequence: 0xdead_beef,
            kind: Kind::Block as u8,
            core: 3,
            detail: 0x1234,
        };
        assert_eq!(Tag::from_word(tag.word()), tag);
        assert_eq!(
            u64::from(Tag::about(Kind::Block, 3, 0x1234)) << 32 | 0xdead_beef,
            tag.word()
        );
    }
}
