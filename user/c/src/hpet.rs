//! The machine's timer, for the component that owns it.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use sandglass::timer::{Timer, TimerError};
use sandglass::SetupError;

use crate::environment;
use crate::error::{self, Code};
use crate::foreign::Text;

/// The machine has one, and a component opens it once.
struct Opened {
    timer: UnsafeCell<Option<Timer>>,
    is_open: AtomicBool,
}

// SAFETY: `timer` is written before `is_open` is set, once, and read afterwards.
unsafe impl Sync for Opened {}

static OPENED: Opened = Opened {
    timer: UnsafeCell::new(None),
    is_open: AtomicBool::new(false),
};

impl Opened {
    fn set(&self, timer: Timer) {
        assert!(
            !self.is_open.load(Ordering::Acquire),
            "`sg_hpet_open` is called once"
        );
        // SAFETY: nobody reads it yet.
        unsafe { *self.timer.get() = Some(timer) };
        self.is_open.store(true, Ordering::Release);
    }

    fn get(&self) -> Timer {
        let is_open = self.is_open.load(Ordering::Acquire);
        // SAFETY: it is not written any more.
        let timer = is_open.then(|| unsafe { *self.timer.get() }).flatten();
        timer.expect("`sg_hpet_open` comes first")
    }
}

fn code(result: Result<(), TimerError>) -> Code {
    match result {
        Ok(()) => error::OK,
        Err(TimerError::Setup(SetupError::Invocation(refused))) => error::of(refused),
        Err(_) => error::NO_DEVICE,
    }
}

#[no_mangle]
pub extern "C" fn sg_hpet_open(registers: Text, interrupt: Text, pit: Text) -> Code {
    let env = environment::get();
    let timer = Timer::described(env, registers.text(), interrupt.text(), pit.text());
    code(timer.map(|timer| OPENED.set(timer)))
}

#[no_mangle]
pub extern "C" fn sg_hpet_ticks() -> u64 {
    OPENED.get().clock().now()
}

#[no_mangle]
pub extern "C" fn sg_hpet_us_to_ticks(us: u64) -> u64 {
    OPENED.get().clock().us_to_ticks(us)
}

#[no_mangle]
pub extern "C" fn sg_hpet_ticks_to_us(ticks: u64) -> u64 {
    OPENED.get().clock().ticks_to_us(ticks)
}

#[no_mangle]
pub extern "C" fn sg_hpet_wait_until(at: u64) -> Code {
    code(OPENED.get().wait_until(at))
}
