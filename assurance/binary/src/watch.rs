//! What has to be watched of a running kernel, so that what it does can be compared with what was computed: where it is
//! entered, where it checks for interrupts, and the calls that limits count.
//!
//! A list has a word, numbers in hexadecimal, and a name, on each line:
//!
//! - `point ADDRESS`: the function that checks for interrupts;
//! - `entry NAME ADDRESS`: the kernel is entered there;
//! - `limits COUNT`: so many limits there are, in the order of their file;
//! - `call LIMIT ADDRESS`: the limit counts how often that instruction is executed: a call, a jump that is always taken, or
//!   a place that the source marks;
//! - `branch LIMIT ADDRESS TARGET`: it counts how often that instruction leads to that function;
//! - `model NAME ...`: cycles are counted on such a processor, too, with numbers in decimal
//!   ([`sandglass_cache::Model::line`]); of several, on each;
//! - `invocation ADDRESS`: what is executed there is of no closed system.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{ensure, Context, Result};
use sandglass_cache::Model;

use crate::annotations::{Kind, Record, MARKS};
use crate::code::{Flow, Instruction, InstructionSet};
use crate::image::Image;
use crate::limits::Bound;

/// The function that checks for interrupts.
pub const POINT: &str = "time::account::preemption_point";

/// What closed systems do not do (`assurance/wcet/closed.toml`): marks, and functions. NBSendWait, which they do not call, begins
/// as all system calls without a line: none of these is taken for one of theirs.
const NOT_CLOSED: [&str; 2] = ["invocation", "capabilities"];
const NOT_CLOSED_FUNCTIONS: [&str; 6] = [
    "arch::calls::on_nb_send_recv",
    "arch::calls::on_system_call",
    "ipc::caps::transfer",
    "ipc::caps::transfer_late",
    "ipc::fault::push_lookup_failure",
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
/// The kernel has no such entries, or does not check for interrupts. That there is something to be seen of each limit was
/// checked when it was [resolved](crate::limits::Limits::resolve).
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
    text += &limits(image, bounds);
    Ok(text)
}

/// The part of the list that is of limits: every call and every place that they count.
pub fn limits(image: &Image, bounds: &[Bound]) -> String {
    let mut text = format!("limits {:x}\n", bounds.len());
    for (number, bound) in bounds.iter().enumerate() {
        let pairs = bound.calls.iter();
        let calls = pairs.flat_map(|&(caller, callee)| calls(image, caller, callee));
        // Two names of a limit may be of one call, which counts once.
        let calls: BTreeMap<u64, _> = calls.map(|call| (call.0.address, call)).collect();
        for (address, (instruction, target)) in calls {
            // Writing to a string does not fail.
            let _ = match instruction.flow {
                Flow::Branch(_) => writeln!(text, "branch {number:x} {address:x} {target:x}"),
                _ => writeln!(text, "call {number:x} {address:x}"),
            };
        }
        for address in bound.marks.iter().flat_map(|&mark| marked(image, mark)) {
            let _ = writeln!(text, "call {number:x} {address:x}");
        }
    }
    text
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
        let number = MARKS.iter().find(|mark| mark.0 == name).map(|mark| mark.1);
        let addresses = number.map_or(Vec::new(), |number| marked(image, number));
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

/// The addresses that have the mark of this number.
pub fn marked(image: &Image, number: u64) -> Vec<u64> {
    let is_it = |record: &&Record| record.kind == Kind::Mark && record.value == number;
    let records = image.records.iter().filter(is_it);
    records.map(|record| record.address).collect()
}

/// The instructions by which `callee` is called, by `caller` or else by anybody, each with where the function begins that
/// it leads to.
pub fn calls(image: &Image, caller: Option<usize>, callee: usize) -> Vec<(Instruction, u64)> {
    let start = image.functions[callee].start;
    let functions = callers(image, caller, callee).map(|caller| &image.functions[caller]);
    let code = functions.flat_map(|function| &function.code);
    let leads_there = |instruction: &&Instruction| {
        matches!(instruction.flow,
            Flow::Call(target) | Flow::Jump(target) | Flow::Branch(target) if target == start)
    };
    code.filter(leads_there)
        .map(|&call| (call, start))
        .collect()
}

/// A function, `caller` or else any, whose last instruction is followed by `callee`: such a call is none that can be seen.
pub fn falls_into(image: &Image, caller: Option<usize>, callee: usize) -> Option<usize> {
    let start = image.functions[callee].start;
    callers(image, caller, callee).find(|&caller| {
        let last = image.functions[caller].code.last();
        last.is_some_and(|last| {
            last.address + u64::from(last.length) == start
                && matches!(last.flow, Flow::Next | Flow::Branch(_))
        })
    })
}

/// Who may call: that function, or all others.
fn callers(image: &Image, caller: Option<usize>, callee: usize) -> impl Iterator<Item = usize> {
    let of_it = move |other: usize| caller.map_or(other != callee, |caller| caller == other);
    (0..image.functions.len()).filter(move |&other| of_it(other))
}
