//! Rules on the machine code of the kernel, of either architecture.
//!
//! Where cores start (sections that begin with `.boot`) is not judged.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use sandglass_binary::code::{Flow, Instruction, InstructionSet};
use sandglass_binary::image::{Image, INIT};

/// Functions for system calls that the entry code calls with an empty stack, by the end of their path.
const CALLS: &[&str] = &[
    "arch::calls::on_call",
    "arch::calls::on_nb_send_recv",
    "arch::calls::on_recv",
    "arch::calls::on_reply_recv",
    "arch::calls::on_send",
    "arch::calls::on_system_call",
    "arch::calls::on_wait",
    "arch::calls::on_yield",
];

/// All functions that the entry code of the first core calls so.
pub fn entered(set: InstructionSet) -> impl Iterator<Item = &'static str> {
    let others: &[&str] = match set {
        InstructionSet::X86_64 => &[
            "arch::x86_64::entry::handlers::on_kernel_vector",
            "arch::x86_64::entry::handlers::on_vector",
            "arch::x86_64::entry::start::start",
        ],
        InstructionSet::Aarch64 => &[
            "arch::aarch64::entry::handlers::act_on_exception",
            "arch::aarch64::entry::handlers::on_interrupt",
            "arch::aarch64::entry::handlers::on_kernel_exception",
            "arch::aarch64::entry::handlers::on_unexpected",
            "arch::aarch64::entry::start::start",
        ],
    };
    CALLS.iter().chain(others).copied()
}

/// Functions that may hold a trap instruction (`ud2`, `int3`, `brk`, `udf`), by the end of their path.
/// They end with a jump into the exit code, behind which the compiler puts a trap; nothing else
/// in them may be one.
fn may_trap(set: InstructionSet) -> impl Iterator<Item = &'static str> {
    const WAYS_OUT: &[&str] = &[
        "arch::calls::answer_fault",
        "arch::calls::arm",
        "arch::calls::hand_over_to",
        "arch::calls::in_general",
    ];
    let others: &[&str] = match set {
        InstructionSet::X86_64 => &[
            "arch::x86_64::entry::handlers::act_in_general",
            "arch::x86_64::entry::handlers::act_on_exception",
            "arch::x86_64::entry::handlers::act_on_interrupt",
            "arch::x86_64::entry::handlers::act_on_timer",
            "arch::x86_64::entry::handlers::leave",
            "arch::x86_64::entry::handlers::on_doubtful_vector",
            // Calls that nobody returns from, as jumps, in kernels that fill the stack of returns: there, one could be
            // predicted.
            "other_address_space_0",
            "other_address_space_1",
            "other_address_space_2",
            "other_address_space_3",
        ],
        InstructionSet::Aarch64 => &[
            "arch::aarch64::entry::cores::begin",
            "arch::aarch64::entry::handlers::act_in_general",
            "arch::aarch64::entry::handlers::act_on_interrupt",
            "arch::aarch64::entry::handlers::act_on_timer",
            "arch::aarch64::entry::handlers::on_core_interrupt",
        ],
    };
    entered(set).chain(WAYS_OUT.iter().chain(others).copied())
}

/// The disassembled kernel.
#[derive(Debug)]
pub struct Binary {
    pub image: Image,
    /// Bytes of all code that stays.
    pub text_bytes: u64,
    /// Bytes of the code that runs before the first user instruction alone.
    pub init_bytes: u64,
    /// Bytes of all other memory that the kernel takes.
    pub data_bytes: u64,
    /// Cores that the kernel is for.
    pub cores: u32,
    /// Domains that it has queues for.
    pub domains: u64,
    /// Bytes of the kernel's stacks: each core has one, of the same size.
    pub stack_bytes: Option<u64>,
}

impl Binary {
    /// Reads and disassembles the ELF file of a kernel for so many cores.
    ///
    /// # Errors
    /// It is not an ELF file for a known architecture, or has no code with symbols.
    pub fn read(path: &Path, cores: u32) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let image = Image::parse(&bytes).with_context(|| path.display().to_string())?;
        let mut binary = Self::new(image, cores);
        let file = object::File::parse(bytes.as_slice())
            .with_context(|| format!("{} is not an ELF file", path.display()))?;
        let is_stacks = |name: &str| name.contains("KERNEL_STACKS");
        binary.stack_bytes = file
            .symbols()
            .find(|symbol| symbol.name().is_ok_and(is_stacks))
            .map(|symbol| symbol.size());
        for section in file.sections() {
            match section.kind() {
                SectionKind::Text if section.name() == Ok(INIT) => {
                    binary.init_bytes += section.size();
                }
                SectionKind::Text => binary.text_bytes += section.size(),
                SectionKind::Data
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString
                | SectionKind::UninitializedData => binary.data_bytes += section.size(),
                _ => {}
            }
        }
        Ok(binary)
    }

    fn new(image: Image, cores: u32) -> Self {
        Self {
            image,
            text_bytes: 0,
            init_bytes: 0,
            data_bytes: 0,
            cores,
            domains: 1,
            stack_bytes: None,
        }
    }

    /// A finding at `instruction`.
    fn at(&self, instruction: &Instruction) -> String {
        let function = self.image.function_at(instruction.address);
        let name = function.map_or("no function", |number| &self.image.functions[number].name);
        let text = self.image.text(instruction.address);
        format!("{name} at {:#x}: {text}", instruction.address)
    }

    fn find(&self, flow: Flow) -> Vec<String> {
        let code = self
            .image
            .functions
            .iter()
            .flat_map(|function| &function.code);
        let wrong = code.filter(|instruction| instruction.flow == flow);
        wrong.map(|instruction| self.at(instruction)).collect()
    }
}

