//! The threads and contexts that all sets of partitions are made of.

use alloc::vec::Vec;

use sandglass::boot;
use sandglass::cap::{
    CPtr, Capability, Endpoint, ObjectType, Reply, Rights, SchedContext, SchedControl, SchedParams,
    Tcb,
};
use sandglass::context::UserContext;
use sandglass::thread::{self, ThreadParams};
use sandglass::{Process, SetupError};
use sandglass_partitions::driver::{Partition, Sender, FULL_US};
use sandglass_partitions::Member;

use crate::{looks, service};

/// Of all threads of partitions; this one's is the highest.
const PRIORITY: u8 = 100;
/// Bytes of a thread's stack.
const STACK: u64 = 1024;
/// Objects that one Retype makes at most.
const BATCH: u64 = 256;

/// What the threads of the first partition do in place of their jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// They compute, and never stop.
    Spins,
    /// They make requests to the server, one after the other. One that is in service when the window ends may take so long,
    /// µs.
    Asks { bound_us: u64 },
    /// They report arrivals to the scheduler, one after the other.
    Floods,
    /// They fault, and nobody handles that.
    Faults,
}

pub struct Crew {
    /// Where threads call.
    pub endpoint: Endpoint,
    pub replies: Vec<Reply>,
    contexts: Vec<SchedContext>,
    threads: Vec<Tcb>,
    /// Of each thread: the endpoint with its badge.
    calls: Vec<Endpoint>,
    /// Where arrivals for the first thread are reported.
    arrivals: Endpoint,
    /// The end of the first thread's stack.
    stacks: u64,
}

impl Crew {
    pub fn new(
        process: &mut Process,
        control: SchedControl,
        partitions: usize,
        threads: usize,
    ) -> Result<Self, SetupError> {
        let endpoint = process.resources.endpoint()?;
        let size_bits = SchedParams::new(FULL_US, FULL_US).size_bits();
        let contexts: Vec<SchedContext> =
            create(process, ObjectType::SchedContext(size_bits), partitions)?;
        for &context in &contexts {
            control.configure(context, SchedParams::new(FULL_US, FULL_US))?;
        }
        let tcbs: Vec<Tcb> = create(process, ObjectType::Tcb, threads)?;
        for &tcb in &tcbs {
            thread::configure(process, tcb, ThreadParams::passive(PRIORITY), None)?;
        }
        let mut calls = Vec::with_capacity(threads);
        for thread in 0..threads {
            let badge = Sender::Done(thread).badge();
            calls.push(process.resources.mint_call(endpoint, Rights::ALL, badge)?);
        }
        let badge = Sender::Arrival(0).badge();
        let arrivals = process.resources.mint_call(endpoint, Rights::ALL, badge)?;
        let stacks = process
            .space
            .map_new(&mut process.resources, STACK * threads as u64)?;
        Ok(Self {
            endpoint,
            replies: create(process, ObjectType::Reply, threads + 1)?,
            contexts,
            threads: tcbs,
            calls,
            arrivals,
            stacks: stacks.address() + STACK,
        })
    }

    /// The first partitions, with so many of the threads each, at their start: the last of a partition computes for good,
    /// the others do jobs. Those of the first partition do what is said of them.
    pub fn partitions(
        &self,
        count: usize,
        threads: usize,
        conduct: Option<Conduct>,
    ) -> Result<Vec<Partition>, SetupError> {
        let contexts = self.contexts.iter().take(count).enumerate();
        let partition = |(partition, &context): (usize, &SchedContext)| {
            let first = partition * threads;
            let own = conduct.filter(|_| partition == 0);
            looks::set_arrivals(self.arrivals);
            for index in first..first + threads {
                let computes = index + 1 == first + threads;
                let body: extern "C" fn(u64) -> ! = match own {
                    Some(Conduct::Asks { .. }) => ask,
                    Some(Conduct::Floods) => flood,
                    Some(Conduct::Faults) => fault,
                    Some(Conduct::Spins) => compute,
                    None if computes => compute,
                    None => work,
                };
                self.prepare(index, body)?;
            }
            Ok(Partition {
                context,
                threads: self.threads[first..first + threads].to_vec(),
                badge: 0,
                calls_servers: matches!(own, Some(Conduct::Asks { .. })),
            })
        };
        contexts.map(partition).collect()
    }

    /// Stops the first threads: they wait for nothing any more.
    pub fn stop(&self, threads: usize) -> Result<(), SetupError> {
        for tcb in &self.threads[..threads] {
            tcb.suspend()?;
        }
        Ok(())
    }

    fn prepare(&self, index: usize, body: extern "C" fn(u64) -> !) -> Result<(), SetupError> {
        let stack = self.stacks + index as u64 * STACK;
        let call = self.calls[index].cptr().raw();
        let context = UserContext::start(body as usize as u64, stack, call, 0);
        let tcb = self.threads[index];
        tcb.set_sched_params(
            boot::TCB,
            sandglass::cap::SchedArguments {
                mcp: 0,
                priority: PRIORITY,
                sched_context: None,
                fault_handler: None,
            },
        )?;
        tcb.write_registers(&context, true)?;
        Ok(())
    }
}

extern "C" fn compute(call: u64) -> ! {
    looks::compute(Member::of(Endpoint::at(call)))
}

extern "C" fn flood(call: u64) -> ! {
    looks::flood(Member::of(Endpoint::at(call)))
}

extern "C" fn fault(call: u64) -> ! {
    looks::fault(Member::of(Endpoint::at(call)))
}

extern "C" fn ask(call: u64) -> ! {
    service::ask(Member::of(Endpoint::at(call)))
}

extern "C" fn work(call: u64) -> ! {
    looks::work(Member::of(Endpoint::at(call)))
}

fn create<C: Capability>(
    process: &mut Process,
    kind: ObjectType,
    count: usize,
) -> Result<Vec<C>, SetupError> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let batch = BATCH.min((count - all.len()) as u64);
        let first: C = process.resources.create_many(kind, batch)?;
        all.extend((0..batch).map(|i| C::from_cptr(CPtr::new(first.cptr().raw() + i))));
    }
    Ok(all)
}
