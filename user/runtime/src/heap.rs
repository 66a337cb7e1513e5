//! The heap: the `talc` allocator over a static array, behind a lock that blocks.
//!
//! A program whose threads share the heap gives it a notification ([`share`]) before it starts
//! the second one; a thread that finds the lock taken waits there, by priority. There is no
//! priority inheritance: threads with deadlines allocate before they start, not while they run.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use lock_api::{GuardNoSend, RawMutex};
use talc::source::Claim;
use talc::TalcLock;

use crate::cap::Notification;

/// The type of a program's global allocator.
pub type Heap = TalcLock<HeapLock, Claim>;

/// A heap over a static array.
///
/// # Safety
/// Nothing else may use the array.
pub const unsafe fn over_array<const N: usize>(array: *mut [u8; N]) -> Heap {
    // SAFETY: the caller's promise.
    TalcLock::new(unsafe { Claim::array(array) })
}

/// A heap without memory, until [`give`] is called.
pub const fn empty() -> Heap {
    TalcLock::new(Claim::standby())
}

/// Gives a heap the memory of `len` bytes at `base`. Of too few bytes, nothing can be allocated.
///
/// # Safety
/// Nothing else may use the memory, for good.
pub unsafe fn give(heap: &Heap, base: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    let _ = unsafe { heap.lock().claim(base, len) };
}

/// Capability pointers of the notification of [`share`], with which a thread waits, and signals; 0 if there is none.
static WAIT: AtomicU64 = AtomicU64::new(0);
static SIGNAL: AtomicU64 = AtomicU64::new(0);

/// Lets several threads of this program use the heap. The notification must serve nothing else.
pub fn share(notification: Notification) {
    share_by(notification, notification);
}

/// As [`share`], by two capabilities of one notification: a component of a described system is its waiter and, under another
/// name, its only signaller.
pub fn share_by(wait: Notification, signal: Notification) {
    SIGNAL.store(signal.address(), Ordering::Release);
    WAIT.store(wait.address(), Ordering::Release);
}

/// A lock with a count of the threads that hold or want it: whoever leaves while others want it
/// signals one of them, which then holds it. At most one signal is ever pending.
pub struct HeapLock {
    interested: AtomicU32,
}

// SAFETY: only the thread that raised the count from zero, or was handed the lock by a signal,
// holds it.
unsafe impl RawMutex for HeapLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self {
        interested: AtomicU32::new(0),
    };
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        if self.interested.fetch_add(1, Ordering::Acquire) != 0 {
            wait_for_lock();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.interested
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        if self.interested.fetch_sub(1, Ordering::Release) != 1 {
            Notification::at(SIGNAL.load(Ordering::Acquire)).signal();
        }
    }
}

#[cold]
fn wait_for_lock() {
    let notification = WAIT.load(Ordering::Acquire);
    assert!(
        notification != 0,
        "two threads use the heap at once: call `heap::share` before starting the second"
    );
    Notification::at(notification).wait();
}
