"""The machine that QEMU emulates: physical memory, and the registers of its processors."""

import struct

import gdb


class Physical:
    """While this lasts, the addresses that gdb reads are physical."""

    def __enter__(self):
        _set_physical(True)

    def __exit__(self, *_):
        _set_physical(False)


def _set_physical(on):
    connection = gdb.selected_inferior().connection
    if connection is None:
        raise gdb.GdbError("there is no machine: the system has ended, or was never attached to")
    answer = connection.send_packet("Qqemu.PhyMemMode:%d" % on)
    if answer != b"OK":
        raise gdb.GdbError("the machine does not show its physical memory: QEMU 4.1 or later does")


def read(address, size):
    """Bytes at a physical address."""
    with Physical():
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except gdb.MemoryError:
            raise gdb.GdbError("no memory of %d bytes at physical address %#x" % (size, address))


def word(address):
    """The 8 bytes at a physical address."""
    return struct.unpack("<Q", read(address, 8))[0]


def register(name):
    """A register of the selected processor, unsigned."""
    # Registers of flags and of addresses are no integers to gdb.
    return int(gdb.newest_frame().read_register(name).format_string(format="x"), 16)


def processors():
    """gdb calls processors threads; the first one is core 0."""
    return sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num)
