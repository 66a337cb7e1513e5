//! Migrating threads (thesis 6.4.2): a fixed pool of workers that wait on the same endpoint, each
//! with a stack of its own. A client's context comes into the server with its request, and finds a
//! stack there, as in COMPOSITE. Requests are served side by side, so what they share needs a
//! lock; when all workers are busy, a client waits for the first that is done.

use alloc::format;

use sandglass::server::Service;
use sandglass::{Environment, Message, Received};

/// Serves the resource `resource`, whose protocol is `workers`, for good: with the main thread, and
/// with the threads `others` of this component, which are passive. `handle` is called by all.
///
/// If `handle` uses the heap, see [`sandglass::heap::share`].
///
/// # Panics
/// If this component does not serve the resource with these threads.
pub fn serve(
    env: &'static Environment,
    resource: &str,
    others: &[&str],
    handle: impl Fn(Received) -> Message + Clone + Send + 'static,
) -> ! {
    for name in others {
        let service = Service {
            ready: env.capability(&format!("{name}.ready")),
            endpoint: env.capability(resource),
            reply: env.capability(&format!("{resource}.reply.{name}")),
        };
        let handle = handle.clone();
        env.thread(name).prepare(move || service.serve(handle));
    }
    env.service(resource).serve(handle)
}
