//! The thread of a server, which performs the operation.

use alloc::format;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{nb_send_wait, Notification};
use sandglass::{entry, exit, log, Environment, Message};
use sandglass_description::policy::mc_ipc::{names, threads};

use super::done_at_once;
use crate::driver::{self, Job, Operation, ServerKernel, Shared, Work, DONE, WORDS};

/// The server's thread.
struct Server {
    wake: Notification,
    done: Notification,
    /// What it signals when it next waits.
    tells: Option<Notification>,
}

impl ServerKernel for Server {
    async fn wait(&mut self) {
        match self.tells.take() {
            Some(told) => {
                nb_send_wait(told, Message::EMPTY, self.wake);
            }
            None => {
                self.wake.wait();
            }
        }
    }

    async fn done(&mut self) {
        // In one system call with the wait that follows.
        self.tells = Some(self.done);
    }

    async fn work(&mut self, _work: Work) {}
}

/// An operation that is a function.
struct Function<F>(F);

impl<F: FnMut(&Job, &mut [u64; WORDS]) -> usize> Operation for Function<F> {
    async fn perform(&mut self, job: &Job, answer: &mut [u64; WORDS]) -> (u64, usize) {
        (DONE, (self.0)(job, answer))
    }
}

/// Begin and end of the server's stack; 0 as long as there is none.
static STACK: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// A panic of an operation ends the request only: it becomes a fault of this thread, of which the gate hears.
fn refuse(info: &PanicInfo<'_>) {
    let local = 0_u8;
    let [begin, end] = STACK.each_ref().map(|of| of.load(Ordering::Relaxed));
    if (begin..end).contains(&(&raw const local as u64)) {
        log::error!("{info}");
        exit::stop();
    }
}

/// Lets the server's thread perform `operation`. When it is started anew, it goes on with what that captured.
pub(super) fn prepare(
    env: &'static Environment,
    shared: &'static Shared,
    operation: impl FnMut(&Job, &mut [u64; WORDS]) -> usize + Send + 'static,
) {
    let thread = env.thread(threads::SERVER);
    let stack = thread.stack();
    STACK[0].store(stack.start, Ordering::Relaxed);
    STACK[1].store(stack.end, Ordering::Relaxed);
    entry::set_panic_hook(refuse);
    let (wake, done) = (
        env.capability(names::SERVER_WAKE),
        env.capability(names::DONE),
    );
    // The launcher takes its context away when it is ready for the first time.
    let mut ready = Some(env.capability(&format!("{}.ready", threads::SERVER)));
    let mut operation = Function(operation);
    thread.prepare_restartable(move || {
        let mut server = Server {
            wake,
            done,
            tells: ready.take(),
        };
        done_at_once(driver::serve(&mut server, shared, &mut operation))
    });
}
