"""A core file of a thread as it is now: its registers, and its address space.

gdb can have a core file beside the running machine, in an inferior of its own with symbols of its own. So
one looks at a thread that does not run without touching the machine.
"""

import struct

from . import machine

PRESENT, UNCACHED, LARGE = 1 << 0, 1 << 4, 1 << 7
ADDRESS = 0x000F_FFFF_FFFF_F000
PAGE = 1 << 12
# Slot of the root table in which the kernel is.
KERNEL_SLOT = 511

# Order of registers in a core file of x86_64.
ORDER = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs"
).split()
EHDR = "<16sHHIQQQIHHHHHH"
PHDR = "<IIQQQQQQ"
PT_LOAD, PT_NOTE, NT_PRSTATUS = 1, 4, 1
PRSTATUS_BYTES, PID_OFFSET, REGISTERS_OFFSET = 336, 32, 112


def pages(root):
    """Virtual and physical address and size of what is mapped below a root table for user code. Memory of
    devices is left out: to read it may change them."""
    entries = struct.unpack("<512Q", machine.read(root, PAGE))
    for slot, entry in enumerate(entries[:KERNEL_SLOT]):
        if entry & PRESENT:
            yield from _below(entry & ADDRESS, slot << 39, 30)


def _below(table, base, shift):
    for slot, entry in enumerate(struct.unpack("<512Q", machine.read(table, PAGE))):
        at = base + (slot << shift)
        if not entry & PRESENT or entry & UNCACHED:
            continue
        if shift == 12 or entry & LARGE:
            size = 1 << shift
            yield at, entry & ADDRESS & -size, size
        else:
            yield from _below(entry & ADDRESS, at, shift - 9)


def read_user(root, address, size):
    """Bytes at an address of user code; `None` if they are not mapped, or in two pages."""
    table = root
    for shift in (39, 30, 21, 12):
        entry = machine.word(table + (address >> shift & 511) * 8)
        if not entry & PRESENT:
            return None
        if shift == 12 or shift < 39 and entry & LARGE:
            inside = address & (1 << shift) - 1
            if inside + size > 1 << shift:
                return None
            return machine.read((entry & ADDRESS & -(1 << shift)) + inside, size)
        table = entry & ADDRESS


def runs(found):
    """Pages that follow one another, in one."""
    run = None
    for virtual, physical, size in found:
        if run and virtual == run[0] + run[2] and physical == run[1] + run[2]:
            run[2] += size
        else:
            if run:
                yield tuple(run)
            run = [virtual, physical, size]
    if run:
        yield tuple(run)


def write(path, root, registers):
    """Writes the core file of a thread with these registers in the address space of `root`."""
    parts = [(virtual, machine.read(physical, size)) for virtual, physical, size in runs(pages(root))]
    status = bytearray(PRSTATUS_BYTES)
    struct.pack_into("<I", status, PID_OFFSET, 1)
    numbers = [registers.get(name, 0) for name in ORDER]
    struct.pack_into("<27Q", status, REGISTERS_OFFSET, *numbers)
    note = struct.pack("<III8s", 5, len(status), NT_PRSTATUS, b"CORE") + bytes(status)
    identity = b"\x7fELF\x02\x01\x01"
    count = 1 + len(parts)
    header_bytes, entry_bytes = struct.calcsize(EHDR), struct.calcsize(PHDR)
    at = header_bytes + count * entry_bytes
    with open(path, "wb") as file:
        file.write(
            struct.pack(EHDR, identity, 4, 62, 1, 0, header_bytes, 0, 0, header_bytes, entry_bytes, count, 0, 0, 0)
        )
        file.write(struct.pack(PHDR, PT_NOTE, 0, at, 0, 0, len(note), 0, 4))
        at += len(note)
        for virtual, data in parts:
            file.write(struct.pack(PHDR, PT_LOAD, 7, at, virtual, 0, len(data), len(data), 1))
            at += len(data)
        file.write(note)
        for _, data in parts:
            file.write(data)
