//! The disk: requests wait in its queue, and each takes it a while. Its interrupt is that of a real
//! timer.

use alloc::collections::VecDeque;
use core::convert::Infallible;

use sandglass::timer::Timer;
use sandglass::{Environment, Error, Message, Received};
use sandglass_sharing::blocking::{self, Device, Outcome, Ticket};

/// How long a block takes, µs.
const SEEK_US: u64 = 300;

/// What is in a block.
pub const fn content(block: u64) -> u64 {
    block * block + 1
}

struct Disk {
    timer: Timer,
    /// When the first of the queue is read, in ticks of the timer.
    deadline: u64,
    queue: VecDeque<(Ticket, u64)>,
}

pub fn serve(env: &'static Environment) -> Result<Infallible, Error> {
    let timer = Timer::device(env).expect("the timer is given");
    let mut disk = Disk {
        timer,
        deadline: 0,
        queue: VecDeque::new(),
    };
    blocking::serve(env, "disk", timer.notification(), &mut disk)
}

impl Disk {
    /// Begins with the first of the queue.
    fn seek(&mut self) {
        let hpet = self.timer.clock();
        self.deadline = hpet.now() + hpet.us_to_ticks(SEEK_US);
        // A deadline that has passed already would raise no interrupt.
        while self.timer.arm(self.deadline) {
            self.deadline = hpet.now() + hpet.us_to_ticks(SEEK_US);
        }
    }
}

impl Device for Disk {
    fn request(&mut self, request: Received, ticket: Ticket) -> Outcome {
        self.queue.push_back((ticket, request.message.word(0)));
        if self.queue.len() == 1 {
            self.seek();
        }
        Outcome::Later
    }

    fn interrupt(&mut self, complete: &mut dyn FnMut(Ticket, Message)) {
        let is_done = self.timer.expired(self.deadline);
        if !is_done.expect("the timer is this component's") {
            return;
        }
        let waiting = self.queue.len() as u64;
        if let Some((ticket, block)) = self.queue.pop_front() {
            complete(ticket, Message::new(0, [content(block), waiting]));
        }
        if !self.queue.is_empty() {
            self.seek();
        }
    }
}
