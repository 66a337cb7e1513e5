//! Threads of the current program.

use alloc::boxed::Box;

use crate::arch::order::{SP, THREAD_POINTER};
use crate::arch::{self, CALLED};
use crate::cap::{Endpoint, Frame, SchedArguments, SchedContext, Tcb};
use crate::context::UserContext;
use crate::entry::tls_image;
use crate::error::Error;
use crate::exit;
use crate::image::PAGE;
use crate::process::Process;
use crate::resources::SetupError;
use crate::thread_block::IpcBuffer;
use crate::vspace::Region;

/// How a thread runs.
#[derive(Clone, Copy, Debug)]
pub struct ThreadParams {
    pub priority: u8,
    /// Maximum controlled priority.
    pub mcp: u8,
    /// `None`: a passive thread, which runs only on what others lend it.
    pub sched_context: Option<SchedContext>,
    pub fault_handler: Option<Endpoint>,
    pub timeout_handler: Option<Endpoint>,
    /// Bytes, rounded up to pages.
    pub stack_bytes: u64,
}

impl ThreadParams {
    /// A thread with a scheduling context, 16 KiB of stack and no handlers, which controls no
    /// other thread.
    pub const fn new(priority: u8, sched_context: SchedContext) -> Self {
        Self {
            sched_context: Some(sched_context),
            ..Self::passive(priority)
        }
    }

    /// As [`Self::new`], without a scheduling context.
    pub const fn passive(priority: u8) -> Self {
        Self {
            priority,
            mcp: 0,
            sched_context: None,
            fault_handler: None,
            timeout_handler: None,
            stack_bytes: 0x4000,
        }
    }

    const fn sched_arguments(&self) -> SchedArguments {
        SchedArguments {
            mcp: self.mcp,
            priority: self.priority,
            sched_context: self.sched_context,
            fault_handler: self.fault_handler,
        }
    }
}

/// A thread of this program. Dropping this does not end it.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    tcb: Tcb,
    memory: Region,
}

