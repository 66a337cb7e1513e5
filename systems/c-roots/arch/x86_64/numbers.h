/*
 * Numbers and layouts of the ABI that are x86_64's.
 */
#ifndef NUMBERS_H
#define NUMBERS_H

#define USER_TOP 0x7ffffffff000ul

#define ARCH_OBJECT_TYPES                                                                          \
    OBJECT_PDPT = 7, OBJECT_PML4 = 8, OBJECT_HUGE_PAGE = 9, OBJECT_PAGE = 10,                      \
    OBJECT_LARGE_PAGE = 11, OBJECT_PAGE_TABLE = 12, OBJECT_PAGE_DIRECTORY = 13,

#define ARCH_LABELS                                                                                \
    PDPT_MAP = 39, PAGE_DIRECTORY_MAP = 41, PAGE_TABLE_MAP = 43, PAGE_MAP = 45, PAGE_UNMAP = 46,   \
    PAGE_GET_ADDRESS = 47, ASID_CONTROL_MAKE_POOL = 48, ASID_POOL_ASSIGN = 49,                     \
    IO_PORT_CONTROL_ISSUE = 50, IO_PORT_IN8 = 51, IO_PORT_OUT8 = 54, IRQ_CONTROL_GET_IOAPIC = 57,  \
    IRQ_CONTROL_GET_MSI = 58,

/* Attributes of mappings of memory, and of a device's. */
#define OF_MEMORY 0
#define OF_DEVICE 3

/* Order of the words of ReadRegisters and WriteRegisters. */
enum user_register {
    REG_RIP,
    REG_RSP,
    REG_RFLAGS,
    REG_RAX,
    REG_RBX,
    REG_RCX,
    REG_RDX,
    REG_RSI,
    REG_RDI,
    REG_RBP,
    REG_R8,
    REG_R9,
    REG_R10,
    REG_R11,
    REG_R12,
    REG_R13,
    REG_R14,
    REG_R15,
    REG_FS_BASE,
    REG_GS_BASE,
    USER_REGISTERS,
};

/* The registers of a thread by role: instruction and stack pointer, flags, first argument, thread pointer, and another
 * pointer that each thread has of its own. */
#define REG_IP REG_RIP
#define REG_SP REG_RSP
#define REG_FLAGS REG_RFLAGS
#define REG_ARGUMENT REG_RDI
#define REG_TLS REG_FS_BASE
#define REG_OTHER_TLS REG_GS_BASE
#define FIRST_FLAGS 0x202
/* Bytes below the end of a stack on which a function begins: its return address, below which the stack is aligned. */
#define CALLED 8

/* Bytes of the instruction of a system call. */
#define SYSTEM_CALL_BYTES 2

/* Of the words of an unknown system call's fault: a register that a caller gets a result in, the instruction pointer, the
 * number, and how many there are in the fault and in its answer. */
enum { UNKNOWN_RESULT = 0, UNKNOWN_IP = 15, UNKNOWN_NUMBER = 18, UNKNOWN_LENGTH = 19, UNKNOWN_SETTABLE = 18 };

/* The state in which the first instruction was executed. */
struct entry_state {
    unsigned long rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp;
    unsigned long r8, r9, r10, r11, r12, r13, r14, r15;
    unsigned long rflags;
    uint32_t mxcsr;
    uint16_t x87_control;
};

#endif
