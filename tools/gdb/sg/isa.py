"""What differs between architectures: registers, page tables, core files. `of` is that of the session."""

import struct

import gdb

from . import machine

PAGE = 1 << 12
ENTRIES = PAGE // 8
# Of each level of tables, log2 of the bytes that an entry is for.
SHIFTS = (39, 30, 21, 12)


class X86_64:
    architecture = "i386:x86-64"
    ip = "rip"
    # Of the kernel's, what the registers of a thread are called.
    context = "sandglass_kernel::arch::x86_64::abi::context::Register"
    # Machine number of ELF files.
    elf_machine = 62
    # Slots of the root table that are user code's: in the last one is the kernel.
    user_slots = ENTRIES - 1
    # A core file's registers in their order, where they are in the notice of a thread, and its bytes.
    core_registers = (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
        "fs_base gs_base ds es fs gs"
    ).split()
    registers_offset, status_bytes = 112, 336

    # Bits of CR3 that are no part of the address.
    CR3_FLAGS = 0xFFF
    PRESENT, UNCACHED, LARGE = 1 << 0, 1 << 4, 1 << 7
    ADDRESS = 0x000F_FFFF_FFFF_F000
    # Registers by the numbers that instructions give them.
    NUMBERED = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
    SYSCALL_BYTES = 2

    def is_fresh(self):
        """Whether nothing has been executed yet."""
        return machine.register("rip") == 0xFFF0

    def address_space(self):
        return machine.register("cr3") & ~self.CR3_FLAGS

    def in_user_mode(self):
        return machine.register("cs") & 3 == 3

    def physical(self, address, symbol):
        """Where something of the kernel is in memory."""
        return address - symbol("sandglass_watch_image_base")

    def entry(self, entry, shift):
        """What an entry of a table leads to: address, whether it is a page, whether that is a device's; or `None`."""
        if not entry & self.PRESENT:
            return None
        is_page = shift == 12 or shift < 39 and entry & self.LARGE
        return entry & self.ADDRESS, is_page, entry & self.UNCACHED

    def saved(self, thread, by_name, ip):
        """The saved registers of a thread, by gdb's names."""
        saved = {name: by_name[name] for name in self.NUMBERED}
        return dict(saved, rip=ip, eflags=by_name["rflags"], fs_base=self.loaded(by_name["fsbase"]))

    @staticmethod
    def loaded(base):
        """What the exit makes of the base of thread-local storage: its lower 48 bits, with their sign."""
        lower = base & (1 << 48) - 1
        return lower - (lower >> 47 << 48) & (1 << 64) - 1

    def complete(self, thread, by_name, saved, read_user):
        """Adds what the kernel does not store: the stack pointer of a thread in a system call. The thread keeps it in
        another register, and the instruction behind the call, `mov rsp, REGISTER`, tells in which."""
        if thread.tcb.number("full_restore"):
            return saved
        behind = saved["rip"] + (0 if thread.state == "Running" else self.SYSCALL_BYTES)
        code = read_user(thread.space(), behind, 3)
        if code and code[0] in (0x48, 0x4C) and code[1] == 0x89 and code[2] & 0xC7 == 0xC4:
            number = code[2] >> 3 & 7 | (8 if code[0] & 4 else 0)
            return dict(saved, rsp=saved[self.NUMBERED[number]])
        if code and code[0] in (0x48, 0x49) and code[1] == 0x8B and code[2] & 0xF8 == 0xE0:
            number = code[2] & 7 | (8 if code[0] & 1 else 0)
            return dict(saved, rsp=saved[self.NUMBERED[number]])
        return saved


class Aarch64:
    architecture = "aarch64"
    ip = "pc"
    context = "sandglass_kernel::arch::aarch64::abi::context::Register"
    elf_machine = 183
    # The kernel has a root table of its own.
    user_slots = ENTRIES
    core_registers = ["x%d" % number for number in range(31)] + ["sp", "pc", "cpsr"]
    registers_offset, status_bytes = 112, 392

    ADDRESS = 0x0000_FFFF_FFFF_F000
    VALID, TABLE = 1 << 0, 1 << 1
    # Of an entry, the kind of memory; of a device, 0.
    KIND = 7 << 2

    def is_fresh(self):
        """What starts the kernel runs in the lower half, but not as user code."""
        return machine.register("pc") >> 63 == 0 and not self.in_user_mode()

    def address_space(self):
        return machine.register("TTBR0_EL1") & self.ADDRESS

    def in_user_mode(self):
        return machine.register("cpsr") >> 2 & 3 == 0

    def physical(self, address, symbol):
        """Where the kernel is, its loader has chosen: its tables tell, which are for 512 GiB."""
        root = machine.register("TTBR1_EL1") & self.ADDRESS
        found = find(root, address, SHIFTS[1:])
        if found is None:
            raise gdb.GdbError("the kernel's tables do not have %#x: has it started?" % address)
        return found[0]

    def entry(self, entry, shift):
        if not entry & self.VALID:
            return None
        is_page = shift == 12 or not entry & self.TABLE
        return entry & self.ADDRESS, is_page, is_page and not entry & self.KIND

    def saved(self, thread, by_name, ip):
        saved = {"x%d" % number: by_name["x%d" % number] for number in range(31)}
        return dict(saved, sp=by_name["sp"], pc=ip, cpsr=by_name["spsr"])

    def complete(self, thread, by_name, saved, read_user):
        """All registers are stored."""
        return saved


_KNOWN = {"x86_64": X86_64, "aarch64": Aarch64}
_of = None


def of():
    return _of


def choose(name):
    global _of
    _of = _KNOWN[name]()


def find(root, address, shifts=SHIFTS):
    """Physical address of what is mapped at an address, and how many bytes of the page follow; or `None`."""
    table = root
    for shift in shifts:
        entry = of().entry(machine.word(table + (address >> shift & ENTRIES - 1) * 8), shift)
        if entry is None:
            return None
        at, is_page, _ = entry
        if is_page:
            inside = address & (1 << shift) - 1
            return (at & -(1 << shift)) + inside, (1 << shift) - inside
        table = at
