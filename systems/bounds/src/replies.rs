//! Calls within calls: a stack of reply objects as deep as the crowd is large.

use alloc::vec::Vec;

use sandglass::abi::syscall::Syscall;
use sandglass::cap::{Endpoint, ObjectType, Reply};
use sandglass::{println, Message, Process, SetupError};

use crate::crowd::nth;
use crate::lab::{many, Cost, Lab};
use crate::program::Call;

/// Objects that one Retype makes at most.
const BATCH: u64 = 256;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    let most = lab.crowd.members().len() as u64;
    let stage = Stage::new(&mut lab.process, most)?;
    for size in lab.sizes.clone() {
        println!("bounds: {size} calls within calls");
        stage.build(lab, size)?;
        stage.unwind(lab, size);
        stage.cut(lab, size)?;
        stage.clear(lab, size)?;
    }
    Ok(())
}

/// An endpoint and a reply object for each thread of the crowd, and one endpoint more.
struct Stage {
    endpoints: Vec<Endpoint>,
    replies: Vec<Reply>,
}

impl Stage {
    fn new(process: &mut Process, size: u64) -> Result<Self, SetupError> {
        let (mut endpoints, mut replies) = (Vec::new(), Vec::new());
        while (replies.len() as u64) < size {
            let batch = BATCH.min(size - replies.len() as u64);
            let endpoint = process.resources.create_many(ObjectType::Endpoint, batch)?;
            let reply = process.resources.create_many(ObjectType::Reply, batch)?;
            endpoints.extend((0..batch).map(|i| nth::<Endpoint>(endpoint, i)));
            replies.extend((0..batch).map(|i| nth::<Reply>(reply, i)));
        }
        endpoints.push(process.resources.endpoint()?);
        Ok(Self { endpoints, replies })
    }

    /// The crowd are passive servers, each of which has called the next; the last one waits for
    /// somebody to receive its call. All of it is on the time of the first visitor.
    fn build(&self, lab: &Lab, size: u64) -> Result<(), SetupError> {
        for (i, member) in lab.crowd.first(size).iter().enumerate() {
            let receive = Call::new(Syscall::Recv, self.endpoints[i].address());
            let next = Call::new(Syscall::Call, self.endpoints[i + 1].address());
            member.start(&receive.reply(self.replies[i].address()).then(next))?;
        }
        lab.settle()?;
        for member in lab.crowd.first(size) {
            member.context.unbind()?;
        }
        let call = Call::new(Syscall::Call, self.endpoints[0].address());
        lab.visitors[0].start(&call.once())?;
        lab.settle()
    }

    /// The last calls are answered, one after the other.
    fn unwind(&self, lab: &Lab, size: u64) {
        debug_assert!(size <= lab.crowd.members().len() as u64);
        for reply in self.replies[..size as usize].iter().rev().take(4) {
            many("reply-stack-answer", size, Cost::First, || {
                reply.send(Message::EMPTY)
            });
        }
    }

    /// A thread in the middle of the stack is stopped, a reply object is destroyed, and the
    /// context on top of what is left is taken away.
    fn cut(&self, lab: &Lab, size: u64) -> Result<(), SetupError> {
        let middle = (size / 2) as usize;
        let member = lab.crowd.members()[middle];
        many("reply-stack-suspend", size, Cost::First, || {
            member.tcb.suspend()
        })?;
        let slot = lab.process.resources.slot_of(self.replies[middle / 2]);
        many("reply-stack-delete", size, Cost::Stretch, || slot.delete())?;
        let context = lab.visitors[0].context;
        many("reply-stack-unbind-context", size, Cost::First, || {
            context.unbind()
        })
        .map_err(SetupError::from)
    }

    /// Everything is as it was before.
    fn clear(&self, lab: &mut Lab, size: u64) -> Result<(), SetupError> {
        lab.crowd.stop(size)?;
        let visitor = lab.visitors[0];
        visitor.tcb.suspend()?;
        for &member in lab.crowd.first(size).iter().chain([&visitor]) {
            // Somebody in the stack may still have it.
            member.context.unbind()?;
            member.context.bind(member.tcb)?;
        }
        let deleted = self.replies[(size / 4) as usize];
        let slot = lab.process.resources.slot_of(deleted);
        lab.process.resources.retype(ObjectType::Reply, slot, 1)
    }
}
