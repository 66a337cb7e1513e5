//! A QEMU plugin that measures the kernel between marks in a program: instructions executed, and
//! the most that are executed without a look for interrupts.
//!
//! Arguments, numbers in hexadecimal: `begin=ADDRESS` and `end=ADDRESS` (each any number of times)
//! are instructions of the program that mark the beginning and the end of a measurement;
//! `point=ADDRESS` is the kernel's function that looks for interrupts; `out=FILE` is where the
//! measurements go, in their order, as [`meter`] writes them. Code at upper-half addresses is the
//! kernel.
//!
//! With `cores`, it measures what each core of the machine executes instead, as [`cores`] writes
//! it; then `busy=ADDRESS` and `free=ADDRESS` are marks of servers, in the order of the servers.
//!
//! With `wait=ADDRESS`, it measures how long cores wait for their turns in the kernel, as [`waits`]
//! writes it: the address is that of the function that waits; the code of that, and of what it calls
//! meanwhile, is between each `code=ADDRESS` and the `code_end=ADDRESS` in the same place.
//!
//! With `touch=ADDRESS`, any number of times, it tells at the machine's end what visits of the kernel touched which came to these
//! functions, as [`touches`] writes it.
//!
//! With `watch_NAME=NUMBER`, for each of what the kernel's file says of itself, and `ram=ADDRESS`, where the machine's memory
//! begins, it is the witness of the oracle for time, as [`watch`] says; `out` then has a line `finding TEXT` for each finding, and at the machine's
//! end one of what was asked.
//!
//! With `exit=ADDRESS` and `exit_end=ADDRESS` for the way out of each core, `root=ADDRESS` for where in physical memory each
//! core has the root that its exit loads, and `ram=ADDRESS`, it tells at the machine's end what was done against speculation,
//! as [`barriers`] writes it.
//!
//! With `visits=FILE` and `visits_out=FILE`, it also counts what the kernel executes on every visit: the first file says
//! what is watched, the second is written, as [`visits`] says; `out` is not needed then. If it is there, each measurement also has
//! a line `cycles NAME NUMBER` of each processor whose cycles are counted.
//!
//! For machines with virtual time (`-icount`), whose cores take turns on one thread.

mod api;
mod barriers;
mod code;
mod cores;
mod cycles;
mod meter;
mod options;
mod ram;
mod times;
mod touches;
mod visiting;
mod visits;
mod waits;
mod watch;

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::fs::File;
use std::io::Write;
use std::ptr;

use api::{Access, Id, Info, Instruction, TranslationBlock};
use barriers::{BarrierMeter, Event, Finder};
use cores::CoreMeter;
use meter::{Block, Meter, Place};
use options::Options;
use ram::Ram;
use times::Times;
use touches::{Fetched, TouchMeter};
use visiting::Visiting;
use waits::{WaitMeter, Waiting, WaitingCode};
use watch::{Last, Memory};

#[no_mangle]
pub static qemu_plugin_version: c_int = api::VERSION;

/// What is measured.
enum Measurement {
    Kernel(Meter),
    Cores(CoreMeter),
    Waits(WaitMeter),
    Times(Times),
    Touches(TouchMeter),
    Barriers(BarrierMeter),
}

/// Where measurements go.
struct Out(File);

impl Out {
    fn create(path: &str) -> Result<Self, String> {
        let file = File::create(path);
        file.map(Self)
            .map_err(|error| format!("cannot write {path}: {error}"))
    }

    /// Writes what was measured.
    fn write(&mut self, text: &str) {
        if let Err(error) = self.0.write_all(text.as_bytes()) {
            complain(&format!("cannot write the measurements: {error}"));
        }
    }
}

/// A measurement, and where it goes.
struct Measuring {
    measurement: Measurement,
    out: Out,
}

/// A block, whether it pauses, how it ends, and whether it waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Known {
    block: Block,
    pauses: bool,
    last: Last,
    waiting: Waiting,
}

