"""The described system: its components, and whose the kernel's objects are."""

import json
import os
import shutil

import gdb

from . import kernel, layout, machine

# `Kind` of systems/launcher/src/directory.rs.
THREAD, CONTEXT, ENDPOINT, NOTIFICATION, LAUNCHER = range(5)
LAUNCHER_NAME = "launcher"


class Component:
    def __init__(self, described):
        self.name = described["name"]
        self.executable = described["executable"]
        self.threads = described["threads"]


class System:
    """What `sandglass debug` wrote of the system, and what the launcher's directory adds at run time."""

    def __init__(self, path):
        with open(path) as file:
            session = json.load(file)
        self.path = os.path.abspath(path)
        self.arch = session["arch"]
        self.target = session["target"]
        self.temporary = session["temporary"]
        self.kernel = session["kernel"]
        self.breakpoints = session["breakpoints"]
        self.endpoints = session["endpoints"]
        self.notifications = session["notifications"]
        launcher = {"name": LAUNCHER_NAME, "executable": session["launcher"], "threads": ["launcher"]}
        self.components = [Component(c) for c in session["components"]]
        self.launcher = Component(launcher)
        # Of the launcher: its thread, and its directory as numbers.
        self.root = session.get("root")
        self.entries = session.get("entries", [])
        self.forget()

    def clean_up(self):
        """Removes the session's files if they are for one debugger only."""
        if self.temporary:
            shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)

    def forget(self):
        """What was found is no longer so: the machine has run."""
        self._names = None
        self._spaces = None

    def find_directory(self):
        """Reads the launcher's directory while the launcher runs, and keeps it for later sessions."""
        self.root = kernel.cores()[0].thread
        entries = gdb.selected_frame().read_var("entries")
        count, data = int(entries["length"]), entries["data_ptr"]
        size = data.type.target().sizeof
        raw = bytes(gdb.selected_inferior().read_memory(int(data), count * size))
        numbers = [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]
        self.entries = [numbers[i : i + 4] for i in range(0, len(numbers), 4)]
        with open(self.path) as file:
            session = json.load(file)
        with open(self.path, "w") as file:
            json.dump(dict(session, root=self.root, entries=self.entries), file)
        self.forget()

    def component(self, name):
        for component in self.components + [self.launcher]:
            if component.name == name:
                return component
        names = ", ".join(c.name for c in self.components + [self.launcher])
        raise gdb.GdbError("no component is called `%s`; there are: %s" % (name, names))

    def objects(self):
        """Names of all objects that any thread has a capability to, by kind and address."""
        if self._names is None:
            self._names = self._find_objects()
        return self._names

    def threads(self):
        return [kernel.Thread(address) for kind, address in self.objects() if kind == kernel.TCB]

    def name(self, kind, address):
        """A thread's, a context's, an endpoint's or a notification's name, or its address."""
        return self.objects().get((kind, address)) or "@%#x" % address

    def thread(self, name):
        """The thread that is called so."""
        for (kind, address), found in self.objects().items():
            if kind == kernel.TCB and found == name:
                return kernel.Thread(address)
        names = [name for (kind, _), name in self.objects().items() if kind == kernel.TCB]
        raise gdb.GdbError("no thread is called `%s`; there are: %s" % (name, ", ".join(names)))

    def space_owner(self, space):
        """The component in whose address space something happens, or `None`."""
        if self._spaces is None or space not in self._spaces:
            self._spaces = self._find_spaces()
        return self._spaces.get(space)

    def _find_spaces(self):
        if not self.root:
            return {}
        spaces = {kernel.Thread(self.root).space(): self.launcher}
        for kind, index, thread, address in self._directory():
            if kind == THREAD and thread == 0:
                spaces[kernel.Thread(address).space()] = self.components[index]
        return spaces

    def _directory(self):
        """Entries, with the object's address in the place of the capability's."""
        node = kernel.Thread(self.root).cap("cspace")
        for kind, index, thread, cptr in self.entries:
            at = node.address + (cptr & (1 << node.bits) - 1) * kernel.SLOT_BYTES
            word = machine.word(at)
            yield kind, index, thread, kernel.Cap(word, 0).address

    def _find_objects(self):
        if not self.root:
            raise gdb.GdbError(
                "the system's objects are not made yet"
            )
        names = {(kernel.TCB, self.root): LAUNCHER_NAME}
        launcher = kernel.Thread(self.root)
        if launcher.context:
            names[kernel.CONTEXT, launcher.context] = LAUNCHER_NAME
        for kind, index, thread, address in self._directory():
            names[_key(kind, address)] = self._described_name(kind, index, thread)
        self._add_others(names, launcher.cap("cspace"), LAUNCHER_NAME, set())
        for component, address in self._main_threads():
            node = kernel.Thread(address).cap("cspace")
            self._add_others(names, node, component.name, set())
        return names

    def _main_threads(self):
        for kind, index, thread, address in self._directory():
            if kind == THREAD and thread == 0:
                yield self.components[index], address

    def _described_name(self, kind, index, thread):
        if kind in (THREAD, CONTEXT):
            component = self.components[index]
            return component.name if thread == 0 else component.name + "/" + component.threads[thread]
        if kind == LAUNCHER:
            return LAUNCHER_NAME
        return (self.endpoints if kind == ENDPOINT else self.notifications)[index]

    def _add_others(self, names, node, owner, seen):
        """Objects that the description does not name: threads that components made, say."""
        if node.kind != kernel.CNODE or node.address in seen:
            return
        seen.add(node.address)
        for number, cap in kernel.slots(node):
            if cap.kind == kernel.CNODE:
                self._add_others(names, cap, owner, seen)
            elif cap.kind in (kernel.TCB, kernel.CONTEXT, kernel.ENDPOINT, kernel.NOTIFICATION):
                names.setdefault((cap.kind, cap.address), self._other_name(cap, owner, number))
            elif cap.kind == kernel.REPLY:
                names.setdefault((cap.kind, cap.address), "%s's reply %d" % (owner, number))

    def _other_name(self, cap, owner, number):
        if cap.kind == kernel.TCB:
            maker = self.space_owner(kernel.Thread(cap.address).space())
            owner = maker.name if maker else owner
        return "%s#%d" % (owner, number)


def _key(kind, address):
    of_kernel = {
        THREAD: kernel.TCB,
        CONTEXT: kernel.CONTEXT,
        ENDPOINT: kernel.ENDPOINT,
        NOTIFICATION: kernel.NOTIFICATION,
        LAUNCHER: kernel.ENDPOINT,
    }
    return of_kernel[kind], address
