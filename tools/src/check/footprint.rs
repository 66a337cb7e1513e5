//! How much memory a release kernel takes: its sections, and a core's stack at the deepest.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::binary::Binary;
use super::call_graph::callees;

const KIB: u64 = 1024;
/// Maximum bytes of code of the single-core kernel, and of the SMP kernel.
const TEXT: u64 = 96 * KIB;
const SMP_TEXT: u64 = 128 * KIB;
/// Maximum bytes of data that is not code: with one core, and for each further one.
const DATA: u64 = 96 * KIB;
const DATA_PER_CORE: u64 = 64 * KIB;

/// Functions that the entry code calls with an empty stack, by the end of their path.
const ROOTS: &[&str] = &[
    "arch::x86_64::entry::handlers::on_kernel_vector",
    "arch::x86_64::entry::handlers::on_system_call",
    "arch::x86_64::entry::handlers::on_vector",
    "arch::x86_64::entry::start::start",
];

/// Likewise on a core that another one has started.
const ROOTS_OF_FURTHER_CORES: &[&str] = &["arch::x86_64::entry::cores::begin"];

/// What a kernel takes of something, and its maximum, in bytes.
struct Size {
    what: &'static str,
    bytes: u64,
    limit: u64,
}

/// Code and data of a kernel.
fn measured(binary: &Binary) -> [Size; 2] {
    let further_cores = u64::from(binary.cores.saturating_sub(1));
    let text = if binary.cores == 1 { TEXT } else { SMP_TEXT };
    [
        Size {
            what: "text",
            bytes: binary.text_bytes,
            limit: text,
        },
        Size {
            what: "static data",
            bytes: binary.data_bytes,
            limit: DATA + further_cores * DATA_PER_CORE,
        },
    ]
}

/// Code and data do not exceed their limits.
pub fn sizes(binary: &Binary) -> Vec<String> {
    let excessive = measured(binary).into_iter();
    let excessive = excessive.filter(|size| size.bytes > size.limit);
    excessive
        .map(|Size { what, bytes, limit }| {
            format!("{bytes} bytes of {what}: at most {limit} are right")
        })
        .collect()
}

/// Code and data with their limits, to be printed.
pub fn describe(binary: &Binary) -> String {
    let [text, data] = measured(binary)
        .map(|Size { what, bytes, limit }| format!("{bytes} of {limit} bytes of {what}"));
    format!("{text}, {data}")
}

/// No path through the call graph needs more than a core's stack. Where there is recursion,
/// which another rule reports, the depth is that of one turn.
pub fn stack(binary: &Binary) -> Vec<String> {
    let Some(stacks) = binary.stack_bytes else {
        return vec!["the kernel has no symbol `KERNEL_STACKS`".to_owned()];
    };
    let room = stacks / u64::from(binary.cores);
    let mut depths = Depths {
        binary,
        known: vec![None; binary.functions.len()],
    };
    let mut findings = Vec::new();
    for root in roots(binary.cores) {
        let named = |function: &usize| binary.functions[*function].name.ends_with(root);
        let Some(function) = (0..binary.functions.len()).find(named) else {
            findings.push(format!(
                "there is no function `{root}`, below which the stack is measured: correct its \
                 name in tools/src/check/footprint.rs"
            ));
            continue;
        };
        let depth = depths.below(function);
        if depth > room {
            let name = &binary.functions[function].name;
            findings.push(format!(
                "{name} needs up to {depth} bytes of stack, which has {room}"
            ));
        }
    }
    findings
}

/// The functions of a kernel for so many cores that begin with an empty stack.
fn roots(cores: u32) -> impl Iterator<Item = &'static str> {
    let further = (cores > 1).then_some(ROOTS_OF_FURTHER_CORES);
    let all = ROOTS.iter().chain(further.into_iter().flatten());
    all.copied()
}

/// The deepest stack below each function, as far as it is known.
struct Depths<'b> {
    binary: &'b Binary,
    known: Vec<Option<u64>>,
}

