//! Signs of life: a component with a `watchdog` in its description gives one at least every period, or counts as failed.
//!
//! A sign is a store to memory that the launcher looks at. A component that waits for others to ask it says so
//! ([`Watchdog::rest`]), and is not expected to give signs then. All of this is what the component claims: a watchdog
//! finds components that hang, not those that lie.

use core::sync::atomic::{AtomicU64, Ordering};

/// What the memory holds, which is all zero when the component starts.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Signs {
    /// Grows with every sign.
    count: AtomicU64,
    /// Not 0: no sign is expected.
    rests: AtomicU64,
}

impl Signs {
    /// A number that differs from the last one if there was a sign; `None` if none is expected.
    pub fn look(&self) -> Option<u64> {
        let rests = self.rests.load(Ordering::Relaxed) != 0;
        (!rests).then(|| self.count.load(Ordering::Relaxed))
    }

    /// As when the component starts.
    pub fn clear(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.rests.store(0, Ordering::Relaxed);
    }

    fn sign(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The component's side.
#[derive(Clone, Copy, Debug)]
pub struct Watchdog(&'static Signs);

impl Watchdog {
    pub(crate) const fn new(signs: &'static Signs) -> Self {
        Self(signs)
    }

    /// Gives a sign of life; the next is due within the period.
    pub fn report(self) {
        self.0.sign();
        self.0.rests.store(0, Ordering::Relaxed);
    }

    /// Nothing is to be done until somebody asks for something: no sign is due before [`Self::report`].
    pub fn rest(self) {
        self.0.rests.store(1, Ordering::Relaxed);
        self.0.sign();
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::*;

    #[test]
    fn every_report_is_seen_and_none_is_expected_of_who_rests() {
        let signs: &'static Signs = Box::leak(Box::default());
        let watchdog = Watchdog::new(signs);
        let first = signs.look().unwrap();
        watchdog.report();
        assert_ne!(signs.look(), Some(first));
        watchdog.rest();
        assert_eq!(signs.look(), None);
        watchdog.report();
        let before = signs.look().unwrap();
        watchdog.rest();
        watchdog.report();
        assert_ne!(signs.look(), Some(before));
        signs.clear();
        assert_eq!(signs.look(), Some(first));
    }
}
