//! What has to be watched of a running kernel, so that what it does can be compared with what was computed: where it is
//! entered, where it checks for interrupts, and the calls that limits count.
//!
//! A list has a word, numbers in hexadecimal, and a name, on each line:
//!
//! - `point ADDRESS`: the function that checks for interrupts;
//! - `entry NAME ADDRESS`: the kernel is entered there;
//! - `limits COUNT`: so many limits there are, in the order of their file;
//! - `call LIMIT ADDRESS`: the limit counts how often that instruction is executed, a call or a jump that is always taken;
//! - `branch LIMIT ADDRESS TARGET`: it counts how often that instruction leads to that function;
//! - `model NAME ...`: cycles are counted on such a processor, too, with numbers in decimal
//!   ([`sandglass_cache::Model::line`]); of several, on each;
//! - `invocation ADDRESS`: what is executed there is of no closed system.

use std::fmt::Write;

use anyhow::{ensure, Context, Result};
use sandglass_cache::Model;

use crate::annotations::{Kind, Record, MARKS};
use crate::code::{Flow, Instruction, InstructionSet};
use crate::image::Image;
use crate::limits::Bound;

/// The function that checks for interrupts.
pub const POINT: &str = "time::account::preemption_point";

/// What closed systems do not do (`assurance/wcet/closed.toml`): marks, and functions.
const NOT_CLOSED: [&str; 2] = ["invocation", "capabilities"];
const NOT_CLOSED_FUNCTIONS: [&str; 3] = [
    "ipc::caps::transfer",
    "ipc::caps::transfer_late",
    "syscall::cap_fault",
];

/// Where the kernel is entered: a function that begins with it, and how many bytes apart its entries stand, if it has more
/// than one.
type Place = (&'static str, Option<u64>);

/// The names of the ways into the kernel.
pub const WAYS: [&str; 2] = ["system_call", "vector"];

/// Bytes from the entry of a vector to that of the next (`kernel/src/arch/x86_64/entry/code.rs`).
const VECTOR_STRIDE: u64 = 8;

/// The places of each way, in the order of [`WAYS`]. On aarch64 exceptions of user code
/// come by the vector of system calls, or go on as these do.
fn places(set: InstructionSet) -> [&'static [Place]; 2] {
    match set {
        InstructionSet::X86_64 => [
            &[("sandglass_system_call_0", None)],
            &[("sandglass_vectors_0", Some(VECTOR_STRIDE))],
        ],
        InstructionSet::Aarch64 => [
            &[
                ("sandglass_from_user", None),
                ("sandglass_from_user_error", None),
            ],
            &[
                ("sandglass_from_user_interrupt", None),
                ("sandglass_from_kernel_interrupt", None),
            ],
        ],
    }
}

/// The addresses at which the kernel is entered in each of the [`WAYS`].
///
/// # Errors
/// It has none of that kind.
pub fn entries(image: &Image) -> Result<Vec<(&'static str, Vec<u64>)>> {
    let ways = WAYS.into_iter().zip(places(image.set));
    let found = ways.map(|(way, places)| {
        let mut addresses = Vec::new();
        for &(name, stride) in places {
            let function = image
                .function_named(name)
                .with_context(|| format!("the kernel has no `{name}`"))?;
            let function = &image.functions[function];
            let is_entry = |address: &u64| match stride {
                Some(stride) => (address - function.start).is_multiple_of(stride),
                None => *address == function.start,
            };
            let code = function.code.iter().map(|code| code.address);
            addresses.extend(code.filter(is_entry));
        }
        Ok((way, addresses))
    });
    found.collect()
}

/// The list for a kernel.
///
/// # Errors
/// The kernel has no such entries, or does not check for interrupts.
pub fn list(image: &Image, bounds: &[Bound]) -> Result<String> {
    let point = image
        .function_named(POINT)
        .with_context(|| format!("the kernel has no `{POINT}`"))?;
    let mut text = format!("point {:x}\n", image.functions[point].start);
    for (kind, addresses) in entries(image)? {
        for address in addresses {
            // Writing to a string does not fail.
            let _ = writeln!(text, "entry {kind} {address:x}");
        }
    }
    let _ = writeln!(text, "limits {:x}", bounds.len());
    for (number, bound) in bounds.iter().enumerate() {
        let calls = calls(image, bound);
        ensure!(
            !calls.is_empty(),
            "nothing in the kernel calls what limit {number} of the file counts"
        );
        for (instruction, target) in calls {
            let address = instruction.address;
            let _ = match instruction.flow {
                Flow::Branch(_) => writeln!(text, "branch {number:x} {address:x} {target:x}"),
                _ => writeln!(text, "call {number:x} {address:x}"),
            };
        }
    }
    Ok(text)
}

/// What is added to the list so that cycles of processors are counted, too, each with its name.
///
/// # Errors
/// The kernel does not say where it does what closed systems do not.
pub fn processors(image: &Image, models: &[(String, Model)]) -> Result<String> {
    let mut text = String::new();
    for (name, model) in models {
        ensure!(
            !name.contains(char::is_whitespace),
            "`{name}`: no spaces in the name of a model"
        );
        // Writing to a string does not fail.
        let _ = writeln!(text, "model {name} {}", model.line());
    }
    for name in NOT_CLOSED {
        let addresses = marked(image, name);
        ensure!(!addresses.is_empty(), "the kernel has no mark `{name}`");
        for address in addresses {
            let _ = writeln!(text, "invocation {address:x}");
        }
    }
    for name in NOT_CLOSED_FUNCTIONS {
        let function = image
            .function_named(name)
            .with_context(|| format!("the kernel has no `{name}`"))?;
        let _ = writeln!(text, "invocation {:x}", image.functions[function].start);
    }
    Ok(text)
}

/// The addresses that have the mark of this name.
fn marked(image: &Image, name: &str) -> Vec<u64> {
    let number = MARKS.iter().find(|mark| mark.0 == name).map(|mark| mark.1);
    let is_it = |record: &&Record| record.kind == Kind::Mark && Some(record.value) == number;
    let records = image.records.iter().filter(is_it);
    records.map(|record| record.address).collect()
}

/// The instructions that a limit counts, each with where the function begins that it leads to.
fn calls(image: &Image, bound: &Bound) -> Vec<(Instruction, u64)> {
    let mut calls = Vec::new();
    for (caller, function) in image.functions.iter().enumerate() {
        for &instruction in &function.code {
            let (Flow::Call(target) | Flow::Jump(target) | Flow::Branch(target)) = instruction.flow
            else {
                continue;
            };
            let callee = image
                .function_at(target)
                .filter(|&callee| image.functions[callee].start == target);
            if callee.is_some_and(|callee| callee != caller && bound.counts(caller, callee)) {
                calls.push((instruction, target));
            }
        }
    }
    calls
}
