//! Capabilities: two words, with typed views.
//!
//! The first word ([`Tagged`]) names the object; its eight flags and the second word mean, by
//! kind:
//!
//! | kind | flags | second word |
//! | --- | --- | --- |
//! | endpoint, notification | rights | badge |
//! | reply | rights (grant) | – |
//! | CNode | bits of a word that it does not translate | guard, in the upper bits: its first bit is the word's first |
//! | untyped | – | watermark in bytes: where the next object may lie |
//! | frame | rights | mapping, as the architecture encodes it; 0 if not mapped |
//! | IRQ handler | – | IRQ |
//! | scheduling control | – | core |
//! | zombie | – | slots that are still to be emptied |
//!
//! For the kinds that an architecture adds see `arch/<isa>/abi/cap.rs`.

use crate::arch::abi::{Irq, Mapping};
use crate::mem::objects::region::UntypedMemory;
use crate::mem::{
    CNodeWord, ControlKind, Kind, Object, PairBeginning, PairWord, PhysAddr, Ref, Slot, Span,
    Tagged,
};
use crate::object::{Endpoint, FrameRights, Notification, Reply, Rights};

/// A capability. The zero value is the null capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capability {
    word: Tagged,
    data: u64,
}

/// A capability to an object that messages or signals go through.
#[derive(Clone, Copy)]
pub struct BadgedCap<T> {
    pub object: Ref<T>,
    pub badge: u64,
    pub rights: Rights,
}

/// An endpoint capability.
pub type EndpointCap = BadgedCap<Endpoint>;

/// A notification capability.
pub type NotificationCap = BadgedCap<Notification>;

/// A reply capability.
#[derive(Clone, Copy)]
pub struct ReplyCap {
    pub object: Ref<Reply>,
    pub can_grant: bool,
}

/// A CNode capability.
#[derive(Clone, Copy)]
pub struct CNodeCap {
    node: CNodeWord,
    /// The guard, in the upper bits.
    guard: u64,
}

impl CNodeCap {
    /// log2 of the number of slots, at least 1.
    pub fn radix(self) -> u32 {
        self.node.radix()
    }

    /// Bits of the guard.
    pub fn guard_size(self) -> u32 {
        self.bits() - self.radix()
    }

    /// The guard, as a number.
    pub fn guard(self) -> u64 {
        // Two shifts, so that no guard is right too.
        self.guard >> 1 >> (63 - self.guard_size())
    }

    /// Whether the first bits of `address`, from its upper end, are the guard.
    pub fn admits(self, address: u64) -> bool {
        // The lowest bit is in no guard.
        (address ^ self.guard | 1).leading_zeros() >= self.guard_size()
    }

    /// All slots; `None` never, as the capability names a CNode.
    pub fn slots(self) -> Option<Span> {
        Span::of(self.node.word())
    }

    /// Bits of an address that it translates: those of the guard and of the number of a slot, a word
    /// at most.
    pub fn bits(self) -> u32 {
        u64::BITS - self.unused_bits()
    }

    /// The bits of a word that it does not translate.
    #[inline(always)]
    pub fn unused_bits(self) -> u32 {
        self.node.word().flags().into()
    }

    /// The slot that the first bits of `address` name, from its upper end: the guard, and its number.
    /// `None` if they do not begin with the guard.
    pub fn slot(self, address: u64) -> Option<Ref<Slot>> {
        let index = self.behind_guard(address).wrapping_shr(self.unused_bits());
        self.slot_at(index)
    }

    /// `address` with zeroes in place of the guard, if it begins with that.
    #[inline(always)]
    pub fn behind_guard(self, address: u64) -> u64 {
        address ^ self.guard
    }

    /// Slot `index`, before which there was the guard if there are zeroes: `None` if not.
    #[inline(always)]
    pub fn slot_at(self, index: u64) -> Option<Ref<Slot>> {
        self.node.slot(index)
    }
}

/// The bits of a word that one bit leaves.
const ALL_BUT_ONE: u8 = u64::BITS as u8 - 1;

/// The bits of a word that `word`, which names a CNode, does not translate with a guard of this size: they are fewer than 64.
fn unused_bits(word: Tagged, guard_size: u8) -> u8 {
    u64::BITS as u8 - word.shape() as u8 - guard_size
}

/// A frame of user memory.
#[derive(Clone, Copy)]
pub struct FrameCap {
    pub word: Tagged,
    pub rights: FrameRights,
    pub mapping: Option<Mapping>,
}

impl FrameCap {
    pub fn start(self) -> PhysAddr {
        self.word.address()
    }

    /// log2 of the bytes: 12, 21 or 30.
    pub fn bits(self) -> u8 {
        self.word.extent().0
    }

    pub fn is_device(self) -> bool {
        self.word.extent().1
    }
}

impl Capability {
    pub const NULL: Capability = Capability {
        word: Tagged::NULL,
        data: 0,
    };

    /// The capability to a new object: all rights, no badge, no guard, not mapped, watermark 0.
    pub fn original(word: Tagged) -> Self {
        let flags = match word.kind() {
            Kind::Endpoint | Kind::Notification | Kind::Reply => Rights::ALL.bits(),
            Kind::CNode => unused_bits(word, 0),
            _ => 0,
        };
        Capability {
            word: word.with_flags(flags),
            data: 0,
        }
    }

    /// A capability that names no memory.
    pub const fn control(kind: ControlKind, data: u64) -> Self {
        Capability {
            word: Tagged::control(kind),
            data,
        }
    }

