//! The attacks: each is one long operation of the kernel, done over and over on every core but the
//! first, with objects and helpers of that core's own.

use alloc::vec::Vec;

use sandglass::cap::{Capability, Endpoint, ObjectType, Rights, SchedParams, Tcb};
use sandglass::time::pause;
use sandglass::{Message, SetupError};

use crate::crew::{count_down, Crew, LONG, LOW};
use crate::deep::Space;

/// log2 of the bytes that are zeroed again and again.
const ZEROED_BITS: u32 = 22;
/// Copies that are revoked.
const COPIES: u64 = 200;
/// Threads in a queue that is emptied.
const QUEUED: u64 = 24;
/// Words of the longest message.
const WORDS: usize = 120;
/// Rounds of an empty loop between two pauses.
const SPIN: u64 = 200;

/// What an attacker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attack {
    /// Nothing, there is none: what the others are compared with.
    Rest,
    /// Runs in user code.
    Spin,
    /// Has memory zeroed.
    Zero,
    /// Revokes copies of a capability.
    Revoke,
    /// Deletes an endpoint at which threads wait.
    DeleteEndpoints,
    /// Deletes a notification at which threads wait.
    DeleteNotifications,
    /// Cancels badged sends.
    CancelSends,
    /// Sends the longest messages through a deep capability space.
    SendLongMessages,
    /// Moves a thread that runs on other cores to the next one.
    MoveThreads,
    /// Enters the kernel as often as it can, for short.
    Enter,
}

impl Attack {
    /// The one to compare with is the first.
    pub const ALL: [Self; 10] = [
        Self::Rest,
        Self::Spin,
        Self::Zero,
        Self::Revoke,
        Self::DeleteEndpoints,
        Self::DeleteNotifications,
        Self::CancelSends,
        Self::SendLongMessages,
        Self::MoveThreads,
        Self::Enter,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Spin => "spin",
            Self::Zero => "zero_memory",
            Self::Revoke => "revoke_copies",
            Self::DeleteEndpoints => "delete_endpoints",
            Self::DeleteNotifications => "delete_notifications",
            Self::CancelSends => "cancel_sends",
            Self::SendLongMessages => "send_long_messages",
            Self::MoveThreads => "move_threads",
            Self::Enter => "enter_the_kernel",
        }
    }

    /// Makes the attacker of `core`, and all that it needs.
    pub fn prepare(self, crew: &mut Crew, core: u64) -> Result<(), SetupError> {
        match self {
            Self::Rest => Ok(()),
            Self::Spin => crew.attacker(core, || count_down(SPIN)).map(drop),
            Self::Zero => zero(crew, core),
            Self::Revoke => revoke(crew, core),
            Self::DeleteEndpoints => delete(crew, core, ObjectType::Endpoint),
            Self::DeleteNotifications => delete(crew, core, ObjectType::Notification),
            Self::CancelSends => cancel_sends(crew, core),
            Self::SendLongMessages => send_long_messages(crew, core),
            Self::MoveThreads => move_threads(crew, core),
            Self::Enter => {
                let notification = crew.process.resources.notification()?;
                crew.attacker(core, move || notification.signal()).map(drop)
            }
        }
    }
}

/// Half of the memory has been used, and is zeroed before it is used again.
fn zero(crew: &mut Crew, core: u64) -> Result<(), SetupError> {
    let resources = &mut crew.process.resources;
    let memory = resources.untyped(ZEROED_BITS + 1)?;
    let slot = resources.allocate_slot()?;
    let attack = move || {
        let made = memory.retype(ObjectType::Untyped(ZEROED_BITS), slot, 1);
        made.and_then(|()| slot.delete()).expect("there is room");
    };
    crew.attacker(core, attack).map(drop)
}

