//! Messages about what was watched, and the answers to them (05, sections 2.6 and 6; 09, section 3).

#![forbid(unsafe_code)]

use sandglass_abi::fault::DEBUG_EXCEPTION;
use sandglass_abi::message::MessageInfo;

use crate::arch::abi::debugging::Event;
use crate::arch::Context;
use crate::ipc::{Message, Writer};
use crate::mem::Ref;
use crate::object::Tcb;
use crate::Kernel;

/// Writes the words of the message about `event` of a thread with the registers `context`; returns its label.
pub fn write(event: Event, context: &Context, message: &mut Writer) -> u64 {
    message.push(context.fault_ip());
    message.push(event.reason());
    if let Event::Data { address, number } | Event::Instruction { address, number } = event {
        message.push(address);
        message.push(number.into());
    }
    DEBUG_EXCEPTION
}

/// The handler `sender` has answered `event` of `thread`: after a step, it says how many instructions the next one has, one if
/// it says nothing. Returns whether the thread goes on.
pub fn answered(event: Event, k: &Kernel, sender: Ref<Tcb>, thread: Ref<Tcb>) -> bool {
    let info = MessageInfo::from_raw(sender.at(k).context().info());
    if event == Event::Step {
        let reply = Message::new(k, sender, info);
        let steps = match reply.length() {
            0 => 1,
            _ => reply.word(k, sender, 0),
        };
        thread.at(k).context().set_steps(k, steps);
    }
    info.label() == 0
}
