//! What belongs to one thread: the block that its thread pointer addresses (FS on x86_64, TPIDR_EL0 on aarch64), and the
//! IPC buffer it points to.
//!
//! x86_64 thread-local storage is "variant II": FS addresses the thread block, whose first word
//! is its own address, and the image's thread-local variables lie directly below it. That of aarch64 is "variant I": they
//! lie behind the first two words of the block. Each thread of a program has its own block, whose second word is the IPC
//! buffer of whoever asks.
//!
//! A thread without a block (raw threads of a test, say) must not send more than four words or
//! any capability, and must not use the heap lock or anything else documented to need a block.

use core::ptr;

use sandglass_abi::message::ipc_buffer;

pub use crate::arch::current_ipc_buffer;
use crate::arch::{thread_area, thread_area_len};

/// The IPC buffer (ABI 01, section 3); its frame must be aligned to 1024 bytes.
#[repr(C, align(1024))]
pub struct IpcBuffer {
    words: [u64; ipc_buffer::WORDS],
}

/// The block that the thread pointer addresses.
#[repr(C, align(64))]
pub struct ThreadBlock {
    /// Its own address, as compilers of x86_64 expect at `fs:[0]`.
    self_pointer: *mut ThreadBlock,
    /// Behind that.
    ipc_buffer: *mut IpcBuffer,
    reserved: [u64; 3],
    /// At `fs:[0x28]`, where those look for the stack protector's canary.
    stack_guard: u64,
}
const _: () = {
    assert!(core::mem::offset_of!(ThreadBlock, ipc_buffer) == 8);
    assert!(core::mem::offset_of!(ThreadBlock, stack_guard) == 0x28);
};

/// The image's thread-local variables: initial content, and the space they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsImage {
    /// Address and length of the initialised part, bytes.
    pub init: *const u8,
    pub init_len: usize,
    /// Length of the whole, the rest being zero, bytes.
    pub len: usize,
    /// Bytes; a power of two.
    pub align: usize,
}

impl TlsImage {
    /// No thread-local variables.
    pub const EMPTY: Self = Self {
        init: ptr::null(),
        init_len: 0,
        len: 0,
        align: 1,
    };

    /// Bytes of a thread's area: variables and thread block.
    pub const fn area_len(&self) -> usize {
        thread_area_len(self.len, self.area_align())
    }

    /// Alignment of the area, bytes.
    pub const fn area_align(&self) -> usize {
        let block = core::mem::align_of::<ThreadBlock>();
        if self.align > block {
            self.align
        } else {
            block
        }
    }

    /// Prepares a thread's area and returns the address for its thread pointer.
    ///
    /// # Safety
    /// `area` must be valid for [`Self::area_len`] bytes, aligned to [`Self::area_align`], and
    /// belong to this thread as long as it runs. `buffer` must be null or the thread's IPC buffer.
    pub unsafe fn init_area(&self, area: *mut u8, buffer: *mut IpcBuffer) -> u64 {
        let (variables, offset) = thread_area(self.len, self.area_align());
        // SAFETY: variables and block are apart, and both inside the area; the image's initialised
        // part is read-only memory of the program.
        unsafe {
            let variables = area.add(variables);
            if self.init_len > 0 {
                ptr::copy_nonoverlapping(self.init, variables, self.init_len);
            }
            ptr::write_bytes(variables.add(self.init_len), 0, self.len - self.init_len);
            let block = area.add(offset).cast::<ThreadBlock>();
            block.write(ThreadBlock {
                self_pointer: block,
                ipc_buffer: buffer,
                reserved: [0; 3],
                stack_guard: 0x7361_6e64_676c_6173,
            });
            block as u64
        }
    }
}

/// Reads word `index` of the current thread's IPC buffer; 0 beyond its end.
#[inline(always)]
pub fn read_word(index: usize) -> u64 {
    if index >= ipc_buffer::WORDS {
        return 0;
    }
    // SAFETY: the buffer belongs to the current thread and the index is inside it.
    unsafe {
        (&raw const (*current_ipc_buffer()).words)
            .cast::<u64>()
            .add(index)
            .read()
    }
}

/// Writes word `index` of the current thread's IPC buffer; does nothing beyond its end.
#[inline(always)]
pub fn write_word(index: usize, value: u64) {
    if index < ipc_buffer::WORDS {
        // SAFETY: as in `read_word`.
        unsafe {
            (&raw mut (*current_ipc_buffer()).words)
                .cast::<u64>()
                .add(index)
                .write(value)
        }
    }
}

/// Sets the slot that receives the capability of a message: slot `index` of `depth` bits below
/// the CNode `root`, all as the CSpace of this thread sees them (ABI 02, section 8).
pub fn set_receive_slot(slot: crate::cap::Slot) {
    write_word(
        ipc_buffer::RECEIVE_CNODE,
        crate::cap::Capability::cptr(slot.root()).raw(),
    );
    write_word(ipc_buffer::RECEIVE_INDEX, slot.index());
    write_word(ipc_buffer::RECEIVE_DEPTH, u64::from(slot.depth()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(256))]
    struct Area([u8; 512]);

    #[test]
    fn thread_local_variables_end_where_the_thread_block_starts() {
        let init = [1u8, 2, 3];
        let image = TlsImage {
            init: init.as_ptr(),
            init_len: 3,
            len: 70,
            align: 32,
        };
        assert!(image.area_len() <= 512 && 256 % image.area_align() == 0);
        let mut area = Area([0xff; 512]);
        let base = area.0.as_mut_ptr();
        // SAFETY: the area is large enough and aligned.
        let fs = unsafe { image.init_area(base, ptr::null_mut()) } as usize;
        let block = fs - base as usize;
        assert_eq!(block % 64, 0);
        assert_eq!(area.0[block - 70..block - 67], [1, 2, 3]);
        assert!(area.0[block - 67..block].iter().all(|&byte| byte == 0));
        assert_eq!(
            u64::from_le_bytes(area.0[block..block + 8].try_into().unwrap()),
            fs as u64
        );
    }
}
