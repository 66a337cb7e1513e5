//! What the measurements share.

use sandglass::abi::invocation::tcb_flags;
use sandglass::cap::{
    Endpoint, FrameSize, GuardData, Notification, Pml4, SchedArguments, SchedContext, SchedControl,
    SchedParams, Tcb,
};
use sandglass::context::UserContext;
use sandglass::{boot, trace, BootInfo, Process, SetupError};

use crate::isa;
use crate::script::{Overhead, Program, Script, Step};
use crate::twin;

/// Round robin with slices that no measurement uses up, µs.
pub const LONG: SchedParams = SchedParams::new(10_000_000, 10_000_000);

/// Where a thread lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The root task's address space.
    Here,
    /// The other one.
    Twin,
}

/// How a thread of a measurement runs.
#[derive(Clone, Copy)]
pub struct Role {
    pub priority: u8,
    pub home: Home,
    /// Whether the thread may use the FPU, so that its state is kept for it.
    pub fpu: bool,
    pub fault_handler: Option<Endpoint>,
    pub timeout_handler: Option<Endpoint>,
}

impl Role {
    /// A thread without FPU and handlers.
    pub const fn new(priority: u8, home: Home) -> Self {
        Self {
            priority,
            home,
            fpu: false,
            fault_handler: None,
            timeout_handler: None,
        }
    }

    pub const fn fpu(self, fpu: bool) -> Self {
        Self { fpu, ..self }
    }
}

pub struct Lab {
    pub process: Process,
    pub control: SchedControl,
    pub overhead: Overhead,
    twin: Pml4,
    /// Signalled at the end of a script.
    pub done: Notification,
    /// Never signalled.
    park: Notification,
}

impl Lab {
    pub fn new(boot: &'static BootInfo) -> Result<Self, SetupError> {
        let mut process = Process::root_task(boot);
        process.use_serial_console()?;
        process.use_exit_port()?;
        let control = boot.sched_control(0).expect("there is a first core");
        if isa::is_traced(&mut process)? {
            let log = process.resources.frame(FrameSize::Large)?;
            assert!(trace::give_log(log, control), "the kernel takes a log");
        }
        let twin = twin::new(&mut process, boot)?;
        // The root task's own slice must not end within a measurement either.
        control.configure(boot::SCHED_CONTEXT, LONG)?;
        Ok(Self {
            control,
            overhead: Overhead::measure(),
            twin,
            done: process.resources.notification()?,
            park: process.resources.notification()?,
            process,
        })
    }

    /// A configured scheduling context.
    pub fn context(&mut self, params: SchedParams) -> Result<SchedContext, SetupError> {
        let context = self.process.resources.sched_context(params.size_bits())?;
        self.control.configure(context, params)?;
        Ok(context)
    }

    /// Makes a thread that runs `program` with `argument`, with an IPC buffer and without a stack;
    /// not started.
    pub fn thread(
        &mut self,
        role: Role,
        context: SchedContext,
        program: Program,
        argument: u64,
    ) -> Result<Tcb, SetupError> {
        let process = &mut self.process;
        let tcb = process.resources.tcb()?;
        let buffer = process.space.map_new(&mut process.resources, 4096)?;
        let frame = buffer.frames().next().expect("a page has a frame");
        let space = match role.home {
            Home::Here => process.space.vspace().root(),
            Home::Twin => self.twin,
        };
        tcb.configure(
            process.cspace(),
            GuardData(0),
            space,
            Some((buffer.address(), frame)),
        )?;
        let arguments = SchedArguments {
            mcp: 0,
            priority: role.priority,
            sched_context: Some(context),
            fault_handler: role.fault_handler,
        };
        tcb.set_sched_params(process.authority(), arguments)?;
        tcb.set_timeout_endpoint(role.timeout_handler)?;
        let disabled = if role.fpu { 0 } else { tcb_flags::FPU_DISABLED };
        tcb.set_flags(tcb_flags::FPU_DISABLED, disabled)?;
        let registers = UserContext::start(program.entry(), 0, argument, 0);
        tcb.write_registers(&registers, false)?;
        Ok(tcb)
    }

    /// Starts a thread that runs a script; returns its repeated steps.
    pub fn start_script(
        &mut self,
        role: Role,
        context: SchedContext,
        once: alloc::vec::Vec<Step>,
        repeated: alloc::vec::Vec<Step>,
    ) -> Result<(Tcb, &'static [Step]), SetupError> {
        let (script, steps) = Script::leak(once, repeated, self.done, self.park);
        let argument = core::ptr::from_ref(script) as u64;
        let tcb = self.thread(role, context, Program::Script, argument)?;
        tcb.resume()?;
        Ok((tcb, steps))
    }
}
