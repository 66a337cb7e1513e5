"""Values of Rust types at physical addresses, laid out as the debugging information says."""

import contextlib
import re
import struct

import gdb

from . import machine


@contextlib.contextmanager
def rust():
    """While gdb reads expressions as Rust, whatever the selected frame's language."""
    language = gdb.parameter("language")
    gdb.execute("set language rust", to_string=True)
    try:
        yield
    finally:
        gdb.execute("set language " + language, to_string=True)


def rust_type(name):
    """A type by its full name."""
    try:
        with rust():
            return gdb.lookup_type(name)
    except gdb.error:
        raise gdb.GdbError(
            "the kernel's debugging information has no type `%s`: were its symbols loaded?" % name
        )


def numbers(name):
    """The numbers of the variants of an enumeration without data, by their names in lower case."""
    fields = rust_type(name).fields()
    return {f.name.rsplit("::", 1)[-1].lower(): f.enumval for f in fields}


def field_of(kind, name):
    """Offset and type of a field, through fields of fields: `0.value.cores`."""
    offset = 0
    for part in name.split("."):
        names = {field.name: field for field in kind.fields()}
        field = names.get(part) or names.get("__" + part)
        if field is None:
            raise gdb.GdbError("the type `%s` has no field `%s`" % (kind, part))
        offset += field.bitpos // 8
        kind = field.type
    return offset, kind


class Object:
    """A copy of something in the kernel's memory."""

    def __init__(self, address, kind, data=None):
        self.address = address
        self.kind = kind
        self.data = machine.read(address, kind.sizeof) if data is None else data

    def field(self, name):
        offset, kind = field_of(self.kind, name)
        return Object(self.address + offset, kind, self.data[offset : offset + kind.sizeof])

    def element(self, index):
        kind = self.kind.target()
        at = index * kind.sizeof
        return Object(self.address + at, kind, self.data[at : at + kind.sizeof])

    def count(self):
        low, high = self.kind.range()
        return high - low + 1

    def number(self, name):
        """An integer, a flag, or the address in an optional reference, where 0 is none."""
        data = self.field(name).data
        return int.from_bytes(data, "little")

    def variant(self, name):
        """Name of the variant of an enumeration in a cell, and its fields as an object."""
        return self.field(name + ".value.value").as_variant()

    def as_variant(self):
        if self.kind.code == gdb.TYPE_CODE_ENUM:
            return str(gdb.Value(self.data, self.kind)).rsplit("::", 1)[-1], None
        name = self._active_variant()
        inner = {field.name: field for field in self.kind.fields()}[name]
        return name, Object(self.address, inner.type, self.data[: inner.type.sizeof])

    def _active_variant(self):
        """gdb 13 tells the variant only in messages: to print a value can crash it, if the value has a variant
        without fields that shares its bytes with another."""
        question = "(*(%#x as *mut %s)).no_such_field" % (self.address, self.kind.name)
        with machine.Physical(), rust():
            try:
                gdb.parse_and_eval(question)
            except gdb.error as answer:
                found = re.search(r" variant (?:.*::)?(\w+)", str(answer))
                if found:
                    return found.group(1)
                raise gdb.GdbError("cannot tell the variant of `%s`: %s" % (self.kind, answer))
        raise gdb.GdbError("`%s` is no enumeration" % self.kind)


def words(data):
    return struct.unpack("<%dQ" % (len(data) // 8), data)
