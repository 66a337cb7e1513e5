//! The longest paths that are known, each with all that is dear in one visit of the kernel: `sandglass bounds --worst`
//! measures these alone, and compares them with what is computed (`assurance/wcet/cases.toml`).
//!
//! A server, with [`Syscall::NBSendRecv`], does something first: it answers a message, or invokes an object. The
//! thread that is answered has no time: another spent the context that was lent to it, and waits for its release. Then the
//! server receives: it offers a reply object that another thread waits with, gives back the context of its notification,
//! and takes a message whose sender has its budget in as many pieces as can be. In a closed system it does so with
//! [`Syscall::ReplyRecv`], which offers the reply object by which it answers. A thread is due by then, above those,
//! whose budget is in pieces, too: it runs. Others are in all queues, as many places apart as can be.
//!
//! [`interrupt`] has the longest path of what is not asked for, [`invoked`] what a first phase may invoke.

mod interrupt;
mod invoked;
mod place;

use alloc::vec::Vec;
use core::ops::Range;

use sandglass::abi::invocation as label;
use sandglass::abi::message::{MessageInfo, MAX_EXTRA_CAPS, MAX_LENGTH, REGISTER_MRS};
use sandglass::abi::object as object_type;
use sandglass::abi::syscall::Syscall;
use sandglass::arch::label as arch_label;
use sandglass::cap::{
    AsidPool, Attributes, Endpoint, FrameSize, Notification, ObjectType, Pml4, Reply, Rights,
    SchedContext, SchedParams, Untyped,
};
use sandglass::time::{spin_until, ticks};
use sandglass::timer::Timer;
use sandglass::{boot, println, SetupError};

use crate::crowd::{nth, Member, HIGH, LOW, MIDDLE};
use crate::lab::{single, Cost, Lab, LONG};
use crate::lines::{self, ROW};
use crate::program::{spinning_measured, Call};
use crate::refills;
use crate::space::{Dweller, Space, Ways, LEAVES};
use place::{OfActor, LINES};

// Leaves of every space. Where CNodes have few slots, two neighbours' ways have a line in common: those of even numbers are
// what one visit names.
const ENDPOINT: u64 = 0;
const NOTIFICATION: u64 = 1;
const OFFERED: u64 = 2;
const HANDLER: u64 = 3;
const ANSWERED: u64 = 4;
const TARGET: u64 = 5;
const ROOT: u64 = 6;
const FIRST: u64 = 7;
const PASSED: u64 = 8;
const FREE: u64 = 9;
const RECEIVED: u64 = 10;
/// More copies of what is named more than once in a visit.
const ROOT_TOO: u64 = 11;
const PASSED_TOO: [u64; 2] = [12, 14];
const ENDPOINT_TOO: u64 = 13;
const HANDLER_TOO: u64 = 15;

/// Visitors with a part.
const HOLDER: usize = 1;
const WAITER: usize = 2;
const DUE: usize = 3;
const YIELDED_TO: usize = 4;

/// A context with this much is used up by a thread that yields, for long.
const SPENT: SchedParams = SchedParams::new(1_000, 100_000_000);
/// What the server runs on.
const PLENTY: SchedParams = SchedParams::new(2_000_000, 100_000_000);

/// The longest message, without capabilities and with the most.
const WORDS: MessageInfo = MessageInfo::new(0, 0, 0, MAX_LENGTH);
const FULL: MessageInfo = MessageInfo::new(0, 0, MAX_EXTRA_CAPS, MAX_LENGTH);

/// What the server does first: what the kernel lets such a phase do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// It answers a call, with capabilities.
    Answers,
    /// It answers a call, as in a closed system: with ReplyRecv, and nobody sends capabilities.
    OnlyAnswers,
    /// It sends a message, with capabilities, whose receiver has its budget in pieces.
    Sends,
    /// It is to make as many objects as can be, for which there is too little memory.
    Makes,
    /// It makes a pool of identifiers.
    MakesPool,
    /// It gives the last identifier of a pool.
    Assigns,
    /// It maps a page.
    Maps,
}

