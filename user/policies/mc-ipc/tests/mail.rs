//! What a thread and its courier write to each other.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fastrand::Rng;
use sandglass_mc_ipc::driver::WORDS;
use sandglass_mc_ipc::mail::{Mail, Posted, Receiver, Sender, LENGTH};

fn page() -> [AtomicU64; LENGTH] {
    [const { AtomicU64::new(0) }; LENGTH]
}

fn words(rng: &mut Rng) -> Vec<u64> {
    (0..rng.usize(0..=WORDS)).map(|_| rng.u64(..)).collect()
}

fn collected(receiver: &mut Receiver<'_>) -> (u64, Vec<u64>) {
    let Posted {
        label,
        count,
        words,
    } = receiver.collect().expect("a request was posted");
    (label, words[..count].to_vec())
}

/// Whatever is asked and answered, and whenever each side looks: a request is collected once, as it was posted, and its answer
/// is taken once.
#[test]
fn requests_and_answers_arrive_once_and_whole() {
    let mut rng = Rng::with_seed(1);
    let page = page();
    let mut sender = Sender::new(Mail::new(&page));
    let mut receiver = Receiver::new(Mail::new(&page));
    let mut answer = [0; WORDS];
    for _ in 0..200 {
        let (asked, label) = (words(&mut rng), rng.u64(..));
        assert!(sender.post(label, &asked));
        assert!(!sender.post(label, &[]), "one at a time");
        assert_eq!(sender.take(&mut answer), None);
        assert_eq!(collected(&mut receiver), (label, asked));
        assert!(receiver.collect().is_none());
        assert!(!sender.post(label, &[]), "it is not answered");
        let (said, label) = (words(&mut rng), rng.u64(..));
        receiver.deliver(label, &said);
        assert!(receiver.collect().is_none());
        if rng.bool() {
            assert_eq!(sender.take(&mut answer), Some((label, said.len())));
            assert_eq!(answer[..said.len()], said);
        }
        if rng.bool() {
            let again = sender.take(&mut answer);
            assert!(again.is_none() || again == Some((label, said.len())));
            assert_eq!(sender.take(&mut answer), None);
        }
    }
}

/// A thread that has begun anew gets no answer to what it asked before, and asks when that is answered.
#[test]
fn another_sender_gets_no_answer_to_the_one_before() {
    let page = page();
    let mut receiver = Receiver::new(Mail::new(&page));
    assert!(Sender::new(Mail::new(&page)).post(1, &[1]));
    let mut sender = Sender::new(Mail::new(&page));
    assert!(!sender.post(2, &[2]));
    assert_eq!(collected(&mut receiver), (1, vec![1]));
    receiver.deliver(0, &[10]);
    let mut answer = [0; WORDS];
    assert_eq!(sender.take(&mut answer), None);
    assert!(sender.post(2, &[2]));
    assert_eq!(collected(&mut receiver), (2, vec![2]));
    receiver.deliver(0, &[20]);
    assert_eq!(sender.take(&mut answer), Some((0, 1)));
    assert_eq!(answer[0], 20);
}

/// Whatever the other side writes: nobody reads or writes beyond a part, and the courier collects nothing twice without
/// another number.
#[test]
fn what_the_other_side_writes_at_random_does_no_harm() {
    let mut rng = Rng::with_seed(2);
    let page = page();
    let mut sender = Sender::new(Mail::new(&page));
    let mut receiver = Receiver::new(Mail::new(&page));
    let mut short = [0; 3];
    for _ in 0..2_000 {
        let value = if rng.bool() {
            rng.u64(..)
        } else {
            rng.u64(0..60)
        };
        page[rng.usize(..LENGTH)].store(value, Relaxed);
        match rng.u8(0..4) {
            0 => _ = sender.post(rng.u64(..), &words(&mut rng)),
            1 => {
                let taken = sender.take(&mut short);
                assert!(taken.is_none_or(|(_, count)| count <= short.len()));
            }
            2 => {
                let posted = receiver.collect();
                assert!(posted.is_none_or(|posted| posted.count <= WORDS));
                assert!(receiver.collect().is_none());
            }
            _ => receiver.deliver(rng.u64(..), &words(&mut rng)),
        }
    }
}