struct State {
    options: Options,
    waiting_code: WaitingCode,
    /// Nothing if only visits are counted.
    measuring: Option<Measuring>,
    /// The blocks that there are: QEMU translates the same one again and again.
    blocks: HashMap<Known, &'static Known>,
    /// The instructions that are followed, likewise.
    fetched: HashMap<u64, &'static Fetched>,
    visiting: Option<Visiting>,
    /// What is done against speculation, the machine's memory once it is there, and what instructions do, likewise.
    finder: Finder,
    memory: Option<Ram>,
    events: HashMap<Event, &'static Event>,
}

struct Global(UnsafeCell<Option<State>>);

// SAFETY: QEMU calls back on the one thread on which all cores take turns, and installs the plugin
// before that runs.
unsafe impl Sync for Global {}

static STATE: Global = Global(UnsafeCell::new(None));

impl State {
    /// As the arguments say.
    fn new(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let options = Options::parse(arguments)?;
        Ok(State {
            measuring: options.measuring()?,
            visiting: options.visiting()?,
            waiting_code: options.waiting_code(),
            finder: Finder::new(options.exits()),
            memory: None,
            events: HashMap::new(),
            options,
            blocks: HashMap::new(),
            fetched: HashMap::new(),
        })
    }

    fn measurement(&mut self) -> Option<&mut Measurement> {
        self.measuring
            .as_mut()
            .map(|measuring| &mut measuring.measurement)
    }

    /// Asks to be called when `instruction` is executed, or accesses memory, as far as somebody wants to know.
    ///
    /// # Safety
    /// It is one, for the time of the callback.
    unsafe fn translates(&mut self, instruction: *mut Instruction, address: u64, bytes: &[u8]) {
        let is_kernel = is_kernel(address);
        // SAFETY: the caller's.
        unsafe {
            match self.measurement() {
                Some(Measurement::Times(_)) => self.watches(instruction, address),
                Some(Measurement::Touches(_)) if is_kernel => {
                    self.follows(instruction, address, bytes);
                }
                Some(Measurement::Barriers(_)) if is_kernel => {
                    if let Some(event) = self.finder.event(address, bytes) {
                        self.tells(instruction, event);
                    }
                }
                _ => {}
            }
            if let Some(visiting) = self.visiting.as_mut().filter(|_| is_kernel) {
                visiting.translates(instruction, address, bytes);
            }
            if let Some((callback, data)) = mark(&self.options, address) {
                on_execution(instruction, callback, ptr::without_provenance_mut(data));
            }
        }
    }

    /// Asks for what the oracle for time wants to know: that user code is executed, that the kernel writes, and where it loads the
    /// registers of the thread that runs next.
    ///
    /// # Safety
    /// As for [`Self::translates`].
    unsafe fn watches(&mut self, instruction: *mut Instruction, address: u64) {
        // SAFETY: the caller's.
        unsafe {
            if is_kernel(address) {
                on_access(instruction, wrote, api::WRITES);
            } else {
                on_execution(instruction, user_executed, ptr::null_mut());
            }
            if self.options.is_first_load(address) {
                on_access(instruction, loaded, api::READS_AND_WRITES);
            }
        }
    }

    /// Asks to be told when an instruction of the kernel is executed that does `event`.
    ///
    /// # Safety
    /// It is one, for the time of the callback.
    unsafe fn tells(&mut self, instruction: *mut Instruction, event: Event) {
        let event: &'static Event = self
            .events
            .entry(event)
            .or_insert_with(|| Box::leak(Box::new(event)));
        // SAFETY: the caller's; the event is one for good.
        unsafe {
            on_execution(instruction, told, ptr::from_ref(event).cast_mut().cast());
        }
    }

    /// The root that the exit of `core` loads; 0 if the machine's memory cannot be read.
    fn root(&mut self, core: usize) -> u64 {
        if self.memory.is_none() {
            match Ram::find(self.options.ram) {
                Ok(memory) => self.memory = Some(memory),
                Err(message) => complain(&message),
            }
        }
        let place = self.options.roots.get(core);
        match (&self.memory, place) {
            (Some(memory), Some(&place)) => memory.word(place),
            _ => 0,
        }
    }

