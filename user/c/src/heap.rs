//! `malloc` and its family, over the component's heap.
//!
//! Before each block stands what the allocator wants to know again: the layout. C tells it nothing when a block is freed.

use alloc::alloc::{alloc, alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr;

/// Blocks are aligned to this at least, bytes: as C wants for every type.
const ALIGNMENT: usize = 16;

/// What stands right before a block.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Head {
    /// Of the block, bytes.
    size: usize,
    /// Of block and head.
    layout_align: usize,
}

impl Head {
    /// The layout of block and head together, and the offset of the block.
    fn layout(self) -> Option<(Layout, usize)> {
        let offset = self.layout_align.max(size_of::<Self>());
        let bytes = self.size.checked_add(offset)?;
        let layout = Layout::from_size_align(bytes, self.layout_align).ok()?;
        Some((layout, offset))
    }

    /// # Safety
    /// `block` must be of [`allocate`], and not freed.
    unsafe fn of(block: *mut u8) -> Self {
        // SAFETY: the head stands there.
        unsafe { block.cast::<Self>().sub(1).read() }
    }
}

/// A block, or null if there is not enough memory or such an alignment cannot be.
fn allocate(size: usize, alignment: usize, by: unsafe fn(Layout) -> *mut u8) -> *mut u8 {
    let head = Head {
        size,
        layout_align: alignment.max(ALIGNMENT),
    };
    let Some((layout, offset)) = head.layout() else {
        return ptr::null_mut();
    };
    // SAFETY: the layout has room for a head at least; the head stands before the block, inside.
    unsafe {
        let start = by(layout);
        if start.is_null() {
            return start;
        }
        let block = start.add(offset);
        block.cast::<Head>().sub(1).write(head);
        block
    }
}

#[no_mangle]
pub extern "C" fn sg_malloc(size: usize) -> *mut c_void {
    allocate(size, ALIGNMENT, alloc).cast()
}

#[no_mangle]
pub extern "C" fn sg_calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => allocate(bytes, ALIGNMENT, alloc_zeroed).cast(),
        None => ptr::null_mut(),
    }
}

#[no_mangle]
pub extern "C" fn sg_aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    allocate(size, alignment, alloc).cast()
}

/// # Safety
/// `block` must be null, or of these functions and not freed.
#[no_mangle]
pub unsafe extern "C" fn sg_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let block = block.cast::<u8>();
    if block.is_null() {
        return sg_malloc(size);
    }
    // SAFETY: the caller's promise.
    let head = unsafe { Head::of(block) };
    let larger = allocate(size, head.layout_align, alloc);
    if !larger.is_null() {
        // SAFETY: both are as long, and different.
        unsafe {
            ptr::copy_nonoverlapping(block, larger, head.size.min(size));
            sg_free(block.cast());
        }
    }
    larger.cast()
}

/// # Safety
/// `block` must be null, or of these functions and not freed; and it is not used any more.
#[no_mangle]
pub unsafe extern "C" fn sg_free(block: *mut c_void) {
    let block = block.cast::<u8>();
    if block.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let head = unsafe { Head::of(block) };
    let (layout, offset) = head
        .layout()
        .expect("the block is of `sg_malloc`, and nothing was written before it");
    // SAFETY: with this layout it was allocated, there.
    unsafe { dealloc(block.sub(offset), layout) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_is_null() {
        assert!(sg_malloc(usize::MAX).is_null());
        assert!(sg_calloc(usize::MAX, 2).is_null());
        assert!(sg_aligned_alloc(48, 16).is_null());
        // SAFETY: null is allowed.
        unsafe { sg_free(ptr::null_mut()) };
    }

    proptest! {
        #[test]
        fn blocks_are_aligned_and_keep_their_bytes(
            size in 0usize..300, larger in 0usize..600, shift in 0u32..8,
        ) {
            let alignment = 1 << shift;
            let block = sg_aligned_alloc(alignment, size).cast::<u8>();
            prop_assert_eq!(block as usize % alignment.max(16), 0);
            // SAFETY: the blocks are as long as they were asked for.
            unsafe {
                for at in 0..size {
                    block.add(at).write(at as u8);
                }
                let moved = sg_realloc(block.cast(), larger).cast::<u8>();
                prop_assert_eq!(moved as usize % alignment.max(16), 0);
                for at in 0..size.min(larger) {
                    prop_assert_eq!(moved.add(at).read(), at as u8);
                }
                sg_free(moved.cast());
            }
            let zeros = sg_calloc(size, 3).cast::<u8>();
            // SAFETY: as above.
            unsafe {
                for at in 0..3 * size {
                    prop_assert_eq!(zeros.add(at).read(), 0);
                }
                sg_free(zeros.cast());
            }
        }
    }
}
