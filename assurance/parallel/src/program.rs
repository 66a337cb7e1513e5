//! What a task does, as a program: an asynchronous function whose steps take simulated time.
//!
//! A [`Script`](crate::Script) knows its steps beforehand. A program decides from what it is told and from memory that it
//! shares with others, as code on a real machine does; so code that is generic over how it enters the kernel can be run
//! here unchanged. It runs at once from one step to the next; memory is read and written at the instant at which a step
//! begins. To the kernel, step `n` is the instruction at address `2 n` of its thread, as in a script.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::script::{Entry, Step};

/// What a system call told its thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// Of the sender; of an answer it means nothing.
    pub badge: u64,
    pub label: u64,
    pub words: Vec<u64>,
}

/// What a program and its machine tell each other.
#[derive(Debug, Default)]
struct Door {
    wanted: RefCell<Option<Step>>,
    told: RefCell<Told>,
    now: Cell<u64>,
    core: Cell<usize>,
}

/// A program's own thread: all that it can do.
#[derive(Clone, Debug, Default)]
pub struct Thread(Rc<Door>);

impl Thread {
    /// User code for so many ticks.
    pub async fn compute(&self, ticks: u64) {
        self.step(Step::Compute(ticks)).await;
    }

    /// A system call; returns what it told.
    pub async fn enter(&self, entry: Entry) -> Told {
        self.step(Step::Enter(entry)).await;
        self.0.told.take()
    }

    /// A job is completed. Takes no time.
    pub async fn done(&self) {
        self.step(Step::Done).await;
    }

    /// The time at which the step before ended, in ticks.
    pub fn now(&self) -> u64 {
        self.0.now.get()
    }

    /// The core on which the step before ended.
    pub fn core(&self) -> usize {
        self.0.core.get()
    }

    async fn step(&self, step: Step) {
        self.0.wanted.replace(Some(step));
        let mut is_over = false;
        std::future::poll_fn(|_| {
            if std::mem::replace(&mut is_over, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// A program on its way.
pub(crate) struct Program {
    thread: Thread,
    /// `None` once it has ended.
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Program {
    pub fn new<F: Future<Output = ()> + 'static>(body: impl FnOnce(Thread) -> F) -> Program {
        let thread = Thread::default();
        Program {
            future: Some(Box::pin(body(thread.clone()))),
            thread,
        }
    }

    /// The step before is over, at `now` on `core`, and told this. The next one; `None` if there is none.
    ///
    /// # Panics
    /// If the program waits for something else than a step.
    pub fn next(&mut self, now: u64, core: usize, told: Told) -> Option<Step> {
        let door = &self.thread.0;
        door.now.set(now);
        door.core.set(core);
        door.told.replace(told);
        let future = self.future.as_mut()?;
        match future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(()) => {
                self.future = None;
                None
            }
            Poll::Pending => Some(
                door.wanted
                    .borrow_mut()
                    .take()
                    .expect("a program waits for steps alone"),
            ),
        }
    }
}
