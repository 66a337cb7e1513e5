//! The kernel's file: functions, and what the source says of loops.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use anyhow::{bail, Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use crate::annotations::{self, Record};
use crate::code::{Flow, Instruction, InstructionSet};
use crate::lines::{Frame, Lines};
use crate::pointers::{self, Pointer};

/// The section of code that runs before the first user instruction alone.
pub const INIT: &str = ".init.text";

/// The static that holds the kernel's stacks.
const STACKS: &str = "KERNEL_STACKS";

/// A function, or a piece of assembly between two labels.
#[derive(Debug, Clone)]
pub struct Function {
    /// Demangled.
    pub name: String,
    pub start: u64,
    /// One past its last byte.
    pub end: u64,
    pub code: Vec<Instruction>,
}

/// The file, disassembled.
#[derive(Debug)]
pub struct Image {
    pub set: InstructionSet,
    /// In the order of their addresses, without overlap.
    pub functions: Vec<Function>,
    /// Ranges of code, other than padding, that no symbol covers.
    pub strays: Vec<(u64, u64)>,
    pub records: Vec<Record>,
    /// Addresses of the code that runs before the first user instruction alone (section `.init.text`).
    pub init: Range<u64>,
    /// Of text sections: where they start, and what they hold.
    texts: Vec<(u64, Vec<u8>)>,
    /// Where the kernel's stacks are, if it has any.
    pub stacks: Range<u64>,
    /// What registers point to, if the file has debugging information.
    pub pointers: Vec<Pointer>,
    /// Lines of the source, if the file has debugging information.
    lines: Option<Lines>,
}

