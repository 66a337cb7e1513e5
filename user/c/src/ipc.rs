//! Calls, notifications, and the receiving side of both.

use sandglass::cap::{self, Endpoint, Notification, Reply};
use sandglass::sys;

use crate::environment::Capability;
use crate::message::{Message, Request};

#[no_mangle]
pub extern "C" fn sg_call(endpoint: Capability, message: Message) -> Message {
    Endpoint::at(endpoint).call(message.into()).into()
}

#[no_mangle]
pub extern "C" fn sg_send(endpoint: Capability, message: Message) {
    Endpoint::at(endpoint).send(message.into());
}

#[no_mangle]
pub extern "C" fn sg_try_send(endpoint: Capability, message: Message) {
    Endpoint::at(endpoint).nb_send(message.into());
}

#[no_mangle]
pub extern "C" fn sg_receive(endpoint: Capability, reply: Capability) -> Request {
    Endpoint::at(endpoint).recv(Reply::at(reply)).into()
}

#[no_mangle]
pub extern "C" fn sg_try_receive(endpoint: Capability, reply: Capability) -> Request {
    Endpoint::at(endpoint).nb_recv(Reply::at(reply)).into()
}

#[no_mangle]
pub extern "C" fn sg_receive_sent(endpoint: Capability) -> Request {
    Endpoint::at(endpoint).wait().into()
}

#[no_mangle]
pub extern "C" fn sg_try_receive_sent(endpoint: Capability) -> Request {
    Endpoint::at(endpoint).nb_wait().into()
}

#[no_mangle]
pub extern "C" fn sg_reply(reply: Capability, message: Message) {
    Reply::at(reply).send(message.into());
}

#[no_mangle]
pub extern "C" fn sg_reply_receive(
    reply: Capability,
    answer: Message,
    endpoint: Capability,
) -> Request {
    let endpoint = Endpoint::at(endpoint);
    Reply::at(reply).reply_recv(endpoint, answer.into()).into()
}

#[no_mangle]
pub extern "C" fn sg_send_receive(
    destination: Capability,
    message: Message,
    endpoint: Capability,
    reply: Capability,
) -> Request {
    let (destination, endpoint) = (Endpoint::at(destination), Endpoint::at(endpoint));
    cap::nb_send_recv(destination, message.into(), endpoint, Reply::at(reply)).into()
}

#[no_mangle]
pub extern "C" fn sg_signal(notification: Capability) {
    Notification::at(notification).signal();
}

#[no_mangle]
pub extern "C" fn sg_wait(notification: Capability) -> u64 {
    Notification::at(notification).wait()
}

#[no_mangle]
pub extern "C" fn sg_poll(notification: Capability) -> u64 {
    Notification::at(notification).poll()
}

#[no_mangle]
pub extern "C" fn sg_yield() {
    sys::yield_now();
}
