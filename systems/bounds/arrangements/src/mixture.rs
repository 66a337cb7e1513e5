//! Memory with objects of all kinds, in use, that is revoked.

use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;

use crate::crowd::{Crowd, Memories};
use crate::invoker::{self, Invoker};
use crate::isa;
use crate::machine::{Call, Machine, Refused};
use crate::parameters::Arrangement;
use crate::workshop::Workshop;

/// Objects of each kind that follow each other, by the parameters that name them.
const TURNS: [&str; 4] = ["a", "b", "c", "d"];

/// Objects that are enough for the longest stretch; the rest of the threads only wait.
const MOST: u64 = 4_096;

/// log2 of the bytes of an object at most.
const OBJECT_BITS: u32 = 12;

/// Priority of threads that call and answer.
const SERVER_PRIORITY: u64 = 100;

pub fn run<M: Machine>(
    machine: &mut M,
    arrangement: &Arrangement,
    size: u64,
) -> Result<(), Refused> {
    let mut workshop = Workshop::new(machine);
    let workshop = &mut workshop;
    let invoker = Invoker::new(workshop, arrangement)?;
    let count = size.min(MOST);
    let bits = OBJECT_BITS + count.next_power_of_two().ilog2();
    let memory = workshop.make(types::UNTYPED, u64::from(bits), 1)?;
    let rest = workshop.machine.memory().0;
    let gate = workshop.make(types::ENDPOINT, 0, 1)?;
    let mut crowd = Crowd::new(workshop, arrangement, size)?;
    workshop.lower()?;
    let before = arrangement.number("before");
    if before > 0 {
        workshop.make_of(memory, types::ENDPOINT, 0, before)?;
    }
    let mut maker = Maker {
        memory,
        rest,
        gate,
        hall: workshop.make(types::ENDPOINT, 0, 1)?,
        server: workshop.make(types::ENDPOINT, 0, 1)?,
    };
    for i in 0..size {
        let kind = if i < count {
            arrangement.value(TURNS[(i % 4) as usize])
        } else {
            ""
        };
        maker.make(workshop, &mut crowd, i, kind)?;
    }
    crowd.settle(workshop);
    invoker.take(workshop, invoker::TARGET, memory)?;
    invoker.operate_on_slot(workshop, label::CNODE_REVOKE, invoker::TARGET)
}

struct Maker {
    /// What is revoked, and what is not.
    memory: u64,
    rest: u64,
    /// Where those wait whose other objects are revoked.
    gate: u64,
    /// Where many receive that nobody calls.
    hall: u64,
    /// Where calls are received.
    server: u64,
}

impl Maker {
    /// Makes an object of a kind in the memory that is revoked, and thread `i`, which uses it.
    fn make<M: Machine>(
        &mut self,
        workshop: &mut Workshop<M>,
        crowd: &mut Crowd,
        i: u64,
        kind: &str,
    ) -> Result<(), Refused> {
        let elsewhere = Memories::of(self.rest);
        let at_gate = Call::new(Syscall::Send, self.gate);
        match kind {
            "endpoint" => {
                let endpoint = workshop.make_of(self.memory, types::ENDPOINT, 0, 1)?;
                let call = Call::new(Syscall::Send, endpoint);
                crowd.wait(workshop, i, call, elsewhere)?;
            }
            "notification" => {
                let object = workshop.make_of(self.memory, types::NOTIFICATION, 0, 1)?;
                let call = Call::new(Syscall::Wait, object);
                crowd.wait(workshop, i, call, elsewhere)?;
                let context = workshop.make_long_context()?;
                workshop.bind(context, object)?;
            }
            "reply" => {
                // A call that is waiting for its answer, and has lent its context.
                let reply = workshop.make_of(self.memory, types::REPLY, 0, 1)?;
                self.receive(workshop, reply)?;
                let tcb = workshop.make_of(self.rest, types::TCB, 0, 1)?;
                workshop.prepare(tcb, SERVER_PRIORITY)?;
                let context = workshop.make_long_context()?;
                workshop.bind(context, tcb)?;
                workshop.start(tcb, Call::new(Syscall::Call, self.server))?;
            }
            "reply-offered" => {
                // Whoever receives with it is taken out of a queue.
                let reply = workshop.make_of(self.memory, types::REPLY, 0, 1)?;
                let call = Call::new(Syscall::Recv, self.hall).reply(reply);
                crowd.wait(workshop, i, call, elsewhere)?;
            }
            "context" => {
                let memories = Memories {
                    context: self.memory,
                    ..elsewhere
                };
                crowd.wait(workshop, i, at_gate, memories)?;
            }
            "context-used-up" => {
                let memories = Memories {
                    context: self.memory,
                    ..elsewhere
                };
                crowd.wait_for_time(workshop, i, memories)?;
            }
            "thread" => {
                let memories = Memories {
                    tcb: self.memory,
                    ..elsewhere
                };
                crowd.wait(workshop, i, at_gate, memories)?;
            }
            "thread-without-time" => {
                let memories = Memories {
                    tcb: self.memory,
                    ..elsewhere
                };
                crowd.wait_for_time(workshop, i, memories)?;
            }
            "frame" => {
                workshop.make_of(self.memory, isa::PAGE, 0, 1)?;
            }
            "cnode" => {
                workshop.make_of(self.memory, types::CNODE, 1, 1)?;
            }
            _ if i.is_multiple_of(2) => {
                crowd.wait(workshop, i, at_gate, elsewhere)?;
            }
            _ => {
                crowd.wait_for_time(workshop, i, elsewhere)?;
            }
        }
        Ok(())
    }

    /// A thread without a context waits for a call, offering `reply`.
    fn receive<M: Machine>(&self, workshop: &mut Workshop<M>, reply: u64) -> Result<(), Refused> {
        let tcb = workshop.make(types::TCB, 0, 1)?;
        workshop.prepare(tcb, SERVER_PRIORITY)?;
        let context = workshop.make_long_context()?;
        workshop.bind(context, tcb)?;
        let receive = Call::new(Syscall::Recv, self.server).reply(reply);
        workshop.start(tcb, receive)?;
        workshop.unbind(context)
    }
}
