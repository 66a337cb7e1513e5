"""Whose symbols gdb has.

Components share addresses, so the machine's inferior, which is gdb's first, has the symbols of one of them
at a time beside the kernel's. Each component also has an inferior of its own, with nothing but its symbols:
there places are looked up, and snapshots of threads are looked at.
"""

import contextlib
import os

import gdb

from . import isa, kernel, machine, snapshot

MACHINE = 1

_shown = None
_inferiors = {}


def shown():
    """The component whose symbols the machine's inferior has, or `None`."""
    return _shown


def show(component):
    """Lets the machine's inferior have the symbols of a component, if those it has can be removed now."""
    global _shown
    if _shown is component:
        return
    if is_held():
        name = component.name if component else "the kernel"
        raise gdb.GdbError("here gdb cannot change to the symbols of %s: `stepi` first" % name)
    if _shown is not None:
        gdb.execute('remove-symbol-file "%s"' % _shown.executable, to_string=True)
        _shown = None
    if component is not None:
        gdb.execute('add-symbol-file "%s"' % component.executable, to_string=True)
        _shown = component


def is_held():
    """Whether gdb still refers to the shown symbols: it does at the first instruction of a function that was
    inlined, and gdb 13 crashes when such symbols are removed."""
    if _shown is None:
        return False
    pc = machine.register(isa.of().ip)
    block = gdb.current_progspace().block_for_pc(pc)
    while block is not None and not block.is_global and not block.is_static:
        if block.start == pc:
            return True
        block = block.superblock
    return False


@contextlib.contextmanager
def inferior_of(component):
    """In the inferior of a component."""
    with silence():
        selected = _enter(component)
    try:
        yield
    finally:
        with silence():
            gdb.execute("inferior %d" % MACHINE, to_string=True)
            if selected is not None and selected.is_valid():
                selected.switch()


@contextlib.contextmanager
def silence():
    """Without messages about what is selected."""
    gdb.execute("set suppress-cli-notifications on")
    try:
        yield
    finally:
        gdb.execute("set suppress-cli-notifications off")


def _enter(component):
    """Selects the inferior of a component; returns what was selected."""
    if component.name not in _inferiors:
        before = {inferior.num for inferior in gdb.inferiors()}
        gdb.execute('add-inferior -no-connection -exec "%s"' % component.executable, to_string=True)
        (added,) = {inferior.num for inferior in gdb.inferiors()} - before
        _inferiors[component.name] = added
    selected = gdb.selected_thread()
    gdb.execute("inferior %d" % _inferiors[component.name], to_string=True)
    return selected


def component_of_inferior(number):
    """Name of the component whose inferior this is, or `None`."""
    return next((name for name, inferior in _inferiors.items() if inferior == number), None)


def current_thread():
    """Address of the thread that the selected processor executes, or serves; 0 if it idles."""
    selected = gdb.selected_thread()
    number = machine.processors().index(selected) if selected else 0
    cores = kernel.cores()
    return cores[number].thread if number < len(cores) else 0


def registers(thread):
    """A thread's registers: the processor's if it is executing it, else the saved ones."""
    selected = gdb.selected_thread()
    try:
        for core, processor in zip(kernel.cores(), machine.processors()):
            if core.thread == thread.address:
                processor.switch()
                if isa.of().in_user_mode():
                    return {name: machine.register(name) for name in thread.registers()}
    finally:
        selected.switch()
    return thread.all_registers(snapshot.read_user)


@contextlib.contextmanager
def snapshot_of(thread, component, folder):
    """Looking at a thread as it is now, in the inferior of its component."""
    path = os.path.join(folder, "snapshot.core")
    snapshot.write(path, thread.space(), registers(thread))
    with inferior_of(component):
        # What follows is the name, without quotes.
        gdb.execute("core-file " + path, to_string=True)
        try:
            yield
        finally:
            gdb.execute("core-file", to_string=True)
            os.unlink(path)
