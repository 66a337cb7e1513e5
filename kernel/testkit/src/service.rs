//! A passive server and its client.

use sandglass_abi::invocation as label;
use sandglass_abi::object as types;

use crate::world::{Thread, World};

/// A passive server of priority 200 that waits on an endpoint with a reply object, and a client of
/// priority 100 with 5 of 10 ms that is about to run; the root task sleeps.
pub struct Service {
    pub endpoint: u64,
    pub reply: u64,
    pub server: Thread,
    pub client: Thread,
    pub root_wakes_by: u64,
}

pub fn service(w: &mut World) -> Service {
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let server = w.start_thread(200, 5_000, 10_000);
    let client = w.start_thread(100, 5_000, 10_000);
    let root_wakes_by = w.sleep();
    assert_eq!(w.running(), Some(server.handle));
    w.recv(endpoint, reply);
    assert_eq!(w.running(), Some(client.handle));
    w.wake(root_wakes_by);
    w.invoke(server.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("unbound");
    assert_eq!(
        server.handle.at(&w.k).sched_context(),
        None,
        "the server is passive"
    );
    w.wait(root_wakes_by);
    assert_eq!(w.running(), Some(client.handle));
    Service {
        endpoint,
        reply,
        server,
        client,
        root_wakes_by,
    }
}