    /// The one block of its kind, for good.
    fn known(&mut self, block: Known) -> &'static Known {
        self.blocks
            .entry(block)
            .or_insert_with(|| Box::leak(Box::new(block)))
    }

    /// Asks to be called when an instruction of the kernel is executed, and when it accesses memory.
    ///
    /// # Safety
    /// It is one, for the time of the callback.
    unsafe fn follows(&mut self, instruction: *mut Instruction, address: u64, bytes: &[u8]) {
        let fetched = Fetched {
            address,
            bytes: bytes.len() as u64,
            serialises: touches::serialises(bytes),
        };
        let fetched: &'static Fetched = self
            .fetched
            .entry(address)
            .or_insert_with(|| Box::leak(Box::new(fetched)));
        // SAFETY: the caller's; what is fetched is one for good.
        unsafe {
            api::follow(
                instruction,
                touches_code,
                ptr::from_ref(fetched).cast_mut().cast(),
                touches_data,
            );
        }
    }
}

/// The state, for one callback.
///
/// # Safety
/// Called once in each callback.
unsafe fn state() -> Option<&'static mut State> {
    // SAFETY: callbacks do not nest, and are on one thread.
    unsafe { (*STATE.0.get()).as_mut() }
}

/// Tells the user of QEMU.
fn complain(message: &str) {
    if let Ok(text) = CString::new(format!("sandglass-plugin: {message}\n")) {
        // SAFETY: a string that ends with a zero.
        unsafe { api::qemu_plugin_outs(text.as_ptr()) };
    }
}

/// Called by QEMU at its start. Returns 0, or another number when it refuses the arguments.
///
/// # Safety
/// `arguments` has `count` strings.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU's promise.
    let texts = (0..count as usize).map(|i| unsafe { CStr::from_ptr(*arguments.add(i)) });
    let fresh = match State::new(texts.map(|text| text.to_string_lossy().into_owned())) {
        Ok(fresh) => fresh,
        Err(message) => {
            complain(&message);
            return 1;
        }
    };
    // SAFETY: nothing runs yet.
    unsafe {
        *STATE.0.get() = Some(fresh);
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        api::qemu_plugin_register_atexit_cb(id, finished, ptr::null_mut());
    }
    0
}

/// Whether an address is of the kernel.
fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// Asks to be called when `instruction` is executed.
///
/// # Safety
/// It is one, for the time of the callback; `callback` can be called with `data`.
unsafe fn on_execution(instruction: *mut Instruction, callback: api::Executed, data: *mut c_void) {
    // SAFETY: the caller's.
    unsafe {
        api::qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, api::NO_REGISTERS, data);
    }
}

/// Asks to be called when `instruction` accesses memory in the way of `kind`.
///
/// # Safety
/// It is one, for the time of the callback.
unsafe fn on_access(instruction: *mut Instruction, callback: api::Accessed, kind: c_int) {
    // SAFETY: the caller's.
    unsafe {
        api::qemu_plugin_register_vcpu_mem_cb(
            instruction,
            callback,
            api::NO_REGISTERS,
            kind,
            ptr::null_mut(),
        );
    }
}

