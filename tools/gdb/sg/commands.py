"""What can be typed: `help sg` lists it."""

import os

import gdb

from . import breakpoints, isa, kernel, report, view
from .system import System

_system = None
# The component to which the view is pinned, for front ends that set breakpoints of their own.
_pinned = None
# The last stop was at a breakpoint whose condition did not hold, which was known only then.
_goes_on = False


def system():
    if _system is None:
        raise gdb.GdbError("no system: `sg attach SESSION.json` first")
    return _system


class Prefix(gdb.Command):
    """Commands for systems on Sandglass: threads, contexts, queues, components and their breakpoints."""

    def __init__(self):
        super().__init__("sg", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, prefix=True)


class Command(gdb.Command):
    """One of them."""

    arguments = ()

    def __init__(self):
        super().__init__("sg " + self.word, gdb.COMMAND_DATA)

    def words(self, text, at_most):
        """At least as many words as arguments are required; the last has the rest of the line."""
        words = text.split(None, at_most - 1)
        required = [name for name in self.arguments if not name.startswith("[")]
        if len(words) < len(required):
            raise gdb.GdbError("usage: sg %s %s" % (self.word, " ".join(self.arguments)))
        return words

    def complete(self, text, word):
        if self.arguments and _system and " " not in text.strip():
            return [n for n in self.names() if n.startswith(text.strip())]
        return gdb.COMPLETE_NONE

    def names(self):
        return [component.name for component in _system.components]


class Attach(Command):
    """sg attach SESSION: connects to the machine that `sandglass debug` described in a file."""

    word, arguments = "attach", ("SESSION",)

    def invoke(self, argument, _):
        global _system
        (path,) = self.words(argument, 1)
        _system = System(path.strip('"'))
        isa.choose(_system.arch)
        for setting in ("confirm off", "pagination off", "print thread-events off"):
            gdb.execute("set " + setting)
        gdb.execute('symbol-file "%s"' % _system.kernel, to_string=True)
        gdb.execute("set architecture " + isa.of().architecture, to_string=True)
        gdb.execute("target remote " + _system.target, to_string=True)
        gdb.events.stop.connect(on_stop)
        gdb.events.gdb_exiting.connect(lambda _: _system.clean_up())
        gdb.events.breakpoint_created.connect(on_breakpoint)
        gdb.events.breakpoint_modified.connect(on_breakpoint)
        if isa.of().is_fresh():
            _system.root = None
            start()
        for described in _system.breakpoints:
            set_breakpoint(described["component"], described["location"], None)


def start():
    """Continues until everything is made and nothing has been started."""
    view.show(system().launcher)
    made = gdb.Breakpoint("launcher::directory::made", temporary=True, internal=True)
    made.silent = True
    gdb.execute("continue", to_string=True)
    if gdb.selected_frame().name() != "launcher::directory::made":
        raise gdb.GdbError("the system did not come so far that its components were made")
    system().find_directory()
    while view.is_held():
        gdb.execute("stepi", to_string=True)
    names = ", ".join(component.name for component in system().components)
    print("The system is made and nothing has been started. Its components: %s." % names)


class Continue(Command):
    """sg continue: lets the machine run until it stops, or the system ends, which is no error here."""

    word = "continue"

    def invoke(self, *_):
        if gdb.selected_thread() is None:
            raise gdb.GdbError("the system has ended")
        global _goes_on
        _goes_on = True
        try:
            while _goes_on:
                _goes_on = False
                hide_symbols()
                gdb.execute("continue")
        except gdb.error as error:
            if "Remote connection closed" not in str(error):
                raise gdb.GdbError(str(error))
            print("The system has ended.")
            return
        if gdb.selected_thread() is None:
            # The emulator has said so.
            print("The system has ended.")


def hide_symbols():
    """Shows no component's symbols while the machine runs, unless gdb's own breakpoints need them. Another component has
    something else at the same addresses: gdb would take it for an inlined function of the one that is shown, and hold
    the symbols."""
    if _pinned is None and not view.is_held():
        view.show(None)


class Component(Command):
    """sg component [NAME]: shows the symbols of a component, for `list`, `break` and `print`; without a
    name, tells whose are shown."""

    word, arguments = "component", ("[NAME]",)

    def invoke(self, argument, _):
        if argument:
            view.show(system().component(argument.strip()))
        shown = view.shown()
        print("the symbols are those of %s and of the kernel" % (shown.name if shown else "no component"))


class Only(Command):
    """sg only NAME: shows the symbols of this component from now on, wherever the machine stops, and
    lets gdb's own breakpoints stop in it only. For front ends such as that of VS Code."""

    word, arguments = "only", ("NAME",)

    def invoke(self, argument, _):
        global _pinned
        (name,) = self.words(argument, 1)
        _pinned = system().component(name)
        view.show(_pinned)


class Threads(Command):
    """sg threads: all threads, with priority, core, whose time they run on, and what they do."""

    word = "threads"

    def invoke(self, *_):
        report.Reporter(system()).threads()


class Contexts(Command):
    """sg contexts: all scheduling contexts, with budget, period, what is left now, and what was consumed
    since it was last asked for."""

    word = "contexts"

    def invoke(self, *_):
        report.Reporter(system()).contexts()


