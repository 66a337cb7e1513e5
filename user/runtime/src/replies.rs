//! Callers that are answered later, in any order: for a scheduler, or any server that lets callers wait.

use alloc::vec::Vec;

use crate::cap::{Endpoint, Reply};
use crate::message::{Message, Received};

/// The reply objects of who receives: each stands for a caller that waits, but one, which is received with. So there is one
/// more of them than callers that may wait. No memory is allocated after they are collected.
#[derive(Clone, Debug)]
pub struct Replies {
    free: Vec<Reply>,
    /// What was received with last, unless its caller waits.
    receiving: Option<Reply>,
    count: usize,
}

impl FromIterator<Reply> for Replies {
    fn from_iter<I: IntoIterator<Item = Reply>>(replies: I) -> Self {
        let free: Vec<Reply> = replies.into_iter().collect();
        Self {
            count: free.len(),
            free,
            receiving: None,
        }
    }
}

impl Replies {
    /// How many reply objects there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Waits for a message, or for a signal of the bound notification. Who called last and was neither kept nor answered is
    /// not answered any more.
    ///
    /// # Panics
    /// As many callers wait as there are reply objects.
    pub fn recv(&mut self, endpoint: Endpoint) -> Received {
        let free = &mut self.free;
        let fresh = || free.pop().expect("a reply object is free");
        let reply = *self.receiving.get_or_insert_with(fresh);
        endpoint.recv(reply)
    }

    /// Answers a caller that waited, and waits for the next message, in one step.
    pub fn reply_recv(&mut self, reply: Reply, endpoint: Endpoint, message: Message) -> Received {
        self.free.extend(self.receiving.replace(reply));
        reply.reply_recv(endpoint, message)
    }

    /// Lets who called last wait; by this it is answered. `None` if nobody called since the last one was kept.
    #[must_use]
    pub fn keep(&mut self) -> Option<Reply> {
        self.receiving.take()
    }

    /// Answers who called last.
    pub fn answer(&self, message: Message) {
        if let Some(reply) = self.receiving {
            reply.send(message);
        }
    }

    /// Answers a caller that waited.
    pub fn send(&mut self, reply: Reply, message: Message) {
        reply.send(message);
        self.free.push(reply);
    }

    /// Forgets a caller that waited: another one has its place.
    pub fn forget(&mut self, reply: Reply) {
        self.free.push(reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is received with, of so many, by the rules of [`Replies::recv`] alone.
    fn received_with(replies: &mut Replies) -> Reply {
        let free = &mut replies.free;
        *replies.receiving.get_or_insert_with(|| free.pop().unwrap())
    }

    #[test]
    fn who_is_kept_has_a_reply_object_for_itself_until_it_is_forgotten() {
        let mut replies: Replies = (1..=3).map(Reply::at).collect();
        assert_eq!(replies.count(), 3);
        assert!(replies.keep().is_none(), "nobody called");
        let mut kept = Vec::new();
        for _ in 0..2 {
            received_with(&mut replies);
            kept.extend(replies.keep());
        }
        let third = received_with(&mut replies);
        assert_eq!(received_with(&mut replies), third, "nobody was kept");
        assert!(!kept.contains(&third) && kept[0] != kept[1]);
        kept.extend(replies.keep());
        assert!(replies.free.is_empty());
        replies.forget(kept[0]);
        assert_eq!(received_with(&mut replies), kept[0]);
    }
}