/// QEMU has translated a block: asks to be called when it runs.
///
/// # Safety
/// QEMU calls it, while it translates `block`.
unsafe extern "C" fn translated(_id: Id, block: *mut TranslationBlock) {
    // SAFETY: once in this callback.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    // SAFETY: the block is one for the time of the callback.
    let (start, length) = unsafe {
        (
            api::qemu_plugin_tb_vaddr(block),
            api::qemu_plugin_tb_n_insns(block),
        )
    };
    let is_kernel = is_kernel(start);
    if state.measuring.is_none() && !is_kernel {
        return;
    }
    let (mut halts, mut pauses) = (false, false);
    let mut last = Last::Other;
    for i in 0..length {
        // SAFETY: the block has that instruction, whose bytes are there.
        unsafe {
            let instruction = api::qemu_plugin_tb_get_insn(block, i);
            let size = api::qemu_plugin_insn_size(instruction);
            let bytes = api::qemu_plugin_insn_data(instruction).cast::<u8>();
            let address = api::qemu_plugin_insn_vaddr(instruction);
            let bytes = std::slice::from_raw_parts(bytes, size);
            halts |= code::halts(bytes);
            pauses |= code::pauses(bytes);
            last = code::last(bytes, is_kernel);
            state.translates(instruction, address, bytes);
        }
    }
    if state.measuring.is_none() {
        return;
    }
    let place = match () {
        () if !is_kernel => Place::User,
        () if state.options.points.contains(&start) => Place::Point,
        () if halts => Place::Halt,
        () => Place::Kernel,
    };
    let known = state.known(Known {
        block: Block {
            start,
            length: length as u32,
            place,
        },
        pauses,
        last,
        waiting: state.waiting_code.of(start),
    });
    // SAFETY: the data is a block for good.
    unsafe {
        api::qemu_plugin_register_vcpu_tb_exec_cb(
            block,
            executed,
            api::NO_REGISTERS,
            ptr::from_ref(known).cast_mut().cast(),
        );
    }
}

/// What to call when the instruction at `address` runs, if it is a mark, and with what.
fn mark(options: &Options, address: u64) -> Option<(api::Executed, usize)> {
    let server = |marks: &[u64]| marks.iter().position(|&mark| mark == address);
    if options.begins.contains(&address) {
        Some((begun, 0))
    } else if options.ends.contains(&address) {
        Some((ended, 0))
    } else if let Some(server) = server(&options.busy) {
        Some((busy, server))
    } else {
        Some((free, server(&options.free)?))
    }
}

/// A block runs.
///
/// # Safety
/// QEMU calls it, with what `translated` registered.
unsafe extern "C" fn executed(core: c_uint, known: *mut c_void) {
    // SAFETY: once in this callback; the data is a block, as `translated` registered it.
    let (Some(state), known) = (unsafe { (state(), *known.cast::<Known>()) }) else {
        return;
    };
    let (core, block) = (core as usize, known.block);
    let Some(measuring) = &mut state.measuring else {
        return;
    };
    match &mut measuring.measurement {
        Measurement::Kernel(meter) => meter.run(block),
        Measurement::Cores(meter) => meter.run(core, block.place, known.pauses, block.length),
        Measurement::Waits(meter) => meter.run(core, block, known.waiting),
        Measurement::Times(times) => times.run(known, &mut measuring.out),
        Measurement::Touches(meter) => match block.place {
            Place::User => meter.leaves(),
            Place::Halt => meter.idles(),
            Place::Kernel | Place::Point => {}
        },
        // It is told by single instructions.
        Measurement::Barriers(_) => {}
    }
}

/// Code of the user runs.
///
/// # Safety
/// QEMU calls it.
unsafe extern "C" fn user_executed(_core: c_uint, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let state = unsafe { state() };
    if let Some(Measurement::Times(Times::Watched(watch))) = state.and_then(State::measurement) {
        watch.executes();
    }
}

/// The kernel has written to memory.
///
/// # Safety
/// QEMU calls it.
unsafe extern "C" fn wrote(_core: c_uint, access: u32, address: u64, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let state = unsafe { state() };
    if let Some(Measurement::Times(Times::Watched(watch))) = state.and_then(State::measurement) {
        // SAFETY: what QEMU has said of this access. It may be a read: QEMU 7.2 also tells of some.
        let access = unsafe { Access::of(access) };
        if access.is_store {
            watch.wrote(address, access.bytes);
        }
    }
}

/// The kernel loads the first registers of the thread that runs next.
///
/// # Safety
/// QEMU calls it.
unsafe extern "C" fn loaded(_core: c_uint, _access: u32, address: u64, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let state = unsafe { state() };
    if let Some(Measurement::Times(Times::Watched(watch))) = state.and_then(State::measurement) {
        watch.loads(address);
    }
}

