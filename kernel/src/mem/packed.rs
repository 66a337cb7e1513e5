//! [`Packed`]: an optional handle, a mark on it and a few flags in one word.

use core::marker::PhantomData;

use super::Ref;

/// An `Option<Ref<T>>` that shares its word with [`FLAG_BITS`](Self::FLAG_BITS) flags, kept in
/// the address bits that the alignment of `T` leaves zero; the highest of these marks a handle. The zero word is `None`
/// without flags.
pub struct Packed<T> {
    word: u64,
    object: PhantomData<Ref<T>>,
}

impl<T> Packed<T> {
    /// Number of flag bits, from the alignment of `T`.
    pub const FLAG_BITS: u32 = align_of::<T>().trailing_zeros() - 1;
    const FLAGS: u64 = (1 << Self::FLAG_BITS) - 1;
    /// Set only where there is a handle, and no flag.
    const MARK: u64 = 1 << Self::FLAG_BITS;
    const SPARE: u64 = Self::MARK | Self::FLAGS;

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

    /// `handle`, marked, without flags.
    #[inline(always)]
    pub fn marked(handle: Ref<T>) -> Self {
        Packed {
            word: handle.address().get() | Self::MARK,
            object: PhantomData,
        }
    }

    /// The handle, marked or not.
    #[inline(always)]
    pub fn get(self) -> Option<Ref<T>> {
        // SAFETY: only `new` and `marked` store an address, and take it from a `Ref<T>`; flags and mark are
        // below the alignment, so clearing them restores that address.
        unsafe { Ref::mint(self.word & !Self::SPARE) }
    }

    /// Whether the handle, marked or not, is `other`.
    #[inline(always)]
    pub fn names(self, other: Ref<T>) -> bool {
        (self.word ^ other.address().get()) & !Self::SPARE == 0
    }

    /// Whether there is no handle and no flag.
    pub fn is_zero(self) -> bool {
        self.word == 0
    }

    /// The handle, if it is marked.
    #[inline(always)]
    pub fn get_marked(self) -> Option<Ref<T>> {
        // SAFETY: only `marked` sets the mark, in the address of a `Ref<T>`, which is not 0, and without flags.
        (self.word & Self::MARK != 0).then(|| unsafe { Ref::mint_at(self.word - Self::MARK) })
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
