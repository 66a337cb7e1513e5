//! The catalogue's scene on a hosted kernel.

use sandglass_abi::boot::slot;
use sandglass_kernel::CORES;
use sandglass_refusals::scene::{Maker, Scene, Thread};
use sandglass_testkit::call::Refused;
use sandglass_testkit::isa;
use sandglass_testkit::world::{World, US};

/// A world with the scene in it, in which entries of the kernel take no time. The root task makes the refused
/// invocations itself.
///
/// # Panics
/// If the kernel refuses something of it.
pub fn make() -> (World, Scene) {
    let mut w = World::with_memory(6 << 20);
    // Time passes where a case says so.
    w.path = 0;
    let device_memory = w.root_cnode().untyped(&w.k, true);
    let large = device_memory.filter(|(_, memory)| memory.bits() >= 32);
    let device_memory = { large }.next().expect("device memory").0;
    let wakes = w.make(sandglass_abi::object::NOTIFICATION, 0);
    let mut root = Root {
        w,
        device_memory,
        wakes,
    };
    let scene = Scene::make(&mut root).unwrap_or_else(|refused| panic!("{refused:?}"));
    (root.w, scene)
}

struct Root {
    w: World,
    device_memory: u64,
    /// What the root task waits for while others run.
    wakes: u64,
}

impl Maker for Root {
    type Failure = Refused;

    fn is_for_several_cores(&self) -> bool {
        CORES > 1
    }

    fn ticks_per_us(&self) -> u64 {
        US
    }

    fn sched_control(&self) -> u64 {
        isa::SCHED_CONTROL
    }

    fn caller(&self) -> Thread {
        Thread {
            tcb: slot::TCB,
            context: slot::SCHED_CONTEXT,
        }
    }

    fn memory(&self) -> u64 {
        self.w.untyped
    }

    fn device_memory(&self) -> u64 {
        self.device_memory
    }

    fn fresh_slot(&mut self) -> Result<u64, Refused> {
        Ok(self.w.fresh_slot())
    }

    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Result<(), Refused> {
        self.w.invoke(cap, label, words, caps).map(|_| ())
    }

    fn waiting_thread(&mut self, on: u64) -> Result<Thread, Refused> {
        let thread = self.w.start_thread(150, 5_000, 10_000);
        self.w.wait(self.wakes);
        assert_eq!(self.w.running(), Some(thread.handle));
        self.w.wait(on);
        self.w.wake(self.wakes);
        let (tcb, context) = (thread.tcb, thread.context);
        Ok(Thread { tcb, context })
    }
}
