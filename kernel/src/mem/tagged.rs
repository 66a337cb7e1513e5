//! [`Tagged`]: the first word of a capability, which names its object together with the type.
//!
//! Because the word is written only together with a handle of the matching type, reading the
//! handle back needs no trust: a typed cast checks the tag (as NOVA's and Hedron's capability
//! casts do), and no number can be turned into a reference.

use core::fmt;

use super::{PhysAddr, Ref};
use crate::arch::{abi, append_first_bit};

/// The kind of a capability: an enumeration to which an architecture adds (`arch/<isa>/abi/kind.rs`). The
/// numbers are those that DebugCapIdentify reports (01, section 7).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind(u8);

#[allow(non_upper_case_globals)] // Named as the variants of an enumeration are.
impl Kind {
    pub const Null: Kind = Kind(0);
    pub const Frame: Kind = Kind(1);
    pub const Untyped: Kind = Kind(2);
    pub const Endpoint: Kind = Kind(4);
    pub const Notification: Kind = Kind(6);
    pub const Reply: Kind = Kind(8);
    pub const CNode: Kind = Kind(10);
    pub const Tcb: Kind = Kind(12);
    pub const IrqControl: Kind = Kind(14);
    pub const IrqHandler: Kind = Kind(16);
    /// What is left of a TCB or CNode whose last capability is being deleted.
    pub const Zombie: Kind = Kind(18);
    pub const Domain: Kind = Kind(20);
    pub const SchedContext: Kind = Kind(22);
    pub const SchedControl: Kind = Kind(24);
}

impl Kind {
    /// One of an architecture's: `number` is below 32, and none of the above nor another of its own.
    pub(crate) const fn of_architecture(number: u8) -> Kind {
        Kind(number)
    }

    /// Whether a word of this kind may have the mark of its shape.
    const fn may_be_marked(self) -> bool {
        matches!(self, Kind::Frame | Kind::Untyped | Kind::Zombie)
    }

    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Kind::Null => "Null",
            Kind::Frame => "Frame",
            Kind::Untyped => "Untyped",
            Kind::Endpoint => "Endpoint",
            Kind::Notification => "Notification",
            Kind::Reply => "Reply",
            Kind::CNode => "CNode",
            Kind::Tcb => "Tcb",
            Kind::IrqControl => "IrqControl",
            Kind::IrqHandler => "IrqHandler",
            Kind::Zombie => "Zombie",
            Kind::Domain => "Domain",
            Kind::SchedContext => "SchedContext",
            Kind::SchedControl => "SchedControl",
            kind => abi::kind::name(kind),
        })
    }
}

/// A kind of capability that names no memory.
#[derive(Clone, Copy)]
pub struct ControlKind(Kind);

#[allow(non_upper_case_globals)] // As for `Kind`.
impl ControlKind {
    pub const Null: ControlKind = ControlKind(Kind::Null);
    pub const IrqControl: ControlKind = ControlKind(Kind::IrqControl);
    pub const IrqHandler: ControlKind = ControlKind(Kind::IrqHandler);
    pub const Domain: ControlKind = ControlKind(Kind::Domain);
    pub const SchedControl: ControlKind = ControlKind(Kind::SchedControl);
}

impl ControlKind {
    /// One of an architecture's.
    ///
    /// # Safety
    /// `kind` is no kind of object.
    pub(crate) const unsafe fn of_architecture(kind: Kind) -> ControlKind {
        ControlKind(kind)
    }
}

/// A type of kernel object that capabilities can name.
///
/// # Safety
/// `KIND` is a kind of object, no two types share it, and objects of the type are aligned to 16 bytes at least and lie
/// below 2^48.
pub unsafe trait Object: Sized {
    const KIND: Kind;
}

/// Objects that are nothing but their type, so that a value of it says all that there is to say:
/// other than CNodes and scheduling contexts, whose size is their shape.
pub trait FixedSize: Object {}

/// Objects of which zeroed memory is one, as new.
///
/// # Safety
/// Zero bytes are a valid value, and they say that nothing is there.
pub unsafe trait Zeroed: FixedSize {}

/// Object address, kind, shape and flags in one word: kind in bits 0–6, flags in bits 8–13, address / 16 in bits 20–63; of the
/// shape, the size in bits 14–19 and the mark in bit 7. Zero is the null word.
///
/// The *shape* (a size, whether memory is a device's) is what references depend on: it is set
/// here in `mem/` when memory is given out, and nobody else can change it. The *flags* belong to
/// the capability and are free.
///
/// A look-up takes a word apart at each level. So the kind is a byte, as only what is no object has a mark, and the flags,
/// by which a CNode's capability says how far to shift an address, follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tagged(u64);

const KIND_MASK: u64 = 0x7f;
const MARK: u64 = 1 << 7;
const FLAGS_SHIFT: u32 = 8;
const FLAGS: u64 = 0x3f << FLAGS_SHIFT;
const SIZE_SHIFT: u32 = 14;
const SIZE_MASK: u64 = 0x3f;
const ADDRESS_SHIFT: u32 = 20;

/// The mark of a shape, above its size.
const SHAPE_MARK: u64 = SIZE_MASK + 1;

