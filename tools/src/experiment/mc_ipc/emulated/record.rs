//! What left the machine, read.

use anyhow::{bail, ensure, Context, Result};
use key_server_study::record::{Request, BEGIN, END};

/// What clients recorded; times in ticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub ticks_per_us: u64,
    /// When each phase began.
    pub phases: Vec<u64>,
    /// By number.
    pub clients: Vec<Log>,
}

/// What a client recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// Requests that it made.
    pub asked: u64,
    /// Those that were answered, in order.
    pub requests: Vec<Request>,
}

/// # Errors
/// It is no whole record.
pub fn parse(bytes: &[u8]) -> Result<Record> {
    let (words, rest) = bytes.as_chunks::<8>();
    ensure!(rest.is_empty(), "{} bytes are no words", bytes.len());
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let mut next = || words.next().context("the record ends too early");
    ensure!(next()? == BEGIN, "it does not begin as a record does");
    let ticks_per_us = next()?;
    ensure!(ticks_per_us > 0, "the machine's clock has no frequency");
    let count = next()?;
    let phases = (0..count).map(|_| next()).collect::<Result<_>>()?;
    let count = next()?;
    let mut clients = Vec::new();
    for _ in 0..count {
        let (asked, answered) = (next()?, next()?);
        let mut requests = Vec::new();
        for _ in 0..answered {
            let mut words = [0; Request::WORDS];
            for word in &mut words {
                *word = next()?;
            }
            requests.push(Request::from_words(&words));
        }
        clients.push(Log { asked, requests });
    }
    ensure!(next()? == END, "it does not end as a record does");
    if next().is_ok() {
        bail!("there is something behind the record");
    }
    Ok(Record {
        ticks_per_us,
        phases,
        clients,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_record_is_read_and_anything_else_is_refused() {
        let mut words = vec![BEGIN, 1_000, 2, 5, 9, 2, 1, 0, 1, 1];
        words.extend(0..Request::WORDS as u64);
        words.push(END);
        let record = parse(&bytes(&words)).unwrap();
        assert_eq!((record.ticks_per_us, record.phases), (1_000, vec![5, 9]));
        assert_eq!(record.clients[0].asked, 1);
        assert_eq!(record.clients[0].requests, []);
        assert_eq!(record.clients[1].requests[0].answered, 1);
        for wrong in 0..words.len() {
            assert!(parse(&bytes(&words[..wrong])).is_err(), "{wrong} words");
        }
        for (place, value) in [(0, 1), (1, 0), (2, 1), (5, 3), (9, 2), (words.len() - 1, 0)] {
            let mut other = words.clone();
            other[place] = value;
            assert!(parse(&bytes(&other)).is_err(), "word {place}");
        }
        words.push(0);
        assert!(parse(&bytes(&words)).is_err());
        assert!(parse(&bytes(&words)[1..]).is_err());
    }
}
