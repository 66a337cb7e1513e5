//! Rules on the machine code of the kernel.
//!
//! Boot code (sections that begin with `.boot`), which runs once before there is a user, is not
//! judged: it is partly of another instruction width.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, Instruction, Mnemonic, NasmFormatter,
};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use sandglass_binary::image::symbols_of;

/// Functions that may hold a trap instruction (`ud2`, `int3`, `int`), by the end of their path.
/// They end with a jump into the exit code, behind which the compiler puts a trap; nothing else
/// in them may be one.
const MAY_TRAP: &[&str] = &[
    "arch::x86_64::entry::handlers::act",
    "arch::x86_64::entry::handlers::leave",
    "arch::x86_64::entry::handlers::on_doubtful_vector",
    "arch::x86_64::entry::handlers::on_kernel_vector",
    "arch::x86_64::entry::handlers::on_system_call",
    "arch::x86_64::entry::handlers::on_vector",
    "arch::x86_64::entry::start::start",
];

/// A function: the code from one symbol to its end.
#[derive(Debug, Clone)]
pub struct Function {
    /// Demangled; that of the longest symbol if the code has several.
    pub name: String,
    pub start: u64,
    /// One past its last byte.
    pub end: u64,
    pub code: Vec<Instruction>,
}

impl Function {
    /// A finding at `instruction`.
    fn at(&self, instruction: &Instruction) -> String {
        let mut text = String::new();
        NasmFormatter::new().format(instruction, &mut text);
        format!("{} at {:#x}: {text}", self.name, instruction.ip())
    }
}

/// The disassembled kernel.
#[derive(Debug, Default)]
pub struct Binary {
    /// In the order of their addresses, without overlap.
    pub functions: Vec<Function>,
    /// Ranges of code, other than padding, that no symbol covers.
    pub strays: Vec<(u64, u64)>,
    /// Bytes of all code, boot code included.
    pub text_bytes: u64,
    /// Bytes of all other memory that the kernel takes.
    pub data_bytes: u64,
    /// Cores that the kernel is for.
    pub cores: u32,
    /// Bytes of the kernel's stacks: each core has one, of the same size.
    pub stack_bytes: Option<u64>,
}

impl Binary {
    /// Reads and disassembles the ELF file of a kernel for so many cores.
    ///
    /// # Errors
    /// It is not an ELF file for x86_64, or has no code with symbols.
    pub fn read(path: &Path, cores: u32) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(bytes.as_slice())
            .with_context(|| format!("{} is not an ELF file", path.display()))?;
        if file.architecture() != object::Architecture::X86_64 {
            bail!("{} is not for x86_64", path.display());
        }
        let mut binary = Self {
            cores,
            stack_bytes: file
                .symbols()
                .find(|symbol| {
                    symbol
                        .name()
                        .is_ok_and(|name| name.contains("KERNEL_STACKS"))
                })
                .map(|symbol| symbol.size()),
            ..Self::default()
        };
        for section in file.sections() {
            match section.kind() {
                SectionKind::Text => binary.text_bytes += section.size(),
                SectionKind::Data
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString
                | SectionKind::UninitializedData => binary.data_bytes += section.size(),
                _ => {}
            }
        }
        for section in file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
        {
            if section.name().is_ok_and(|name| name.starts_with(".boot")) {
                continue;
            }
            let code = section.data().context("a text section has no data")?;
            let symbols = symbols_of(&file, &section);
            binary.add_section(section.address(), code, &symbols);
        }
        if binary.functions.is_empty() {
            bail!(
                "{} has no code with symbols (was it stripped?)",
                path.display()
            );
        }
        Ok(binary)
    }

    /// Cuts a section at its symbols, and disassembles the pieces. A symbol without a size
    /// reaches to the next.
    fn add_section(&mut self, base: u64, code: &[u8], symbols: &BTreeMap<u64, (String, u64)>) {
        let section_end = base + code.len() as u64;
        let slice = |start: u64, end: u64| &code[(start - base) as usize..(end - base) as usize];
        let mut covered = base;
        for (&start, (name, size)) in symbols {
            let next = symbols
                .range(start + 1..)
                .next()
                .map_or(section_end, |(&next, _)| next);
            let end = if *size == 0 {
                next
            } else {
                (start + size).min(next)
            };
            self.add_stray(covered, slice(covered, start));
            let bytes = slice(start, end);
            let decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
            let mut code: Vec<Instruction> = decoder.into_iter().collect();
            if *size == 0 {
                drop_padding(&mut code, bytes);
            }
            self.functions.push(Function {
                name: name.clone(),
                start,
                end,
                code,
            });
            covered = end;
        }
        self.add_stray(covered, slice(covered, section_end));
    }

    /// Notes code without a symbol, unless it is padding: zeros, `int3`, or `nop`.
    fn add_stray(&mut self, start: u64, code: &[u8]) {
        let is_padding = |instruction: Instruction| {
            matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
        };
        let zeros = code.iter().all(|&byte| byte == 0);
        if !zeros
            && !Decoder::with_ip(64, code, start, 0)
                .into_iter()
                .all(is_padding)
        {
            self.strays.push((start, start + code.len() as u64));
        }
    }

    /// The function that holds `address`.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let after = self
            .functions
            .partition_point(|function| function.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.functions[index].end).then_some(index)
    }

    fn find(&self, is_wrong: impl Fn(&Function, &Instruction) -> bool) -> Vec<String> {
        let mut findings = Vec::new();
        for function in &self.functions {
            for instruction in &function.code {
                if is_wrong(function, instruction) {
                    findings.push(function.at(instruction));
                }
            }
        }
        findings
    }
}

