"""The debugger's side of `sandglass debug`, for gdb 12 or later:

    source tools/gdb/sandglass.py
    sg attach SESSION.json

`sandglass debug` does this by itself, and `docs/src/how-to/debugging.md` says what can be done then.
"""

import os
import sys

# The repository stays clean.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sg.commands  # noqa: E402

sg.commands.register()
