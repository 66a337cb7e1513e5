//! The server: one request after the other.

use super::kernel::{ServerKernel, Work, WORDS};
use super::shared::{Job, Shared};

/// What a server does for its clients. Whoever calls is not trusted; a request is words.
#[expect(
    async_fn_in_trait,
    reason = "the driver's own threads are no tasks that move between others"
)]
pub trait Operation {
    /// Carries a request out, within the server's longest operation. Returns the label of the answer, and its number of
    /// words, at most [`WORDS`].
    async fn perform(&mut self, job: &Job, answer: &mut [u64; WORDS]) -> (u64, usize);
}

/// What the server's thread does, for good.
pub async fn serve<K: ServerKernel, O: Operation>(
    kernel: &mut K,
    shared: &Shared,
    operation: &mut O,
) -> ! {
    let mut answer = [0; WORDS];
    loop {
        kernel.wait().await;
        let job = shared.job();
        let (label, count) = operation.perform(&job, &mut answer).await;
        let count = count.min(WORDS);
        shared.put_answer(label, &answer[..count]);
        kernel.work(Work::Job(job.count + count)).await;
        kernel.done().await;
    }
}
