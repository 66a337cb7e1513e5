//! How much memory a release kernel takes: its sections, and a core's stack at the deepest.

use sandglass_binary::code::{Flow, Instruction, InstructionSet};

use super::binary::{entered, Binary};
use super::call_graph::callees;
use crate::cores::MOST_CORES;

const KIB: u64 = 1024;
/// Maximum bytes of code that stays of the single-core kernel, and of the SMP kernel.
const TEXT: u64 = 80 * KIB;
const SMP_TEXT: u64 = 104 * KIB;
/// And for each core beyond the fourth: its entry code, of 3 KiB, and its case wherever a core is told from others.
const TEXT_PER_CORE: u64 = 4 * KIB;
/// And of one with several domains, for one core: the queues of a domain are found by its number.
const DOMAINS_TEXT: u64 = 84 * KIB;
/// The same for aarch64, of which an instruction has four bytes.
const AARCH64_TEXT: u64 = 72 * KIB;
const AARCH64_SMP_TEXT: u64 = 84 * KIB;
/// Maximum bytes of code that runs once, on x86_64 and on aarch64: whole pages.
const INIT: u64 = 32 * KIB;
const AARCH64_INIT: u64 = 28 * KIB;
/// Maximum bytes of data that is not code: with one core, and for each further one. On aarch64 the first tables of
/// translations are a part of it.
const DATA: u64 = 98 * KIB;
const AARCH64_DATA: u64 = 164 * KIB;
const DATA_PER_CORE: u64 = 64 * KIB;
/// For each further domain, on one core: its queues.
const DATA_PER_DOMAIN: u64 = 13 * KIB;

/// The functions that begin with an empty stack on a core that another one has started.
const ROOTS_OF_FURTHER_CORES: &[&str] = &["arch::x86_64::entry::cores::begin"];
const AARCH64_ROOTS_OF_FURTHER_CORES: &[&str] = &["arch::aarch64::entry::cores::begin"];

/// What a kernel takes of something, and its maximum, in bytes.
struct Size {
    what: &'static str,
    bytes: u64,
    limit: u64,
}

/// Code and data of a kernel.
fn measured(binary: &Binary) -> [Size; 3] {
    let further_cores = u64::from(binary.cores.saturating_sub(1));
    let further_domains = binary.domains.saturating_sub(1);
    let (text, data) = match (binary.image.set, binary.cores) {
        (InstructionSet::X86_64, 1) if further_domains > 0 => (DOMAINS_TEXT, DATA),
        (InstructionSet::X86_64, 1) => (TEXT, DATA),
        (InstructionSet::X86_64, cores) => {
            let further = u64::from(cores.saturating_sub(MOST_CORES));
            (SMP_TEXT + further * TEXT_PER_CORE, DATA)
        }
        (InstructionSet::Aarch64, 1) => (AARCH64_TEXT, AARCH64_DATA),
        (InstructionSet::Aarch64, _) => (AARCH64_SMP_TEXT, AARCH64_DATA),
    };
    let init = match binary.image.set {
        InstructionSet::X86_64 => INIT,
        InstructionSet::Aarch64 => AARCH64_INIT,
    };
    [
        Size {
            what: "text",
            bytes: binary.text_bytes,
            limit: text,
        },
        Size {
            what: "text that runs once",
            bytes: binary.init_bytes,
            limit: init,
        },
        Size {
            what: "static data",
            bytes: binary.data_bytes,
            limit: data + further_cores * DATA_PER_CORE + further_domains * DATA_PER_DOMAIN,
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
    measured(binary)
        .map(|Size { what, bytes, limit }| format!("{bytes} of {limit} bytes of {what}"))
        .join(", ")
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
        known: vec![None; binary.image.functions.len()],
    };
    let mut findings = Vec::new();
    for root in roots(binary.image.set, binary.cores) {
        let named = |function: &usize| binary.image.functions[*function].name.ends_with(root);
        let Some(function) = (0..binary.image.functions.len()).find(named) else {
            findings.push(format!(
                "there is no function `{root}`, below which the stack is measured: correct its \
                 name in tools/src/check/binary.rs"
            ));
            continue;
        };
        let depth = depths.below(function);
        if depth > room {
            let name = &binary.image.functions[function].name;
            findings.push(format!(
                "{name} needs up to {depth} bytes of stack, which has {room}"
            ));
        }
    }
    findings
}

/// The functions of a kernel for so many cores that begin with an empty stack.
fn roots(set: InstructionSet, cores: u32) -> impl Iterator<Item = &'static str> {
    let further = match set {
        InstructionSet::X86_64 => ROOTS_OF_FURTHER_CORES,
        InstructionSet::Aarch64 => AARCH64_ROOTS_OF_FURTHER_CORES,
    };
    let further = (cores > 1).then_some(further);
    entered(set).chain(further.into_iter().flatten().copied())
}

