//! How long user code of a gate's threads takes.

use sandglass_mc_ipc::driver::Work;

/// Ticks of user code: instructions of the threads on the bare kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserCosts {
    /// The gate handles a message.
    pub turn: u64,
    /// Each word of a message that is copied.
    pub word: u64,
    /// The server takes a job and puts its answer down.
    pub job: u64,
    /// A client makes a request and takes the answer, beside the system call.
    pub client: u64,
    /// A spinner looks around once.
    pub look: u64,
    /// A spinner wastes a moment.
    pub pause: u64,
    /// On the way to a system call and back: arguments and results.
    pub enter: u64,
}

impl Default for UserCosts {
    fn default() -> Self {
        UserCosts {
            turn: 790,
            word: 4,
            job: 193,
            client: 41,
            look: 30,
            pause: 10_000,
            enter: 125,
        }
    }
}

impl UserCosts {
    /// Ticks that `work` takes.
    pub fn of(&self, work: Work) -> u64 {
        match work {
            Work::Turn(words) => self.turn + self.word * words as u64,
            Work::Job(words) => self.job + self.word * words as u64,
            Work::Look => self.look,
        }
    }
}
