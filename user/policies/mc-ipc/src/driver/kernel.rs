//! What the threads of a gate ask of the kernel. Every function that enters it is asynchronous: on the machine itself it
//! is done when it returns, in a simulation it takes simulated time.

use core::fmt;

use super::shared::Target;
use crate::marks::Mark;
use crate::protocol::ClientId;

/// Most words of a request, and of an answer.
pub const WORDS: usize = 48;

/// Label of an answer to a request that was carried out.
pub const DONE: u64 = 0;
/// Labels of other answers begin behind this: who calls tells them from the numbers of the kernel's errors, which are small.
const REFUSED: u64 = 0x6_0000;
/// Label of an answer to a request of a client whose last one is still in the gate: somebody else used its capability.
pub const BUSY: u64 = REFUSED + 1;
/// Label of an answer to a request that is none: of more than [`WORDS`] words.
pub const MALFORMED: u64 = REFUSED + 2;
/// Label of an answer to a control call that is not allowed, or names no client.
pub const NOT_IN_CONTROL: u64 = REFUSED + 3;
/// Label of an answer to a request whose operation had a fault. Nobody knows how much of it was carried out.
pub const FAULTED: u64 = REFUSED + 4;
/// Label of an answer to a client that is known to be gone: it comes back from the gate, to wherever it was sent.
pub const GONE: u64 = REFUSED + 5;

/// A client's context or thread is not there any more, or not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the context or the thread is gone: it cannot be bound")
    }
}

impl core::error::Error for Gone {}

/// Who has a client's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Client,
    Spinner,
    Server,
}

/// A message to the gate: of a client, of its own threads, or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub badge: u64,
    pub label: u64,
    /// All of its words; those behind [`WORDS`] are lost.
    pub count: usize,
    pub words: [u64; WORDS],
}

/// What user code is about to do that takes a length of time worth counting in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The gate handles a message of so many words.
    Turn(usize),
    /// The server takes a job, and puts its answer down, of so many words together.
    Job(usize),
    /// The spinner looks around once.
    Look,
}

/// The gate's thread.
#[expect(
    async_fn_in_trait,
    reason = "the driver's own threads are no tasks that move between others"
)]
pub trait GateKernel {
    /// Answers the last caller, if `answer` is given, with a label and words; and waits for the next message.
    async fn receive(&mut self, answer: Option<(u64, &[u64])>) -> Received;

    /// The last caller is answered later, as this client.
    fn keep(&mut self, client: ClientId);

    /// The last caller is refused when this client's request is answered. Only one can be: who was to be before is not
    /// answered any more.
    fn keep_refused(&mut self, client: ClientId);

    /// Answers the one that is to be refused, if there is one.
    async fn answer_refused(&mut self, client: ClientId, label: u64);

    /// Answers a client that was kept, if it is still there.
    async fn answer(&mut self, client: ClientId, label: u64, words: &[u64]);

    /// A client that was kept is not answered any more.
    fn forget(&mut self, client: ClientId);

    /// Takes a client's context from whoever it was given to last; if it cannot be, or if nobody was, then from the client, the
    /// next time. Of a client that is another gate's server: that gate is told that
    /// nobody does its work ([`Control::Retarget`](super::Control::Retarget)).
    ///
    /// # Errors
    /// It is gone.
    async fn take(&mut self, client: ClientId) -> Result<(), Gone>;

    /// Binds a client's context, which nobody has; for [`Holder::Server`], to whoever does the server's work. Of a client
    /// that is another gate's server: that gate is told who does its work.
    ///
    /// # Errors
    /// It is gone, or the thread is, or has one already.
    async fn give(&mut self, client: ClientId, holder: Holder, target: Target) -> Result<(), Gone>;

    /// Whoever does the server's work has the priority above this client's from now on, which nobody else on its core has: it
    /// runs whenever that one would, and before others of the same priority, whose spinners never block.
    async fn rank(&mut self, client: ClientId, target: Target);

    /// Whose context has this badge. `None`: it is one of another gate's, in which this one's server pays; that gate is told
    /// that it is used up ([`Control::Exhaust`](super::Control::Exhaust)).
    async fn client_of(&mut self, badge: u64) -> Option<ClientId>;

    /// The server has a job.
    async fn wake_server(&mut self);

    /// After [`Signals::ends`](super::Signals::ends): a client that is gone for good, and that this did not name before. A
    /// kernel that hears of no ends names none.
    async fn next_gone(&mut self) -> Option<ClientId> {
        None
    }

    /// The last message was a fault of the server's thread, which begins anew: with [`serve`](super::serve). Its operation
    /// stays as the fault has left it. A kernel whose servers have no faults never gets there.
    async fn restart_server(&mut self) {}

    /// Signals a table-driven client that its slot begins.
    async fn release(&mut self, client: ClientId);

    /// The clock, in ticks.
    fn now(&self) -> u64;

    /// Takes no time on the machine.
    async fn work(&mut self, work: Work);

    /// Takes no time in a system that is not traced.
    fn mark(&mut self, mark: Mark);
}

/// The server's thread.
#[expect(
    async_fn_in_trait,
    reason = "the driver's own threads are no tasks that move between others"
)]
pub trait ServerKernel {
    /// Waits until there is a job.
    async fn wait(&mut self);

    /// The job is done.
    async fn done(&mut self);

    async fn work(&mut self, work: Work);
}

/// A spinner's thread.
#[expect(
    async_fn_in_trait,
    reason = "the driver's own threads are no tasks that move between others"
)]
pub trait SpinnerKernel {
    /// Calls the gate. Its answer says nothing.
    async fn ask(&mut self, label: u64, word: u64);

    /// A value that changes when whoever does the server's work executes instructions: of its registers, read from outside.
    async fn look_at(&mut self, target: Target) -> u64;

    /// Wastes a moment, much less than it takes to enter the kernel a few times.
    async fn pause(&mut self);

    /// The clock, in ticks.
    fn now(&self) -> u64;

    /// On which core this thread runs; `None` if that cannot be told.
    fn core(&self) -> Option<usize>;
}

/// A table's thread.
#[expect(
    async_fn_in_trait,
    reason = "the driver's own threads are no tasks that move between others"
)]
pub trait TableKernel {
    /// Waits for the beginning of the next period.
    async fn next_period(&mut self);

    /// Signals the gate that a period has begun ([`Signals::tick`](super::Signals::tick)).
    async fn tick(&mut self);
}