/// A name of `assurance/wcet/cases.toml`, what happens, and through how many levels: of 64, those with guards, which are 32, have
/// the most instructions, and those without the most lines of data.
const CASES: [(&str, First, u32); 11] = [
    ("open-8", First::Answers, 8),
    ("open-64", First::Answers, 32),
    ("open-64", First::Answers, 64),
    ("closed-8", First::OnlyAnswers, 8),
    ("closed-64", First::OnlyAnswers, 32),
    ("closed-64", First::OnlyAnswers, 64),
    ("send", First::Sends, 8),
    ("retype", First::Makes, 8),
    ("make-pool", First::MakesPool, 8),
    ("assign", First::Assigns, 8),
    ("map", First::Maps, 8),
];

/// Arrangements of the others that are tried.
const SEEDS: u64 = 4;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for (name, first, levels) in CASES {
        println!("bounds: the worst of {name}");
        for seed in 0..SEEDS {
            Scene::new(lab, first, levels, seed)?.play(lab, name)?;
        }
    }
    println!("bounds: the worst of vector");
    let timer = Timer::new(&mut lab.process, 0)?;
    for seed in 0..interrupt::SEEDS {
        Scene::new(lab, First::Answers, 1, seed)?.is_interrupted(lab, timer)?;
    }
    Ok(())
}

/// A thread in a deep space.
struct Actor {
    space: Space,
    dweller: Dweller,
}

impl Actor {
    fn address(&self, leaf: u64) -> u64 {
        self.space.address(leaf)
    }

    /// Its message has these capabilities, and it can receive one.
    fn speak(&self, caps: [u64; MAX_EXTRA_CAPS]) {
        for i in 0..MAX_LENGTH {
            self.dweller.set_word(i, i as u64);
        }
        self.dweller.set_caps(&caps.map(|leaf| self.address(leaf)));
        self.dweller
            .set_receive_slot(self.address(ROOT), self.address(RECEIVED));
    }
}

/// Threads of the crowd that are released about when the client is: of this priority, and at times that have another one of these
/// bits more.
struct Beside {
    members: Range<usize>,
    priority: u8,
    bits: Range<u32>,
}

/// What all have capabilities of.
#[derive(Clone, Copy)]
struct Shared {
    endpoint: Endpoint,
    /// Where the client calls, or its faults go.
    handler: Endpoint,
    answered: Reply,
    offered: Reply,
    notification: Notification,
}

struct Scene {
    first: First,
    /// Of the places of the others in queues.
    seed: u64,
    shared: Shared,
    /// Where the one waits whose reply object is taken.
    elsewhere: Endpoint,
    server: Actor,
    client: Actor,
    sender: Actor,
}

impl Scene {
    fn new(lab: &mut Lab, first: First, levels: u32, seed: u64) -> Result<Self, SetupError> {
        let resources = &mut lab.process.resources;
        let shared = Shared {
            endpoint: lines::object(resources, LINES.endpoint, ObjectType::Endpoint)?,
            handler: lines::object(resources, LINES.handler, ObjectType::Endpoint)?,
            answered: lines::object(resources, LINES.answered, ObjectType::Reply)?,
            offered: lines::object(resources, LINES.offered, ObjectType::Reply)?,
            notification: lines::object(resources, LINES.notification, ObjectType::Notification)?,
        };
        let elsewhere = lines::object(resources, LINES.elsewhere, ObjectType::Endpoint)?;
        // Who gets a message is not to run before who is due.
        let calls = match first {
            First::Sends => LOW,
            _ => CALLS,
        };
        Ok(Self {
            first,
            seed,
            shared,
            elsewhere,
            server: actor(lab, levels, SERVES, LONG, &shared, &LINES.server)?,
            client: actor(lab, levels, calls, SPENT, &shared, &LINES.client)?,
            sender: actor(lab, levels, SENDS, LONG, &shared, &LINES.sender)?,
        })
    }

