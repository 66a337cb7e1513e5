//! NBSendRecv: the current thread sends, and waits for a message: how the loop of a component ends that tells another one.

use super::handover::{self, Successor, Woken};
use super::send::Send;
use super::wait::Reception;
use super::{Due, Line, Outcome, Request};
use crate::object::{Core, Tcb};
use crate::{arch::bounds, mem::Ref, Kernel, View};

/// A signal, or a message to a thread that waits for one, and a Recv.
pub struct NBSendRecv {
    send: Send,
    reception: Reception,
    next: Next,
}

/// Who runs then.
enum Next {
    Woken(Woken),
    Ready(Successor),
}

impl Line for NBSendRecv {
    const DUE: Due = Due::NobodyAbove;

    #[inline(always)]
    fn plan(k: &View, core: &Core, sender: Ref<Tcb>, request: Request) -> Option<NBSendRecv> {
        bounds::mark::<{ bounds::PLANNING }>();
        let to = Request {
            cptr: sender.at(k).context().destination_register(),
            info: request.info,
        };
        let send = Send::plan(k, core, sender, to)?;
        bounds::mark::<{ bounds::SENDABLE }>();
        let reception = Reception::plan(k, sender, request)?;
        let next = match send.woken() {
            Some(woken) if handover::is_next_while_due(k, core, sender, woken.thread) => {
                Next::Woken(woken)
            }
            Some(_) => return None,
            // It would hear its own signal.
            None if send.notification() == sender.at(k).notification() => return None,
            None => Next::Ready(Successor::plan(k, core)?),
        };
        Some(NBSendRecv {
            send,
            reception,
            next,
        })
    }

    #[inline(always)]
    fn carry_out(self, k: &Kernel, core: &Core, sender: Ref<Tcb>) -> Outcome {
        self.send.deliver(k);
        self.reception.carry_out(k, sender);
        Outcome::Switches(match self.next {
            Next::Woken(woken) => woken.succeed(k),
            Next::Ready(successor) => successor.carry_out(k, core),
        })
    }
}