fn revoke(crew: &mut Crew, core: u64) -> Result<(), SetupError> {
    let resources = &mut crew.process.resources;
    let original = resources.endpoint()?;
    let original = resources.slot_of(original);
    let first = resources.allocate_slots(COPIES)?;
    let attack = move || {
        for i in 0..COPIES {
            let slot = first.root().slot(first.index() + i);
            slot.copy_from(original, Rights::ALL)
                .expect("the slot is empty");
        }
        original.revoke().expect("the slot is there");
    };
    crew.attacker(core, attack).map(drop)
}

/// An endpoint or a notification goes, with threads that wait there, and is made anew.
fn delete(crew: &mut Crew, core: u64, kind: ObjectType) -> Result<(), SetupError> {
    let resources = &mut crew.process.resources;
    let memory = resources.untyped(kind.size_bits())?;
    let slot = resources.allocate_slot()?;
    memory.retype(kind, slot, 1)?;
    let queue: Endpoint = slot.capability();
    let quiet = crew.quiet(core)?;
    let mut helpers = [None; QUEUED as usize];
    for helper in &mut helpers {
        // At a notification, too, a thread waits so.
        let (tcb, _) = crew.thread(core, LOW, LONG, move || loop {
            queue.wait();
        })?;
        *helper = Some(tcb);
    }
    let attack = move || {
        quiet.wait();
        slot.delete().expect("the slot is there");
        memory.retype(kind, slot, 1).expect("there is room");
        // Those who looked for it while it was not there have failed for good.
        helpers.into_iter().flatten().for_each(again);
    };
    crew.attacker(core, attack).map(drop)
}

fn again(thread: Tcb) {
    thread.resume().expect("the thread is there");
}

fn cancel_sends(crew: &mut Crew, core: u64) -> Result<(), SetupError> {
    let resources = &mut crew.process.resources;
    let endpoint = resources.endpoint()?;
    let badged = resources.mint(endpoint, Rights::ALL, 7)?;
    let slot = resources.slot_of(badged);
    let quiet = crew.quiet(core)?;
    for _ in 0..QUEUED {
        crew.thread(core, LOW, LONG, move || loop {
            badged.send(Message::EMPTY);
        })?;
    }
    let attack = move || {
        quiet.wait();
        slot.cancel_badged_sends().expect("the slot is there");
    };
    crew.attacker(core, attack).map(drop)
}

/// A call and its answer, as long as can be, with as many capabilities.
fn send_long_messages(crew: &mut Crew, core: u64) -> Result<(), SetupError> {
    let (endpoint, reply) = (
        crew.process.resources.endpoint()?,
        crew.process.resources.reply()?,
    );
    let space = Space::new(&mut crew.process)?;
    let endpoint = space.put(&crew.process, 0, endpoint)?;
    let reply = space.put(&crew.process, 1, reply)?;
    let message = move || Message::long(0, &[0; WORDS]).with_caps(&[endpoint.cptr(); 3]);
    let (server, _) = crew.thread(core, LOW + 1, LONG, move || {
        endpoint.recv(reply);
        loop {
            reply.reply_recv(endpoint, message());
        }
    })?;
    let client = crew.attacker(core, move || {
        endpoint.call(message());
    })?;
    space.settle(&crew.process, server)?;
    space.settle(&crew.process, client)
}

/// A thread that runs on one of the attackers' cores is sent to the next one: both cores have to be
/// told, and the first has to stop.
fn move_threads(crew: &mut Crew, core: u64) -> Result<(), SetupError> {
    // Half of the time, so that the attackers run, too.
    let time = SchedParams::new(1_000, 2_000);
    let (_, context) = crew.thread(core, LOW + 1, time, || loop {
        count_down(SPIN);
        pause();
    })?;
    let cores = crew.attacked_cores();
    let controls = cores.clone().map(|core| crew.control(core));
    let controls: Vec<_> = controls.collect();
    let mut next = (core - cores.start) as usize;
    let attack = move || {
        next = (next + 1) % controls.len();
        controls[next]
            .configure(context, time)
            .expect("the context is there");
    };
    crew.attacker(core, attack).map(drop)
}
