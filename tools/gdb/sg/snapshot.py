"""A core file of a thread as it is now: its registers, and its address space.

gdb can have a core file beside the running machine, in an inferior of its own with symbols of its own. So
one looks at a thread that does not run without touching the machine.
"""

import struct

from . import isa, machine

EHDR = "<16sHHIQQQIHHHHHH"
PHDR = "<IIQQQQQQ"
PT_LOAD, PT_NOTE, NT_PRSTATUS = 1, 4, 1
PID_OFFSET = 32


def pages(root):
    """Virtual and physical address and size of what is mapped below a root table for user code. Memory of
    devices is left out: to read it may change them."""
    return _below(root, 0, 39, isa.of().user_slots)


def _below(table, base, shift, slots):
    entries = struct.unpack("<%dQ" % isa.ENTRIES, machine.read(table, isa.PAGE))
    for slot, entry in enumerate(entries[:slots]):
        at = base + (slot << shift)
        found = isa.of().entry(entry, shift)
        if found is None:
            continue
        address, is_page, is_device = found
        if is_page and not is_device:
            size = 1 << shift
            yield at, address & -size, size
        elif not is_page:
            yield from _below(address, at, shift - 9, isa.ENTRIES)


def read_user(root, address, size):
    """Bytes at an address of user code; `None` if they are not mapped, or in two pages."""
    found = isa.find(root, address)
    if found is None or size > found[1]:
        return None
    return machine.read(found[0], size)


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
    order = isa.of().core_registers
    status = bytearray(isa.of().status_bytes)
    struct.pack_into("<I", status, PID_OFFSET, 1)
    numbers = [registers.get(name, 0) for name in order]
    struct.pack_into("<%dQ" % len(order), status, isa.of().registers_offset, *numbers)
    note = struct.pack("<III8s", 5, len(status), NT_PRSTATUS, b"CORE") + bytes(status)
    identity = b"\x7fELF\x02\x01\x01"
    count = 1 + len(parts)
    header_bytes, entry_bytes = struct.calcsize(EHDR), struct.calcsize(PHDR)
    at = header_bytes + count * entry_bytes
    with open(path, "wb") as file:
        file.write(
            struct.pack(
                EHDR, identity, 4, isa.of().elf_machine, 1, 0, header_bytes, 0, 0, header_bytes, entry_bytes, count, 0, 0, 0
            )
        )
        file.write(struct.pack(PHDR, PT_NOTE, 0, at, 0, 0, len(note), 0, 4))
        at += len(note)
        for virtual, data in parts:
            file.write(struct.pack(PHDR, PT_LOAD, 7, at, virtual, 0, len(data), len(data), 1))
            at += len(data)
        file.write(note)
        for _, data in parts:
            file.write(data)
