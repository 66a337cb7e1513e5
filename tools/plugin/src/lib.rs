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
mod cores;
mod cycles;
mod meter;
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
use std::ops::Range;
use std::ptr;

use barriers::{BarrierMeter, Event, Finder};

use api::{Access, Id, Info, Instruction, TranslationBlock};
use cores::CoreMeter;
use meter::{Block, Meter, Place};
use ram::Ram;
use times::Times;
use touches::{Fetched, TouchMeter};
use visiting::Visiting;
use waits::{WaitMeter, Waiting, WaitingCode};
use watch::{Last, Layout, Memory};

#[no_mangle]
pub static qemu_plugin_version: c_int = api::VERSION;

/// What the names of the arguments begin with that say where the kernel has something.
const WATCH: &str = "watch_";
// Instructions of x86_64 and of aarch64: with these bytes, an instruction of one is none of the other.

/// That wait for an interrupt: HLT, WFI.
const WAITS: [&[u8]; 2] = [&[0xf4], &[0x7f, 0x20, 0x03, 0xd5]];
/// The latter, with which user code may wait, too.
const WFI: &[u8] = WAITS[1];
/// With which the kernel lets interrupts arrive before it waits for one, if none has by then: MSR DAIFClr. On x86_64 none arrives
/// in between.
const OPENS: &[u8] = &[0xff, 0x42, 0x03, 0xd5];
/// With which a core that waits for another gives way: PAUSE, YIELD.
const PAUSES: [&[u8]; 2] = [&[0xf3, 0x90], &[0x3f, 0x20, 0x03, 0xd5]];

/// The instruction that reads the processor's counter: RDTSC; MRS of CNTVCT_EL0, into any register.
fn reads_counter(bytes: &[u8]) -> bool {
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    const MRS: u32 = 0xd53b_e040;
    const REGISTER: u32 = 0x1f;
    let is_mrs = |word: &[u8; 4]| u32::from_le_bytes(*word) & !REGISTER == MRS;
    bytes == RDTSC || bytes.try_into().is_ok_and(is_mrs)
}

/// That return to user code: IRETQ, SYSRETQ, ERET.
const RETURNS: [&[u8]; 3] = [
    &[0x48, 0xcf],
    &[0x48, 0x0f, 0x07],
    &[0xe0, 0x03, 0x9f, 0xd6],
];

/// What the command line says.
#[derive(Default)]
struct Options {
    begins: Vec<u64>,
    ends: Vec<u64>,
    points: Vec<u64>,
    /// Of each server.
    busy: Vec<u64>,
    free: Vec<u64>,
    /// What each core executes is measured.
    cores: bool,
    /// The function that waits for a turn, and the code that is executed meanwhile.
    waits: Vec<u64>,
    code: Vec<u64>,
    code_ends: Vec<u64>,
    /// The ways out of the kernel, and where the roots are that they load.
    exits: Vec<u64>,
    exit_ends: Vec<u64>,
    roots: Vec<u64>,
    /// Functions of the kernel; what visits touch that come to them is measured.
    touched: Vec<u64>,
    /// Where the kernel has what the oracle for time asks.
    layout: Option<Layout>,
    /// Physical address at which memory begins.
    ram: u64,
    out: Option<String>,
    /// What is watched on every visit of the kernel, and where that is written.
    visits: Option<String>,
    visits_out: Option<String>,
}

impl Options {
    /// Takes one argument, `NAME=VALUE`.
    fn take(&mut self, argument: &str) -> Result<(), String> {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let list = match name {
            "out" | "visits" | "visits_out" => {
                let file = match name {
                    "out" => &mut self.out,
                    "visits" => &mut self.visits,
                    _ => &mut self.visits_out,
                };
                *file = Some(value.to_owned());
                return Ok(());
            }
            "cores" => {
                self.cores = true;
                return Ok(());
            }
            "ram" => {
                let address = u64::from_str_radix(value, 16);
                self.ram =
                    address.map_err(|_| format!("`{argument}`: not a hexadecimal address"))?;
                return Ok(());
            }
            "busy" => &mut self.busy,
            "free" => &mut self.free,
            "begin" => &mut self.begins,
            "end" => &mut self.ends,
            "point" => &mut self.points,
            "touch" => &mut self.touched,
            "wait" => &mut self.waits,
            "code" => &mut self.code,
            "code_end" => &mut self.code_ends,
            "exit" => &mut self.exits,
            "exit_end" => &mut self.exit_ends,
            "root" => &mut self.roots,
            _ if name.starts_with(WATCH) => return self.take_place(&name[WATCH.len()..], value),
            _ => return Err(format!("`{argument}`: there is no such argument")),
        };
        let address = u64::from_str_radix(value, 16);
        list.push(address.map_err(|_| format!("`{argument}`: not a hexadecimal address"))?);
        Ok(())
    }

