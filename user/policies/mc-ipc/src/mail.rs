//! A page that a thread and its courier share: one request of the thread, and its answer. No system call, and no wait.
//!
//! The thread writes requests and numbers them; the courier writes answers, and the number of the request that the last one is
//! for. Each trusts nothing that the other writes: a thread that writes what it should not spoils its own answers, and the
//! courier reads a request once, with a length that it has checked.

use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::Environment;
use sandglass_description::policy::mc_ipc::names;

use crate::driver::WORDS;

/// A request or an answer: its label, its number of words, and these.
const PART: usize = 2 + WORDS;
/// Where the numbers of the last request and of the last that is answered are, and both parts.
const POSTED: usize = 0;
const ANSWERED: usize = 1;
const REQUEST: usize = 2;
const ANSWER: usize = REQUEST + PART;
/// Words of the page that are used.
pub const LENGTH: usize = ANSWER + PART;

/// The shared words.
#[derive(Clone, Copy, Debug)]
pub struct Mail<'a> {
    words: &'a [AtomicU64; LENGTH],
}

impl Mail<'static> {
    /// What a component and its courier at the gate `name` share.
    ///
    /// # Panics
    /// It asks for no such component there.
    pub fn described(env: &Environment, name: &str, component: &str) -> Self {
        let memory = env.memory(&names::mail(name, component));
        assert!(
            memory.len as usize >= LENGTH * size_of::<AtomicU64>(),
            "the builder makes mail of whole pages"
        );
        // SAFETY: the loader mapped it for good, from a page's boundary on, and it is long enough; all who see it use atomics.
        let words = unsafe { &*memory.as_mut_ptr().cast::<[AtomicU64; LENGTH]>() };
        Self { words }
    }
}

impl<'a> Mail<'a> {
    /// Of words that are 0.
    pub const fn new(words: &'a [AtomicU64; LENGTH]) -> Self {
        Self { words }
    }

    fn load(self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    fn store(self, word: usize, value: u64) {
        self.words[word].store(value, Ordering::Relaxed);
    }

    /// Puts down a request or an answer of at most [`WORDS`] words.
    fn write(self, part: usize, label: u64, words: &[u64]) {
        let words = &words[..words.len().min(WORDS)];
        self.store(part, label);
        self.store(part + 1, words.len() as u64);
        for (place, &word) in (part + 2..).zip(words) {
            self.store(place, word);
        }
    }

    /// The label of one, and how many of its words were copied.
    fn read(self, part: usize, words: &mut [u64]) -> (u64, usize) {
        let count = self.load(part + 1).min(WORDS as u64) as usize;
        let count = count.min(words.len());
        for (place, word) in (part + 2..).zip(&mut words[..count]) {
            *word = self.load(place);
        }
        (self.load(part), count)
    }
}

/// The thread's end.
#[derive(Debug)]
pub struct Sender<'a> {
    mail: Mail<'a>,
    /// The number of the request whose answer was not taken. Not one of another sender before this one, whose answer
    /// nobody wants.
    expected: Option<u64>,
}

impl<'a> Sender<'a> {
    pub const fn new(mail: Mail<'a>) -> Self {
        Self {
            mail,
            expected: None,
        }
    }

    /// Posts a request of at most [`WORDS`] words, unless the last one is not answered: then returns false. An answer that was
    /// not taken is lost.
    #[must_use]
    pub fn post(&mut self, label: u64, words: &[u64]) -> bool {
        let posted = self.mail.load(POSTED);
        if self.mail.words[ANSWERED].load(Ordering::Acquire) != posted {
            return false;
        }
        self.mail.write(REQUEST, label, words);
        let number = posted.wrapping_add(1);
        self.mail.words[POSTED].store(number, Ordering::Release);
        self.expected = Some(number);
        true
    }

    /// The label of the answer to the last request, and how many of its words were copied to `answer`; once.
    pub fn take(&mut self, answer: &mut [u64]) -> Option<(u64, usize)> {
        let answered = self.mail.words[ANSWERED].load(Ordering::Acquire);
        if self.expected != Some(answered) {
            return None;
        }
        self.expected = None;
        Some(self.mail.read(ANSWER, answer))
    }
}

/// A request, as the courier has copied it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    pub label: u64,
    pub count: usize,
    pub words: [u64; WORDS],
}

/// The courier's end.
#[derive(Debug)]
pub struct Receiver<'a> {
    mail: Mail<'a>,
    /// Number of the last request that was collected, whatever the page says.
    collected: u64,
}

impl<'a> Receiver<'a> {
    /// What is in the page is not a request yet.
    pub fn new(mail: Mail<'a>) -> Self {
        let collected = mail.load(ANSWERED);
        Self { mail, collected }
    }

    /// A request that was posted, once.
    pub fn collect(&mut self) -> Option<Posted> {
        let posted = self.mail.words[POSTED].load(Ordering::Acquire);
        if posted == self.collected {
            return None;
        }
        self.collected = posted;
        let mut words = [0; WORDS];
        let (label, count) = self.mail.read(REQUEST, &mut words);
        Some(Posted {
            label,
            count,
            words,
        })
    }

    /// Answers the request that was collected last.
    pub fn deliver(&mut self, label: u64, words: &[u64]) {
        self.mail.write(ANSWER, label, words);
        self.mail.words[ANSWERED].store(self.collected, Ordering::Release);
    }
}
