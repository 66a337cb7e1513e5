//! The lock that cores take turns by, and what they ask of each other meanwhile (04, section 15).

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use sandglass_lock::{Line, Lock, Requests, Ticket, Turn, Word};

use super::isa::machine::{core_data, cpu};
use crate::arch::abi::context::FpuState;
use crate::cores::{CoreId, Cores, CORES};

/// To forget every user translation and every cached paging structure, which the entry does.
pub const FLUSH: Requests = Requests(1 << 0);
/// To store the FPU's registers where [`prepare_fpu_save`] said.
pub const SAVE_FPU: Requests = Requests(1 << 1);
/// To store the registers of the thread that runs, and to enter the kernel next.
pub const STALL: Requests = Requests(1 << 2);
/// To do what only that core can do to its part of the machine: which the bits from [`OWN_SHIFT`] on say.
const OWN: Requests = Requests(1 << 3);
const OWN_SHIFT: u32 = 8;

/// The request for [`core_data::do_own`] with `what`, of 24 bits.
pub const fn own(what: u32) -> Requests {
    Requests(OWN.0 | what << OWN_SHIFT)
}

/// A word of the lock. A core that waits for another one to change it pauses as the architecture has it.
pub(in crate::arch) struct Place(AtomicU32);

impl Place {
    const fn line() -> Line<Place> {
        Line::new(Place(AtomicU32::new(0)))
    }
}

impl Word for Place {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    #[inline(always)]
    fn increment(&self, order: Ordering) -> u32 {
        self.0.fetch_add(1, order)
    }

    #[inline(always)]
    fn pause() {
        cpu::pause();
    }
}

pub(in crate::arch) static LOCK: Lock<Place, CORES> = Lock::of(
    Place::line(),
    Place::line(),
    [const { Place::line() }; CORES],
);

/// What [`SAVE_FPU`] is about. Nobody is asked for two things at a time. Relaxed accesses: the
/// mailbox orders them, as it is written after this (Release) and read before it (Acquire).
static FPU_STATE: AtomicPtr<FpuState> = AtomicPtr::new(core::ptr::null_mut());

/// When the core that was asked for [`STALL`] left user code, in ticks. Accesses are relaxed as above.
static LEFT_AT: AtomicU64 = AtomicU64::new(0);

/// Waits for the turn of `core`, which executes this and has just arrived. Also tells when that was, in
/// ticks.
#[inline(never)] // Whoever measures waits knows them by it.
pub(in crate::arch) fn wait(core: CoreId, ticket: Ticket) -> (Turn, u64) {
    let since = cpu::time_stamp();
    let turn = LOCK.wait(core.index(), ticket, |asked| answer(core, asked, since));
    (turn, since)
}

/// Whether another core waits for its turn; asked by the one inside.
pub fn others_wait() -> bool {
    LOCK.others_wait()
}

/// Does what `core`, which executes this outside of the kernel, is asked for, if anything. Returns
/// whether it must enter the kernel.
#[must_use]
pub fn serve(core: CoreId) -> bool {
    let mut stalled = false;
    LOCK.serve(core.index(), |asked| {
        answer(core, asked, cpu::time_stamp());
        stalled = has(asked, STALL);
    });
    stalled
}

/// What is not done here has been done by the entry code: the registers of the thread that ran are
/// stored; and on x86_64, where cores are asked for [`FLUSH`], the root is the kernel's, whose loading forgot the user's
/// translations. The core left user code at the tick `left`.
#[cold]
fn answer(core: CoreId, asked: Requests, left: u64) {
    if has(asked, STALL) {
        LEFT_AT.store(left, Ordering::Relaxed);
        core_data::leave_user_space();
    }
    if has(asked, SAVE_FPU) {
        let state = FPU_STATE.load(Ordering::Relaxed);
        // SAFETY: from the reference of the core inside, which waits until this is answered.
        core_data::save_fpu(unsafe { &*state });
    }
    if core_data::HAS_OWN && has(asked, OWN) {
        core_data::do_own(core, asked.0 >> OWN_SHIFT);
    }
}

const fn has(asked: Requests, what: Requests) -> bool {
    asked.0 & what.0 != 0
}

/// Asks other cores, which run, for `what`, and returns when they have done it. `interrupt` makes a core call
/// [`serve`].
///
/// Called by the core inside.
pub fn ask(cores: Cores, what: Requests, mut interrupt: impl FnMut(CoreId)) {
    LOCK.request(cores.bits(), what, |core| {
        if let Some(core) = CoreId::new(core as u64) {
            interrupt(core);
        }
    });
}

/// When the core that was last asked for [`STALL`], and has answered, left user code, in ticks.
pub fn left_user_code_at() -> u64 {
    LEFT_AT.load(Ordering::Relaxed)
}

/// Says where the core that is asked for [`SAVE_FPU`] next is to store the registers. The caller does
/// not use `state` until that is done.
pub fn prepare_fpu_save(state: &FpuState) {
    FPU_STATE.store(core::ptr::from_ref(state).cast_mut(), Ordering::Relaxed);
}