impl Thread {
    /// Makes a thread that will run `body` and then stop for good. It does not run yet: see
    /// [`Thread::start`].
    ///
    /// If it or another thread uses the heap while both run, see [`crate::heap::share`].
    pub fn new(
        process: &mut Process,
        params: ThreadParams,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Self, SetupError> {
        let tls = tls_image();
        let area_bytes = (tls.area_len() + tls.area_align()) as u64;
        let stack_bytes = (params.stack_bytes + area_bytes).next_multiple_of(PAGE);
        // From below: an unmapped page, the stack, the thread block, the IPC buffer's page.
        let memory = process
            .space
            .map_new(&mut process.resources, stack_bytes + PAGE)?;
        let buffer_address = memory.address() + stack_bytes;
        let buffer_frame = memory
            .frames()
            .last()
            .ok_or(SetupError::NoAddresses { bytes: 0 })?;
        let tcb = process.resources.tcb()?;
        configure(process, tcb, params, Some((buffer_address, buffer_frame)))?;
        // SAFETY: the memory is fresh, and large enough.
        unsafe { load(tcb, buffer_address, body)? };
        Ok(Self { tcb, memory })
    }

    /// Makes a thread and starts it.
    pub fn spawn(
        process: &mut Process,
        params: ThreadParams,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Self, SetupError> {
        let thread = Self::new(process, params, body)?;
        thread.start()?;
        Ok(thread)
    }

    pub fn start(&self) -> Result<(), SetupError> {
        Ok(self.tcb.resume()?)
    }

    pub const fn tcb(&self) -> Tcb {
        self.tcb
    }

    /// Its stack, thread block and IPC buffer.
    pub const fn memory(&self) -> Region {
        self.memory
    }
}

/// Gives a TCB this program's CSpace and address space, an IPC buffer (virtual address and
/// frame) if it needs one, and its parameters. The cheap way to many threads: the caller then
/// writes registers ([`UserContext::start`]) of its choice; without a thread block such a thread
/// must keep to messages of four words.
pub fn configure(
    process: &Process,
    tcb: Tcb,
    params: ThreadParams,
    buffer: Option<(u64, Frame)>,
) -> Result<(), SetupError> {
    let vspace = process.space.vspace().root();
    tcb.configure(process.cspace(), process.cspace_guard(), vspace, buffer)?;
    tcb.set_sched_params(process.authority(), params.sched_arguments())?;
    if params.timeout_handler.is_some() {
        tcb.set_timeout_endpoint(params.timeout_handler)?;
    }
    Ok(())
}

/// Lets `tcb` start with `body`: sets up a thread block and a stack, which end at
/// `buffer_address`, the address of the thread's IPC buffer.
///
/// # Safety
/// The memory below the buffer must belong to this thread alone, enough for the thread block and
/// what the body needs; and so must the buffer.
pub(crate) unsafe fn load(
    tcb: Tcb,
    buffer_address: u64,
    body: impl FnOnce() + Send + 'static,
) -> Result<(), Error> {
    let context = UserContext::start(run as *const () as u64, 0, boxed(body), 0);
    // SAFETY: the caller's promise.
    unsafe { enter(tcb, buffer_address, context) }
}

/// As [`load`], without the heap: `tcb` starts with `body`, which gets `argument`.
///
/// # Safety
/// As [`load`].
pub(crate) unsafe fn load_function<T: Sync>(
    tcb: Tcb,
    buffer_address: u64,
    body: extern "C" fn(&'static T) -> !,
    argument: &'static T,
) -> Result<(), Error> {
    let argument = core::ptr::from_ref(argument) as u64;
    let context = UserContext::start(body as *const () as u64, 0, argument, 0);
    // SAFETY: the caller's promise.
    unsafe { enter(tcb, buffer_address, context) }
}

/// Gives a thread a thread block, a stack below it, and the other registers of `context`.
///
/// # Safety
/// As [`load`].
unsafe fn enter(tcb: Tcb, buffer_address: u64, mut context: UserContext) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let (thread_pointer, stack_top) = unsafe { make_area(buffer_address, buffer_address) };
    // Below it, what a called function expects.
    context.set(SP, stack_top - CALLED);
    context.set(THREAD_POINTER, thread_pointer);
    tcb.write_registers(&context, false)
}

/// Makes a thread block below `end`, for a thread whose IPC buffer is at `buffer_address`. Returns its address for the thread pointer,
/// and the end of the stack below it, a multiple of 16.
///
/// # Safety
/// As [`load`], of the memory below `end`.
unsafe fn make_area(end: u64, buffer_address: u64) -> (u64, u64) {
    let tls = tls_image();
    let area = (end - tls.area_len() as u64) & !(tls.area_align() as u64 - 1);
    // SAFETY: the caller's promise.
    let thread_pointer =
        unsafe { tls.init_area(area as *mut u8, buffer_address as *mut IpcBuffer) };
    (thread_pointer, area & !15)
}

/// The body of a thread, as the argument of [`run`].
fn boxed(body: impl FnOnce() + Send + 'static) -> u64 {
    let body: Box<Box<dyn FnOnce() + Send>> = Box::new(Box::new(body));
    Box::into_raw(body) as u64
}

/// What a component's further thread finds at its start, right below its IPC buffer. The loader starts such threads at the
/// symbol [`START_SYMBOL`] with the address of this ([`prepared_at`]); so a component needs no capability to them.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Prepared {
    /// Its stack pointer; 0 if it has not been prepared. The start of a thread reads this word.
    stack_top: u64,
    thread_pointer: u64,
    argument: u64,
    /// Not 0: the thread may come here again.
    is_restartable: u64,
}

/// Where [`entry!`](crate::entry) lets further threads start.
pub(crate) const START_SYMBOL: &str = "__sandglass_thread";

/// Where the [`Prepared`] of a thread is whose IPC buffer is at `buffer_address`.
pub(crate) const fn prepared_at(buffer_address: u64) -> u64 {
    buffer_address - size_of::<Prepared>() as u64
}

/// Lets the thread with that IPC buffer, which has not started, begin with `body`.
///
/// # Safety
/// As [`load`].
pub(crate) unsafe fn prepare(buffer_address: u64, body: impl FnOnce() + Send + 'static) {
    // SAFETY: the caller's promise.
    unsafe { put(buffer_address, boxed(body), false) }
}

/// As [`prepare`], for a thread that may be started anew, at the registers with which it was started first.
///
/// # Safety
/// As [`load`].
pub(crate) unsafe fn prepare_restartable(buffer_address: u64, body: impl FnMut() + Send + 'static) {
    let body: Box<Box<dyn FnMut() + Send>> = Box::new(Box::new(body));
    // SAFETY: the caller's promise.
    unsafe { put(buffer_address, Box::into_raw(body) as u64, true) }
}

/// Puts down what a thread begins with.
///
/// # Safety
/// As [`load`].
unsafe fn put(buffer_address: u64, argument: u64, is_restartable: bool) {
    let prepared = prepared_at(buffer_address);
    // SAFETY: the caller's promise.
    let (thread_pointer, stack_top) = unsafe { make_area(prepared, buffer_address) };
    let content = Prepared {
        stack_top,
        thread_pointer,
        argument,
        is_restartable: is_restartable.into(),
    };
    // SAFETY: the caller's promise; a page's end less the size of the structure is aligned.
    unsafe { (prepared as *mut Prepared).write(content) };
}

/// Where a component's further thread comes from its start, on its own stack.
///
/// # Safety
/// To be called by the code at [`START_SYMBOL`], with what the loader told it; more than once if it is restartable.
#[doc(hidden)]
pub unsafe extern "C" fn begin(prepared: *const Prepared) -> ! {
    // SAFETY: `prepare` wrote it before the loader started this thread, with the thread's own block.
    let prepared = unsafe {
        let prepared = prepared.read();
        arch::set_thread_pointer(prepared.thread_pointer);
        prepared
    };
    if prepared.is_restartable != 0 {
        // SAFETY: `prepare_restartable` made this box for this thread alone, and nobody frees it. Whoever borrowed it before
        // the thread was sent here does not go on.
        let body = unsafe { &mut *(prepared.argument as *mut Box<dyn FnMut() + Send>) };
        body();
        exit::stop()
    }
    run(prepared.argument)
}

/// Where a thread starts.
extern "C" fn run(argument: u64) -> ! {
    // SAFETY: `boxed` made this box for this thread, which comes here once.
    let body = unsafe { Box::from_raw(argument as *mut Box<dyn FnOnce() + Send>) };
    body();
    exit::stop()
}
