/*
 * Numbers and layouts of the ABI that are aarch64's.
 */
#ifndef NUMBERS_H
#define NUMBERS_H

/* The first address that is no user's. */
#define USER_TOP 0x800000000000ul

/* Tables of all levels below the root are of one kind, and have here the names of the other architecture, too. */
#define ARCH_OBJECT_TYPES                                                                          \
    OBJECT_HUGE_PAGE = 7, OBJECT_PML4 = 8, OBJECT_PAGE = 9, OBJECT_LARGE_PAGE = 10,                \
    OBJECT_PAGE_TABLE = 11, OBJECT_PDPT = 11, OBJECT_PAGE_DIRECTORY = 11,

#define ARCH_LABELS                                                                                \
    PAGE_TABLE_MAP = 44, PDPT_MAP = 44, PAGE_DIRECTORY_MAP = 44, PAGE_MAP = 46, PAGE_UNMAP = 47,   \
    PAGE_GET_ADDRESS = 52, ASID_CONTROL_MAKE_POOL = 53, ASID_POOL_ASSIGN = 54,

/* Attributes of mappings of memory, and of a device's. */
#define OF_MEMORY 3
#define OF_DEVICE 0

/* Order of the words of ReadRegisters and WriteRegisters. */
enum user_register {
    REG_PC,
    REG_SP_EL0,
    REG_SPSR,
    REG_X0,
    REG_X1,
    REG_X2,
    REG_X3,
    REG_X4,
    REG_X5,
    REG_X6,
    REG_X7,
    REG_X8,
    REG_X16,
    REG_X17,
    REG_X18,
    REG_X29,
    REG_X30,
    REG_X9,
    REG_X10,
    REG_X11,
    REG_X12,
    REG_X13,
    REG_X14,
    REG_X15,
    REG_X19,
    REG_X20,
    REG_X21,
    REG_X22,
    REG_X23,
    REG_X24,
    REG_X25,
    REG_X26,
    REG_X27,
    REG_X28,
    REG_TPIDR_EL0,
    REG_TPIDRRO_EL0,
    USER_REGISTERS,
};

/* The registers of a thread by role: instruction and stack pointer, flags, first argument, thread pointer, and another
 * pointer that each thread has of its own. */
#define REG_IP REG_PC
#define REG_SP REG_SP_EL0
#define REG_FLAGS REG_SPSR
#define REG_ARGUMENT REG_X0
#define REG_TLS REG_TPIDR_EL0
#define REG_OTHER_TLS REG_TPIDRRO_EL0
#define FIRST_FLAGS 0
/* Bytes below the end of a stack on which a function begins: none. */
#define CALLED 0

/* Bytes of the instruction of a system call. */
#define SYSTEM_CALL_BYTES 4

/* Of the words of an unknown system call's fault: a register that a caller gets a result in, the instruction pointer, the
 * number, and how many there are in the fault and in its answer. */
enum { UNKNOWN_RESULT = 0, UNKNOWN_IP = 8, UNKNOWN_NUMBER = 12, UNKNOWN_LENGTH = 13, UNKNOWN_SETTABLE = 12 };

/* The state in which the first instruction was executed. */
struct entry_state {
    unsigned long x[31];
    unsigned long sp, nzcv, fpcr, fpsr, unused, read_only_pointer;
};

#endif
