//! What a task does: a list of steps, as data.
//!
//! Step `i` is the instruction number `i` of its thread: where a thread goes on is what its
//! registers say, and these are the kernel's to change. So a system call that the kernel wants
//! repeated is repeated, and a thread that is stopped in the middle of a computation does the rest
//! of it wherever it runs next.

use sandglass_abi::invocation as label;
use sandglass_abi::syscall::Syscall;
use sandglass_testkit::call::Call;
use sandglass_testkit::isa::SYSCALL_INSTRUCTION_BYTES;

use crate::costs::Path;

/// Bytes of an instruction that is a step.
pub const STEP: u64 = SYSCALL_INSTRUCTION_BYTES;

/// The words of a message, at most four.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    Words(Vec<u64>),
    /// The words that were received last, `plus` added to each.
    Received {
        plus: u64,
    },
}

impl Message {
    /// Without words.
    pub const EMPTY: Message = Message::Words(Vec::new());

    /// The words, for a thread that has received `received`.
    pub fn words(&self, received: &[u64]) -> Vec<u64> {
        match self {
            Message::Words(words) => words.clone(),
            Message::Received { plus } => received.iter().map(|word| word + plus).collect(),
        }
    }
}

/// A system call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub syscall: Syscall,
    /// Slots of capabilities: what is invoked or waited for, the reply object, and the destination
    /// of the send phase of NBSendRecv.
    pub cap: u64,
    pub reply: u64,
    pub destination: u64,
    pub label: u64,
    pub message: Message,
    /// Slots of the capabilities that go with it.
    pub caps: Vec<u64>,
    /// What it costs.
    pub path: Path,
}

impl Entry {
    /// The system call `syscall` of the capability in `cap`, with nothing else.
    pub fn new(syscall: Syscall, cap: u64, path: Path) -> Entry {
        Entry {
            syscall,
            cap,
            reply: 0,
            destination: 0,
            label: 0,
            message: Message::EMPTY,
            caps: Vec::new(),
            path,
        }
    }

    /// The system call of a thread that has received `received`.
    pub fn call(&self, received: &[u64]) -> Call {
        let words = self.message.words(received);
        Call {
            reply: self.reply,
            destination: self.destination,
            ..Call::new(self.syscall, self.cap, self.label, &words, &self.caps)
        }
    }
}

/// One step of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// User code for so many ticks.
    Compute(u64),
    /// User code for a random number of ticks, at most this.
    ComputeUpTo(u64),
    Enter(Entry),
    /// The message received last has these words. Takes no time.
    Expect(Vec<u64>),
    /// A job is completed. Takes no time.
    Done,
}

impl Step {
    /// Calls the endpoint in `cap`.
    pub fn call(cap: u64, words: &[u64]) -> Step {
        Step::Enter(Entry {
            message: Message::Words(words.to_vec()),
            ..Entry::new(Syscall::Call, cap, Path::Call)
        })
    }

    /// Calls the endpoint in `cap` with the words that were received last.
    pub fn forward(cap: u64) -> Step {
        Step::Enter(Entry {
            message: Message::Received { plus: 0 },
            ..Entry::new(Syscall::Call, cap, Path::Call)
        })
    }

    /// Waits for the first message at the endpoint in `cap`, with the reply object in `reply`.
    pub fn recv(cap: u64, reply: u64) -> Step {
        Step::Enter(Entry {
            reply,
            ..Entry::new(Syscall::Recv, cap, Path::Recv)
        })
    }

    /// Answers what was received last, and waits for the next message.
    pub fn reply_recv(cap: u64, reply: u64, message: Message) -> Step {
        Step::Enter(Entry {
            reply,
            message,
            ..Entry::new(Syscall::ReplyRecv, cap, Path::ReplyRecv)
        })
    }

    /// Signals the notification in `destination`, and waits for a message at the endpoint in `cap`:
    /// how a server says that it is ready.
    pub fn signal_recv(destination: u64, cap: u64, reply: u64) -> Step {
        Step::Enter(Entry {
            reply,
            destination,
            ..Entry::new(Syscall::NBSendRecv, cap, Path::ReplyRecv)
        })
    }

    /// Sends a message to the endpoint in `cap`.
    pub fn send(cap: u64, words: &[u64]) -> Step {
        Step::Enter(Entry {
            message: Message::Words(words.to_vec()),
            ..Entry::new(Syscall::Send, cap, Path::Send)
        })
    }

    /// Signals the notification in `cap`.
    pub fn signal(cap: u64) -> Step {
        Step::Enter(Entry::new(Syscall::Send, cap, Path::Signal))
    }

    /// Waits for the notification in `cap`.
    pub fn wait(cap: u64) -> Step {
        Step::Enter(Entry::new(Syscall::Wait, cap, Path::Wait))
    }

    /// Gives up the rest of the budget.
    pub fn yield_rest() -> Step {
        Step::Enter(Entry::new(Syscall::Yield, 0, Path::Yield))
    }

    /// A call to the kernel object in `cap`.
    pub fn invoke(cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Step {
        Step::Enter(Entry {
            label,
            message: Message::Words(words.to_vec()),
            caps: caps.to_vec(),
            ..Entry::new(Syscall::Call, cap, Path::Invocation)
        })
    }

    /// Stops the thread in `tcb`.
    pub fn suspend(tcb: u64) -> Step {
        Step::invoke(tcb, label::TCB_SUSPEND, &[], &[])
    }

    /// Lets the thread in `tcb` go on.
    pub fn resume(tcb: u64) -> Step {
        Step::invoke(tcb, label::TCB_RESUME, &[], &[])
    }
}

/// What a task does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    pub(crate) steps: Vec<Step>,
    /// The step after the last one is this one, as long as there are rounds left.
    pub(crate) again: usize,
    /// How often the steps from `again` on are done; `None` is for ever.
    pub(crate) rounds: Option<u64>,
}

impl Script {
    /// `steps`, `rounds` times; then the task stops itself.
    ///
    /// # Panics
    /// If a round takes no time, or there are none.
    pub fn repeat(rounds: u64, steps: Vec<Step>) -> Script {
        assert!(rounds > 0, "a script is done at least once");
        Script::looping(Some(rounds), steps)
    }

    /// `steps`, for ever.
    ///
    /// # Panics
    /// If a round takes no time.
    pub fn forever(steps: Vec<Step>) -> Script {
        Script::looping(None, steps)
    }

    fn looping(rounds: Option<u64>, steps: Vec<Step>) -> Script {
        let takes_time = |step: &Step| matches!(step, Step::Enter(_) | Step::Compute(1..));
        assert!(steps.iter().any(takes_time), "a round takes time");
        Script {
            steps,
            again: 0,
            rounds,
        }
    }

    /// The same after `first`, which are done once.
    #[must_use]
    pub fn after(mut self, first: Vec<Step>) -> Script {
        self.again += first.len();
        self.steps.splice(0..0, first);
        self
    }
}
