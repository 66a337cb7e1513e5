//! What of QEMU's plugin interface is used (version 1, `qemu-plugin.h` of QEMU 7.2), and what
//! QEMU looks for in a plugin.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the interface.
pub const VERSION: c_int = 1;

/// The plugin, to QEMU.
pub type Id = u64;

/// A translation block: instructions that run one after the other.
#[repr(C)]
pub struct TranslationBlock {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Instruction {
    _opaque: [u8; 0],
}

/// What QEMU says about itself.
#[repr(C)]
pub struct Info {
    _opaque: [u8; 0],
}

/// `QEMU_PLUGIN_MEM_W`: accesses that write.
pub const WRITES: c_int = 2;

/// `QEMU_PLUGIN_MEM_RW`: all accesses. QEMU 7.2 takes some that read for some that write, so there is no use in asking for the
/// former alone.
pub const READS_AND_WRITES: c_int = 3;

/// `QEMU_PLUGIN_CB_NO_REGS`: a callback that looks at no register.
pub const NO_REGISTERS: c_int = 0;

/// `QEMU_PLUGIN_INLINE_ADD_U64`: adds to a number, without a call.
pub const INLINE_ADD: c_int = 0;

pub type Translated = unsafe extern "C" fn(Id, *mut TranslationBlock);
pub type Executed = unsafe extern "C" fn(c_uint, *mut c_void);

pub type Accessed = unsafe extern "C" fn(c_uint, u32, u64, *mut c_void);
pub type Ended = unsafe extern "C" fn(Id, *mut c_void);

unsafe extern "C" {
    pub fn qemu_plugin_register_atexit_cb(id: Id, callback: Ended, data: *mut c_void);
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: Accessed,
        registers: c_int,
        accesses: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_mem_is_store(access: u32) -> bool;
    pub fn qemu_plugin_mem_size_shift(access: u32) -> c_uint;
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: Translated);
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut TranslationBlock,
        callback: Executed,
        registers: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: Executed,
        registers: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_inline(
        instruction: *mut Instruction,
        operation: c_int,
        number: *mut c_void,
        amount: u64,
    );
    pub fn qemu_plugin_tb_n_insns(block: *const TranslationBlock) -> usize;
    pub fn qemu_plugin_tb_vaddr(block: *const TranslationBlock) -> u64;
    pub fn qemu_plugin_tb_get_insn(
        block: *const TranslationBlock,
        index: usize,
    ) -> *mut Instruction;
    pub fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const c_void;
    pub fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub fn qemu_plugin_outs(string: *const c_char);
}

/// What an instruction did to memory.
pub struct Access {
    pub bytes: u64,
    pub is_store: bool,
}

impl Access {
    /// What QEMU says of `access`. It may be a read where only writes were asked for: QEMU 7.2 also tells of some.
    ///
    /// # Safety
    /// QEMU has said it in this callback.
    pub unsafe fn of(access: u32) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Self {
                bytes: 1 << qemu_plugin_mem_size_shift(access),
                is_store: qemu_plugin_mem_is_store(access),
            }
        }
    }
}

/// Asks to be called with `data` when `instruction` is executed, and whenever it accesses memory.
///
/// # Safety
/// The instruction is one, for the time of the callback; `executed` takes such data.
pub unsafe fn follow(
    instruction: *mut Instruction,
    executed: Executed,
    data: *mut c_void,
    accessed: Accessed,
) {
    // SAFETY: the caller's.
    unsafe {
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, data);
        qemu_plugin_register_vcpu_mem_cb(
            instruction,
            accessed,
            NO_REGISTERS,
            READS_AND_WRITES,
            std::ptr::null_mut(),
        );
    }
}
