//! Watchdogs: a thread of the launcher that looks, every now and then, whether components have given signs of life.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use sandglass::cap::{Attributes, FrameSize, Notification, Rights, SchedParams, TimeSlice};
use sandglass::image::PAGE;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::watchdog::Signs;
use sandglass::{sys, trace, BootInfo, Process};
use sandglass_description::{System, Watchdog};

use crate::failure::{Context, Failure};
use crate::objects::Objects;

/// What it takes to look at all components, generously, µs.
const BUDGET_US: u64 = 200;

/// A component that is watched.
pub struct Watched {
    signs: &'static Signs,
    /// Looks without a sign, in a row, after which it counts as failed.
    patience: u32,
    is_active: AtomicBool,
    has_failed: AtomicBool,
    /// What was seen last, and how often in a row; the watching thread's alone.
    last: AtomicU64,
    misses: AtomicU32,
}

impl Watched {
    /// Begins to expect signs: the component starts.
    pub fn arm(&self) {
        self.signs.clear();
        self.last.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
        self.has_failed.store(false, Ordering::Relaxed);
        self.is_active.store(true, Ordering::Release);
    }

    /// Expects no signs any more.
    pub fn disarm(&self) {
        self.is_active.store(false, Ordering::Relaxed);
    }

    /// Whether it has failed since the last time that this was asked.
    pub fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Ordering::Acquire)
    }

    /// Looks once; returns whether it counts as failed now.
    fn look(&self) -> bool {
        if !self.is_active.load(Ordering::Acquire) {
            return false;
        }
        let seen = self.signs.look();
        if seen != Some(self.last.load(Ordering::Relaxed)) {
            self.last.store(seen.unwrap_or(0), Ordering::Relaxed);
            self.misses.store(0, Ordering::Relaxed);
            return false;
        }
        if self.misses.fetch_add(1, Ordering::Relaxed) + 1 < self.patience {
            return false;
        }
        self.is_active.store(false, Ordering::Relaxed);
        self.has_failed.store(true, Ordering::Release);
        true
    }
}

/// Begins to watch all components with a watchdog; returns each with what is to be known of it. None is armed.
pub fn start(
    process: &mut Process,
    info: &BootInfo,
    system: &System,
    objects: &Objects,
    signal: Notification,
) -> Result<&'static [(u32, Watched)], Failure> {
    let periods = system.components.iter().filter_map(|c| c.watchdog);
    let Some(look_us) = Watchdog::look_us(periods.map(|watchdog| watchdog.period_us)) else {
        return Ok(&[]);
    };
    let mut all = Vec::new();
    for (index, component) in (0..).zip(&system.components) {
        let Some(watchdog) = component.watchdog else {
            continue;
        };
        all.push((
            index,
            Watched {
                signs: map(process, objects, watchdog.memory)?,
                // A look may come right after a sign.
                patience: (watchdog.period_us.div_ceil(look_us) + 1) as u32,
                is_active: AtomicBool::new(false),
                has_failed: AtomicBool::new(false),
                last: AtomicU64::new(0),
                misses: AtomicU32::new(0),
            },
        ));
    }
    let all: &'static [(u32, Watched)] = Box::leak(all.into_boxed_slice());
    let what = "cannot make the thread that looks after watchdogs";
    let time = SchedParams {
        time: TimeSlice {
            budget_us: BUDGET_US,
            period_us: look_us,
        },
        extra_refills: 0,
        badge: 0,
        sporadic: false,
    };
    let context = process
        .resources
        .sched_context(time.size_bits())
        .context(what)?;
    let control = info
        .sched_control(0)
        .context("there is no control of the time of core 0")?;
    control.configure(context, time).context(what)?;
    let params = ThreadParams::new(system.launcher_priority, context);
    let thread = Thread::new(process, params, move || loop {
        let mut has_failed = false;
        for (_, watched) in all {
            has_failed |= watched.look();
        }
        if has_failed {
            signal.signal();
        }
        // Until its next period.
        sys::yield_now();
    });
    let thread = thread.context(what)?;
    trace::name(thread.tcb(), "launcher/watchdog");
    trace::name(context, "launcher/watchdog");
    thread.start().context(what)?;
    Ok(all)
}

/// Maps the memory in which a component gives signs.
fn map(process: &mut Process, objects: &Objects, memory: u32) -> Result<&'static Signs, Failure> {
    let what = "the memory of a watchdog";
    let &[frame] = objects.memory(memory)?.frames.as_slice() else {
        return Err(Failure::of(&"the memory of a watchdog is not a page"));
    };
    let copy = process.resources.copy(frame, Rights::ALL).context(what)?;
    let address = process.space.map_frame(
        &mut process.resources,
        copy,
        FrameSize::Small,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    );
    let address = address.context(what)?;
    const { assert!(size_of::<Signs>() <= PAGE as usize) };
    // SAFETY: just mapped for good; any content is signs.
    Ok(unsafe { &*(address as *const Signs) })
}