/// Removes the `int3` or zeros that fill the space after the last instruction, which never
/// continues into them, of the function with these `bytes`.
fn drop_padding(code: &mut Vec<Instruction>, bytes: &[u8]) {
    let start = code.first().map_or(0, Instruction::ip);
    let is_filler = |instruction: &Instruction| {
        let place = (instruction.ip() - start) as usize..(instruction.next_ip() - start) as usize;
        instruction.mnemonic() == Mnemonic::Int3 || bytes[place].iter().all(|&byte| byte == 0)
    };
    let end = code
        .iter()
        .rposition(|instruction| !is_filler(instruction))
        .map_or(0, |last| last + 1);
    let ends = code[..end].last().is_some_and(|last| {
        matches!(
            last.flow_control(),
            FlowControl::Return | FlowControl::UnconditionalBranch
        )
    });
    if ends {
        code.truncate(end);
    }
}

/// Code that no symbol covers, and bytes that are no instruction.
pub fn unattributed_code(binary: &Binary) -> Vec<String> {
    let strays = binary.strays.iter().map(|(start, end)| {
        format!("code without a symbol from {start:#x} to {end:#x}; give it `.type` and `.size`")
    });
    strays
        .chain(binary.find(|_, instruction| instruction.is_invalid()))
        .collect()
}

/// Indirect calls and jumps. (Returns, IRET and SYSRET are none.)
pub fn indirect_branches(binary: &Binary) -> Vec<String> {
    binary.find(|_, instruction| {
        matches!(
            instruction.flow_control(),
            FlowControl::IndirectBranch | FlowControl::IndirectCall
        )
    })
}

/// Trap instructions, but for those behind a jump at the end of a named function.
pub fn trap_instructions(binary: &Binary) -> Vec<String> {
    let mut findings = Vec::new();
    for function in &binary.functions {
        let named = MAY_TRAP.iter().any(|name| function.name.ends_with(name));
        let mut behind_jump = false;
        for instruction in &function.code {
            if is_trap(instruction) && !(named && behind_jump) {
                findings.push(function.at(instruction));
            }
            behind_jump = instruction.flow_control() == FlowControl::UnconditionalBranch;
        }
    }
    findings
}

