//! Booting a kernel on the hosted machine: the loader's part, done in memory.

use std::boxed::Box;

use super::Machine;
use crate::arch::isa::hosted as isa;
use crate::boot::{self, List, MachineInfo, Range, Refusal, RootTask};
use crate::event::{self, Next, Trap};
use crate::mem::objects::Ram;
use crate::time::{account, Turn};
use crate::Kernel;

/// Where the kernel's image would end on a bare machine.
const KERNEL_END: u64 = 0x20_0000;
/// Where its code of the boot would be.
const INIT_CODE: Range = Range {
    start: 0x10_2000,
    end: 0x10_9000,
};
const PAGE: u64 = 4096;
/// A kernel on `machine` with its root task from the ELF file `file`, which a loader would have
/// put at the top of memory. Returns it with whom it runs first.
///
/// # Errors
/// The kernel refuses the file or the machine.
///
/// # Panics
/// If `file` does not even fit into the machine's memory.
pub fn boot(machine: Machine, file: &[u8]) -> Result<(Box<Kernel>, Next), Refusal> {
    boot_with(machine, file, RootTask::File)
}

/// As [`boot`], with a root task that the loader has put into memory as it is to run: the `image`, whole pages, its first
/// address `start`, and where it begins to run.
///
/// # Errors
/// As [`boot`].
///
/// # Panics
/// As [`boot`].
pub fn boot_loaded(
    machine: Machine,
    image: &[u8],
    start: u64,
    entry: u64,
) -> Result<(Box<Kernel>, Next), Refusal> {
    boot_with(machine, image, |_| RootTask::Loaded { start, entry })
}

/// Boots with the `bytes` of a root task at the top of memory; `root_task` says what they are.
fn boot_with(
    machine: Machine,
    bytes: &[u8],
    root_task: impl FnOnce(Range) -> RootTask,
) -> Result<(Box<Kernel>, Next), Refusal> {
    let file = bytes;
    let top = machine.memory_bytes();
    let module_start = (top - file.len() as u64) & !(PAGE - 1);
    assert!(
        module_start > KERNEL_END,
        "the file does not fit into {top} bytes"
    );
    // SAFETY: the machine is new, nothing is in its memory.
    unsafe { machine.write_memory(module_start, file) };
    let firmware = isa::firmware(&machine);
    let mut kernel = Box::new(Kernel::new(machine));
    let mut ram = List::new();
    // SAFETY: the memory of this machine, below the module; nothing uses it. Refused if full, and
    // a new list is not.
    let _ = ram.push(unsafe { Ram::vouch(KERNEL_END, module_start) });
    // SAFETY: the rest of the memory, which holds the file and nothing else.
    let module = unsafe { Ram::vouch(module_start, top) };
    // SAFETY: in the image, of which there is nothing here.
    let init_code = unsafe { Ram::vouch(INIT_CODE.start, INIT_CODE.end) };
    let mut reserved = List::new();
    for range in [Range {
        start: PAGE * 256,
        end: KERNEL_END,
    }]
    .into_iter()
    .chain(isa::RESERVED)
    {
        let _ = reserved.push(range);
    }
    let found = MachineInfo {
        firmware,
        ram,
        init_code,
        module,
        module_is_free: true,
        root_task: root_task(Range {
            start: module_start,
            end: module_start + file.len() as u64,
        }),
        reserved,
        device_top: isa::DEVICE_TOP,
    };
    let turn = Turn::new();
    boot::start(&mut kernel, &turn, found)?;
    account::update_time(&kernel, kernel.core());
    let next = event::trap(&mut kernel, &turn, Trap::Look);
    Ok((kernel, next))
}
