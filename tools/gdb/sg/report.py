"""What the commands print: tables of threads, contexts and queues."""

from . import kernel


def table(head, rows):
    """Columns as wide as what is in them, numbers to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(head)] + rows) for i in range(len(head))]
    for row in [list(head)] + rows:
        cells = []
        for cell, width in zip(row, widths):
            is_number = cell[:1].isdigit() or cell == "-"
            cells.append(cell.rjust(width) if is_number else cell.ljust(width))
        print("  ".join(cells).rstrip())


class Reporter:
    """What is common to the tables of one moment."""

    def __init__(self, system):
        self.system = system
        self.cores = kernel.cores()
        self.rate = kernel.ticks_per_us()
        self.now = max(core.now for core in self.cores)

    def us(self, ticks):
        return "%.3f" % (ticks / self.rate)

    def thread_name(self, address):
        return self.system.name(kernel.TCB, address)

    def context_name(self, address):
        return self.system.name(kernel.CONTEXT, address) if address else "-"

    def doing(self, thread):
        """What a thread does, in words."""
        fault = thread.fault()
        if fault:
            name, numbers = fault
            inside = ", ".join("%s %#x" % pair for pair in numbers.items())
            return "stopped by a fault: %s%s" % (name, " (%s)" % inside if inside else "")
        waits = thread.waits_at()
        if thread.state == "BlockedOnReceive":
            return "receives at %s" % self.system.name(kernel.ENDPOINT, waits)
        if thread.state == "BlockedOnSend":
            return "sends to %s" % self.system.name(kernel.ENDPOINT, waits)
        if thread.state == "BlockedOnNotification":
            return "waits for %s" % self.system.name(kernel.NOTIFICATION, waits)
        if thread.state == "BlockedOnReply":
            other = kernel.replier(waits)
            return "waits for the answer of %s" % (self.thread_name(other) if other else "a server")
        if thread.state == "Inactive":
            return "suspended"
        return self._runnable(thread)

    def _runnable(self, thread):
        for core in self.cores:
            if core.thread == thread.address:
                return "runs on core %d" % core.number
        if thread.place == "Release":
            time = kernel.Context(thread.context).refills[0][1]
            return "waits for budget, %s us from now" % self.us(max(time - self.now, 0))
        return "ready" if thread.context else "has no time"

    def threads(self):
        rows = []
        for thread in self.system.threads():
            rows.append(
                [
                    self.thread_name(thread.address),
                    thread.priority,
                    thread.core,
                    self.context_name(thread.context),
                    self.doing(thread),
                ]
            )
        table(("thread", "priority", "core", "on the time of", "does"), sorted(rows, key=_by_priority))

    def contexts(self):
        rows = []
        for kind, address in self.system.objects():
            if kind == kernel.CONTEXT:
                rows.append(self._context(kernel.Context(address)))
        table(
            ("context", "core", "budget us", "period us", "left us", "consumed us", "refills", "used by"),
            sorted(rows),
        )

    def _context(self, context):
        unpaid = sum(core.unpaid for core in self.cores if core.context == context.address)
        name = self.context_name(context.address)
        user = self.thread_name(context.thread) if context.thread else "-"
        if not context.max_refills:
            return [name, context.core, "-", "-", "-", "-", "-", user]
        period = self.us(context.period) if context.period else "-"
        return [
            name,
            context.core,
            self.us(context.budget()),
            period,
            self.us(max(context.left(self.now) - unpaid, 0)),
            self.us(context.consumed + unpaid),
            "%d/%d" % (len(context.refills), context.max_refills),
            user,
        ]

    def queues(self):
        for core in self.cores:
            running = self.thread_name(core.thread) if core.thread else "nobody"
            print("core %d: %s runs" % (core.number, running))
            for priority, threads in core.ready():
                print("  ready, priority %d: %s" % (priority, self._names(threads)))
            for priority, threads in core.waiting():
                print("  wait for budget, priority %d: %s" % (priority, self._names(threads)))
        objects = sorted(self.system.objects().items(), key=lambda item: item[1])
        for (kind, address), name in objects:
            if kind in (kernel.ENDPOINT, kernel.NOTIFICATION):
                self._object_queue(kind, address, name)

    def _object_queue(self, kind, address, name):
        what = "endpoint" if kind == kernel.ENDPOINT else "notification"
        found = kernel.look(what, address)
        waiting = list(kernel.queue(found.field("queue")))
        if waiting:
            states = {kernel.Thread(thread).state for thread in waiting}
            verb = "send" if "BlockedOnSend" in states else "wait"
            print("%s %s: %s %s" % (what, name, self._names(waiting), verb))
        elif kind == kernel.NOTIFICATION and found.field("queue").number("root") & 1:
            print("notification %s: %#x pending" % (name, found.number("pending")))

    def _names(self, threads):
        return ", ".join(self.thread_name(thread) for thread in threads)


def _by_priority(row):
    return -row[1], row[0]
