//! The server of a resource.

use alloc::format;

use sandglass::cap::{nb_send_recv, Endpoint, Notification};
use sandglass::server::Service;
use sandglass::{Environment, Message, Received};

/// Serves the resource `resource` for good: `handle` answers each request. What is served by one
/// thread is held by one request at a time.
///
/// The protocol is the description's affair. Behind a [proxy](crate::proxy) the answer goes to the
/// proxy (thesis 6.4.2: "it uses IPC forwarding to send a message on E1 that it is ready for more
/// work, and returns to wait on E2"), else to the client.
///
/// # Panics
/// If this component does not serve the resource.
pub fn serve(
    env: &'static Environment,
    resource: &str,
    mut handle: impl FnMut(Received) -> Message,
) -> ! {
    let endpoint: Endpoint = env.capability(resource);
    let reply = env.capability(&format!("{resource}.reply"));
    let ready: Option<Notification> = env.find_capability("ready");
    let done: Option<Endpoint> = env.find_capability(&format!("{resource}.done"));
    match (done, ready) {
        (None, Some(ready)) => Service {
            ready,
            endpoint,
            reply,
        }
        .serve(handle),
        (None, None) => {
            let mut request = endpoint.recv(reply);
            loop {
                let answer = handle(request);
                request = reply.reply_recv(endpoint, answer);
            }
        }
        (Some(done), ready) => {
            let mut request = match ready {
                Some(ready) => nb_send_recv(ready, Message::EMPTY, endpoint, reply),
                None => endpoint.recv(reply),
            };
            loop {
                let answer = handle(request);
                request = nb_send_recv(done, answer, endpoint, reply);
            }
        }
    }
}
