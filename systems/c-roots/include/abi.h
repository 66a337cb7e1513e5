/*
 * Numbers and layouts of the seL4 16.0.0 MCS ABI, as a program in C needs them. Those of the architecture are in its
 * folder, in numbers.h.
 */
#ifndef ABI_H
#define ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numbers.h"

typedef uint64_t word_t;
/* A capability pointer: in the initial CSpace, the number of a slot. */
typedef word_t cptr_t;

#define PAGE_BYTES 4096ul
#define PAGE_BITS 12u
#define LARGE_PAGE_BITS 21u

/* System calls: compared as 64-bit words. */
enum {
    SYS_CALL = -1,
    SYS_REPLY_RECV = -2,
    SYS_NB_SEND_RECV = -3,
    SYS_NB_SEND_WAIT = -4,
    SYS_SEND = -5,
    SYS_NB_SEND = -6,
    SYS_RECV = -7,
    SYS_NB_RECV = -8,
    SYS_WAIT = -9,
    SYS_NB_WAIT = -10,
    SYS_YIELD = -11,
    SYS_DEBUG_PUT_CHAR = -12,
    SYS_DEBUG_CAP_IDENTIFY = -15,
    SYS_SET_TLS_BASE = -33,
};

/* The message info word. */
#define MESSAGE_WORDS 120u
#define MESSAGE_CAPS 3u
#define REGISTER_WORDS 4u

static inline word_t message_info(word_t label, word_t caps, word_t length)
{
    return label << 12 | caps << 7 | length;
}

static inline word_t info_label(word_t info) { return info >> 12; }
static inline word_t info_unwrapped(word_t info) { return info >> 9 & 7; }
static inline word_t info_caps(word_t info) { return info >> 7 & 3; }
static inline word_t info_length(word_t info) { return info & 0x7f; }

/* The buffer for what does not fit into registers; 1024 bytes, aligned to its size. */
struct ipc_buffer {
    word_t tag;
    word_t mr[MESSAGE_WORDS];
    word_t user_data;
    word_t caps_or_badges[MESSAGE_CAPS];
    cptr_t receive_cnode;
    word_t receive_index;
    word_t receive_depth;
} __attribute__((aligned(1024)));

_Static_assert(sizeof(struct ipc_buffer) == 1024, "the IPC buffer has 1024 bytes");

enum error {
    NO_ERROR = 0,
    INVALID_ARGUMENT = 1,
    INVALID_CAPABILITY = 2,
    ILLEGAL_OPERATION = 3,
    RANGE_ERROR = 4,
    ALIGNMENT_ERROR = 5,
    FAILED_LOOKUP = 6,
    TRUNCATED_MESSAGE = 7,
    DELETE_FIRST = 8,
    REVOKE_FIRST = 9,
    NOT_ENOUGH_MEMORY = 10,
};

enum lookup_failure {
    INVALID_ROOT = 1,
    MISSING_CAPABILITY = 2,
    DEPTH_MISMATCH = 3,
    GUARD_MISMATCH = 4,
};

/* Object types of Untyped_Retype. */
enum object_type {
    OBJECT_UNTYPED = 0,
    OBJECT_TCB = 1,
    OBJECT_ENDPOINT = 2,
    OBJECT_NOTIFICATION = 3,
    OBJECT_CNODE = 4,
    OBJECT_SCHED_CONTEXT = 5,
    OBJECT_REPLY = 6,
    ARCH_OBJECT_TYPES
};

#define SCHED_CONTEXT_BITS 7u

/* Rights of Copy, Mint and Map. */
enum {
    RIGHT_WRITE = 1,
    RIGHT_READ = 2,
    RIGHT_GRANT = 4,
    RIGHT_GRANT_REPLY = 8,
    ALL_RIGHTS = 15,
};

