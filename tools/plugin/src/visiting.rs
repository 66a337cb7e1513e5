//! Every visit of the kernel, between QEMU and [`visits`](crate::visits).

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::fs;
use std::ptr;

use crate::api::{self, Access, Instruction};
use crate::cycles::Cycles;
use crate::visits::{List, Mark, Visits};
use crate::{code, state, Out};

/// A mark that QEMU knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    mark: Mark,
    address: u64,
}

/// An instruction of the kernel, whose code never changes.
#[derive(Clone, Copy)]
struct Fetched {
    address: u64,
    bytes: usize,
}

/// The measurement, and what QEMU's code adds to by itself.
pub struct Visiting {
    visits: Visits,
    /// Instructions of the kernel; then, for each limit, calls. QEMU's code has their addresses.
    counters: &'static [Cell<u64>],
    /// The places that there are: QEMU translates the same code again and again.
    places: HashMap<Place, &'static Place>,
    fetched: HashMap<u64, &'static Fetched>,
    out: Out,
}

impl Visiting {
    /// Watches what the file `list` says, and writes to `out`.
    ///
    /// # Errors
    /// Files that cannot be read or written, or that are no such list.
    pub fn new(list: &str, out: &str) -> Result<Self, String> {
        let text =
            fs::read_to_string(list).map_err(|error| format!("cannot read {list}: {error}"))?;
        let list = List::parse(&text)?;
        Ok(Self {
            counters: Box::leak(vec![Cell::new(0); 1 + list.limits()].into_boxed_slice()),
            places: HashMap::new(),
            fetched: HashMap::new(),
            visits: Visits::new(list),
            out: Out::create(out)?,
        })
    }

    /// QEMU translates an instruction of the kernel.
    ///
    /// # Safety
    /// It is one, for the time of the callback.
    pub unsafe fn translates(&mut self, instruction: *mut Instruction, address: u64, bytes: &[u8]) {
        let own = match bytes {
            _ if code::halts(bytes) => Some(Mark::Idle),
            _ => code::returns(bytes).then_some(Mark::Exit),
        };
        for mark in self.visits.list().marks(address).iter().copied().chain(own) {
            let place = Place { mark, address };
            let place: &'static Place = self
                .places
                .entry(place)
                .or_insert_with(|| Box::leak(Box::new(place)));
            // SAFETY: the caller's; the place is one for good.
            unsafe {
                api::qemu_plugin_register_vcpu_insn_exec_cb(
                    instruction,
                    met,
                    api::NO_REGISTERS,
                    ptr::from_ref(place).cast_mut().cast(),
                );
            }
        }
        let limits = self
            .visits
            .list()
            .counters(address)
            .iter()
            .map(|limit| limit + 1);
        for counter in [0].into_iter().chain(limits) {
            // SAFETY: the caller's; the counters are there for good.
            unsafe {
                api::qemu_plugin_register_vcpu_insn_exec_inline(
                    instruction,
                    api::INLINE_ADD,
                    self.counters[counter].as_ptr().cast(),
                    1,
                );
            }
        }
        if !self.visits.cycles().is_empty() {
            // SAFETY: the caller's.
            unsafe { self.follows(instruction, address, bytes.len()) };
        }
    }

    /// Follows what an instruction does to caches. Behind the marks, which may begin a stretch with it.
    ///
    /// # Safety
    /// As with [`Self::translates`].
    unsafe fn follows(&mut self, instruction: *mut Instruction, address: u64, bytes: usize) {
        let fetched = Fetched { address, bytes };
        let fetched: &'static Fetched = self
            .fetched
            .entry(address)
            .or_insert_with(|| Box::leak(Box::new(fetched)));
        // SAFETY: the caller's; what is fetched is one for good.
        unsafe {
            api::follow(
                instruction,
                executes,
                ptr::from_ref(fetched).cast_mut().cast(),
                accesses,
            );
        }
    }

    /// A measurement begins.
    pub fn measure(&mut self) {
        self.visits.cycles().iter_mut().for_each(Cycles::measure);
    }

    /// What it comes to on each processor, a line each.
    pub fn measured(&mut self) -> String {
        let cycles = self.visits.cycles().iter_mut();
        cycles.map(Cycles::measured).collect()
    }

    fn meets(&mut self, place: &Place) {
        let [executed, calls @ ..] = self.counters else {
            return;
        };
        self.visits
            .meets(place.mark, place.address, executed.get(), calls);
        if let Some(text) = self.visits.take_text() {
            self.out.write(&text);
        }
    }
}

/// An instruction is executed.
///
/// # Safety
/// QEMU calls it, with what [`Visiting::follows`] registered.
unsafe extern "C" fn executes(_core: c_uint, fetched: *mut c_void) {
    // SAFETY: once in this callback; the data is an instruction.
    let (state, fetched) = unsafe { (state(), &*fetched.cast::<Fetched>()) };
    if let Some(visiting) = state.and_then(|state| state.visiting.as_mut()) {
        for cycles in visiting.visits.cycles() {
            cycles.executes(fetched.address, fetched.bytes as u64);
        }
    }
}

/// It reads or writes memory.
///
/// # Safety
/// QEMU calls it.
unsafe extern "C" fn accesses(_core: c_uint, access: u32, address: u64, _data: *mut c_void) {
    // SAFETY: once in this callback.
    let state = unsafe { state() };
    if let Some(visiting) = state.and_then(|state| state.visiting.as_mut()) {
        // SAFETY: what QEMU has said of this access.
        let access = unsafe { Access::of(access) };
        for cycles in visiting.visits.cycles() {
            cycles.accesses(address, access.bytes, access.is_store);
        }
    }
}

/// A mark is met.
///
/// # Safety
/// QEMU calls it, with what [`Visiting::translates`] registered.
unsafe extern "C" fn met(_core: c_uint, place: *mut c_void) {
    // SAFETY: once in this callback; the data is a place.
    let (state, place) = unsafe { (state(), &*place.cast::<Place>()) };
    if let Some(visiting) = state.and_then(|state| state.visiting.as_mut()) {
        visiting.meets(place);
    }
}