fn is_trap(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Ud0
            | Mnemonic::Ud1
            | Mnemonic::Ud2
            | Mnemonic::Int3
            | Mnemonic::Int
            | Mnemonic::Int1
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A binary of the given functions, one after the other from 0x1000.
    pub fn binary(functions: &[(&str, &[u8])]) -> Binary {
        let mut code = Vec::new();
        let mut symbols = BTreeMap::new();
        for (name, body) in functions {
            let start = 0x1000 + code.len() as u64;
            symbols.insert(start, ((*name).to_owned(), body.len() as u64));
            code.extend_from_slice(body);
        }
        let mut binary = Binary {
            cores: 1,
            ..Binary::default()
        };
        binary.add_section(0x1000, &code, &symbols);
        binary
    }

    const RET: u8 = 0xc3;

    #[test]
    fn indirect_branches_are_found() {
        let call_rax = [0xff, 0xd0, RET];
        let jmp_mem = [0xff, 0x24, 0xc5, 0, 0, 0, 0];
        assert_eq!(indirect_branches(&binary(&[("f", &call_rax)])).len(), 1);
        assert_eq!(indirect_branches(&binary(&[("f", &jmp_mem)])).len(), 1);
    }

    #[test]
    fn returns_are_not_indirect_branches() {
        let iretq = [0x48, 0xcf];
        let sysretq = [0x48, 0x0f, 0x07];
        let syscall_free = binary(&[("f", &[RET]), ("g", &iretq), ("h", &sysretq)]);
        assert_eq!(indirect_branches(&syscall_free), [""; 0]);
    }

    #[test]
    fn traps_are_found_with_their_function() {
        let findings = trap_instructions(&binary(&[("f", &[RET]), ("g", &[0x0f, 0x0b])]));
        assert_eq!(findings, ["g at 0x1001: ud2"]);
        assert_eq!(trap_instructions(&binary(&[("f", &[0xcc, RET])])).len(), 1);
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
    fn what_fills_the_space_after_a_label_is_no_code() {
        let label = |code: &[u8]| {
            let mut binary = Binary::default();
            let symbols = BTreeMap::from([(0x1000, ("f".to_owned(), 0))]);
            binary.add_section(0x1000, code, &symbols);
            binary
        };
        assert_eq!(trap_instructions(&label(&[RET, 0xcc, 0xcc])).len(), 0);
        assert_eq!(trap_instructions(&label(&[0x90, 0xcc])).len(), 1);
        assert_eq!(trap_instructions(&label(&[0xcc, RET])).len(), 1);
        for zeros in 1..4 {
            let code = [&[RET][..], &[0, 0, 0][..zeros]].concat();
            assert_eq!(label(&code).functions[0].code.len(), 1);
        }
        // Here they are reached.
        assert_eq!(label(&[0x90, 0, 0]).functions[0].code.len(), 2);
    }

    #[test]
    fn code_without_a_symbol_is_found_and_padding_is_not() {
        let mut binary = Binary::default();
        let symbols = BTreeMap::from([(0x1001, ("f".to_owned(), 1))]);
        binary.add_section(0x1000, &[0x90, RET, 0xcc, 0xcc], &symbols);
        assert_eq!(unattributed_code(&binary), [""; 0]);
        let mut binary = Binary::default();
        binary.add_section(0x1000, &[0x90, RET, RET], &symbols);
        assert_eq!(unattributed_code(&binary).len(), 1);
    }

    #[test]
    fn bytes_that_are_no_instruction_are_found() {
        assert_eq!(unattributed_code(&binary(&[("f", &[0x06])])).len(), 1);
    }

    #[test]
    fn a_label_without_a_size_reaches_to_the_next() {
        let symbols = BTreeMap::from([
            (0x1000, ("entry".to_owned(), 0)),
            (0x1002, ("exit".to_owned(), 0)),
        ]);
        let mut binary = Binary::default();
        binary.add_section(0x1000, &[0x90, 0x90, RET], &symbols);
        assert_eq!(binary.strays, []);
        assert_eq!(binary.function_at(0x1001), Some(0));
        assert_eq!(binary.function_at(0x1002), Some(1));
        assert_eq!(binary.function_at(0x1003), None);
    }
}