/* Labels of invocations: of another profile, from its own list. */
#ifdef PROFILE_LABELS
#include PROFILE_LABELS
#else
enum label {
    UNTYPED_RETYPE = 1,
    TCB_READ_REGISTERS = 2,
    TCB_WRITE_REGISTERS = 3,
    TCB_CONFIGURE = 5,
    TCB_SET_PRIORITY = 6,
    TCB_SET_SCHED_PARAMS = 8,
    TCB_SET_TIMEOUT_ENDPOINT = 9,
    TCB_SET_IPC_BUFFER = 10,
    TCB_SET_SPACE = 11,
    TCB_SUSPEND = 12,
    TCB_RESUME = 13,
    TCB_BIND_NOTIFICATION = 14,
    TCB_UNBIND_NOTIFICATION = 15,
    TCB_SET_TLS_BASE = 16,
    TCB_SET_FLAGS = 17,
    CNODE_REVOKE = 18,
    CNODE_DELETE = 19,
    CNODE_COPY = 21,
    CNODE_MINT = 22,
    CNODE_MOVE = 23,
    CNODE_MUTATE = 24,
    IRQ_CONTROL_GET = 26,
    IRQ_HANDLER_ACK = 27,
    IRQ_HANDLER_SET_NOTIFICATION = 28,
    DOMAIN_SET = 30,
    SCHED_CONTROL_CONFIGURE_FLAGS = 33,
    SCHED_CONTEXT_BIND = 34,
    SCHED_CONTEXT_UNBIND_OBJECT = 36,
    SCHED_CONTEXT_CONSUMED = 37,
    ARCH_LABELS
};
#endif

/* Labels of fault messages. */
enum fault {
    FAULT_CAP = 1,
    FAULT_UNKNOWN_SYSCALL = 2,
    FAULT_USER_EXCEPTION = 3,
    FAULT_TIMEOUT = 5,
    FAULT_VM = 6,
};

/* Slots of the initial CSpace. */
enum initial_slot {
    INIT_NULL = 0,
    INIT_TCB = 1,
    INIT_CNODE = 2,
    INIT_VSPACE = 3,
    INIT_IRQ_CONTROL = 4,
    INIT_ASID_CONTROL = 5,
    INIT_ASID_POOL = 6,
    INIT_IO_PORT_CONTROL = 7,
    INIT_IO_SPACE = 8,
    INIT_BOOT_INFO_FRAME = 9,
    INIT_IPC_BUFFER = 10,
    INIT_DOMAIN = 11,
    INIT_SMMU_SID = 12,
    INIT_SMMU_CB = 13,
    INIT_SCHED_CONTEXT = 14,
    INIT_SMC = 15,
    INIT_FIRST_DYNAMIC = 16,
};

/* Slots start..end of the initial CSpace. */
struct slot_region {
    word_t start;
    word_t end;
};

struct untyped_desc {
    word_t paddr;
    uint8_t size_bits;
    uint8_t is_device;
    uint8_t padding[6];
};

#define MAX_UNTYPEDS 230u

/* What the kernel tells the root task; its address is in the first register of arguments at the start. */
struct boot_info {
    word_t extra_len;
    word_t node_id;
    word_t num_nodes;
    word_t num_io_pt_levels;
    struct ipc_buffer *ipc_buffer;
    struct slot_region empty;
    struct slot_region shared_frames;
    struct slot_region user_image_frames;
    struct slot_region user_image_paging;
    struct slot_region io_space_caps;
    struct slot_region extra_bi_pages;
    word_t init_thread_cnode_size_bits;
    word_t init_thread_domain;
    struct slot_region sched_control;
    struct slot_region untyped;
    struct untyped_desc untyped_list[MAX_UNTYPEDS];
};

_Static_assert(sizeof(struct boot_info) == 3864, "the boot information has 3864 bytes");

/* Extra boot information: chunks one behind the other, the next not aligned. */
struct extra_chunk {
    word_t id;
    word_t length; /* with this header */
} __attribute__((packed));

enum extra_id {
    EXTRA_PADDING = 0,
    EXTRA_VBE = 1,
    EXTRA_MEMORY_MAP = 2,
    EXTRA_RSDP = 3,
    EXTRA_FRAMEBUFFER = 4,
    EXTRA_TSC_MHZ = 5,
    EXTRA_DEVICE_TREE = 6,
};

#endif