    /// Takes the number `value` of what the kernel calls `name`.
    fn take_place(&mut self, name: &str, value: &str) -> Result<(), String> {
        let layout = self.layout.get_or_insert_default();
        let Some(field) = layout.field(name) else {
            return Err(format!("`{WATCH}{name}`: there is no such argument"));
        };
        let number = u64::from_str_radix(value, 16);
        *field =
            number.map_err(|_| format!("`{WATCH}{name}={value}`: not a hexadecimal number"))?;
        Ok(())
    }

    fn measurement(&self) -> Measurement {
        if let Some(layout) = self.layout {
            Measurement::Times(Times::Booting(layout, self.ram))
        } else if !self.touched.is_empty() {
            Measurement::Touches(TouchMeter::new(self.touched.clone()))
        } else if !self.exits.is_empty() {
            Measurement::Barriers(BarrierMeter::default())
        } else if self.cores {
            Measurement::Cores(CoreMeter::new(self.busy.len()))
        } else if self.waits.is_empty() {
            Measurement::Kernel(Meter::new())
        } else {
            Measurement::Waits(WaitMeter::default())
        }
    }

    fn measuring(&self) -> Result<Option<Measuring>, String> {
        let Some(path) = &self.out else {
            return Ok(None);
        };
        Ok(Some(Measuring {
            measurement: self.measurement(),
            out: Out::create(path)?,
        }))
    }

    fn visiting(&self) -> Result<Option<Visiting>, String> {
        match (&self.visits, &self.visits_out) {
            (Some(list), Some(out)) => Visiting::new(list, out).map(Some),
            (None, None) => Ok(None),
            _ => Err("`visits=LIST` and `visits_out=FILE` go together".to_owned()),
        }
    }

    /// Whether the kernel first loads from the registers of the thread that runs next at `address`.
    fn is_first_load(&self, address: u64) -> bool {
        self.layout.is_some_and(|layout| layout.loads == address)
    }

    fn exits(&self) -> Vec<Range<u64>> {
        let exits = self.exits.iter().zip(&self.exit_ends);
        exits.map(|(&start, &end)| start..end).collect()
    }

    fn waiting_code(&self) -> WaitingCode {
        let code = self.code.iter().zip(&self.code_ends);
        WaitingCode {
            from: self.waits.clone(),
            code: code.map(|(&start, &end)| start..end).collect(),
        }
    }
}

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
    /// What is done against speculation, the machine's memory once it is there, and what instructions do, likewise.
    finder: Finder,
    memory: Option<Ram>,
    events: HashMap<Event, &'static Event>,
    /// The instructions that are followed, likewise.
    fetched: HashMap<u64, &'static Fetched>,
    visiting: Option<Visiting>,
}

struct Global(UnsafeCell<Option<State>>);

// SAFETY: QEMU calls back on the one thread on which all cores take turns, and installs the plugin
// before that runs.
unsafe impl Sync for Global {}

static STATE: Global = Global(UnsafeCell::new(None));

impl State {
    fn measurement(&mut self) -> Option<&mut Measurement> {
        self.measuring
            .as_mut()
            .map(|measuring| &mut measuring.measurement)
    }
}

