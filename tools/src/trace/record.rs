//! Records, as the kernel writes them, given types.

use anyhow::{bail, Result};
use sandglass_abi::trace::{
    Blocked, Gift, Kind, MarkKind, Parameter, Source, Tag, HARD, RECORD_WORDS,
};

/// Address of a kernel object; 0 for none. What it is follows from where it stands.
pub type Object = u64;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Position among all records of the machine, from 1.
    pub sequence: u32,
    /// The core that it is about.
    pub core: u8,
    /// The core that wrote it.
    pub by: u8,
    /// Of entry to the kernel, ticks.
    pub time: u64,
    pub event: Event,
}

/// What happened: `sandglass_abi::trace::Kind` says what each means. Times and amounts are ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Start {
        /// Ticks in a µs.
        per_us: u64,
        least_budget: u64,
    },
    Switch {
        thread: Object,
        context: Object,
        priority: u8,
    },
    Pays {
        context: Object,
        amount: u64,
    },
    Charge {
        context: Object,
        consumed: u64,
        charged: u64,
    },
    Refill {
        context: Object,
        amount: u64,
        at: u64,
    },
    Wait {
        thread: Object,
        until: u64,
        context: Object,
        priority: u8,
    },
    Release {
        thread: Object,
        until: u64,
    },
    Donate {
        context: Object,
        from: Object,
        to: Object,
        gift: Gift,
    },
    Return {
        context: Object,
        from: Object,
        to: Object,
    },
    Unbind {
        context: Object,
        from: Object,
    },
    Abandon {
        context: Object,
        lender: Object,
    },
    Configure {
        context: Object,
        budget: u64,
        period: u64,
        fresh: bool,
        sporadic: bool,
    },
    Wake {
        thread: Object,
        context: Object,
        priority: u8,
    },
    Block {
        thread: Object,
        why: Blocked,
    },
    Timeout {
        thread: Object,
        badge: u64,
        context: Object,
    },
    Fault {
        thread: Object,
        label: u16,
        value: u64,
    },
    Interrupt {
        source: Source,
        number: u64,
    },
    Priority {
        thread: Object,
        priority: u8,
    },
    Domain {
        thread: Object,
        domain: u8,
    },
    Migrate {
        thread: Object,
        core: u8,
    },
    Mark {
        subject: Object,
        mark: Mark,
    },
}

/// What user level says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Release {
        job: u64,
        at: u64,
    },
    Deadline {
        job: u64,
        at: u64,
    },
    End {
        job: u64,
    },
    Mode {
        from: u64,
        to: u64,
    },
    Note {
        what: u64,
        value: u64,
    },
    /// A part of a name, the `part`-th of 16 bytes.
    Name {
        part: u8,
        bytes: [u8; 16],
    },
    Parameter {
        parameter: Parameter,
        value: u64,
    },
    Origin {
        at: u64,
    },
    Window {
        /// Modulo 256.
        number: u8,
        at: u64,
        until: u64,
    },
    WindowEnd {
        at: u64,
    },
    Overrun {
        at: u64,
        ticks: u64,
    },
    /// µs; no budget: none.
    Reservation {
        budget_us: u32,
        period_us: u32,
        deadline_us: u64,
        hard: bool,
    },
    /// As `sandglass_mc_ipc::marks` has it.
    Gate {
        what: u8,
        first: u64,
        second: u64,
    },
}

impl Record {
    /// Reads the words of a record that the core `by` wrote.
    ///
    /// # Errors
    /// The kernel wrote what this tool does not know.
    pub fn decode(words: [u64; RECORD_WORDS], by: u8) -> Result<Self> {
        let [tag, time, subject, first, second] = words;
        let tag = Tag::from_word(tag);
        let Some(event) = decode(tag, subject, first, second) else {
            bail!(
                "record #{} has the unknown kind {} with detail {:#x}: kernel and tool are of \
                 different versions",
                tag.sequence,
                tag.kind,
                tag.detail
            );
        };
        Ok(Self {
            sequence: tag.sequence,
            core: tag.core,
            by,
            time,
            event,
        })
    }
}

