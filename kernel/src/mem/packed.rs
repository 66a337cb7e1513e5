//! [`Packed`]: an optional handle and a few flags in one word.

use core::marker::PhantomData;

use super::Ref;

/// An `Option<Ref<T>>` that shares its word with [`FLAG_BITS`](Self::FLAG_BITS) flags, kept in
/// the address bits that the alignment of `T` leaves zero. The zero word is `None` without flags.
pub struct Packed<T> {
    word: u64,
    object: PhantomData<Ref<T>>,
}

impl<T> Packed<T> {
    /// Number of flag bits, from the alignment of `T`.
    pub const FLAG_BITS: u32 = align_of::<T>().trailing_zeros();
    const FLAGS: u64 = (1 << Self::FLAG_BITS) - 1;

    #[inline(always)]
    pub const fn empty() -> Self {
        Packed {
            word: 0,
            object: PhantomData,
        }
    }

    /// Packs `handle` with the low [`FLAG_BITS`](Self::FLAG_BITS) of `flags`.
    #[inline(always)]
    pub fn new(handle: Option<Ref<T>>, flags: u64) -> Self {
        let address = handle.map_or(0, |handle| handle.address().get());
        Packed {
            word: address | (flags & Self::FLAGS),
            object: PhantomData,
        }
    }

    /// The handle.
    #[inline(always)]
    pub fn get(self) -> Option<Ref<T>> {
        // SAFETY: only `new` stores an address, and takes it from a `Ref<T>`; flags are below the alignment, so clearing them
        // restores that address.
        unsafe { Ref::mint(self.word & !Self::FLAGS) }
    }

    /// Whether the handle is `other`.
    #[inline(always)]
    pub fn names(self, other: Ref<T>) -> bool {
        (self.word ^ other.address().get()) & !Self::FLAGS == 0
    }

    /// Whether there is no handle and no flag.
    pub fn is_zero(self) -> bool {
        self.word == 0
    }

    /// Handle and flags.
    #[inline(always)]
    pub(in crate::mem) fn word(self) -> u64 {
        self.word
    }

    pub fn flags(self) -> u64 {
        self.word & Self::FLAGS
    }
}

impl<T> Clone for Packed<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Packed<T> {}

impl<T> PartialEq for Packed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}