/// The deepest stack below each function, as far as it is known.
struct Depths<'b> {
    binary: &'b Binary,
    known: Vec<Option<u64>>,
}

impl Depths<'_> {
    /// Bytes that `function` and what it calls use at most, return addresses on the stack included.
    fn below(&mut self, function: usize) -> u64 {
        if let Some(depth) = self.known[function] {
            return depth;
        }
        let code = self.binary.image.functions[function].code.iter();
        let set = self.binary.image.set;
        let taken = |instruction: &Instruction| taken(instruction, set);
        let (calls, others): (Vec<_>, Vec<_>) =
            code.partition(|instruction| matches!(instruction.flow, Flow::Call(_)));
        let own: u64 = others.into_iter().map(taken).sum();
        let call = calls.into_iter().map(taken).max().unwrap_or(0);
        // Ends a cycle.
        self.known[function] = Some(own);
        let deepest = callees(self.binary, function)
            .into_iter()
            .map(|callee| call + self.below(callee))
            .max();
        let depth = own + deepest.unwrap_or(0);
        self.known[function] = Some(depth);
        depth
    }
}

/// Bytes of stack that `instruction` takes. What others give back is not subtracted: the sum is an upper bound.
fn taken(instruction: &Instruction, set: InstructionSet) -> u64 {
    let by = instruction.changes.moved(set.stack_pointer());
    by.map_or(0, |by| by.min(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::super::binary::tests::{aarch64, binary};
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
        let mut roots = roots(InstructionSet::X86_64, 4).map(|root| format!("kernel::{root}"));
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
    fn on_aarch64_a_call_takes_no_stack_by_itself() {
        const RETURN: u32 = 0xd65f_03c0;
        let names: Vec<&str> = roots(InstructionSet::Aarch64, 1).collect();
        // stp x29, x30, [sp, #-16]!; bl to what follows. sub sp, sp, #16
        let entry = [0xa9bf_7bfd, 0x9400_0002, RETURN];
        let callee = [0xd100_43ff, RETURN];
        let mut functions = vec![(names[0], &entry[..]), ("callee", &callee)];
        functions.extend(names[1..].iter().map(|&root| (root, &[RETURN][..])));
        let mut found = aarch64(&functions);
        found.stack_bytes = Some(16 + 16);
        assert_eq!(stack(&found), Vec::<String>::new());
        found.stack_bytes = Some(16 + 15);
        assert_eq!(stack(&found).len(), 1);
    }

    #[test]
    fn a_kernel_without_a_function_to_begin_with_is_refused() {
        for cores in [1, 4] {
            let mut found = binary(&[("f", &[RET])]);
            (found.cores, found.stack_bytes) = (cores, Some(1 << 16));
            assert_eq!(
                stack(&found).len(),
                roots(InstructionSet::X86_64, cores).count()
            );
        }
    }

    #[test]
    fn code_of_either_kind_and_data_have_a_limit_each() {
        let mut found = binary(&[("f", &[RET])]);
        (found.text_bytes, found.init_bytes, found.data_bytes) = (TEXT, INIT, DATA);
        assert!(sizes(&found).is_empty());
        (found.text_bytes, found.init_bytes, found.data_bytes) = (TEXT + 1, INIT + 1, DATA + 1);
        assert_eq!(sizes(&found).len(), 3);
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

    #[test]
    fn each_further_domain_may_have_data() {
        let mut found = binary(&[("f", &[RET])]);
        found.domains = 16;
        found.data_bytes = DATA + 15 * DATA_PER_DOMAIN;
        assert!(sizes(&found).is_empty());
        found.data_bytes += 1;
        assert_eq!(sizes(&found).len(), 1);
    }
}