impl State {
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

impl State {
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
            api::qemu_plugin_register_vcpu_insn_exec_cb(
                instruction,
                told,
                api::NO_REGISTERS,
                ptr::from_ref(event).cast_mut().cast(),
            );
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
    let mut options = Options::default();
    for text in texts {
        if let Err(message) = options.take(&text.to_string_lossy()) {
            complain(&message);
            return 1;
        }
    }
    if options.out.is_none() && options.visits.is_none() {
        complain(
            "where do the measurements go? Say `out=FILE`, or `visits=LIST` and `visits_out=FILE`",
        );
        return 1;
    }
    if options.layout.is_some_and(|layout| !layout.is_whole()) {
        complain(
            "what the kernel's file says of itself is incomplete: give all `watch_NAME=NUMBER`",
        );
        return 1;
    }
    let files = options
        .measuring()
        .and_then(|measuring| Ok((measuring, options.visiting()?)));
    let (measuring, visiting) = match files {
        Ok(files) => files,
        Err(message) => {
            complain(&message);
            return 1;
        }
    };
    let fresh = State {
        finder: Finder::new(options.exits()),
        measuring,
        waiting_code: options.waiting_code(),
        options,
        blocks: HashMap::new(),
        memory: None,
        events: HashMap::new(),
        fetched: HashMap::new(),
        visiting,
    };
    // SAFETY: nothing runs yet.
    unsafe {
        *STATE.0.get() = Some(fresh);
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        api::qemu_plugin_register_atexit_cb(id, finished, ptr::null_mut());
    }
    0
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
    let (mut halts, mut pauses) = (false, false);
    let mut last = Last::Other;
    let is_kernel = start >> 63 == 1;
    if state.measuring.is_none() && !is_kernel {
        return;
    }
    let watches_times = matches!(state.measurement(), Some(Measurement::Times(_)));
    let touches = matches!(state.measurement(), Some(Measurement::Touches(_)));
    let barriers = matches!(state.measurement(), Some(Measurement::Barriers(_)));
    for i in 0..length {
        // SAFETY: the block has that instruction, whose bytes are there.
        let (instruction, address, bytes) = unsafe {
            let instruction = api::qemu_plugin_tb_get_insn(block, i);
            let size = api::qemu_plugin_insn_size(instruction);
            let bytes = api::qemu_plugin_insn_data(instruction).cast::<u8>();
            let address = api::qemu_plugin_insn_vaddr(instruction);
            (
                instruction,
                address,
                std::slice::from_raw_parts(bytes, size),
            )
        };
        halts |= WAITS.contains(&bytes);
        pauses |= PAUSES.contains(&bytes);
        last = match bytes {
            _ if reads_counter(bytes) => Last::ReadsCounter,
            _ if RETURNS.contains(&bytes) => Last::Returns,
            _ if bytes == WFI && !is_kernel => Last::Waits,
            _ if bytes == OPENS => Last::Opens,
            _ => Last::Other,
        };
        if watches_times && !is_kernel {
            // SAFETY: as above.
            unsafe {
                api::qemu_plugin_register_vcpu_insn_exec_cb(
                    instruction,
                    user_executed,
                    api::NO_REGISTERS,
                    ptr::null_mut(),
                );
            }
        }
        if watches_times && is_kernel {
            // SAFETY: as above.
            unsafe {
                api::qemu_plugin_register_vcpu_mem_cb(
                    instruction,
                    wrote,
                    api::NO_REGISTERS,
                    api::WRITES,
                    ptr::null_mut(),
                );
            }
        }
        if touches && is_kernel {
            // SAFETY: as above.
            unsafe { state.follows(instruction, address, bytes) };
        }
        if barriers && is_kernel {
            if let Some(event) = state.finder.event(address, bytes) {
                // SAFETY: as above.
                unsafe { state.tells(instruction, event) };
            }
        }
        if watches_times && state.options.is_first_load(address) {
            // SAFETY: as above.
            unsafe {
                api::qemu_plugin_register_vcpu_mem_cb(
                    instruction,
                    loaded,
                    api::NO_REGISTERS,
                    api::READS_AND_WRITES,
                    ptr::null_mut(),
                );
            }
        }
        if let Some(visiting) = state.visiting.as_mut().filter(|_| is_kernel) {
            // SAFETY: as above.
            unsafe { visiting.translates(instruction, address, bytes) };
        }
        let Some((callback, data)) = mark(&state.options, address) else {
            continue;
        };
        // SAFETY: as above.
        unsafe {
            api::qemu_plugin_register_vcpu_insn_exec_cb(
                instruction,
                callback,
                api::NO_REGISTERS,
                ptr::without_provenance_mut(data),
            );
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
    let key = Known {
        block: Block {
            start,
            length: length as u32,
            place,
        },
        pauses,
        last,
        waiting: state.waiting_code.of(start),
    };
    let known: &'static Known = state
        .blocks
        .entry(key)
        .or_insert_with(|| Box::leak(Box::new(key)));
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
        // It is told by single instructions.
        Measurement::Barriers(_) => {}
        Measurement::Touches(meter) => match block.place {
            Place::User => meter.leaves(),
            Place::Halt => meter.idles(),
            Place::Kernel | Place::Point => {}
        },
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
