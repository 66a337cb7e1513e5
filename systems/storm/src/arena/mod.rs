//! An arena: threads of the storm, with everything that they hold.

mod builder;
mod calls;
mod executors;

use alloc::vec::Vec;

use sandglass::abi::invocation::tcb_flags;
use sandglass::arch::order;
use sandglass::cap::{
    Attributes, CNode, Endpoint, GuardData, Pml4, Rights, SchedArguments, SchedContext,
    SchedParams, Tcb,
};
use sandglass::context::UserContext;
use sandglass::{boot, SetupError};

use crate::arch;
use crate::area::{area_address, buffer_address, stack_top, AREAS_ADDRESS};
use crate::ground::Ground;
pub use builder::Builder;

/// What the threads of an arena do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storm {
    /// System calls, with capabilities of every kind.
    Calls,
    /// Instructions, with next to no capabilities.
    Instructions,
}

impl Storm {
    pub const ALL: [Self; 2] = [Self::Calls, Self::Instructions];

    /// What is counted.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Calls => "system calls",
            Self::Instructions => "instructions",
        }
    }
}

/// A thread that the supervisor keeps going, and what it is to be.
#[derive(Clone, Copy)]
struct Member {
    tcb: Tcb,
    /// `None`: a passive thread.
    context: Option<(SchedContext, SchedParams)>,
    /// The core where it begins.
    core: usize,
    priority: u8,
    cspace: (CNode, GuardData),
    /// Number of the address space, and its root.
    space: usize,
    vspace: Pml4,
    fault_handler: Option<Endpoint>,
    timeout_handler: Option<Endpoint>,
}

/// Threads of the storm, with everything that they hold.
pub struct Arena<'g> {
    ground: &'g Ground,
    storm: Storm,
    members: Vec<Member>,
}

impl<'g> Arena<'g> {
    /// Builds the arena with this seed, in the memory that [`Ground::clear`] has freed, and
    /// starts its threads.
    pub fn build(ground: &'g Ground, storm: Storm, seed: u64) -> Result<Self, SetupError> {
        let mut builder = Builder::new(ground, storm, seed)?;
        let members = match storm {
            Storm::Calls => builder.for_calls()?,
            Storm::Instructions => builder.for_instructions()?,
        };
        let arena = Self {
            ground,
            storm,
            members,
        };
        for index in 0..arena.members.len() {
            arena.restore(index);
        }
        Ok(arena)
    }

    /// Lets a thread start anew, whatever it is doing; its context stays where it is.
    pub fn revive(&self, index: usize) {
        if let Some(member) = self.members.get(index) {
            // A thread that the storm has deleted stays dead.
            let registers = start_registers(self.storm, index);
            let _ = member.tcb.write_registers(&registers, true);
        }
    }

    /// Lets a thread go on with these registers, the first of a user context.
    pub fn go_on(&self, index: usize, registers: &[u64]) {
        if let Some(member) = self.members.get(index) {
            let _ = member.tcb.write_first_registers(registers, true);
        }
    }

    /// Makes a thread what it was at first, as far as the storm has left its objects alive, and
    /// lets it start anew.
    pub fn restore(&self, index: usize) {
        let Some(member) = self.members.get(index) else {
            return;
        };
        // Each step is for what the storm may have changed; each may fail for what it deleted.
        let tcb = member.tcb;
        let _ = tcb.suspend();
        if let Some((context, params)) = member.context {
            let _ = context.unbind();
            let _ = self.ground.controls[member.core].configure(context, params);
        }
        let _ = tcb.set_sched_params(
            boot::TCB,
            SchedArguments {
                mcp: member.priority,
                priority: member.priority,
                sched_context: member.context.map(|(context, _)| context),
                fault_handler: member.fault_handler,
            },
        );
        let (root, guard) = member.cspace;
        let _ = tcb.set_space(member.fault_handler, root, guard, member.vspace);
        let _ = tcb.set_timeout_endpoint(member.timeout_handler);
        if let Some(&frame) = self.ground.buffers.get(index) {
            let _ = tcb.set_ipc_buffer(buffer_address(index), frame);
        }
        let _ = tcb.set_flags(tcb_flags::ALL, 0);
        let buffer = self.ground.buffer_copies[member.space].get(index);
        let buffer = buffer.map(|&frame| (buffer_address(index), frame));
        let areas = (AREAS_ADDRESS, self.ground.areas[member.space]);
        for (address, frame) in buffer.into_iter().chain([areas]) {
            let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
            let _ = frame.map(member.vspace, address, rights, attributes);
        }
        self.revive(index);
    }

    /// Configures a thread's context anew, for this core: what a timeout handler may do before it
    /// answers.
    pub fn refill(&self, index: usize, core: usize) {
        let context = self.members.get(index).and_then(|member| member.context);
        if let Some((context, params)) = context {
            let _ = self.ground.controls[core].configure(context, params);
        }
    }

    /// Stops all threads.
    pub fn stop(&self) {
        for member in &self.members {
            let _ = member.tcb.suspend();
        }
    }
}

/// Registers with which thread `index` begins.
fn start_registers(storm: Storm, index: usize) -> UserContext {
    let entry = match storm {
        Storm::Calls => arch::gate::entry_address(),
        Storm::Instructions => arch::instructions::entry_address(),
    };
    let mut registers = UserContext::default();
    registers.set(order::IP, entry);
    registers.set(order::SP, stack_top(index));
    registers.set(order::ARGUMENT, area_address(index));
    registers
}