fn decode(tag: Tag, subject: u64, first: u64, second: u64) -> Option<Event> {
    let priority = tag.detail as u8;
    Some(match Kind::from_raw(tag.kind)? {
        Kind::Start => Event::Start {
            per_us: first,
            least_budget: second,
        },
        Kind::Switch => Event::Switch {
            thread: subject,
            context: first,
            priority,
        },
        Kind::Pays => Event::Pays {
            context: subject,
            amount: first,
        },
        Kind::Charge => Event::Charge {
            context: subject,
            consumed: first,
            charged: second,
        },
        Kind::Refill => Event::Refill {
            context: subject,
            amount: first,
            at: second,
        },
        Kind::Wait => Event::Wait {
            thread: subject,
            until: first,
            context: second,
            priority,
        },
        Kind::Release => Event::Release {
            thread: subject,
            until: first,
        },
        Kind::Donate => Event::Donate {
            context: subject,
            from: first,
            to: second,
            gift: gift(tag.detail)?,
        },
        Kind::Return => Event::Return {
            context: subject,
            from: first,
            to: second,
        },
        Kind::Unbind => Event::Unbind {
            context: subject,
            from: first,
        },
        Kind::Abandon => Event::Abandon {
            context: subject,
            lender: first,
        },
        Kind::Configure => Event::Configure {
            context: subject,
            budget: first,
            period: second,
            fresh: tag.detail & 1 != 0,
            sporadic: tag.detail & 2 != 0,
        },
        Kind::Wake => Event::Wake {
            thread: subject,
            context: first,
            priority,
        },
        Kind::Block => Event::Block {
            thread: subject,
            why: blocked(tag.detail)?,
        },
        Kind::Timeout => Event::Timeout {
            thread: subject,
            badge: first,
            context: second,
        },
        Kind::Fault => Event::Fault {
            thread: subject,
            label: tag.detail,
            value: first,
        },
        Kind::Interrupt => Event::Interrupt {
            source: source(tag.detail)?,
            number: first,
        },
        Kind::Priority => Event::Priority {
            thread: subject,
            priority,
        },
        Kind::Domain => Event::Domain {
            thread: subject,
            domain: tag.detail as u8,
        },
        Kind::Migrate => Event::Migrate {
            thread: subject,
            core: tag.detail as u8,
        },
        Kind::Mark => Event::Mark {
            subject,
            mark: mark(tag.detail, first, second)?,
        },
    })
}

fn mark(detail: u16, first: u64, second: u64) -> Option<Mark> {
    let [kind, part] = detail.to_le_bytes();
    Some(match MarkKind::from_raw(kind)? {
        MarkKind::Release => Mark::Release {
            job: first,
            at: second,
        },
        MarkKind::Deadline => Mark::Deadline {
            job: first,
            at: second,
        },
        MarkKind::End => Mark::End { job: first },
        MarkKind::Mode => Mark::Mode {
            from: first,
            to: second,
        },
        MarkKind::Note => Mark::Note {
            what: first,
            value: second,
        },
        MarkKind::Name => Mark::Name {
            part,
            bytes: (u128::from(first) | u128::from(second) << 64).to_le_bytes(),
        },
        MarkKind::Parameter => Mark::Parameter {
            parameter: Parameter::from_raw(first)?,
            value: second,
        },
        MarkKind::Origin => Mark::Origin { at: first },
        MarkKind::Window => Mark::Window {
            number: part,
            at: first,
            until: second,
        },
        MarkKind::WindowEnd => Mark::WindowEnd { at: first },
        MarkKind::Overrun => Mark::Overrun {
            at: first,
            ticks: second,
        },
        MarkKind::Reservation => Mark::Reservation {
            budget_us: first as u32,
            period_us: (first >> 32) as u32,
            deadline_us: second & !HARD,
            hard: second & HARD != 0,
        },
        MarkKind::Gate => Mark::Gate {
            what: part,
            first,
            second,
        },
    })
}

fn gift(detail: u16) -> Option<Gift> {
    [Gift::Bind, Gift::Call, Gift::Send, Gift::Signal]
        .get(usize::from(detail))
        .copied()
}

fn blocked(detail: u16) -> Option<Blocked> {
    [
        Blocked::Inactive,
        Blocked::Send,
        Blocked::Receive,
        Blocked::Reply,
        Blocked::Notification,
    ]
    .get(usize::from(detail))
    .copied()
}

fn source(detail: u16) -> Option<Source> {
    [Source::Device, Source::Timer, Source::Core]
        .get(usize::from(detail))
        .copied()
}
