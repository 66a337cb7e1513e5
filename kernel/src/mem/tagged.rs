//! [`Tagged`]: the first word of a capability, which names its object together with the type.
//!
//! Because the word is written only together with a handle of the matching type, reading the
//! handle back needs no trust: a typed cast checks the tag (as NOVA's and Hedron's capability
//! casts do), and no number can be turned into a reference.

use core::fmt;

use super::{PhysAddr, Ref};
use crate::arch::abi;

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

/// Object address, kind, shape and flags in one word: shape in bits 0–6, kind in bits 7–11, flags
/// in bits 12–19, address / 16 in bits 20–63. Zero is the null word.
///
/// The *shape* (a size, whether memory is a device's) is what references depend on: it is set
/// here in `mem/` when memory is given out, and nobody else can change it. The *flags* belong to
/// the capability and are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tagged(u64);

const KIND_SHIFT: u32 = 7;
const KIND_MASK: u64 = 0x1f;
const SHAPE_MASK: u64 = 0x7f;
const FLAGS_SHIFT: u32 = 12;
const FLAGS_MASK: u64 = 0xff;
const ADDRESS_SHIFT: u32 = 20;

/// Shape of untyped memory and of frames: log2 of the bytes, and a mark if they are a device's.
const BITS: u64 = 0x3f;
const DEVICE: u64 = 1 << 6;

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
        Tagged(
            (kind as u64) << KIND_SHIFT
                | shape & SHAPE_MASK
                | (address.get() >> 4) << ADDRESS_SHIFT,
        )
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

    /// The shape, 7 bits.
    pub const fn shape(self) -> u64 {
        self.0 & SHAPE_MASK
    }

    /// The same word with other flags.
    #[must_use]
    pub const fn with_flags(self, flags: u8) -> Self {
        Tagged(self.0 & !(FLAGS_MASK << FLAGS_SHIFT) | (flags as u64) << FLAGS_SHIFT)
    }

    pub const fn flags(self) -> u8 {
        (self.0 >> FLAGS_SHIFT & FLAGS_MASK) as u8
    }

    /// Whether both words name the same memory as the same kind and shape, flags apart.
    pub const fn same(self, other: Tagged) -> bool {
        (self.0 ^ other.0) & !(FLAGS_MASK << FLAGS_SHIFT) == 0
    }

    /// Address of the named memory; 0 if the word names none.
    pub const fn address(self) -> PhysAddr {
        PhysAddr::new((self.0 >> ADDRESS_SHIFT) << 4)
    }

    /// The kind that the tag says.
    pub const fn kind(self) -> Kind {
        Kind((self.0 >> KIND_SHIFT & KIND_MASK) as u8)
    }

    /// Whether the word is of `kind` and `shape`, without flags; one comparison.
    pub const fn is_plain(self, kind: Kind, shape: u64) -> bool {
        self.0 & ((1 << ADDRESS_SHIFT) - 1) == (kind.number() as u64) << KIND_SHIFT | shape
    }

    /// Whether the word is of `kind`; one comparison, unlike `kind() == kind`.
    pub const fn is(self, kind: Kind) -> bool {
        self.0 & KIND_MASK << KIND_SHIFT == (kind.number() as u64) << KIND_SHIFT
    }
}
