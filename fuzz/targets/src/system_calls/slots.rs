//! What stands where in the CNode that all threads of the prepared world share.
//!
//! Its slots are numbered by one byte, and every thread's capability space leads to it with the
//! bits above being zero, by one to three levels: whoever runs, capability address `n` is slot `n`.

/// log2 of the slots.
pub const RADIX: u64 = 8;

/// The root task's thread, and four more.
pub const THREADS: [u64; 5] = [1, 2, 3, 4, 5];
/// Their scheduling contexts, of 128, 128, 256, 1024 and 512 bytes. The fourth is bound to nobody,
/// the last to a notification.
pub const CONTEXTS: [u64; 5] = [6, 7, 8, 9, 10];
/// This CNode, without a guard.
pub const SPACE: u64 = 11;
/// CNodes above it: 16 slots, and 2 slots above those.
pub const UPPER: u64 = 12;
pub const UPPER_RADIX: u64 = 4;
pub const UPPERMOST: u64 = 13;
pub const UPPERMOST_RADIX: u64 = 1;
/// The root task's first CNode, while the world is prepared; nothing later.
pub const ROOT_CNODE: u64 = 14;
/// A CNode of 4 slots that is empty.
pub const EMPTY_CNODE: u64 = 15;

pub const VSPACE: u64 = 16;
/// A second root table, with an identifier; behind it a third without.
pub const OTHER_VSPACE: u64 = 17;
/// Tables: two are mapped at address 0 of the second root, the last one is not.
pub const PDPT: u64 = 19;
pub const PAGE_DIRECTORY: u64 = 20;
pub const PAGE_TABLE: u64 = 21;
/// Five frames: the threads' IPC buffers.
pub const BUFFERS: u64 = 22;
/// Frames that are not mapped; one of a device; a large one of a device.
pub const FRAME: u64 = 27;
pub const DEVICE_FRAME: u64 = 28;
pub const LARGE_FRAME: u64 = 29;
/// Device memory.
pub const DEVICE: u64 = 30;

pub const ASID_POOL: u64 = 31;
pub const ASID_CONTROL: u64 = 32;
pub const IRQ_CONTROL: u64 = 33;
/// A handler of a pin with a notification; another without; one of a message-signalled interrupt.
pub const IRQ_HANDLERS: [u64; 3] = [34, 35, 36];
pub const IO_PORT_CONTROL: u64 = 37;
pub const IO_PORTS: u64 = 38;
pub const DOMAIN: u64 = 39;
pub const SCHED_CONTROL: u64 = 40;

/// Two endpoints, and four notifications of which the last has a scheduling context.
pub const ENDPOINTS: [u64; 2] = [41, 42];
pub const NOTIFICATIONS: [u64; 4] = [43, 44, 45, 46];
pub const REPLIES: u64 = 47;
pub const REPLY_COUNT: u64 = 5;
/// Untyped memory: 4 KiB, 4 KiB, 16 KiB.
pub const UNTYPEDS: [u64; 3] = [52, 53, 54];
/// The untyped memory that all objects are made of.
pub const MEMORY: u64 = 55;

/// Copies of endpoints and notifications with badges and with fewer rights.
pub const BADGED: u64 = 64;
pub const BADGED_COUNT: u64 = 8;

/// Where the buffers are mapped in the root task's address space: behind its image, in the same
/// page table. Free addresses follow.
pub const BUFFER_ADDRESS: u64 = 0x48_0000;