class Queues(Command):
    """sg queues: who runs, is ready, or waits for budget on each core, and who waits at which object."""

    word = "queues"

    def invoke(self, *_):
        report.Reporter(system()).queues()


class Current(Command):
    """sg current: the thread that the selected core executes, and in whose code it is."""

    word = "current"

    def invoke(self, *_):
        address = view.current_thread()
        if not address:
            print("the core idles")
            return
        reporter = report.Reporter(system())
        where = "in the kernel"
        if isa.of().in_user_mode():
            owner = system().space_owner(isa.of().address_space())
            where = "in %s" % owner.name if owner else "in an unknown address space"
        time = reporter.context_name(kernel.Thread(address).context)
        print("%s, %s, on the time of %s" % (reporter.thread_name(address), where, time))


class In(Command):
    """sg in THREAD COMMAND: executes a gdb command as if this thread ran: with its registers, its
    memory and its component's symbols. It sees copies: nothing in the machine changes."""

    word, arguments = "in", ("THREAD", "COMMAND")

    def names(self):
        return [name for (kind, _), name in _system.objects().items() if kind == kernel.TCB]

    def invoke(self, argument, _):
        name, command = self.words(argument, 2)
        look_in(name, command)


def look_in(name, command):
    thread = system().thread(name)
    owner = system().space_owner(thread.space())
    if owner is None:
        raise gdb.GdbError("the thread `%s` is in no component's address space" % name)
    with view.snapshot_of(thread, owner, os.path.dirname(system().path)):
        try:
            gdb.execute(command)
        except gdb.error as error:
            raise gdb.GdbError(str(error))


class Backtrace(In):
    """sg backtrace THREAD: who called whom in a thread."""

    word, arguments = "backtrace", ("THREAD",)

    def invoke(self, argument, _):
        (name,) = self.words(argument, 1)
        look_in(name.strip(), "backtrace")


class Break(Command):
    """sg break COMPONENT LOCATION [if CONDITION]: stops when this component comes to a function, a line
    (FILE:LINE) or an address (*ADDRESS); others, which run at the same addresses, do not stop."""

    word, arguments = "break", ("COMPONENT", "LOCATION", "[if CONDITION]")

    def invoke(self, argument, _):
        name, rest = self.words(argument, 2)
        location, _, condition = rest.partition(" if ")
        set_breakpoint(name, location.strip(), condition.strip() or None)


def set_breakpoint(name, location, condition):
    component = system().component(name)
    quiet = _pinned is None
    number, places = breakpoints.add(system(), component, location, condition, quiet)
    for place in places:
        print("Breakpoint %d in %s: %s" % (number, name, place))


class Breakpoints(Command):
    """sg breakpoints: lists those that `sg break` made."""

    word = "breakpoints"

    def invoke(self, *_):
        report.table(("breakpoint", "component", "location", "at", "hits"), breakpoints.listing())


class Delete(Command):
    """sg delete NUMBER: removes a breakpoint that `sg break` made."""

    word, arguments = "delete", ("NUMBER",)

    def invoke(self, argument, _):
        (number,) = self.words(argument, 1)
        if not number.strip().isdigit():
            raise gdb.GdbError("usage: sg delete NUMBER; `sg breakpoints` lists them")
        breakpoints.delete(int(number))


class Here(gdb.Function):
    """$_sg_here(): whether the processor executes the component whose symbols are shown."""

    def __init__(self):
        super().__init__("_sg_here")

    def invoke(self):
        if not isa.of().in_user_mode():
            return False
        return system().space_owner(isa.of().address_space()) is view.shown()


HERE = "$_sg_here()"
# Where the kernel's addresses begin.
KERNEL_BASE = 1 << 63


def on_breakpoint(breakpoint):
    """gdb's own breakpoints in a component's code stop there only."""
    if breakpoint.number < 0 or isinstance(breakpoint, breakpoints.InComponent):
        return
    condition = breakpoint.condition
    if breakpoint.pending or breakpoint.type != gdb.BP_BREAKPOINT or HERE in (condition or ""):
        return
    if any(location.address < KERNEL_BASE for location in breakpoint.locations):
        breakpoint.condition = "%s && (%s)" % (HERE, condition) if condition else HERE


def on_stop(event):
    """The machine has stopped: what was found is out of date, and the view follows."""
    global _goes_on
    if _system is None or not _system.root:
        return
    _system.forget()
    hit = breakpoints.take_hit()
    if _pinned is not None:
        return
    owner = _system.space_owner(isa.of().address_space()) if isa.of().in_user_mode() else None
    # In the kernel, the last component stays.
    changes = owner is not None and owner is not view.shown()
    if hit and changes:
        hit = breakpoints.renew(hit)
    if changes:
        view.show(owner)
    if hit and not hit.holds():
        _goes_on = True
        return
    if hit:
        number = breakpoints.number_of(hit)
        print("\nBreakpoint %d, in %s" % (number, hit.component.name))
    if hit or changes:
        gdb.execute("frame")


def register():
    Prefix()
    Here()
    for command in (
        Attach,
        Backtrace,
        Break,
        Breakpoints,
        Component,
        Contexts,
        Continue,
        Current,
        Delete,
        In,
        Only,
        Queues,
        Threads,
    ):
        command()
