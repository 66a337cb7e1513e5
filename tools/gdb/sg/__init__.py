"""Commands for systems on Sandglass: what the kernel knows, and the view of one component.

- `machine` reads memory by physical addresses, and registers;
- `layout` reads Rust types in it, by the kernel's debugging information;
- `kernel` knows the kernel's objects, and finds them through capabilities;
- `system` knows the described system: whose an object is, and its name;
- `view` has the symbols of one component at a time, and lends registers to look at a thread;
- `breakpoints` stop in one component's address space only;
- `report` prints, `commands` is what can be typed.
"""
