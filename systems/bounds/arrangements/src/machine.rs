//! What an arrangement needs of the system that it is made on.

use core::ops::Range;

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;

/// The kernel refused an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The invocation's label.
    pub label: u64,
    /// The number of the error.
    pub error: u64,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// One system call, and then nothing any more.
    Once,
    /// The same system call for ever.
    Repeat,
}

/// A system call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub number: Syscall,
    pub cap: u64,
    pub info: MessageInfo,
    /// The words that are in registers.
    pub words: [u64; 4],
    /// Of the receive phase.
    pub reply: u64,
}

impl Call {
    /// With an empty message.
    pub const fn new(number: Syscall, cap: u64) -> Self {
        Self {
            number,
            cap,
            info: MessageInfo::new(0, 0, 0, 0),
            words: [0; 4],
            reply: 0,
        }
    }

    pub const fn reply(self, reply: u64) -> Self {
        Self { reply, ..self }
    }
}

/// A system whose root task makes arrangements. The root task has the initial capabilities at the
/// slots of the ABI (06, section 1.2), and more time than it needs.
pub trait Machine {
    /// Untyped memory that all objects are made of, and log2 of its bytes. It has no children.
    fn memory(&self) -> (u64, u32);

    /// Empty slots of the root task's capability space, which are named by all 64 bits.
    fn slots(&self) -> Range<u64>;

    /// The capability to the time of the first core.
    fn control(&self) -> u64;

    /// An invocation by the root task.
    ///
    /// # Errors
    /// What the kernel answers.
    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Result<(), Refused>;

    /// A signal of the root task at `cap`.
    fn signal(&mut self, cap: u64);

    /// Makes thread `tcb`, which does not run, execute `program` with `call` next; it is made to run
    /// if `starts`.
    ///
    /// # Errors
    /// What the kernel answers.
    fn write(
        &mut self,
        tcb: u64,
        program: Program,
        call: Call,
        starts: bool,
    ) -> Result<(), Refused>;

    /// Whether thread `tcb`, which was made to execute [`Program::Once`], has made its call.
    ///
    /// # Errors
    /// What the kernel answers.
    fn has_called(&mut self, tcb: u64) -> Result<bool, Refused>;

    /// A page that may be a thread's IPC buffer: its address, and its frame. There is one.
    fn buffer(&self) -> (u64, u64);

    /// Writes a word of that buffer, which is that of the thread `tcb`, or none's.
    fn write_buffer(&mut self, tcb: u64, word: usize, value: u64);

    /// The clock, in ticks.
    fn now(&self) -> u64;

    /// So many ticks pass in `us` µs, rounded up.
    fn us_to_ticks(&self, us: u64) -> u64;

    /// The root task runs, unless others of higher priority can, until the clock is at `tick`.
    fn pass_until(&mut self, tick: u64);

    /// A measurement begins. An arrangement may have several; the worst counts.
    fn begin(&mut self);

    /// It ends.
    fn end(&mut self);
}