/// An instruction of the kernel is executed.
///
/// # Safety
/// QEMU calls it, with what [`State::follows`] registered.
unsafe extern "C" fn touches_code(_core: c_uint, fetched: *mut c_void) {
    // SAFETY: once in this callback; the data is an instruction.
    let (state, fetched) = unsafe { (state(), *fetched.cast::<Fetched>()) };
    if let Some(Measurement::Touches(meter)) = state.and_then(State::measurement) {
        meter.executes(fetched);
    }
}

/// It reads or writes memory.
///
/// # Safety
/// QEMU calls it.
unsafe extern "C" fn touches_data(_core: c_uint, access: u32, address: u64, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let state = unsafe { state() };
    if let Some(Measurement::Touches(meter)) = state.and_then(State::measurement) {
        // SAFETY: what QEMU has said of this access.
        let access = unsafe { Access::of(access) };
        meter.accesses(address, access.bytes, access.is_store);
    }
}

/// An instruction of the kernel is executed that does something against speculation, or is part of a way out.
///
/// # Safety
/// QEMU calls it, with what [`State::tells`] registered.
unsafe extern "C" fn told(core: c_uint, event: *mut c_void) {
    // SAFETY: once in this callback; the data is an event.
    let (Some(state), event) = (unsafe { (state(), *event.cast::<Event>()) }) else {
        return;
    };
    let core = core as usize;
    let root = match event {
        Event::Root => state.root(core),
        _ => 0,
    };
    if let Some(Measurement::Barriers(meter)) = state.measurement() {
        meter.happens(core, event, root);
    }
}

/// The machine has come to its end.
///
/// # Safety
/// QEMU calls it, as the last callback.
unsafe extern "C" fn finished(_id: Id, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    let Some(Measuring { measurement, out }) = &mut state.measuring else {
        return;
    };
    match measurement {
        Measurement::Times(Times::Watched(watch)) => out.write(&watch.summary()),
        Measurement::Touches(meter) => out.write(&meter.summary()),
        Measurement::Barriers(meter) => out.write(&meter.summary()),
        _ => {}
    }
}

/// A measurement begins.
///
/// # Safety
/// QEMU calls it.
unsafe extern "C" fn begun(_core: c_uint, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    if let Some(visiting) = &mut state.visiting {
        visiting.measure();
    }
    match state.measurement() {
        Some(Measurement::Kernel(meter)) => meter.begin(),
        Some(Measurement::Cores(meter)) => meter.begin(),
        Some(Measurement::Waits(meter)) => meter.begin(),
        Some(Measurement::Times(_) | Measurement::Touches(_) | Measurement::Barriers(_)) | None => {
        }
    }
}

/// A core serves.
///
/// # Safety
/// QEMU calls it; `server` is a number that `translated` registered.
unsafe extern "C" fn busy(core: c_uint, server: *mut c_void) {
    // SAFETY: once in this callback.
    if let Some(Measurement::Cores(meter)) = unsafe { state() }.and_then(State::measurement) {
        meter.busy(core as usize, server.addr());
    }
}

/// A server is free again.
///
/// # Safety
/// QEMU calls it; `server` is a number that `translated` registered.
unsafe extern "C" fn free(_core: c_uint, server: *mut c_void) {
    // SAFETY: once in this callback.
    if let Some(Measurement::Cores(meter)) = unsafe { state() }.and_then(State::measurement) {
        meter.free(server.addr());
    }
}

/// A measurement ends.
///
/// # Safety
/// QEMU calls it.
unsafe extern "C" fn ended(_core: c_uint, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    let Some(Measuring { measurement, out }) = &mut state.measuring else {
        return;
    };
    let text = match measurement {
        Measurement::Kernel(meter) => meter.end(),
        Measurement::Cores(meter) => Some(meter.end()),
        Measurement::Waits(meter) => Some(meter.end()),
        Measurement::Times(_) | Measurement::Touches(_) | Measurement::Barriers(_) => None,
    };
    let Some(text) = text else { return };
    out.write(&text);
    // On processors whose caches are simulated, too.
    if let Some(visiting) = &mut state.visiting {
        out.write(&visiting.measured());
    }
}