    fn play(&self, lab: &mut Lab, name: &str) -> Result<(), SetupError> {
        self.others_spend_their_time(lab)?;
        self.others_wait_for_time(lab, 0)?;
        let mut lent = Vec::new();
        match self.first {
            First::Sends => lent.push(self.client_receives(lab)?),
            _ => {
                let release = lone_bit(lab, ticks());
                self.others_beside(lab, release, &BEFORE_CLIENT)?;
                self.client_waits(lab, release)?;
                self.others_beside(lab, release, &AFTER_CLIENT)?;
                self.others_near(lab, release, NEAR_CLIENT, CALLS)?;
            }
        }
        self.others_wait_for_time(lab, 1)?;
        if self.first != First::OnlyAnswers {
            self.reply_object_is_used(lab)?;
        }
        lent.push(self.server_waits(lab)?);
        lent.push(self.message_waits(lab)?);
        let (due, latest) = self.somebody_falls_due(lab)?;
        lent.push(due);
        spin_until(latest);
        self.shared.notification.signal();
        single(
            name,
            u64::from(self.server.space.levels),
            Cost::Stretch,
            || lab.settle(),
        )?;
        self.clear(lab, &lent)
    }

    /// Others of three priorities, that of who will be due among them, are to be released at times that differ in many bits, once
    /// they start again.
    fn others_spend_their_time(&self, lab: &mut Lab) -> Result<(), SetupError> {
        let members = &lab.crowd.members()[TIMED];
        for (member, i) in members.iter().zip(0u64..) {
            let apart = 1 << ((i / 3 + 5 * self.seed) % APART_BITS);
            let period = match (i + self.seed) % 4 {
                0 => SPENT.time.period_us + apart,
                _ => SPENT.time.period_us - apart,
            };
            self.spends(lab, *member, PRIORITIES_OF_TIMED[(i % 3) as usize], period)?;
        }
        self.all_stop(lab, TIMED)
    }

    /// Those who have used up their time stop.
    fn all_stop(&self, lab: &Lab, which: Range<usize>) -> Result<(), SetupError> {
        lab.settle()?;
        for member in &lab.crowd.members()[which] {
            member.tcb.suspend()?;
        }
        Ok(())
    }

    /// A half of these, the first if `half` is 0, wait for their release from now on.
    fn others_wait_for_time(&self, lab: &Lab, half: usize) -> Result<(), SetupError> {
        for (i, member) in lab.crowd.members()[TIMED].iter().enumerate() {
            if (i / 3) % 2 == half {
                member.start(&Call::new(Syscall::Yield, 0).once())?;
            }
        }
        Ok(())
    }

    /// A thread uses up what it has, and waits for `period_us`.
    fn spends(
        &self,
        lab: &Lab,
        member: Member,
        priority: u8,
        period_us: u64,
    ) -> Result<(), SetupError> {
        let params = SchedParams::new(SPENT.time.budget_us, period_us);
        lab.control.configure(member.context, params)?;
        lab.prioritise(member, priority)?;
        member.start(&Call::new(Syscall::Yield, 0).once())
    }

    /// A thread that [makes](Self::spends) its only system call now waits until `release`, in ticks, or a moment behind that:
    /// the same for all.
    fn spends_until(
        &self,
        lab: &Lab,
        member: Member,
        priority: u8,
        release: u64,
    ) -> Result<(), SetupError> {
        let period_us = period_until(lab, release);
        self.spends(lab, member, priority, period_us)?;
        lab.settle_from(release - lab.us_to_ticks(period_us))
    }

    /// The client waits for a message; its budget is in pieces.
    fn client_receives(&self, lab: &mut Lab) -> Result<SchedContext, SetupError> {
        let client = &self.client;
        client.speak([PASSED; MAX_EXTRA_CAPS]);
        let (pieces, _) = refills::fragmented(lab, true)?;
        let Member { tcb, context } = client.dweller.member;
        context.unbind()?;
        pieces.bind(tcb)?;
        let receives = Call::new(Syscall::Recv, client.address(HANDLER));
        let receives = receives.reply(client.address(ANSWERED));
        client.dweller.member.start(&receives.once())?;
        lab.visitors[HOLDER].context.unbind()?;
        lab.settle()?;
        Ok(pieces)
    }

