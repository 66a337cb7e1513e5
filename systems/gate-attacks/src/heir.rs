//! Threads in the victim's place, whose objects can be destroyed.
//!
//! The launcher keeps capabilities of all that it makes, so that nobody else can delete the last one of a thread or a context of
//! a description. Those of an heir are made at run time, of memory that a description sets aside for threads, by the component
//! `maker`. The judge gives them to the gate instead of the victim's: the heir is the gate's client from then on, and goes with
//! its memory.

use alloc::boxed::Box;
use alloc::format;

use sandglass::cap::{
    CNode, Endpoint, Notification, ObjectType, SchedContext, SchedControl, SchedParams, Tcb,
    Untyped,
};
use sandglass::server::Service;
use sandglass::{trace, Environment, Error, Message};
use sandglass_mc_ipc::client::Gate;

use crate::board::{board, get, set, Board};
use crate::victim;

/// Where the capabilities are in the maker's CNode: of the memory, and of the objects that are made of it.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    pub memory: u64,
    pub tcb: u64,
    pub context: u64,
}

impl Slots {
    /// As the maker answers.
    pub fn of(answer: Message) -> Self {
        let [memory, tcb, context] = [0, 1, 2].map(|number| answer.word(number));
        Self {
            memory,
            tcb,
            context,
        }
    }

    fn answer(self) -> Message {
        Message::new(0, [self.memory, self.tcb, self.context])
    }
}

/// The slot of the maker's CNode where the judge puts the victim's capability of the gate: the last one.
pub const fn gate_slot(cspace_bits: u64) -> u64 {
    (1 << cspace_bits) - 1
}

/// What heirs have.
struct Heir {
    gate: Gate,
    go: Notification,
    board: &'static Board,
}

/// Makes an heir whenever it is asked to. There is one at a time.
pub fn make(env: &'static Environment) -> u8 {
    let endpoint = Endpoint::at(gate_slot(env.parameter("cspace-bits")));
    let heir: &'static Heir = Box::leak(Box::new(Heir {
        gate: Gate::of(endpoint),
        go: env.capability("heir"),
        board: board(env),
    }));
    let service = Service {
        ready: env.ready(),
        endpoint: env.capability("heirs"),
        reply: env.capability("heirs.reply"),
    };
    service.serve(|_| {
        let made = make_one(env, heir);
        made.expect("the last one is gone with all its memory")
            .answer()
    })
}

/// The context is made of the thread's memory, too.
fn make_one(env: &Environment, heir: &'static Heir) -> Result<Slots, Error> {
    let [core, priority, budget, period, badge] = ["core", "priority", "budget", "period", "badge"]
        .map(|name| env.parameter(&format!("heir-{name}")));
    let memory = env.parameter("spawning.slot");
    let slots = Slots {
        memory,
        // As the runtime has it.
        tcb: memory + 1,
        context: gate_slot(env.parameter("cspace-bits")) - 1,
    };
    let params = SchedParams::new(budget, period).badge(badge);
    let cspace: CNode = env.capability("spawning.cspace");
    let kind = ObjectType::SchedContext(params.size_bits());
    Untyped::at(memory).retype(kind, cspace.slot(slots.context), 1)?;
    let context = SchedContext::at(slots.context);
    let control: SchedControl = env.capability(&format!("sched-control.{core}"));
    control.configure(context, params)?;
    let tcb = env.spawning().make(0, context, run, heir)?;
    assert_eq!(tcb, Tcb::at(slots.tcb), "its own slot");
    let authority: Tcb = env.capability("spawning.tcb");
    tcb.set_priority(authority, priority as u8)?;
    // As the trace knows the gate's client.
    trace::name(tcb, "victim");
    trace::name(context, "victim");
    tcb.resume()?;
    Ok(slots)
}

/// Makes requests when it is told to, as the victim.
extern "C" fn run(heir: &'static Heir) -> ! {
    loop {
        heir.go.wait();
        let number = get(&heir.board.number);
        victim::obey(heir.gate, heir.board, number);
        set(&heir.board.done, number);
    }
}