/// Shape of untyped memory and of frames: log2 of the bytes, and the mark if they are a device's.
const BITS: u64 = SIZE_MASK;
const DEVICE: u64 = SHAPE_MARK;

impl Tagged {
    pub const NULL: Tagged = Tagged(0);

    /// A word that names `object`, whose type has no shape.
    pub(in crate::mem) fn object<T: Object>(object: Ref<T>, shape: u64) -> Self {
        Self::pack(T::KIND.number(), object.address(), shape)
    }

    /// A word that names 2^`bits` bytes of memory without an object in it: of RAM, or a `device`'s.
    #[inline(always)]
    pub(super) const fn memory(kind: Kind, start: PhysAddr, bits: u8, device: bool) -> Self {
        let mark = if device { DEVICE } else { 0 };
        Self::pack(kind.number(), start, bits as u64 | mark)
    }

    /// A word that names no memory.
    pub const fn control(kind: ControlKind) -> Self {
        Self::pack(kind.0.number(), PhysAddr::new(0), 0)
    }

    const fn pack(kind: u8, address: PhysAddr, shape: u64) -> Self {
        let mark = (shape & SHAPE_MARK) * (MARK / SHAPE_MARK);
        let size = (shape & SIZE_MASK) << SIZE_SHIFT;
        Tagged(kind as u64 | mark | size | (address.get() >> 4) << ADDRESS_SHIFT)
    }

    /// The object, if the word names one of type `T`.
    #[inline(always)]
    pub fn get<T: Object>(self) -> Option<Ref<T>> {
        if self.is(T::KIND) {
            // SAFETY: `object` is the only way to write this kind and it takes a `Ref<T>`;
            // nothing changes the kind of a word but `zombie`, whose kind is no object's. The
            // address of a `Ref` is not 0.
            Some(unsafe { Ref::mint_at(self.address().get()) })
        } else {
            None
        }
    }

    /// The same memory as a zombie (02, section 7.1) of another shape.
    pub(super) const fn zombie(self, shape: u64) -> Self {
        Self::pack(Kind::Zombie.number(), self.address(), shape)
    }

    /// Size (log2 of bytes) of the untyped memory or frame that the word names, and whether it is a
    /// device's.
    pub fn extent(self) -> (u8, bool) {
        ((self.shape() & BITS) as u8, self.shape() & DEVICE != 0)
    }

    /// The shape: the size, 6 bits, and above it the mark.
    pub const fn shape(self) -> u64 {
        ((self.0 >> SIZE_SHIFT) & SIZE_MASK) | ((self.0 / MARK * SHAPE_MARK) & SHAPE_MARK)
    }

    /// The same word with other flags.
    #[must_use]
    pub const fn with_flags(self, flags: u8) -> Self {
        Tagged(self.0 & !FLAGS | (flags as u64) << FLAGS_SHIFT & FLAGS)
    }

    pub const fn flags(self) -> u8 {
        ((self.0 & FLAGS) as u32 >> FLAGS_SHIFT) as u8
    }

    /// Whether both words name the same memory as the same kind and shape, flags apart.
    pub const fn same(self, other: Tagged) -> bool {
        (self.0 ^ other.0) & !FLAGS == 0
    }

    /// Address of the named memory; 0 if the word names none.
    pub const fn address(self) -> PhysAddr {
        PhysAddr::new((self.0 >> ADDRESS_SHIFT) << 4)
    }

    /// Slot `i` of the CNode that the word names starts where the result says, in bytes.
    #[inline(always)]
    pub(super) const fn element(self, i: u64) -> u64 {
        // In units of slots, which nothing else is left of then: CNodes are aligned to two of them.
        (self.0 >> (ADDRESS_SHIFT + 1)).wrapping_add(i) << 5
    }

    /// The first two slots of the CNode that the word names: that of the first bit of `address`, as
    /// [`element`](Self::element); and the bits behind that.
    #[inline(always)]
    pub(super) fn one_of_two(self, address: u64) -> (u64, u64) {
        let (slot, rest) = append_first_bit(self.0 >> (ADDRESS_SHIFT + 2), address);
        (slot << 5, rest)
    }

    /// The kind that the tag says.
    pub const fn kind(self) -> Kind {
        Kind((self.0 & KIND_MASK) as u8)
    }

    /// How words of `kind` with these flags, and a size with these lower bits, begin, without a mark.
    pub const fn beginning(kind: Kind, size: u64, flags: u8) -> u64 {
        let word = Self::pack(kind.number(), PhysAddr::new(0), size).with_flags(flags);
        word.0 & 0xffff
    }

    /// Whether the word [begins](Self::beginning) so; one comparison.
    #[inline(always)]
    pub const fn begins_as(self, beginning: u64) -> bool {
        self.0 as u16 == beginning as u16
    }

    /// Whether the word is of `kind`; one comparison, mostly of a byte.
    #[inline(always)]
    pub const fn is(self, kind: Kind) -> bool {
        let mark = if kind.may_be_marked() { MARK } else { 0 };
        self.0 as u8 & !(mark as u8) == kind.number()
    }
}