impl Image {
    /// Reads a kernel.
    ///
    /// # Errors
    /// It is not an ELF file for an architecture that we know, or has been stripped.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut image = Self::parse(&bytes).with_context(|| path.display().to_string())?;
        image.lines = Lines::read(path);
        Ok(image)
    }

    /// Of functions that are in no file: the name of each, its address and its bytes, without overlap.
    pub fn of_code(
        set: InstructionSet,
        functions: Vec<(String, u64, Vec<u8>)>,
        records: Vec<Record>,
    ) -> Self {
        let mut image = Self {
            set,
            functions: Vec::new(),
            strays: Vec::new(),
            pointers: pointers::recorded(&records).collect(),
            records,
            init: 0..0,
            texts: Vec::new(),
            stacks: 0..0,
            lines: None,
        };
        for (name, start, bytes) in functions {
            let symbol = BTreeMap::from([(start, (name, bytes.len() as u64))]);
            image.add(start, &bytes, &symbol);
        }
        image
    }

    /// From the bytes of the file.
    ///
    /// # Errors
    /// As with [`Self::read`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let file = object::File::parse(bytes)
            .context("this is no ELF file: name the kernel that `./sandglass build` links")?;
        let mut image = Self {
            set: InstructionSet::of(&file)?,
            functions: Vec::new(),
            strays: Vec::new(),
            records: annotations::read(&file)?,
            init: 0..0,
            texts: Vec::new(),
            stacks: 0..0,
            pointers: Vec::new(),
            lines: None,
        };
        let stacks = file.symbols().find(|symbol| {
            let name = symbol.name().map(rustc_demangle::demangle);
            name.is_ok_and(|name| format!("{name:#}").ends_with(STACKS))
        });
        image.stacks = stacks.map_or(0..0, |it| it.address()..it.address() + it.size());
        image.pointers = pointers::read(&file, image.set).context("debugging information")?;
        image.pointers.extend(pointers::recorded(&image.records));
        for section in file.sections() {
            let boots = section.name().is_ok_and(|name| name.starts_with(".boot"));
            if section.kind() != SectionKind::Text || boots {
                continue;
            }
            if section.name() == Ok(INIT) {
                image.init = section.address()..section.address() + section.size();
            }
            let code = section.data().context("a text section has no data")?;
            image.add(section.address(), code, &symbols_of(&file, &section));
        }
        if image.functions.is_empty() {
            bail!("it has no symbols: build it anew, or do not strip it, since functions are found by them");
        }
        Ok(image)
    }

    /// Adds a text section, cut at its symbols. A symbol without a size reaches to the next.
    fn add(&mut self, base: u64, code: &[u8], symbols: &BTreeMap<u64, (String, u64)>) {
        let section_end = base + code.len() as u64;
        let slice = |start: u64, end: u64| &code[(start - base) as usize..(end - base) as usize];
        let mut covered = base;
        for (&start, (name, size)) in symbols {
            let next = symbols.range(start + 1..).next();
            let next = next.map_or(section_end, |(&next, _)| next);
            let end = match size {
                0 => next,
                size => next.min(start + size),
            };
            self.add_stray(covered, slice(covered, start));
            let bytes = slice(start, end);
            let mut code = self.set.decode(bytes, start);
            if *size == 0 {
                self.drop_padding(&mut code, bytes);
            }
            jump_over_traps(&mut code);
            self.functions.push(Function {
                name: name.clone(),
                start,
                end,
                code,
            });
            covered = end;
        }
        self.add_stray(covered, slice(covered, section_end));
        self.functions.sort_by_key(|function| function.start);
        self.texts.push((base, code.to_vec()));
    }

    /// Notes code without a symbol, unless it is padding.
    fn add_stray(&mut self, start: u64, code: &[u8]) {
        if !self.set.is_padding(code) {
            self.strays.push((start, start + code.len() as u64));
        }
    }

    /// Removes what fills the space behind the last instruction of a label with these `bytes`, if that does not go on into it.
    fn drop_padding(&self, code: &mut Vec<Instruction>, bytes: &[u8]) {
        let ends = |flow: Flow| matches!(flow, Flow::Jump(_) | Flow::Return | Flow::Leave);
        let Some(last) = code.iter().rposition(|code| ends(code.flow)) else {
            return;
        };
        let reached = (code[last].end() - code[0].address) as usize;
        if self.set.is_padding(&bytes[reached..]) {
            code.truncate(last + 1);
        }
    }

    /// The functions that stay and lead to such as do not, whose memory the root task has once it runs: each a finding.
    pub fn ways_to_init(&self) -> Vec<String> {
        let stays = |function: &&Function| !self.init.contains(&function.start);
        let mut ways = BTreeMap::new();
        for function in self.functions.iter().filter(stays) {
            for instruction in &function.code {
                let leads = leads_to(instruction, function.end);
                for to in leads.filter(|to| self.init.contains(to)) {
                    ways.entry((function.start, to))
                        .or_insert((instruction.address, &function.name));
                }
            }
        }
        let finding = |((_, to), (from, name)): ((u64, u64), (u64, &String))| {
            let target = self
                .function_at(to)
                .map(|number| &*self.functions[number].name);
            format!(
                "{name} at {from:#x} leads to {}, which the linker script has in {INIT}, with what runs once: take its module \
                 out of there, or add that of the former",
                target.unwrap_or("code without a name")
            )
        };
        ways.into_iter().map(finding).collect()
    }

    /// The function that holds `address`.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let after = self
            .functions
            .partition_point(|function| function.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.functions[index].end).then_some(index)
    }

    /// The function whose path ends with `name`.
    pub fn function_named(&self, name: &str) -> Option<usize> {
        // A method's type stands in brackets.
        let plain = |name: &str| name.replace(['<', '>'], "");
        let name = plain(name);
        self.functions.iter().position(|function| {
            plain(&function.name)
                .strip_suffix(&name)
                .is_some_and(|before| before.is_empty() || before.ends_with("::"))
        })
    }

    /// What the source says of `address`: the innermost function first, then those that it was inlined into. Empty
    /// without debugging information.
    pub fn frames(&self, address: u64) -> Rc<[Frame]> {
        match &self.lines {
            Some(lines) => lines.frames(address),
            None => Rc::new([]),
        }
    }

    /// An address for messages: the function, the line of its source if that is known, and the instruction.
    pub fn place(&self, address: u64) -> String {
        let name = self
            .function_at(address)
            .map_or("no function", |function| &self.functions[function].name);
        let line = self
            .frames(address)
            .first()
            .map_or(String::new(), |frame| format!("{}, ", frame.line));
        format!("{name} ({line}{address:#x}: {})", self.text(address))
    }

    /// The instruction at `address`, as an assembler would write it.
    pub fn text(&self, address: u64) -> String {
        self.texts
            .iter()
            .find_map(|(base, code)| {
                let offset = address.checked_sub(*base)? as usize;
                let rest = code.get(offset..).filter(|rest| !rest.is_empty())?;
                Some(self.set.text(rest, address))
            })
            .unwrap_or_default()
    }
}

/// Where `instruction` of a function with this `end` leads besides the next of its instructions.
fn leads_to(instruction: &Instruction, end: u64) -> impl Iterator<Item = u64> {
    let target = match instruction.flow {
        Flow::Jump(to) | Flow::Branch(to) | Flow::Call(to) => Some(to),
        _ => None,
    };
    let goes_on = matches!(instruction.flow, Flow::Next | Flow::Branch(_));
    let behind = (goes_on && instruction.end() == end).then_some(end);
    target.into_iter().chain(behind)
}

/// A call of what stands behind a trap behind it is a jump: nobody returns to the trap, on purpose. It is made for what the
/// processor remembers of it.
fn jump_over_traps(code: &mut [Instruction]) {
    for at in 1..code.len() {
        let (call, trap) = (code[at - 1], code[at]);
        if trap.flow == Flow::Trap && call.flow == Flow::Call(trap.end()) {
            code[at - 1].flow = Flow::Jump(trap.end());
        }
    }
}