    /// The client is to be answered; whoever has its context waits for time, until about `release`, in ticks.
    fn client_waits(&self, lab: &mut Lab, release: u64) -> Result<(), SetupError> {
        let holder = lab.visitors[HOLDER];
        let receives = Call::new(Syscall::Recv, self.shared.handler.address());
        let receives = receives.reply(self.shared.answered.address());
        lab.prioritise(holder, HOLDS)?;
        holder.start(&receives.then(Call::new(Syscall::Yield, 0)))?;
        lab.settle()?;
        holder.context.unbind()?;
        let client = &self.client;
        client.speak([PASSED; MAX_EXTRA_CAPS]);
        let call = Call::new(Syscall::Call, client.address(HANDLER));
        let member = client.dweller.member;
        let period_us = period_until(lab, release);
        let params = SchedParams::new(SPENT.time.budget_us, period_us);
        lab.control.configure(member.context, params)?;
        member.start(&call.once())?;
        lab.settle_from(release - lab.us_to_ticks(period_us))
    }

    /// Others wait to be released at times that have one bit more than `release`, and no matter which lower ones.
    fn others_beside(&self, lab: &Lab, release: u64, which: &[Beside]) -> Result<(), SetupError> {
        for group in which {
            let members = &lab.crowd.members()[group.members.clone()];
            let sure = unsure_bits(lab)..group.bits.end;
            let bits = sure
                .filter(|bit| group.bits.contains(bit))
                .map(|bit| 1 << bit);
            let bits = bits.filter(|&bit: &u64| release & bit == 0);
            let times = bits.map(|bit| ((release | bit) & !(bit - 1)) | (bit / 2));
            let times = times.take_while(|&time| time <= lab.max_period);
            for (member, time) in members.iter().zip(times) {
                self.spends_until(lab, *member, group.priority, time)?;
            }
        }
        Ok(())
    }

    /// Others wait to be released just before and behind `release`: at times that differ from it first in each of the bits that
    /// are not sure. One of the two times that are as far before it as behind it does, whatever its bits are. As no thread starts
    /// to the tick, also at all times very near.
    fn others_near(
        &self,
        lab: &Lab,
        release: u64,
        which: Range<usize>,
        priority: u8,
    ) -> Result<(), SetupError> {
        let far = (0..unsure_bits(lab)).rev().map(|bit| 1 << bit);
        let apart = far.flat_map(|apart: u64| [release - apart, release + apart]);
        let times = apart.chain(release - START_VARIES..=release + START_VARIES);
        for (member, time) in lab.crowd.members()[which].iter().zip(times) {
            self.spends_until(lab, *member, priority, time)?;
        }
        Ok(())
    }

    /// Another thread waits for a call with the reply object that the server will offer, among others.
    fn reply_object_is_used(&self, lab: &mut Lab) -> Result<(), SetupError> {
        let waiter = lab.visitors[WAITER];
        lab.prioritise(waiter, WAITS)?;
        let receives = Call::new(Syscall::Recv, self.elsewhere.address());
        let receives = receives.reply(self.shared.offered.address());
        // Without a reply object.
        let waits = Call::new(Syscall::Wait, self.elsewhere.address());
        let [before, after] = WAITING;
        self.others_queue(lab, waits, before, &WAIT_BEFORE)?;
        waiter.start(&receives.once())?;
        lab.settle()?;
        self.others_queue(lab, waits, after, &WAIT_AFTER)
    }

    /// Others make the same call, with these priorities.
    fn others_queue(
        &self,
        lab: &Lab,
        call: Call,
        which: Range<usize>,
        priorities: &[u8],
    ) -> Result<(), SetupError> {
        for (member, &priority) in lab.crowd.members()[which].iter().zip(priorities) {
            lab.prioritise(*member, priority)?;
            member.start(&call.once())?;
        }
        lab.settle()
    }

