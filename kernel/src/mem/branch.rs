//! [`Branch`]: a link of a tree that is threaded through objects, in one word.

use core::marker::PhantomData;

use super::Ref;

/// Where a link of a tree leads, of which each object is both a leaf and an inner node: nowhere, to the leaf of an object,
/// or to its node. The zero word leads nowhere.
pub struct Branch<T> {
    word: u64,
    object: PhantomData<Ref<T>>,
}

impl<T> Branch<T> {
    /// Set only where there is an object, in a bit of the address that its alignment leaves zero.
    const NODE: u64 = 1;

    #[inline(always)]
    pub const fn nowhere() -> Self {
        Self::new(0)
    }

    #[inline(always)]
    pub fn leaf(of: Ref<T>) -> Self {
        Self::new(of.address().get())
    }

    #[inline(always)]
    pub fn node(of: Ref<T>) -> Self {
        const { assert!(align_of::<T>() > Self::NODE as usize) }
        Self::new(of.address().get() + Self::NODE)
    }

    const fn new(word: u64) -> Self {
        Branch {
            word,
            object: PhantomData,
        }
    }

    /// The object to whose node, not leaf, it leads.
    #[inline(always)]
    pub fn inner(self) -> Option<Ref<T>> {
        if self.word & Self::NODE == 0 {
            return None;
        }
        // SAFETY: only `node` sets the bit, and adds it to the address of a `Ref<T>`, which is not 0.
        Some(unsafe { Ref::mint_at(self.word - Self::NODE) })
    }

    /// The object to whose leaf or node it leads.
    #[inline(always)]
    pub fn object(self) -> Option<Ref<T>> {
        // SAFETY: only `leaf` and `node` store an address, and take it from a `Ref<T>`.
        unsafe { Ref::mint(self.word & !Self::NODE) }
    }
}

impl<T> Clone for Branch<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Branch<T> {}