impl Depths<'_> {
    /// Bytes that `function` and what it calls use at most, return addresses included.
    fn below(&mut self, function: usize) -> u64 {
        const RETURN_ADDRESS: u64 = 8;
        if let Some(depth) = self.known[function] {
            return depth;
        }
        let own: u64 = self.binary.functions[function].code.iter().map(taken).sum();
        // Ends a cycle.
        self.known[function] = Some(own);
        let deepest = callees(self.binary, function)
            .into_iter()
            .map(|callee| RETURN_ADDRESS + self.below(callee))
            .max();
        let depth = own + deepest.unwrap_or(0);
        self.known[function] = Some(depth);
        depth
    }
}

/// Bytes of stack that `instruction` takes, other than for a call. What other instructions give
/// back is not subtracted: the sum is an upper bound.
fn taken(instruction: &Instruction) -> u64 {
    match instruction.mnemonic() {
        Mnemonic::Push => 8,
        Mnemonic::Sub
            if instruction.op0_register() == Register::RSP
                && instruction.op1_kind() != OpKind::Register =>
        {
            instruction.immediate(1)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::binary::tests::binary;
    use super::*;

    const PUSH_RAX: u8 = 0x50;
    const RET: u8 = 0xc3;
    /// `sub rsp, 0x100`.
    const FRAME: [u8; 7] = [0x48, 0x81, 0xec, 0, 1, 0, 0];
    /// `call` of what follows.
    const CALL_NEXT: [u8; 5] = [0xe8, 1, 0, 0, 0];

    /// A kernel for several cores, of which all functions that begin with an empty stack are there;
    /// the first has the code `entry`, and what it calls is `callee`.
    fn kernel(entry: &[u8], callee: &[u8]) -> Binary {
        let mut roots = roots(4).map(|root| format!("kernel::{root}"));
        let first = roots.next().unwrap();
        let rest: Vec<String> = roots.collect();
        let mut functions = vec![(first.as_str(), entry), ("callee", callee)];
        functions.extend(rest.iter().map(|root| (root.as_str(), &[RET][..])));
        binary(&functions)
    }

    #[test]
    fn the_deepest_path_counts_with_its_return_address() {
        let entry = [&[PUSH_RAX][..], &CALL_NEXT, &[RET]].concat();
        let callee = [&FRAME[..], &[RET]].concat();
        let mut found = kernel(&entry, &callee);
        (found.cores, found.stack_bytes) = (1, Some(8 + 8 + 0x100));
        assert_eq!(stack(&found), Vec::<String>::new());
        found.stack_bytes = Some(8 + 8 + 0xff);
        assert_eq!(stack(&found).len(), 1);
        // Four cores share it.
        (found.cores, found.stack_bytes) = (4, Some(4 * (8 + 8 + 0x100) - 1));
        assert_eq!(stack(&found).len(), 1);
    }

    #[test]
    fn a_kernel_without_a_function_to_begin_with_is_refused() {
        for cores in [1, 4] {
            let mut found = binary(&[("f", &[RET])]);
            (found.cores, found.stack_bytes) = (cores, Some(1 << 16));
            assert_eq!(stack(&found).len(), roots(cores).count());
        }
    }

    #[test]
    fn text_and_data_have_a_limit_each() {
        let mut found = binary(&[("f", &[RET])]);
        (found.text_bytes, found.data_bytes) = (TEXT, DATA);
        assert!(sizes(&found).is_empty());
        (found.text_bytes, found.data_bytes) = (TEXT + 1, DATA + 1);
        assert_eq!(sizes(&found).len(), 2);
    }

    #[test]
    fn each_further_core_may_have_data() {
        let mut found = binary(&[("f", &[RET])]);
        found.cores = 4;
        (found.text_bytes, found.data_bytes) = (SMP_TEXT, DATA + 3 * DATA_PER_CORE);
        assert!(sizes(&found).is_empty());
        (found.text_bytes, found.data_bytes) = (SMP_TEXT + 1, DATA + 3 * DATA_PER_CORE + 1);
        assert_eq!(sizes(&found).len(), 2);
    }
}