    /// The server waits for a signal, and will have the context of the notification.
    fn server_waits(&self, lab: &mut Lab) -> Result<SchedContext, SetupError> {
        let (call, words) = self.first_call(lab)?;
        let wait = Call::new(Syscall::Wait, self.server.address(NOTIFICATION));
        let wait = wait
            .words(words)
            .reply(call.reply)
            .destination(call.destination);
        let Member { tcb, context } = self.server.dweller.member;
        tcb.bind_notification(self.shared.notification)?;
        self.server.dweller.member.start(&wait.then(call))?;
        lab.settle()?;
        context.unbind()?;
        let lent = lab.context_at(LINES.lent, PLENTY)?;
        lent.bind_notification(self.shared.notification)?;
        Ok(lent)
    }

    /// What the server does in its one system call, and the words that are in registers.
    fn first_call(&self, lab: &mut Lab) -> Result<(Call, [u64; 4]), SetupError> {
        let server = &self.server;
        let call = Call::new(Syscall::NBSendRecv, server.address(ENDPOINT));
        let call = call.reply(server.address(OFFERED));
        let to = |leaf| call.destination(server.address(leaf));
        server.speak([PASSED, PASSED_TOO[0], PASSED_TOO[1]]);
        Ok(match self.first {
            First::Answers => (to(ANSWERED).info(FULL), [0; 4]),
            First::OnlyAnswers => {
                let call = Call::new(Syscall::ReplyRecv, server.address(ENDPOINT));
                (call.reply(server.address(ANSWERED)).info(WORDS), [0; 4])
            }
            First::Sends => {
                // Two that arrive as badges, and one that is copied.
                server.speak([HANDLER, HANDLER_TOO, PASSED]);
                self.put(lab, TARGET, self.shared.handler.address())?;
                (to(TARGET).info(FULL), [0; 4])
            }
            First::Makes => self.invokes(to(TARGET), self.makes(lab)?),
            First::MakesPool => self.invokes(to(TARGET), self.makes_pool(lab)?),
            First::Assigns => self.invokes(to(TARGET), self.assigns(lab)?),
            First::Maps => self.invokes(to(TARGET), self.maps(lab)?),
        })
    }

    /// A message waits for the server, before others; its sender's budget is in pieces.
    fn message_waits(&self, lab: &mut Lab) -> Result<SchedContext, SetupError> {
        let sender = &self.sender;
        // Two that arrive as badges, and one that is copied.
        sender.speak([ENDPOINT, ENDPOINT_TOO, PASSED]);
        let Member { tcb, context } = sender.dweller.member;
        let (pieces, _) = refills::fragmented(lab, true)?;
        context.unbind()?;
        pieces.bind(tcb)?;
        let info = match self.first {
            First::OnlyAnswers => WORDS,
            _ => FULL,
        };
        let send = Call::new(Syscall::Send, sender.address(ENDPOINT)).info(info);
        let others = Call::new(Syscall::Send, self.shared.endpoint.address());
        let [before, after] = SENDING;
        self.others_queue(lab, others, before, &SEND_BEFORE)?;
        sender.dweller.member.start(&send.once())?;
        lab.settle()?;
        self.others_queue(lab, others, after, &SEND_AFTER)?;
        Ok(pieces)
    }

