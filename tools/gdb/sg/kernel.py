"""The kernel's objects, as they are in a stopped machine."""

import re
import struct

import gdb

from . import isa, layout, machine

TURN = "sandglass_kernel::arch::turn::KERNEL"

# Kinds of capabilities (kernel/src/mem/tagged.rs; x86_64's in arch/x86_64/abi/kind.rs).
ENDPOINT, NOTIFICATION, REPLY, CNODE, TCB, CONTEXT = 4, 6, 8, 10, 12, 22
SLOT_BYTES = 32
# No list or tree that is consistent is longer.
MOST = 1 << 20

_NAMES = {
    "tcb": "sandglass_kernel::object::tcb::Tcb",
    "context": "sandglass_kernel::object::sched_context::SchedContext",
    "endpoint": "sandglass_kernel::object::endpoint::Endpoint",
    "notification": "sandglass_kernel::object::notification::Notification",
    "reply": "sandglass_kernel::object::reply::Reply",
    "kernel": "sandglass_kernel::kernel::Kernel",
}


def symbol(name):
    """The address, or the number, that the kernel's table of symbols gives."""
    try:
        with layout.rust():
            text = gdb.execute("info address %s" % name, to_string=True)
    except gdb.error:
        text = ""
    found = re.search(r"0x[0-9a-f]+", text)
    if found is None:
        raise gdb.GdbError("the kernel has no symbol `%s`: is it the kernel that runs?" % name)
    return int(found.group(0), 16)


def kind(name):
    return layout.rust_type(_NAMES[name])


def look(name, address):
    """A copy of the object of this kind at a physical address."""
    return layout.Object(address, kind(name))


class Cap:
    """A capability: kind, object's address, log2 of its size where the kind has one."""

    def __init__(self, word, data):
        self.kind = word & 0x7F
        self.bits = word >> 14 & 0x3F
        self.address = word >> 20 << 4
        self.data = data


def state():
    """The kernel's own state."""
    return look("kernel", isa.of().physical(symbol(TURN), symbol)).field("0")


def slots(node):
    """The capabilities in the CNode that a capability names, with their numbers; none that are null."""
    data = machine.read(node.address, SLOT_BYTES << node.bits)
    for number in range(1 << node.bits):
        word, payload = struct.unpack_from("<2Q", data, number * SLOT_BYTES)
        if word:
            yield number, Cap(word, payload)


class Thread:
    """A thread control block."""

    def __init__(self, address):
        self.address = address
        self.tcb = look("tcb", address)
        self.state, self.details = self.tcb.variant("state")
        self.place = self.tcb.variant("place")[0]
        self.priority = self.tcb.number("priority")
        self.mcp = self.tcb.number("max_controlled_priority")
        self.core = self.tcb.number("core")
        self.context = self.tcb.number("sched_context")

    def cap(self, name):
        numbers = layout.numbers("sandglass_kernel::object::tcb::TcbSlot")
        slot = self.tcb.field("slots").element(numbers[name])
        return Cap(slot.number("word"), slot.number("data"))

    def space(self):
        """Physical address of the root of its address space, which identifies that; 0 for none."""
        return self.cap("vspace").address

    def fault(self):
        """Name of the fault that it waits to have handled, and its numbers; or `None`."""
        some, inner = self.tcb.variant("fault")
        if some != "Some":
            return None
        name, fields = inner.field(inner.kind.fields()[0].name.lstrip("_")).as_variant()
        numbers = {}
        for field in fields.kind.fields() if fields else ():
            if field.name != "failure":
                numbers[field.name] = fields.number(field.name)
        return name, numbers

    def waits_at(self):
        """Address of the object that it is blocked on, or 0."""
        for field in ("endpoint", "notification", "reply"):
            names = [f.name for f in self.details.kind.fields()] if self.details else []
            if field in names and self.state.startswith("BlockedOn"):
                return self.details.number(field)
        return 0

    def _context(self):
        data = layout.words(self.tcb.field("context").data)
        numbers = layout.numbers(isa.of().context)
        return {name: data[number] for name, number in numbers.items()}

    def registers(self):
        """Saved registers, by gdb's names."""
        by_name = self._context()
        ip = by_name["nextip" if self.state == "Running" else "faultip"]
        return isa.of().saved(self, by_name, ip)

    def all_registers(self, read_user):
        """The same, with what can be told of those that the kernel does not save."""
        return isa.of().complete(self, self._context(), self.registers(), read_user)


class Context:
    """A scheduling context, its times in ticks."""

    def __init__(self, address):
        self.address = address
        self.object = look("context", address)
        for name in ("period", "consumed", "badge", "thread", "max_refills", "core", "is_sporadic"):
            setattr(self, name, self.object.number(name))
        self.refills = list(self._refills()) if self.max_refills else []

    def _refills(self):
        head = self.object.field("head")
        yield layout.words(head.data)
        first, queued = self.object.number("first"), self.object.number("queued")
        capacity = max(self.object.number("capacity"), 1)
        following = []
        for i in range(queued):
            place = (first + i) % capacity
            at = self.address + self.object.kind.sizeof + place * 16
            following.append(layout.words(machine.read(at, 16)))
        ends = [start for start, _ in following[1:]] + [self.object.number("end")]
        for (start, time), end in zip(following, ends):
            yield end - start, time

    def budget(self):
        return sum(amount for amount, _ in self.refills)

    def left(self, now):
        """What can be used at `now`."""
        return sum(amount for amount, time in self.refills if time <= now)


class Core:
    """One core's view of who runs and who waits."""

    def __init__(self, number, core):
        self.number = number
        self.thread = core.number("thread")
        self.context = core.number("context")
        self.now = core.number("now")
        self.unpaid = self.now - core.number("paid")
        domain = core.number("domain")
        self._ready = core.field("ready").element(domain).field("lists")
        self._release = core.field("release").element(domain).field("queues")

    def ready(self):
        """Of each priority that has some, from the highest: its threads in order."""
        for priority in reversed(range(256)):
            threads = list(_list(self._ready.element(priority).number("value.value.head")))
            if threads:
                yield priority, threads

    def waiting(self):
        """Threads that wait for budget, the same way."""
        for priority in reversed(range(256)):
            threads = list(queue(self._release.element(priority)))
            if threads:
                yield priority, threads


def cores():
    """Of each of the machine's cores, which may be fewer than the kernel is built for."""
    each = state().field("cores.each")
    count = min(each.count(), len(machine.processors()))
    return [Core(number, each.element(number)) for number in range(count)]


def ticks_per_us():
    """May be a fraction: the kernel knows the ticks in a number of µs that stands in a type's name."""
    frequency = state().field("constants.frequency")
    us = re.search(r"<(\d+)>", str(frequency.kind))
    return max(frequency.number("ticks"), 1) / (int(us.group(1)) if us else 1)


def _list(thread):
    for _ in range(MOST):
        if not thread:
            return
        yield thread
        thread = look("tcb", thread).number("ready_links.next")


def queue(queue):
    """The threads of an ordered queue, the first one first."""
    flags = kind("tcb").alignof - 1
    thread = queue.number("first") & ~flags
    for _ in range(MOST):
        if not thread:
            return
        yield thread
        thread = look("tcb", thread).number("links.next")


def replier(reply):
    """The thread that is to answer through a reply object, as far as the lent time tells; else 0."""
    for _ in range(MOST):
        variant, fields = look("reply", reply).variant("above")
        if variant == "Context":
            return Context(fields.number("0")).thread
        if variant != "Reply":
            return 0
        reply = fields.number("0")
        thread = look("reply", reply).number("thread")
        if thread:
            return thread
    return 0
