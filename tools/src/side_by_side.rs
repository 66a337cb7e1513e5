//! Independent pieces of work, side by side. This alone says how many emulators, test programs and the like run at
//! a time: as many as the host has cores, or as the environment variable `RAYON_NUM_THREADS` says. Work that
//! is itself done side by side has its share of these, not as many again.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use rayon::iter::{ParallelBridge, ParallelIterator};
use rayon::ThreadPoolBuilder;

/// Does `work` for every item, and begins in the items' order; returns the results in that order, too. `done` is
/// told of each result with the number of those that are done, itself included.
///
/// While it waits for work that is itself done side by side, a thread may begin another item: so no item may keep
/// what another one waits for.
///
/// # Errors
/// One of those that occurred; work under way is waited for, other is not begun.
pub fn run<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T> + Sync,
    done: impl Fn(&T, usize) + Sync,
) -> Result<Vec<T>> {
    let ended = AtomicUsize::new(0);
    // Not `par_iter`, which gives each thread a stretch of the items: they differ much in length.
    let work_on_next = |(index, item): (usize, &I)| {
        let result = work(item)?;
        done(&result, ended.fetch_add(1, Ordering::Relaxed) + 1);
        Ok((index, result))
    };
    let results = items.iter().enumerate().par_bridge().map(work_on_next);
    let mut results = results.collect::<Result<Vec<_>>>()?;
    results.sort_unstable_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Does `work`, which does things side by side, with workers that nobody else has.
pub fn with_own_workers<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match ThreadPoolBuilder::new().build() {
        Ok(workers) => workers.install(work),
        // The host has no more threads: those that are there do it.
        Err(_) => work(),
    }
}

/// How many of `count` pieces are done at a time.
pub fn workers(count: usize) -> usize {
    rayon::current_num_threads().min(count)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

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
        let items: Vec<usize> = (0..100).collect();
        let work = |&item: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if item == 3 {
                bail!("no")
            }
            Ok(())
        };
        // With one thread it is known what is under way.
        let alone = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        assert!(alone.install(|| run(&items, work, |(), _| ())).is_err());
        assert_eq!(begun.into_inner(), 4);
    }

    #[test]
    fn as_many_are_done_at_a_time_as_there_are_workers() {
        let at_a_time = workers(usize::MAX);
        // No item ends before so many have begun.
        let barrier = Barrier::new(at_a_time);
        let items = vec![(); at_a_time];
        let meet = |(): &()| {
            barrier.wait();
            Ok(())
        };
        assert_eq!(run(&items, meet, |(), _| ()).unwrap().len(), at_a_time);
    }

    #[test]
    fn own_workers_are_as_many_as_the_host_has_and_not_the_callers() {
        let few = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let own = few.install(|| with_own_workers(|| workers(usize::MAX)));
        assert_eq!(own, workers(usize::MAX));
        assert_eq!(few.install(|| workers(usize::MAX)), 1);
    }

    #[test]
    fn work_may_itself_be_done_side_by_side() {
        let items: Vec<u64> = (0..20).collect();
        let inner = |&outer: &u64| run(&items, |item| Ok(outer * item), |_, _| ());
        let products = run(&items, inner, |_, _| ()).unwrap();
        assert_eq!(products[7][11], 77);
    }
}
