//! What registers point to, from the debugging information of the file: the compiler says where it keeps each variable, and of
//! what type it is. Whatever a reference, a pointer or a handle leads to is taken to be aligned as its type is.

use std::collections::BTreeMap;
use std::ops::Range;

use addr2line::gimli::{
    self, AttributeValue, DebuggingInformationEntry, EndianSlice, Expression, LittleEndian,
    Operation, Unit,
};
use object::{Object, ObjectSection};

use crate::annotations::{Kind, Record};
use crate::code::{InstructionSet, Register};

/// While the address of an instruction that is about to be executed is in a range, the sum of a register and a number is a
/// pointer, or null: some bits of it are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    pub range: Range<u64>,
    pub register: Register,
    pub plus: u64,
    pub zeros: u64,
    /// Whether it is the address of an object, in the memory that the kernel gives to objects and users.
    pub is_given: bool,
}

/// Handles of objects: structures of one word with the object's type as parameter, and bits of the address that say something
/// else (`kernel/src/mem/handle.rs`, `branch.rs`).
const HANDLES: [(&str, u64); 2] = [("Ref<", 0), ("Branch<", 0x10)];
/// A word that is a handle or zero.
const OPTION: (&str, &str) = ("Option<", "mem::handle::");

/// Types of objects that lie at multiples of more bytes than the type asks for (02, section 2: of their size, at least).
const OBJECTS: [(&str, u64); 1] = [("SchedContext", 128)];

/// Structures of one word that hold the address of something that is aligned to so many bytes (01, section 3).
const ADDRESSES: [(&str, u64); 1] = [("Buffer", 1024)];

/// Alignment of less is no news.
const LEAST_ALIGNMENT: u64 = 16;

type Slice<'d> = EndianSlice<'d, LittleEndian>;
type Entry<'d> = DebuggingInformationEntry<Slice<'d>>;

/// Of a file; nothing if it has no debugging information.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &object::File, set: InstructionSet) -> gimli::Result<Vec<Pointer>> {
    let section = |id: gimli::SectionId| -> gimli::Result<Slice> {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.data().ok());
        Ok(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section)?;
    let mut units = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        units.push(dwarf.unit(header)?);
    }
    let mut types = Types::default();
    for unit in &units {
        types.add(&dwarf, unit)?;
    }
    let mut pointers = Vec::new();
    for unit in &units {
        // Scopes around an entry that have addresses, each with its depth.
        let mut scopes: Vec<(isize, Vec<gimli::Range>)> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            scopes.retain(|scope| scope.0 < entry.depth());
            if !is_variable(entry) {
                let mut ranges = dwarf.die_ranges(unit, entry)?;
                let mut scope = Vec::new();
                while let Some(range) = ranges.next()? {
                    scope.push(range);
                }
                if !scope.is_empty() {
                    scopes.push((entry.depth(), scope));
                }
                continue;
            }
            let at = entry.attr_value(gimli::DW_AT_location);
            let (Some(at), Some((zeros, is_given))) = (at, types.pointer(unit, entry)) else {
                continue;
            };
            let mut add = |range: gimli::Range, expression| -> gimli::Result<()> {
                if let Some((register, plus)) = held(unit, expression, set)? {
                    pointers.push(Pointer {
                        range: range.begin..range.end,
                        register,
                        plus,
                        zeros,
                        is_given,
                    });
                }
                Ok(())
            };
            if let AttributeValue::Exprloc(expression) = at {
                // As long as its scope lasts.
                let scope = scopes.last().map_or(&[][..], |scope| &scope.1);
                for &range in scope {
                    add(range, expression)?;
                }
            } else if let Some(mut locations) = dwarf.attr_locations(unit, at)? {
                while let Some(location) = locations.next()? {
                    add(location.range, location.data)?;
                }
            }
        }
    }
    Ok(pointers)
}

fn is_variable(entry: &Entry) -> bool {
    matches!(
        entry.tag(),
        gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter
    )
}

/// What the source says besides, of assembly.
pub fn recorded(records: &[Record]) -> impl Iterator<Item = Pointer> + use<'_> {
    records.iter().filter_map(|record| {
        let Kind::Pointer { alignment } = record.kind else {
            return None;
        };
        Some(Pointer {
            range: record.address..record.address + 1,
            register: record.detail as Register,
            plus: record.value.wrapping_neg(),
            zeros: !u64::MAX.checked_shl(alignment.into()).unwrap_or(0),
            is_given: true,
        })
    })
}

/// The types of all units, by where they are described.
#[derive(Default)]
struct Types {
    /// Bytes to which structures are aligned, if that is more than a word.
    alignments: BTreeMap<usize, u64>,
    /// Of [`ADDRESSES`], to what they are aligned.
    addresses: BTreeMap<usize, u64>,
    /// Of [`OBJECTS`], to what they are aligned.
    objects: BTreeMap<usize, u64>,
    /// Of a reference or a pointer, where the type is that it is to; of a handle, that of its object; and bits that say something
    /// else.
    targets: BTreeMap<usize, (usize, u64)>,
    /// Handles, by their names.
    handles: BTreeMap<String, usize>,
    /// What may be a handle, by the name of that.
    options: BTreeMap<usize, String>,
    /// The types of variables that are described in one place, and placed in others.
    variables: BTreeMap<usize, usize>,
}