    pub fn irq_handler(irq: Irq) -> Self {
        Self::control(ControlKind::IrqHandler, irq as u64)
    }

    /// A zombie for the object that `self` names, with all its slots to empty.
    pub fn zombie(self) -> Option<Self> {
        let word = Span::zombie(self.word)?;
        let data = Span::of(word)?.length();
        Some(Capability { word, data })
    }

    pub(crate) const fn from_parts(word: Tagged, data: u64) -> Self {
        Capability { word, data }
    }

    pub const fn word(self) -> Tagged {
        self.word
    }

    pub(crate) const fn data(self) -> u64 {
        self.data
    }

    pub const fn kind(self) -> Kind {
        self.word.kind()
    }

    pub const fn is(self, kind: Kind) -> bool {
        self.word.is(kind)
    }

    pub const fn is_null(self) -> bool {
        self.word.is(Kind::Null)
    }

    #[inline(always)]
    pub fn endpoint(self) -> Option<EndpointCap> {
        self.badged()
    }

    #[inline(always)]
    pub fn notification(self) -> Option<NotificationCap> {
        self.badged()
    }

    #[inline(always)]
    fn badged<T: Object>(self) -> Option<BadgedCap<T>> {
        Some(BadgedCap {
            object: self.word.get()?,
            badge: self.data,
            rights: self.rights(),
        })
    }

    #[inline(always)]
    pub fn reply(self) -> Option<ReplyCap> {
        let object = self.word.get()?;
        Some(ReplyCap {
            object,
            can_grant: self.rights().grant(),
        })
    }

    #[inline(always)]
    pub fn cnode(self) -> Option<CNodeCap> {
        Some(CNodeCap {
            node: CNodeWord::of(self.word)?,
            guard: self.data,
        })
    }

    /// How capabilities begin that are [plain pairs](Self::plain_pair).
    #[inline(always)]
    pub fn beginning_of_pairs() -> PairBeginning {
        PairBeginning::with(ALL_BUT_ONE)
    }

    /// The CNode, if it has two slots, and the capability no guard.
    #[inline(always)]
    pub fn plain_pair(self, beginning: PairBeginning) -> Option<PairWord> {
        PairWord::of(self.word, beginning)
    }

    pub fn untyped(self) -> Option<UntypedMemory> {
        UntypedMemory::new(self.word, self.data)
    }

    #[inline(always)]
    pub fn frame(self) -> Option<FrameCap> {
        self.is(Kind::Frame).then(|| FrameCap {
            word: self.word,
            rights: FrameRights::from_flags(self.word.flags()),
            mapping: Mapping::decode(self.data),
        })
    }

    /// IRQ of a handler capability.
    pub fn irq(self) -> Option<Irq> {
        self.is(Kind::IrqHandler).then_some(self.data as Irq)
    }

    /// Core of a scheduling-control capability.
    pub fn core(self) -> u64 {
        self.data
    }

    /// Slots that a zombie has still to empty, from the first on.
    pub fn zombie_left(self) -> u64 {
        self.data
    }

    fn rights(self) -> Rights {
        Rights::from_flags(self.word.flags())
    }

    /// Badge of an endpoint or notification capability, 0 for others.
    pub fn badge(self) -> u64 {
        match self.kind() {
            Kind::Endpoint | Kind::Notification => self.data,
            _ => 0,
        }
    }

    /// The capability with its rights masked (02, section 3).
    #[must_use]
    pub fn masked(self, mask: Rights) -> Self {
        let flags = match self.kind() {
            Kind::Endpoint | Kind::Notification | Kind::Reply => self.rights().masked(mask).bits(),
            Kind::Frame => FrameRights::from_flags(self.word.flags())
                .masked(mask)
                .flags(),
            _ => return self,
        };
        Capability {
            word: self.word.with_flags(flags),
            data: self.data,
        }
    }

    /// The endpoint capability with the right to call in place of that to write; `None` for others.
    pub fn calling(self) -> Option<Self> {
        self.is(Kind::Endpoint).then(|| Capability {
            word: self.word.with_flags(self.rights().calling().bits()),
            data: self.data,
        })
    }

    /// The capability with the badge or guard in `data`; `preserve` is set where the capability
    /// is moved (02, section 6.1). `None` where that is not allowed.
    pub fn updated(self, data: u64, preserve: bool) -> Option<Self> {
        match self.kind() {
            Kind::Endpoint | Kind::Notification => {
                (!preserve && self.data == 0).then_some(Capability {
                    word: self.word,
                    data,
                })
            }
            Kind::CNode => {
                let guard_size = data & 63;
                if guard_size + self.word.shape() > u64::BITS.into() {
                    return None;
                }
                Some(Capability {
                    word: self
                        .word
                        .with_flags(unused_bits(self.word, guard_size as u8)),
                    // Two shifts, so that no guard is right too.
                    data: data >> 6 << 1 << (63 - guard_size),
                })
            }
            _ => Some(self),
        }
    }

    /// The root CNode capability of the root task: a guard of zeroes in front (06, section 1.1).
    #[must_use]
    pub fn with_zero_guard(self, guard_size: u8) -> Self {
        Capability {
            word: self.word.with_flags(unused_bits(self.word, guard_size)),
            data: 0,
        }
    }

    /// The zombie with `left` slots to empty.
    #[must_use]
    pub fn with_zombie_left(self, left: u64) -> Self {
        Capability {
            word: self.word,
            data: left,
        }
    }
}