    /// A thread waits for its next piece of time, and all come until the time that is returned.
    fn somebody_falls_due(&self, lab: &mut Lab) -> Result<(SchedContext, u64), SetupError> {
        let due = lab.visitors[DUE];
        lab.prioritise(due, MIDDLE)?;
        for (member, i) in lab.crowd.members()[SOON].iter().zip(0u64..) {
            let priority = [LOW, MIDDLE][(i % 2) as usize];
            self.spends(lab, *member, priority, SOON_US + i * SOON_US / 16)?;
        }
        self.all_stop(lab, SOON)?;
        let (pieces, period_us) = refills::fragmented(lab, false)?;
        due.context.unbind()?;
        pieces.bind(due.tcb)?;
        due.start(&Call::new(Syscall::Yield, 0).once())?;
        lab.settle()?;
        // It has its own context for a moment.
        due.tcb.suspend()?;
        pieces.unbind()?;
        due.context.bind(due.tcb)?;
        self.yields_to_another(lab, due)?;
        due.context.unbind()?;
        pieces.bind(due.tcb)?;
        // Of who is given registers, all are loaded; of who makes a system call, x86_64 loads less.
        let registers = due.tcb.read_registers(false)?;
        due.tcb.write_registers(&registers, false)?;
        // Where it runs is to be looked up anew.
        let process = &lab.process;
        let vspace = process.space.vspace().root();
        due.tcb
            .set_space(None, process.cspace(), process.cspace_guard(), vspace)?;
        // Others will be due, too, but not above it or before it.
        for member in &lab.crowd.members()[SOON] {
            member.start(&Call::new(Syscall::Yield, 0).once())?;
        }
        Ok((pieces, ticks() + lab.us_to_ticks(2 * period_us)))
    }

    /// `due` yields to the context of another thread, and is to be told how much that consumed when it runs again: not before.
    fn yields_to_another(&self, lab: &mut Lab, due: Member) -> Result<(), SetupError> {
        let notification = lab.process.resources.notification()?;
        let another = lab.visitors[YIELDED_TO];
        lab.prioritise(another, MIDDLE)?;
        another.start(&Call::new(Syscall::Send, notification.address()).once())?;
        due.tcb.set_mc_priority(lab.process.authority(), MIDDLE)?;
        let info = MessageInfo::new(label::SCHED_CONTEXT_YIELD_TO, 0, 0, 0);
        let yields = Call::new(Syscall::Call, another.context.address());
        due.start(&yields.info(info).once())?;
        notification.wait();
        another.tcb.suspend()?;
        lab.process.resources.delete(notification)
    }

    /// Everybody stops, and has what it had.
    fn clear(&self, lab: &mut Lab, lent: &[SchedContext]) -> Result<(), SetupError> {
        for actor in [&self.server, &self.client, &self.sender] {
            actor.dweller.member.tcb.suspend()?;
        }
        // Pools are few.
        for leaf in [TARGET, FIRST, FREE] {
            self.server.space.clear(leaf)?;
        }
        lab.crowd.stop(OTHERS)?;
        // Whoever has it, if nobody was answered.
        self.client.dweller.member.context.unbind()?;
        for &context in lent {
            lab.process.resources.delete(context)?;
        }
        for i in [HOLDER, WAITER, DUE] {
            let visitor = lab.visitors[i];
            visitor.tcb.suspend()?;
            if i != WAITER {
                visitor.context.bind(visitor.tcb)?;
            }
        }
        Ok(())
    }
}

/// Members of the crowd that wait for messages elsewhere, or for their messages to be received, before and after the one
/// that matters; and for their time, late or soon.
const WAITING: [Range<usize>; 2] = [0..6, 6..12];
const SENDING: [Range<usize>; 2] = [12..18, 18..24];
const TIMED: Range<usize> = 24..180;
const SOON: Range<usize> = 180..188;
const PRIORITIES_OF_TIMED: [u8; 3] = [LOW, MIDDLE, HIGH];
/// Bits of the times of release, in µs, in which they differ.
const APART_BITS: u64 = 26;
/// The shortest period of those who are due soon.
const SOON_US: u64 = 5_000;

// Priorities, besides those of the crowd. Who is due has one in the lower half of all, and who has to do with the client in the
// upper half: so the tournament of the release queues has all of its rounds.
const SERVES: u8 = 200;
const HOLDS: u8 = 190;
const CALLS: u8 = 140;
/// Somebody waits for a release above all.
const ABOVE: u8 = 210;
/// Others have one of its bits less.
const WAITS: u8 = 0b1_1111;
const SENDS: u8 = 0b0_1111;
/// Of those who wait, or send, before and after: the last of equals, and a thread whose node is above that of another, cost the
/// most to take out.
const WAIT_BEFORE: [u8; 3] = [0b1_0111, 0b1_1011, 0b1_1111];
const WAIT_AFTER: [u8; 2] = [0b1_1101, 0b1_1110];
const SEND_BEFORE: [u8; 2] = [0b0_0111, 0b0_1011];
const SEND_AFTER: [u8; 2] = [0b0_1101, 0b0_1110];