impl Types {
    fn add(&mut self, dwarf: &gimli::Dwarf<Slice>, unit: &Unit<Slice>) -> gimli::Result<()> {
        // A handle whose parameter comes next.
        let mut open = None;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let Some(here) = place(unit, entry) else {
                continue;
            };
            let target = entry.attr_value(gimli::DW_AT_type);
            let target = target.and_then(|target| referred(unit, target));
            let name = match entry.attr_value(gimli::DW_AT_name) {
                Some(name) => dwarf.attr_string(unit, name)?.to_string_lossy(),
                None => Default::default(),
            };
            match (entry.tag(), target) {
                (gimli::DW_TAG_structure_type, _) => {
                    let alignment = entry.attr_value(gimli::DW_AT_alignment);
                    let alignment = alignment.and_then(|alignment| alignment.udata_value());
                    if let Some(alignment) = alignment.filter(|&it| it >= LEAST_ALIGNMENT) {
                        self.alignments.insert(here, alignment);
                    }
                    let address = ADDRESSES.iter().find(|address| address.0 == name);
                    self.addresses.extend(address.map(|it| (here, it.1)));
                    let object = OBJECTS.iter().find(|object| object.0 == name);
                    self.objects.extend(object.map(|object| (here, object.1)));
                    let handle = HANDLES.iter().find(|handle| name.starts_with(handle.0));
                    open = handle.map(|handle| (here, handle.1));
                    if open.is_some() {
                        self.handles.insert(name.to_string(), here);
                    }
                    if let Some(inner) = optional(&name) {
                        self.options.insert(here, inner.to_owned());
                    }
                }
                (gimli::DW_TAG_template_type_parameter, Some(target)) => {
                    if let Some((handle, flags)) = open.take() {
                        self.targets.insert(handle, (target, flags));
                    }
                }
                (gimli::DW_TAG_pointer_type, Some(target)) if name.starts_with(['&', '*']) => {
                    self.targets.insert(here, (target, 0));
                }
                (gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter, Some(target)) => {
                    self.variables.insert(here, target);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The bits of a variable that are zero for sure, if it is a pointer; and whether it is the address of an object.
    fn pointer(&self, unit: &Unit<Slice>, variable: &Entry) -> Option<(u64, bool)> {
        let attribute = |name| referred(unit, variable.attr_value(name)?);
        let of_type = attribute(gimli::DW_AT_type).or_else(|| {
            let origin = attribute(gimli::DW_AT_abstract_origin)?;
            self.variables.get(&origin).copied()
        })?;
        if let Some(alignment) = self.addresses.get(&of_type) {
            return Some((alignment - 1, false));
        }
        let of_type = match self.options.get(&of_type) {
            Some(name) => *self.handles.get(name)?,
            None => of_type,
        };
        let &(target, flags) = self.targets.get(&of_type)?;
        let alignment = match self.objects.get(&target) {
            Some(&alignment) => alignment,
            None => *self.alignments.get(&target)?,
        };
        let is_handle = |of_type: &usize| self.handles.values().any(|handle| handle == of_type);
        let is_object = || {
            self.handles
                .values()
                .any(|it| self.targets.get(it).map(|it| it.0) == Some(target))
        };
        let is_given = !is_handle(&of_type) && is_object();
        Some(((alignment - 1) & !flags, is_given))
    }
}

/// The name of the handle in that of an optional one.
fn optional(name: &str) -> Option<&str> {
    let inner = name.strip_prefix(OPTION.0)?.strip_suffix('>')?;
    let (_, handle) = inner.split_once(OPTION.1)?;
    handle.starts_with(HANDLES[0].0).then_some(handle)
}

/// Where an entry is, in the section.
fn place(unit: &Unit<Slice>, entry: &Entry) -> Option<usize> {
    let place = entry.offset().to_debug_info_offset(&unit.header)?;
    Some(place.0)
}

/// Where the entry is that an attribute refers to.
fn referred(unit: &Unit<Slice>, value: AttributeValue<Slice>) -> Option<usize> {
    match value {
        AttributeValue::UnitRef(offset) => Some(offset.to_debug_info_offset(&unit.header)?.0),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}

/// A register and a number whose sum a variable is, if its description says no more than that.
fn held(
    unit: &Unit<Slice>,
    expression: Expression<Slice>,
    set: InstructionSet,
) -> gimli::Result<Option<(Register, u64)>> {
    let mut operations = expression.operations(unit.encoding());
    let (register, mut plus) = match operations.next()? {
        Some(Operation::Register { register }) => {
            let is_all = operations.next()?.is_none();
            let register = set.register_of_debugger(register.0);
            return Ok(register.filter(|_| is_all).map(|register| (register, 0)));
        }
        Some(Operation::RegisterOffset {
            register, offset, ..
        }) => (register, offset as u64),
        _ => return Ok(None),
    };
    let mut pushed = None;
    loop {
        match (operations.next()?, pushed.take()) {
            (Some(Operation::UnsignedConstant { value }), None) => pushed = Some(value),
            (Some(Operation::PlusConstant { value }), None)
            | (Some(Operation::Plus), Some(value)) => plus = plus.wrapping_add(value),
            (Some(Operation::Minus), Some(value)) => plus = plus.wrapping_sub(value),
            (Some(Operation::StackValue), None) => break,
            _ => return Ok(None),
        }
    }
    let is_all = operations.next()?.is_none();
    let register = set.register_of_debugger(register.0);
    Ok(register.filter(|_| is_all).map(|register| (register, plus)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_handle_is_known_by_its_name() {
        let name = "Option<sandglass_kernel::mem::handle::Ref<sandglass_kernel::object::tcb::Tcb>>";
        let handle = "Ref<sandglass_kernel::object::tcb::Tcb>";
        assert_eq!(optional(name), Some(handle));
        for other in ["Option<u64>", handle, "Option<&mem::handle::Other>"] {
            assert_eq!(optional(other), None, "{other}");
        }
    }
}
