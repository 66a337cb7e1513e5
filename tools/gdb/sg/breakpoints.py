"""Breakpoints that stop in one component only.

All components run at the same virtual addresses, and gdb's own breakpoints are addresses. So one of a
component compares the address space that the processor uses with the component's, and continues
silently if it is another's. Nothing is written to memory: the emulator knows the addresses.
"""

import gdb

from . import isa, view

_all = []
_hit = None


class InComponent(gdb.Breakpoint):
    """One address in one component."""

    def __init__(self, system, component, location, address, condition, quiet):
        super().__init__("*%#x" % address, type=gdb.BP_BREAKPOINT, internal=True)
        self.arguments = (system, component, location, address, condition, quiet)
        self.system = system
        self.component = component
        self.what = location
        self.when = condition
        self.silent = quiet
        self.hits = 0

    def stop(self):
        global _hit
        if not isa.of().in_user_mode():
            return False
        if self.system.space_owner(isa.of().address_space()) is not self.component:
            return False
        if not self.holds():
            return False
        self.hits += 1
        _hit = self
        return True

    def holds(self):
        """Whether its condition does, if it has one that can be told."""
        if not self.when:
            return True
        if view.shown() is not self.component:
            # Its variables have no names yet: `sg continue` asks again when they have.
            return True
        try:
            return bool(gdb.parse_and_eval(self.when))
        except gdb.error as error:
            print("breakpoint at %s: `%s`: %s" % (self.what, self.when, error))
            return True


def add(system, component, location, condition=None, quiet=True):
    """Stops in `component` at a function, a line (`FILE:LINE`) or an address (`*ADDRESS`). Returns the
    breakpoint's number, and where it is."""
    with view.inferior_of(component):
        places = _places(component, location)
    made = [InComponent(system, component, location, a, condition, quiet) for a in sorted(places)]
    number = len(_all) + 1
    _all.append(made)
    return number, [places[a] for a in sorted(places)]


def _places(component, location):
    """Addresses in the selected inferior, behind prologues, and where they are: a line without code is taken
    for the next one that has some."""
    try:
        gdb.decode_line(location)
    except gdb.error as error:
        raise gdb.GdbError("in the component `%s`: %s" % (component.name, error))
    probe = gdb.Breakpoint(location, internal=True)
    own = gdb.selected_inferior().num
    places = {}
    for found in probe.locations:
        if own in found.thread_groups:
            places[found.address] = _described(found)
    probe.delete()
    if not places:
        crate = component.executable.replace("-", "_")
        raise gdb.GdbError(
            "`%s` is no place in the code of `%s`: name a function with its path, such as `%s::main`, or FILE:LINE"
            % (location, component.name, crate)
        )
    return places


def _described(found):
    block = gdb.current_progspace().block_for_pc(found.address)
    while block is not None and block.function is None:
        block = block.superblock
    function = block.function.print_name + ", " if block else ""
    file, line = found.source or ("?", 0)
    return "%#x, %s%s:%d" % (found.address, function, file, line)


def listing():
    """Of each: number, component, place, addresses, hits."""
    for number, made in enumerate(_all, 1):
        live = [b for b in made if b.is_valid()]
        if live:
            addresses = ", ".join(b.location.lstrip("*") for b in live)
            yield number, live[0].component.name, live[0].what, addresses, sum(b.hits for b in live)


def delete(number):
    if not 0 < number <= len(_all) or not any(b.is_valid() for b in _all[number - 1]):
        raise gdb.GdbError("there is no breakpoint %d; `sg breakpoints` lists them" % number)
    for made in _all[number - 1]:
        if made.is_valid():
            made.delete()


def take_hit():
    """The one that has just stopped the machine, once."""
    global _hit
    hit, _hit = _hit, None
    return hit


def renew(hit):
    """Makes the one that has stopped the machine anew. gdb would warn again and again that it does not know
    the place where it stopped, if that belonged to symbols that are gone."""
    again = InComponent(*hit.arguments)
    again.hits = hit.hits
    made = next(made for made in _all if hit in made)
    made[made.index(hit)] = again
    hit.delete()
    return again


def number_of(breakpoint):
    return next(n for n, made in enumerate(_all, 1) if breakpoint in made)
