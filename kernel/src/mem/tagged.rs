//! [`Tagged`]: the first word of a capability, which names its object together with the type.
//!
//! Because the word is written only together with a handle of the matching type, reading the
//! handle back needs no trust: a typed cast checks the tag (as NOVA's and Hedron's capability
//! casts do), and no number can be turned into a reference.

use super::{PhysAddr, Ref};

/// Kinds of capability whose word names a kernel object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ObjectKind {
    Endpoint = 4,
    Notification = 6,
    Reply = 8,
    CNode = 10,
    Tcb = 12,
    SchedContext = 22,
    PageTable = 3,
    PageDirectory = 5,
    Pdpt = 7,
    Pml4 = 9,
    AsidPool = 13,
}

/// Kinds of capability whose word names memory that holds no kernel object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum DataKind {
    Untyped = 2,
    Frame = 1,
}

/// Kinds of capability that name no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ControlKind {
    Null = 0,
    IrqControl = 14,
    IrqHandler = 16,
    Domain = 20,
    SchedControl = 24,
    AsidControl = 11,
    IoPort = 19,
    IoPortControl = 31,
}

/// The kind of a capability. The numbers are those that DebugCapIdentify reports (01, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    Null = 0,
    Frame = 1,
    Untyped = 2,
    PageTable = 3,
    Endpoint = 4,
    PageDirectory = 5,
    Notification = 6,
    Pdpt = 7,
    Reply = 8,
    Pml4 = 9,
    CNode = 10,
    AsidControl = 11,
    Tcb = 12,
    AsidPool = 13,
    IrqControl = 14,
    IrqHandler = 16,
    /// What is left of a TCB or CNode whose last capability is being deleted.
    Zombie = 18,
    IoPort = 19,
    Domain = 20,
    SchedContext = 22,
    SchedControl = 24,
    IoPortControl = 31,
}

/// A type of kernel object that capabilities can name.
///
/// # Safety
/// No two types share a `KIND`, and objects of the type are aligned to 16 bytes at least and lie
/// below 2^48.
pub unsafe trait Object: Sized {
    const KIND: ObjectKind;
}

/// Objects that are nothing but their type, so that a value of it says all that there is to say:
/// other than CNodes and scheduling contexts, whose size is their shape.
pub trait FixedSize: Object {}

/// Object address, kind, shape and flags in one word: kind in bits 0–4, shape in bits 5–11, flags
/// in bits 12–19, address / 16 in bits 20–63. Zero is the null word.
///
/// The *shape* (a size, whether memory is a device's) is what references depend on: it is set
/// here in `mem/` when memory is given out, and nobody else can change it. The *flags* belong to
/// the capability and are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tagged(u64);

const KIND_MASK: u64 = 0x1f;
const SHAPE_SHIFT: u32 = 5;
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
    #[inline(always)]
    pub(in crate::mem) fn object<T: Object>(object: Ref<T>, shape: u64) -> Self {
        Self::pack(T::KIND as u8, object.address(), shape)
    }

    /// A word that names 2^`bits` bytes of memory without an object in it: of RAM, or a `device`'s.
    #[inline(always)]
    pub(super) const fn memory(kind: DataKind, start: PhysAddr, bits: u8, device: bool) -> Self {
        let mark = if device { DEVICE } else { 0 };
        Self::pack(kind as u8, start, bits as u64 | mark)
    }

    /// A word that names no memory.
    #[inline(always)]
    pub const fn control(kind: ControlKind) -> Self {
        Self::pack(kind as u8, PhysAddr::new(0), 0)
    }

    const fn pack(kind: u8, address: PhysAddr, shape: u64) -> Self {
        Tagged(
            kind as u64
                | (shape & SHAPE_MASK) << SHAPE_SHIFT
                | (address.get() >> 4) << ADDRESS_SHIFT,
        )
    }

    /// The object, if the word names one of type `T`.
    #[inline(always)]
    pub fn get<T: Object>(self) -> Option<Ref<T>> {
        if self.0 & KIND_MASK == T::KIND as u64 {
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
        Self::pack(Kind::Zombie as u8, self.address(), shape)
    }

    /// Size (log2 of bytes) of the untyped memory or frame that the word names, and whether it is a
    /// device's.
    #[inline(always)]
    pub fn extent(self) -> (u8, bool) {
        ((self.shape() & BITS) as u8, self.shape() & DEVICE != 0)
    }

    /// The shape, 7 bits.
    #[inline(always)]
    pub const fn shape(self) -> u64 {
        self.0 >> SHAPE_SHIFT & SHAPE_MASK
    }

    /// The same word with other flags.
    #[must_use]
    #[inline(always)]
    pub const fn with_flags(self, flags: u8) -> Self {
        Tagged(self.0 & !(FLAGS_MASK << FLAGS_SHIFT) | (flags as u64) << FLAGS_SHIFT)
    }

    #[inline(always)]
    pub const fn flags(self) -> u8 {
        (self.0 >> FLAGS_SHIFT & FLAGS_MASK) as u8
    }

    /// Whether both words name the same memory as the same kind and shape, flags apart.
    #[inline(always)]
    pub const fn same(self, other: Tagged) -> bool {
        (self.0 ^ other.0) & !(FLAGS_MASK << FLAGS_SHIFT) == 0
    }

    /// Address of the named memory; 0 if the word names none.
    #[inline(always)]
    pub const fn address(self) -> PhysAddr {
        PhysAddr::new((self.0 >> ADDRESS_SHIFT) << 4)
    }

    /// The kind that the tag says.
    #[inline(always)]
    pub const fn kind(self) -> Kind {
        match (self.0 & KIND_MASK) as u8 {
            1 => Kind::Frame,
            2 => Kind::Untyped,
            3 => Kind::PageTable,
            4 => Kind::Endpoint,
            5 => Kind::PageDirectory,
            6 => Kind::Notification,
            7 => Kind::Pdpt,
            8 => Kind::Reply,
            9 => Kind::Pml4,
            10 => Kind::CNode,
            11 => Kind::AsidControl,
            12 => Kind::Tcb,
            13 => Kind::AsidPool,
            14 => Kind::IrqControl,
            16 => Kind::IrqHandler,
            18 => Kind::Zombie,
            19 => Kind::IoPort,
            20 => Kind::Domain,
            22 => Kind::SchedContext,
            24 => Kind::SchedControl,
            31 => Kind::IoPortControl,
            _ => Kind::Null,
        }
    }

    /// Whether the word is of `kind` and `shape`, without flags; one comparison.
    #[inline(always)]
    pub const fn is_plain(self, kind: Kind, shape: u64) -> bool {
        self.0 & ((1 << ADDRESS_SHIFT) - 1) == kind as u64 | shape << SHAPE_SHIFT
    }

    /// Whether the word is of `kind`; one comparison, unlike `kind() == kind`.
    #[inline(always)]
    pub const fn is(self, kind: Kind) -> bool {
        self.0 & KIND_MASK == kind as u64
    }
}