/// Names and sizes of the symbols of a text section, by address: compiled functions, and labels of assembly. Of several at one
/// address it is the longest.
fn symbols_of(file: &object::File, section: &object::Section) -> BTreeMap<u64, (String, u64)> {
    let range = section.address()..section.address() + section.size();
    let mut symbols: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    for symbol in file.symbols() {
        let code = matches!(
            symbol.kind(),
            SymbolKind::Text | SymbolKind::Unknown | SymbolKind::Label
        );
        if !code || symbol.section_index() != Some(section.index()) {
            continue;
        }
        // Marks of the assembler say where data begins (`$d`), and code again.
        let is_name = |name: &&str| !name.is_empty() && !name.starts_with('$');
        let Some(name) = symbol.name().ok().filter(is_name) else {
            continue;
        };
        if !range.contains(&symbol.address()) {
            continue;
        }
        let name = format!("{:#}", rustc_demangle::demangle(name));
        let entry = symbols
            .entry(symbol.address())
            .or_insert_with(|| (name.clone(), 0));
        if symbol.size() > entry.1 {
            *entry = (name, symbol.size());
        }
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1000;
    const RET: u8 = 0xc3;

    /// A section with these symbols, each with its offset and size.
    fn image(code: &[u8], symbols: &[(&str, u64, u64)]) -> Image {
        let mut image = Image::of_code(InstructionSet::X86_64, Vec::new(), Vec::new());
        let placed = symbols
            .iter()
            .map(|&(name, offset, size)| (START + offset, (name.to_owned(), size)));
        image.add(START, code, &placed.collect());
        image
    }

    #[test]
    fn what_fills_the_space_after_a_label_is_no_code() {
        let instructions = |code: &[u8]| image(code, &[("f", 0, 0)]).functions[0].code.len();
        assert_eq!(instructions(&[RET, 0xcc, 0xcc]), 1);
        assert_eq!(instructions(&[0x90, 0xcc]), 2);
        assert_eq!(instructions(&[0xcc, RET]), 2);
        for zeros in 1..4 {
            assert_eq!(instructions(&[&[RET][..], &[0, 0, 0][..zeros]].concat()), 1);
        }
        // Here they are reached.
        assert_eq!(instructions(&[0x90, 0, 0]), 2);
        // What follows is no filler.
        assert_eq!(instructions(&[RET, 0x50, 0x50]), 3);
    }

    #[test]
    fn code_without_a_symbol_is_found_and_padding_is_not() {
        let of = |code: &[u8]| image(code, &[("f", 1, 1)]).strays;
        assert_eq!(of(&[0x90, RET, 0xcc, 0xcc]), []);
        assert_eq!(of(&[0x90, RET, RET]), [(START + 2, START + 3)]);
    }

    #[test]
    fn a_call_over_a_trap_is_a_jump() {
        let flows = |code: &[u8]| {
            let image = image(code, &[("f", 0, code.len() as u64)]);
            let code = image.functions[0].code.iter();
            code.map(|instruction| instruction.flow).collect::<Vec<_>>()
        };
        let over = |distance| flows(&[0xe8, distance, 0, 0, 0, 0xcc, RET])[0];
        assert_eq!(over(1), Flow::Jump(START + 6));
        assert_eq!(over(0), Flow::Call(START + 5));
        assert_eq!(over(2), Flow::Call(START + 7));
        let no_trap = flows(&[0xe8, 1, 0, 0, 0, 0x90, RET]);
        assert_eq!(no_trap[0], Flow::Call(START + 6));
    }

    #[test]
    fn what_stays_does_not_lead_to_code_that_runs_once() {
        // What runs once calls what stays.
        let once = [0xe8, 5, 0, 0, 0];
        // Each leads there: `call`, `jmp`, `je`, and no jump at all.
        let call = [0xe8, 0xf6, 0xff, 0xff, 0xff];
        let (jump, branch, before) = ([0xeb, 0xf4], [0x74, 0xf2], [0x90]);
        let code = [
            &[RET][..],
            &before,
            &once[..3],
            &once[3..],
            &call,
            &jump,
            &branch,
            &[RET],
        ];
        let mut image = image(
            &code.concat(),
            &[
                ("end", 0, 1),
                ("before", 1, 1),
                ("once", 2, 5),
                ("call", 7, 5),
                ("jump", 12, 2),
                ("branch", 14, 3),
            ],
        );
        assert_eq!(image.ways_to_init(), [""; 0]);
        image.init = START + 2..START + 7;
        let ways = image.ways_to_init();
        let leads = |way: &String| way.split(", ").next().map(str::to_owned);
        let found: Vec<String> = ways.iter().filter_map(leads).collect();
        let from = |name, address| format!("{name} at {address:#x} leads to once");
        let right = [("before", 1), ("call", 7), ("jump", 12), ("branch", 14)];
        assert_eq!(found, right.map(|(name, at)| from(name, START + at)));
    }

    #[test]
    fn a_label_without_a_size_reaches_to_the_next() {
        let image = image(&[0x90, 0x90, RET], &[("entry", 0, 0), ("exit", 2, 0)]);
        assert_eq!(image.strays, []);
        assert_eq!(image.function_at(START + 1), Some(0));
        assert_eq!(image.function_at(START + 2), Some(1));
        assert_eq!(image.function_at(START + 3), None);
    }
}
