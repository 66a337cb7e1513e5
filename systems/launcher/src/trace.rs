//! Execution traces: memory for the kernel's records, where it is, and the names of threads.
//!
//! Whoever traces the system reads the machine's memory from outside; a page that begins with a magic
//! number says where the logs are (`sandglass_abi::trace::header`). So a traced system does nothing
//! else than one that is not, and the same again and again.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sandglass::abi::trace::header;
use sandglass::cap::{Capability, Frame, FrameSize, ObjectType};
use sandglass::trace::{self, Parameter};
use sandglass::{boot, BootInfo, Process};
use sandglass_description::{Component, System};

use crate::failure::{Context, Failure};
use crate::launch::Thread;

/// The parameter of a component that is the number of its criticality.
const CRITICALITY: &str = "criticality";

/// Capabilities that the logs take.
pub fn slots(info: &BootInfo, system: &System) -> u64 {
    let frames = system.trace.map_or(0, |trace| trace.frames_per_core.into());
    info.cores() * frames
}

/// A log: its core, and the memory for it.
struct Log {
    core: u64,
    /// Physical address.
    start: u64,
    frames: Vec<Frame>,
}

/// Lets the kernel record, if the system is to be traced.
pub fn start(process: &mut Process, info: &BootInfo, system: &System) -> Result<(), Failure> {
    let Some(wanted) = system.trace else {
        return Ok(());
    };
    let mut logs = Vec::new();
    for core in 0..info.cores() {
        logs.push(Log::make(process, core, wanted.frames_per_core.into())?);
    }
    announce(process, &logs)?;
    for log in &logs {
        let control = info
            .sched_control(log.core)
            .context("there is no control of the time of a core")?;
        let is_taken = log
            .frames
            .iter()
            .all(|&frame| trace::give_log(frame, control));
        is_taken
            .then_some(())
            .context("the kernel takes no memory for traces")?;
    }
    trace::enable();
    trace::name(boot::TCB, "launcher");
    trace::name(boot::SCHED_CONTEXT, "launcher");
    Ok(())
}

impl Log {
    /// Memory for a log in one piece: objects of one Retype lie one behind the other.
    fn make(process: &mut Process, core: u64, count: u64) -> Result<Self, Failure> {
        let first = process
            .resources
            .create_many::<Frame>(ObjectType::LargePage, count)
            .context("no memory for traces")?;
        let address = first.physical_address();
        let numbers = first.cptr().raw()..;
        Ok(Log {
            core,
            start: address.context("memory without an address")?,
            frames: numbers.take(count as usize).map(Frame::at).collect(),
        })
    }

    fn bytes(&self) -> u64 {
        self.frames.len() as u64 * FrameSize::Large.bytes()
    }
}

/// Writes the page that says where the logs are.
fn announce(process: &mut Process, logs: &[Log]) -> Result<(), Failure> {
    let page = process.resources.frame(FrameSize::Small);
    let page = page.context("no memory for the header of traces")?;
    let address = page.physical_address().context("the header's address")?;
    let mut words = Vec::from(header::MAGIC);
    words.extend([address, logs.len() as u64]);
    for log in logs {
        words.extend([log.core, log.start, log.bytes()]);
    }
    process
        .space
        .fill_frame(&mut process.resources, page, |bytes| {
            for (place, word) in bytes.chunks_exact_mut(8).zip(&words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        })
        .context("the header of traces")
}

/// How a thread is named: a main thread as its component.
fn full_name(component: &Component, number: usize, thread: &str) -> String {
    match number {
        0 => component.name.clone(),
        _ => format!("{}/{thread}", component.name),
    }
}

/// Names all threads and their scheduling contexts, and tells what is described of them.
pub fn name_threads(system: &System, threads: &[Vec<Thread>]) {
    for (component, made) in system.components.iter().zip(threads) {
        for (number, (described, thread)) in component.threads.iter().zip(made).enumerate() {
            let name = full_name(component, number, &described.name);
            trace::name(thread.tcb(), &name);
            trace::name(thread.context(), &name);
            if let Some(deadline) = described.deadline_us {
                trace::parameter(thread.tcb(), Parameter::Deadline, deadline);
            }
            if described.passive {
                trace::parameter(thread.tcb(), Parameter::Passive, 1);
            }
            let mut parameters = component.parameters.iter();
            if let Some(level) = parameters.find(|parameter| parameter.name == CRITICALITY) {
                trace::parameter(thread.tcb(), Parameter::Criticality, level.value);
            }
        }
    }
}