/// In a time at which somebody is released, the bits below that of so many µs are not known, as it is not known to the tick when
/// somebody starts.
const UNSURE_US: u64 = 5;
/// Above all bits of a time.
const BITS: u32 = 64;
const BEFORE_CLIENT: [Beside; 2] = [
    Beside {
        members: 188..189,
        priority: ABOVE,
        bits: 40..41,
    },
    Beside {
        members: 189..190,
        priority: HOLDS,
        bits: 40..41,
    },
];
const AFTER_CLIENT: [Beside; 2] = [
    Beside {
        members: 190..191,
        priority: HOLDS,
        bits: 20..21,
    },
    Beside {
        members: 191..240,
        priority: CALLS,
        bits: 0..BITS,
    },
];
/// Those who are released just before and behind the client.
const NEAR_CLIENT: Range<usize> = 240..289;
/// Members that have a part in anything here or in [`interrupt`].
const OTHERS: u64 = 387;
/// By how many ticks it varies when a thread starts.
const START_VARIES: u64 = 8;
/// At most how long it takes until a thread is started, µs.
const PREPARING_US: u64 = 200;

/// The longest period of a thread that starts soon and is released at `release`, in ticks: in µs.
fn period_until(lab: &Lab, release: u64) -> u64 {
    lab.ticks_to_us(release - ticks()) - PREPARING_US
}

/// How many bits of a time, in ticks, are not sure.
fn unsure_bits(lab: &Lab) -> u32 {
    lab.us_to_ticks(UNSURE_US).ilog2()
}

/// A time, in ticks, that is later than twice `now` and has one bit, but for those that are not sure: these are in the middle of
/// what they can be.
fn lone_bit(lab: &Lab, now: u64) -> u64 {
    (2 * now.next_power_of_two()) | (1 << (unsure_bits(lab) - 1))
}

fn actor(
    lab: &mut Lab,
    levels: u32,
    priority: u8,
    params: SchedParams,
    shared: &Shared,
    lines: &OfActor,
) -> Result<Actor, SetupError> {
    let context = lab.context_at(lines.context, params)?;
    let process = &mut lab.process;
    // Each look-up goes a way of its own, so that it finds nothing of another in a cache.
    let space = Space::with_ways(process, levels, &lines.ways)?;
    let tcb = lines::object(&mut process.resources, lines.thread, ObjectType::Tcb)?;
    let frame = lines::object(&mut process.resources, lines.buffer, ObjectType::Page)?;
    let dweller = Dweller::made_of(process, &space, priority, context, tcb, frame)?;
    // To copy untyped memory, one looks for its children: at what was made before, which is memory, too.
    process.resources.untyped(12)?;
    space.put(process, ENDPOINT, shared.endpoint, Rights::ALL)?;
    space.put(process, HANDLER, shared.handler, Rights::ALL)?;
    space.put(process, OFFERED, shared.offered, Rights::ALL)?;
    space.put(process, ANSWERED, shared.answered, Rights::ALL)?;
    for leaf in [PASSED, PASSED_TOO[0], PASSED_TOO[1]] {
        let passed = process.resources.untyped(12)?;
        space.put(process, leaf, passed, Rights::ALL)?;
    }
    space.put(process, HANDLER_TOO, shared.handler, Rights::ALL)?;
    space.put(process, NOTIFICATION, shared.notification, Rights::ALL)?;
    space.put(process, ENDPOINT_TOO, shared.endpoint, Rights::ALL)?;
    space.put_root(process, ROOT)?;
    space.put_root(process, ROOT_TOO)?;
    Ok(Actor { space, dweller })
}
