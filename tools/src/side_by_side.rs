//! Independent pieces of work, as many at a time as the host has cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// Does `work` for every item; returns the results in the items' order. `done` is told of each
/// result with the number of those that are done, itself included.
///
/// # Errors
/// Of those that occurred, that of the first item; work under way is waited for, other is not
/// begun.
pub fn run<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T> + Sync,
    done: impl Fn(&T, usize) + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers(items.len()) {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { break };
                let result = work(item);
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                match &result {
                    Ok(result) => done(result, results.len() + 1),
                    Err(_) => next.store(items.len(), Ordering::Relaxed),
                }
                results.push((index, result));
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// How many of `count` pieces are done at a time.
pub fn workers(count: usize) -> usize {
    thread::available_parallelism()
        .map_or(1, usize::from)
        .min(count)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let told = AtomicUsize::new(0);
        let count = |_: &u64, number: usize| {
            told.fetch_max(number, Ordering::Relaxed);
        };
        let doubled = run(&items, |item| Ok(item * 2), count).unwrap();
        assert_eq!(
            doubled,
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        assert_eq!(told.into_inner(), items.len());
    }

    #[test]
    fn an_error_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let items: Vec<usize> = (0..10_000).collect();
        let work = |&item: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if item == 3 {
                bail!("no")
            }
            Ok(())
        };
        assert!(run(&items, work, |(), _| ()).is_err());
        assert!(begun.into_inner() < items.len());
    }
}
