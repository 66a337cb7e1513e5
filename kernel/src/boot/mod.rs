//! From a machine to the root task (ABI page 06).
//!
//! The machine's part of the boot hands over what it found ([`MachineInfo`]); here the root task's file is
//! checked and loaded behind the kernel's image, or as near to it as there is room, its objects and capabilities are made, it is
//! told what there is, and it gets everything that is left. The same code boots every machine,
//! the hosted one included.

#![forbid(unsafe_code)]

mod elf;
mod machine_info;
mod memory;
mod plan;
mod refusal;
mod root;
#[cfg(test)]
mod tests;
mod untyped;

pub use crate::arch::list::List;
pub use crate::arch::Range;
pub use machine_info::{MachineInfo, RootTask, MAX_RAM, MAX_RESERVED};
pub use refusal::Refusal;

use crate::arch::abi::boot::extra;
use crate::arch::bounds;
use crate::arch::Platform;
use crate::object::Constants;
use crate::time::Turn;
use crate::Kernel;
use elf::Program;
use memory::FreeRam;
use plan::Plan;
use untyped::Gaps;

/// What is in a page of the root task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Its image.
    Image,
    /// Its IPC buffer, or the boot information.
    Data,
    /// The extra boot information.
    Extra,
}

/// Makes the root task on a kernel that was just made. It runs first when the core looks for something to do
/// ([`Trap::Look`](crate::event::Trap::Look)), as the boot ends in an event like all others.
///
/// # Errors
/// There is no root task that can be loaded, or too little memory for it; nothing runs then.
pub fn start(k: &mut Kernel, turn: &Turn, found: MachineInfo) -> Result<(), Refusal> {
    let MachineInfo {
        firmware,
        mut ram,
        init_code,
        module,
        module_is_free,
        root_task,
        reserved,
        device_top,
    } = found;
    k.constants = Constants::for_clock(k.machine.ticks_per_unit(), bounds::min_budget_us());
    let core = k.core();
    core.set_now(k, k.machine.now());
    core.set_paid(k);
    core.request_reprogram(k);

    let extra = extra::Pages::of(&firmware);
    let mut free = FreeRam::new(&mut ram);
    let (plan, entry, image) = match root_task {
        RootTask::File(file) => {
            let program = Program::parse(contents(&module, file, k))?;
            let (entry, plan) = (program.entry, Plan::new(program.image, extra)?);
            let mut image = free.take_lowest(plan.image_bytes())?;
            memory::load(&k.machine, program, &mut image);
            if module_is_free {
                free.give(module);
            }
            (plan, entry, image)
        }
        RootTask::Loaded { start, entry } => {
            let image = Range {
                start,
                end: start.saturating_add(module.length()),
            };
            (Plan::new(image, extra)?, entry, module)
        }
    };
    let image_range = Range {
        start: image.start(),
        end: image.end(),
    };
    let taken = free.ranges().chain(reserved.iter().copied());
    let devices = Gaps::between(taken.chain(core::iter::once(image_range)), device_top);
    root::create(
        k,
        turn,
        &firmware,
        plan,
        entry,
        image,
        root::Memory {
            free,
            init_code,
            devices,
        },
    )?;
    turn.reschedule(k);
    Ok(())
}

/// The contents of the root task's file, which lies in `module`.
fn contents<'k>(module: &'k crate::mem::objects::Ram, file: Range, k: &'k Kernel) -> &'k [u8] {
    let start = file.start.saturating_sub(module.start()) as usize;
    let end = file.end.saturating_sub(module.start()) as usize;
    module.bytes(&k.machine).get(start..end).unwrap_or(&[])
}