/// Code that no symbol covers, and bytes that are no instruction.
pub fn unattributed_code(binary: &Binary) -> Vec<String> {
    let strays = binary.image.strays.iter().map(|(start, end)| {
        format!("code without a symbol from {start:#x} to {end:#x}; give it `.type` and `.size`")
    });
    strays.chain(binary.find(Flow::Invalid)).collect()
}

/// Ways from what stays to code that runs once.
pub fn ways_to_init(binary: &Binary) -> Vec<String> {
    binary.image.ways_to_init()
}

/// Indirect calls and jumps, and calls of whoever is above or below. (Returns to callers and to user level are none.)
pub fn indirect_branches(binary: &Binary) -> Vec<String> {
    binary.find(Flow::Indirect)
}

/// Trap instructions, but for those behind a jump at the end of a named function.
pub fn trap_instructions(binary: &Binary) -> Vec<String> {
    let named: Vec<&str> = may_trap(binary.image.set).collect();
    let mut findings = Vec::new();
    for function in &binary.image.functions {
        let named = named.iter().any(|name| function.name.ends_with(name));
        let mut behind_jump = false;
        for instruction in &function.code {
            if instruction.flow == Flow::Trap && !(named && behind_jump) {
                findings.push(binary.at(instruction));
            }
            behind_jump = matches!(instruction.flow, Flow::Jump(_));
        }
    }
    findings
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const START: u64 = 0x1000;

    /// A binary of the given functions, one after the other.
    pub fn binary(functions: &[(&str, &[u8])]) -> Binary {
        let mut start = START;
        let placed = functions.iter().map(|(name, body)| {
            let at = start;
            start += body.len() as u64;
            ((*name).to_owned(), at, body.to_vec())
        });
        let set = InstructionSet::X86_64;
        Binary::new(Image::of_code(set, placed.collect(), Vec::new()), 1)
    }

    /// The same of functions for aarch64.
    pub fn aarch64(functions: &[(&str, &[u32])]) -> Binary {
        let mut start = START;
        let placed = functions.iter().map(|(name, words)| {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let at = start;
            start += code.len() as u64;
            ((*name).to_owned(), at, code)
        });
        let set = InstructionSet::Aarch64;
        Binary::new(Image::of_code(set, placed.collect(), Vec::new()), 1)
    }

    const RET: u8 = 0xc3;

    #[test]
    fn indirect_branches_are_found() {
        let call_rax = [0xff, 0xd0, RET];
        let jmp_mem = [0xff, 0x24, 0xc5, 0, 0, 0, 0];
        assert_eq!(indirect_branches(&binary(&[("f", &call_rax)])).len(), 1);
        assert_eq!(indirect_branches(&binary(&[("f", &jmp_mem)])).len(), 1);
        // blr x8; br x16; svc #0; ret
        let branches = aarch64(&[("f", &[0xd63f_0100, 0xd61f_0200, 0xd400_0001, 0xd65f_03c0])]);
        assert_eq!(indirect_branches(&branches).len(), 3);
    }

    #[test]
    fn returns_are_not_indirect_branches() {
        let iretq = [0x48, 0xcf];
        let sysretq = [0x48, 0x0f, 0x07];
        let syscall_free = binary(&[("f", &[RET]), ("g", &iretq), ("h", &sysretq)]);
        assert_eq!(indirect_branches(&syscall_free), [""; 0]);
        let eret = aarch64(&[("f", &[0xd69f_03e0])]);
        assert_eq!(indirect_branches(&eret), [""; 0]);
    }

    #[test]
    fn traps_are_found_with_their_function() {
        let findings = trap_instructions(&binary(&[("f", &[RET]), ("g", &[0x0f, 0x0b])]));
        assert_eq!(findings, ["g at 0x1001: ud2"]);
        assert_eq!(trap_instructions(&binary(&[("f", &[0xcc, RET])])).len(), 1);
        // brk #1
        let findings = trap_instructions(&aarch64(&[("f", &[0xd420_0020])]));
        assert_eq!(findings, ["f at 0x1000: brk #0x1"]);
    }

    #[test]
    fn a_named_function_may_trap_behind_its_jump_only() {
        let name = "sandglass_kernel::arch::x86_64::entry::handlers::leave";
        let behind_jump = [0xeb, 0xf0, 0x0f, 0x0b];
        let on_a_path = [0x90, 0x0f, 0x0b];
        assert_eq!(trap_instructions(&binary(&[(name, &behind_jump)])), [""; 0]);
        assert_eq!(
            trap_instructions(&binary(&[("other", &behind_jump)])).len(),
            1
        );
        assert_eq!(trap_instructions(&binary(&[(name, &on_a_path)])).len(), 1);
    }

    #[test]
    fn bytes_that_are_no_instruction_are_found() {
        assert_eq!(unattributed_code(&binary(&[("f", &[0x06])])).len(), 1);
        assert_eq!(
            unattributed_code(&aarch64(&[("f", &[0xffff_ffff])])).len(),
            1
        );
    }
}
