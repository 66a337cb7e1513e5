//! The catalogue's scene, made by the root task.

use alloc::vec::Vec;

use sandglass::cap::{CPtr, Capability, Endpoint, Notification, SchedContext, Tcb};
use sandglass::testing::Failure;
use sandglass::thread::ThreadParams;
use sandglass::{boot, ensure, Message};
use sandglass_refusals::scene::{Maker, Scene, Thread};

use crate::fixture::{Fixture, FULL};

/// log2 of the bytes that the scene is made of.
const MEMORY_BITS: u32 = 21;
/// Of the threads that wait.
const PRIORITY: u8 = 150;

/// Answers the invocation of the capability at `cap` by Call.
pub fn call(cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Message {
    Endpoint::at(cap).call(message(label, words, caps))
}

/// A message to an object, complete until the next one.
pub fn message(label: u64, words: &[u64], caps: &[u64]) -> Message {
    let caps: Vec<CPtr> = caps.iter().copied().map(CPtr::new).collect();
    Message::long(label, words).with_caps(&caps)
}

/// Has `fixture` make the scene for refused invocations of `caller`, whose context is `context`. Returns it with the
/// slots that it uses.
pub fn make(fixture: &mut Fixture, caller: Tcb, context: SchedContext) -> Result<Made, Failure> {
    let memory = fixture.process.resources.untyped(MEMORY_BITS)?;
    // The largest, in which no device is that anybody else uses.
    let devices = fixture.boot.untypeds().filter(|memory| memory.is_device);
    let device = devices.max_by_key(|memory| memory.size_bits);
    let mut root = Root {
        caller: thread(caller, context),
        memory: memory.address(),
        device_memory: device.ok_or("no device memory")?.untyped.address(),
        slots: Vec::new(),
        fixture,
    };
    let scene = Scene::make(&mut root)?;
    Ok(Made {
        scene,
        memory: root.memory,
        slots: root.slots,
    })
}

/// A scene.
pub struct Made {
    pub scene: Scene,
    /// Untyped memory of everything but devices.
    memory: u64,
    /// Slots that the scene uses, and `empty`.
    pub slots: Vec<u64>,
}

impl Made {
    /// Nothing is left of it but device memory in use.
    pub fn clear(self) -> Result<(), Failure> {
        boot::CNODE.slot(self.memory).revoke()?;
        for slot in self.slots {
            boot::CNODE.slot(slot).delete()?;
        }
        Ok(())
    }
}

struct Root<'f> {
    fixture: &'f mut Fixture,
    caller: Thread,
    memory: u64,
    device_memory: u64,
    slots: Vec<u64>,
}

fn thread(tcb: Tcb, context: SchedContext) -> Thread {
    Thread {
        tcb: tcb.address(),
        context: context.address(),
    }
}

impl Maker for Root<'_> {
    type Failure = Failure;

    fn ticks_per_us(&self) -> u64 {
        self.fixture.tsc.mhz().into()
    }

    fn sched_control(&self) -> u64 {
        self.fixture.control.address()
    }

    /// All kernels that this is booted on have as many cores as they are for.
    fn is_for_several_cores(&self) -> bool {
        self.fixture.boot.cores() > 1
    }

    fn caller(&self) -> Thread {
        self.caller
    }

    fn memory(&self) -> u64 {
        self.memory
    }

    fn device_memory(&self) -> u64 {
        self.device_memory
    }

    fn fresh_slot(&mut self) -> Result<u64, Failure> {
        let slot = self.fixture.process.resources.allocate_slot()?;
        self.slots.push(slot.index());
        Ok(slot.index())
    }

    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Result<(), Failure> {
        let error = call(cap, label, words, caps).label();
        ensure!(
            error == 0,
            "label {label} of {cap} with {words:?} and {caps:?}: error {error}"
        );
        Ok(())
    }

    fn waiting_thread(&mut self, on: u64) -> Result<Thread, Failure> {
        let context = self.fixture.context(FULL)?;
        let params = ThreadParams::new(PRIORITY, context);
        let tcb = self.fixture.spawn(params, move || {
            Notification::from_cptr(CPtr::new(on)).wait();
        })?;
        self.fixture.settle();
        Ok(thread(tcb, context))
    }
}
