//! Passive servers: servers without processor time of their own (thesis 7.2.4).
//!
//! A passive server is started on an initial scheduling context, sets itself up, and then, in one
//! system call, signals that it is ready and waits for its first request. Who started it takes
//! the context away again; from then on the server runs on what its callers lend it.

use crate::cap::{nb_send_recv, Endpoint, Notification, Reply, SchedContext, Tcb};
use crate::error::Result;
use crate::message::{Message, Received};
use crate::watchdog::Watchdog;

/// Label of the answer to a request whose server has failed, and is restarted or not: the launcher gives it, so that the
/// client has its time back. Whether the request was carried out, nobody knows.
pub const FAILED: u64 = 0x6661_696c;

/// What a server serves with.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Signalled when the server waits for a request and needs no time of its own.
    pub ready: Notification,
    pub endpoint: Endpoint,
    /// Stands for the caller while the server works.
    pub reply: Reply,
}

impl Service {
    /// Serves requests for good: `handle` answers each.
    ///
    /// The first wait of this function is where a [`Checkpoint`](crate::timeout::Checkpoint) of
    /// the server is taken and where a timeout handler sends it back to; a request that was
    /// being handled is then abandoned halfway. What `handle` changes must therefore be right at
    /// any moment, as if another thread looked (atomics, or data that the next request resets).
    pub fn serve(self, mut handle: impl FnMut(Received) -> Message) -> ! {
        wait_first(&self, &mut handle)
    }

    /// As [`Self::serve`], with signs of life: the server is expected to answer a request within the period of its
    /// `watchdog`, or to give a sign by [`Watchdog::report`] meanwhile; and to wait as long as nobody asks.
    pub fn serve_watched(
        self,
        watchdog: Watchdog,
        mut handle: impl FnMut(Received) -> Message,
    ) -> ! {
        watchdog.rest();
        self.serve(move |request| {
            watchdog.report();
            let answer = handle(request);
            watchdog.rest();
            answer
        })
    }
}

/// The wait that a timeout handler can repeat: to the compiler's ignorance, this system call may
/// return several times.
///
/// So the frame of this function must stay as it is while requests are handled. It does: it holds
/// what is live here (two references), and everything else happens in frames below it. Hence the
/// two functions, neither of which may be inlined; a function that does not return is never
/// called by a jump that gives up its caller's frame.
#[inline(never)]
fn wait_first<H: FnMut(Received) -> Message>(service: &Service, handle: &mut H) -> ! {
    let request = nb_send_recv(
        service.ready,
        Message::EMPTY,
        service.endpoint,
        service.reply,
    );
    handle_requests(service, handle, request)
}

#[inline(never)]
fn handle_requests<H: FnMut(Received) -> Message>(
    service: &Service,
    handle: &mut H,
    mut request: Received,
) -> ! {
    loop {
        let answer = handle(request);
        request = service.reply.reply_recv(service.endpoint, answer);
    }
}

/// Waits until a started server is ready, and takes its initial scheduling context away. `ready`
/// must be the notification that the server signals.
pub fn make_passive(ready: Notification, server: Tcb, context: SchedContext) -> Result<()> {
    ready.wait();
    context.unbind_tcb(server)
}
