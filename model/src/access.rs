//! Objects of the state by name, to be changed. They exist: capabilities and objects that name an
//! object keep it alive, so a missing one is a broken precondition.

use crate::state::{
    CNodeId, ContextId, Core, Endpoint, EndpointId, Notification, NotificationId, Queues, Reply,
    ReplyId, SchedContext, State, Table, TableId, Thread, ThreadId,
};

macro_rules! access {
    ($($name:ident: $map:ident, $id:ty => $object:ty;)*) => {
        impl State {$(
            pub fn $name(&mut self, id: $id) -> &mut $object {
                self.$map.get_mut(&id).expect("a name in the state names an object that exists")
            }
        )*}
    };
}

access! {
    thread_mut: threads, ThreadId => Thread;
    endpoint_mut: endpoints, EndpointId => Endpoint;
    notification_mut: notifications, NotificationId => Notification;
    reply_mut: replies, ReplyId => Reply;
    context_mut: contexts, ContextId => SchedContext;
    table_mut: tables, TableId => Table;
}

impl State {
    /// The core that executes the kernel.
    pub fn core(&self) -> &Core {
        &self.cores[self.executing.0]
    }

    /// The core that executes the kernel, to be changed.
    pub fn core_mut(&mut self) -> &mut Core {
        &mut self.cores[self.executing.0]
    }

    /// The core of `thread`.
    pub fn home(&self, thread: ThreadId) -> &Core {
        &self.cores[self.threads[&thread].core.0]
    }

    /// The core of `thread`, to be changed.
    pub fn home_mut(&mut self, thread: ThreadId) -> &mut Core {
        let core = self.threads[&thread].core;
        &mut self.cores[core.0]
    }

    /// Those of the domain that runs who want to run on the core that executes the kernel.
    pub fn queues(&self) -> &Queues {
        &self.core().queues[usize::from(self.domains.current)]
    }

    /// The queues in which `thread` is when it is in any.
    pub fn queues_of(&self, thread: ThreadId) -> &Queues {
        &self.home(thread).queues[usize::from(self.threads[&thread].domain)]
    }

    /// The same, to be changed.
    pub fn queues_of_mut(&mut self, thread: ThreadId) -> &mut Queues {
        let domain = usize::from(self.threads[&thread].domain);
        &mut self.home_mut(thread).queues[domain]
    }

    /// Whether the core of `thread` executes the kernel.
    pub fn is_on_this_core(&self, thread: ThreadId) -> bool {
        self.threads[&thread].core == self.executing
    }

    /// Whether the core of `thread` executes the kernel, and its domain runs.
    pub fn is_here(&self, thread: ThreadId) -> bool {
        self.is_on_this_core(thread) && self.threads[&thread].domain == self.domains.current
    }

    /// Number of slots of `cnode`.
    pub fn slots_in(&self, cnode: CNodeId) -> u64 {
        1 << self.cnodes[&cnode]
    }
}
