//! What tasks and logger share: what each has executed, and when its jobs began and ended.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::{time, Environment};

pub const TASKS: usize = 4;
/// Jobs of a task that are recorded.
pub const JOBS: usize = 1024;

/// Times in ticks of the time-stamp counter. Who may write it is trusted: hostile tasks attack others' time, not this.
#[repr(C)]
pub struct Board {
    /// The first release of tasks that are released by timers; 0 before one of them has set it.
    origin: AtomicU64,
    /// When the first job of all began; 0 before.
    began: AtomicU64,
    /// When the logger looked at the clock last.
    pub look: AtomicU64,
    pub rows: [Row; TASKS],
}

/// Of a task.
#[repr(C)]
pub struct Row {
    /// Chunks that it has executed.
    pub chunks: AtomicU64,
    /// How many of `jobs` have been written.
    pub count: AtomicU64,
    pub jobs: [Job; JOBS],
}

/// Of a job.
#[repr(C)]
pub struct Job {
    /// 0 if its policy does not say it.
    pub release: AtomicU64,
    pub begin: AtomicU64,
    pub end: AtomicU64,
    /// The logger's last look before it began.
    pub look: AtomicU64,
}

impl Board {
    /// # Panics
    /// The memory `board` is too small.
    pub fn of(env: &Environment) -> &'static Self {
        let memory = env.memory("board");
        assert!(
            memory.len as usize >= size_of::<Self>(),
            "the board needs {} bytes",
            size_of::<Self>()
        );
        // SAFETY: the system maps it for good, page-aligned; it consists of atomics, for which every content is valid.
        unsafe { &*memory.as_mut_ptr().cast() }
    }

    /// The common first release: `later` from the first call.
    pub fn origin(&self, later: u64) -> u64 {
        let at = time::ticks() + later;
        match self.origin.compare_exchange(0, at, Relaxed, Relaxed) {
            Ok(_) => at,
            Err(origin) => origin,
        }
    }

    /// When the first job of all began, if one has.
    pub fn began(&self) -> Option<u64> {
        Some(self.began.load(Relaxed)).filter(|&at| at != 0)
    }

    /// Notes that a job begins now.
    pub fn begin(&self) -> (u64, u64) {
        let now = time::ticks();
        let look = self.look.load(Relaxed);
        // Another one was before it, or not: either is right.
        let _ = self.began.compare_exchange(0, now, Relaxed, Relaxed);
        (now, look)
    }
}

impl Row {
    /// Notes a job that has ended now; what has no place is not recorded, and the tools miss it.
    pub fn note(&self, release: u64, (begin, look): (u64, u64)) {
        let end = time::ticks();
        let count = self.count.load(Relaxed);
        let Some(job) = self.jobs.get(count as usize) else {
            return;
        };
        job.release.store(release, Relaxed);
        job.begin.store(begin, Relaxed);
        job.end.store(end, Relaxed);
        job.look.store(look, Relaxed);
        self.count.store(count + 1, Relaxed);
    }
}
