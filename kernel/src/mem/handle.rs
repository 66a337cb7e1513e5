//! [`Ref`]: a typed handle to a kernel object.

use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroU64;

use super::{Memory, PhysAddr};
use crate::arch::Platform;

/// A copyable handle to a kernel object of type `T`. It does not dereference by itself: [`at`]
/// borrows the memory, so no reference outlives a reclamation of memory.
///
/// Never 0, so that `Option<Ref<T>>` is one word and zeroed memory reads as `None`.
///
/// [`at`]: Ref::at
#[repr(transparent)]
pub struct Ref<T> {
    address: NonZeroU64,
    object: PhantomData<*const T>,
}

impl<T> Ref<T> {
    /// The object in this machine's memory.
    #[inline(always)]
    pub fn at(self, k: &Memory) -> &T {
        // On a host there are many machines: a handle of a larger one must not reach outside.
        #[cfg(not(target_os = "none"))]
        assert!(
            self.address.get() < k.machine.memory_bytes(),
            "a handle of another machine"
        );
        // SAFETY: a `Ref` is minted only for memory below the machine's end that holds an
        // initialised `T` (module invariant), aligned as the ABI aligns objects. Its fields are
        // `Cell`s and the kernel is not `Sync`, so shared borrows may coexist; the memory is
        // reclaimed only through `&mut Memory`, which ends the borrow.
        unsafe {
            &*k.machine
                .base()
                .wrapping_add(self.address.get() as usize)
                .cast::<T>()
        }
    }

    /// Where the object lies.
    pub fn address(self) -> PhysAddr {
        PhysAddr::new(self.address.get())
    }

    /// The same, as a number.
    #[inline(always)]
    pub(in crate::mem) const fn number(self) -> NonZeroU64 {
        self.address
    }

    /// A handle for the object at `address`.
    ///
    /// # Safety
    /// As for [`mint`](Self::mint), and `address` is not 0.
    #[inline(always)]
    pub(in crate::mem) const unsafe fn mint_at(address: u64) -> Self {
        Ref {
            // SAFETY: the caller's.
            address: unsafe { NonZeroU64::new_unchecked(address) },
            object: PhantomData,
        }
    }

    /// A handle for the object at `address`; `None` for address 0, where no object ever lies.
    ///
    /// # Safety
    /// An initialised `T` lies there, or will before the handle is used, and this handle is
    /// cleared before the memory is given to anything else.
    #[inline(always)]
    pub(crate) const unsafe fn mint(address: u64) -> Option<Self> {
        match NonZeroU64::new(address) {
            Some(address) => Some(Ref {
                address,
                object: PhantomData,
            }),
            None => None,
        }
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for Ref<T> {}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:#x}", self.address)
    }
}
