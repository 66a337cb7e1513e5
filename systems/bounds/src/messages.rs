//! The longest messages, with the most capabilities, through the deepest capability spaces.

use sandglass::abi::message::{MessageInfo, MAX_EXTRA_CAPS, MAX_LENGTH};
use sandglass::abi::syscall::Syscall;
use sandglass::cap::{Endpoint, FrameSize, Reply, Rights};
use sandglass::time::{spin_until, ticks};
use sandglass::{println, SetupError};

use crate::crowd::{HIGH, LOW, MIDDLE};
use crate::lab::{deep, Cost, Lab, LONG};
use crate::program::Call;
use crate::refills;
use crate::space::{Dweller, Space, LEAVES};

/// Depths to compare: that of an ordinary system, what real systems keep to, the deepest with
/// guards, the deepest.
pub const LEVELS: [u32; 4] = [1, 8, 32, 64];

/// The longest message.
const FULL: MessageInfo = MessageInfo::new(0, 0, MAX_EXTRA_CAPS, MAX_LENGTH);

/// Leaves of every space.
const ENDPOINT: u64 = 0;
const OTHER_ENDPOINT: u64 = 1;
const REPLY: u64 = 2;
const OTHER_REPLY: u64 = 3;
const ROOT: u64 = 4;
const PASSED: u64 = 5;
const RECEIVED: u64 = 6;

pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    for levels in LEVELS {
        println!("bounds: messages through {levels} levels");
        let mut stage = Stage::new(lab, levels)?;
        stage.send(lab)?;
        stage.call(lab)?;
        stage.receive(lab)?;
        stage.reply(lab)?;
        stage.reply_recv(lab)?;
        stage.send_and_receive(lab)?;
        stage.faults(lab)?;
        stage.everything(lab)?;
    }
    Ok(())
}

/// Three threads in spaces of their own that have the same in the same leaves.
struct Stage {
    levels: u64,
    endpoint: Endpoint,
    other_endpoint: Endpoint,
    /// What the server offers.
    reply: Reply,
    client: Actor,
    server: Actor,
    other: Actor,
}

struct Actor {
    space: Space,
    dweller: Dweller,
}

impl Actor {
    fn address(&self, leaf: u64) -> u64 {
        self.space.address(leaf)
    }

    fn call(&self, number: Syscall, leaf: u64) -> Call {
        Call::new(number, self.address(leaf))
    }

    /// The thread will say the longest message: `first` and `second` are its capabilities, and the
    /// third is one that can be received.
    fn speak(&self, first: u64, second: u64) {
        for i in 0..MAX_LENGTH {
            self.dweller.set_word(i, i as u64);
        }
        let caps = [first, second, PASSED].map(|leaf| self.address(leaf));
        self.dweller.set_caps(&caps);
        self.dweller
            .set_receive_slot(self.address(ROOT), self.address(RECEIVED));
    }
}

impl Stage {
    fn new(lab: &mut Lab, levels: u32) -> Result<Self, SetupError> {
        let resources = &mut lab.process.resources;
        let (endpoint, other) = (resources.endpoint()?, resources.endpoint()?);
        let replies = (resources.reply()?, resources.reply()?);
        Ok(Self {
            levels: u64::from(levels),
            endpoint,
            other_endpoint: other,
            reply: replies.0,
            client: Self::actor(lab, levels, LOW, (endpoint, other), replies)?,
            server: Self::actor(lab, levels, HIGH, (endpoint, other), replies)?,
            other: Self::actor(lab, levels, MIDDLE, (endpoint, other), replies)?,
        })
    }

    fn actor(
        lab: &mut Lab,
        levels: u32,
        priority: u8,
        endpoints: (Endpoint, Endpoint),
        replies: (Reply, Reply),
    ) -> Result<Actor, SetupError> {
        let context = lab.context(LONG)?;
        let process = &mut lab.process;
        let space = Space::new(process, levels)?;
        let passed = process.resources.frame(FrameSize::Small)?;
        let dweller = Dweller::new(process, &space, priority, context)?;
        space.put(process, ENDPOINT, endpoints.0, Rights::ALL)?;
        space.put(process, OTHER_ENDPOINT, endpoints.1, Rights::ALL)?;
        space.put(process, REPLY, replies.0, Rights::ALL)?;
        space.put(process, OTHER_REPLY, replies.1, Rights::ALL)?;
        space.put(process, PASSED, passed, Rights::ALL)?;
        space.put_root(process, ROOT)?;
        let actor = Actor { space, dweller };
        // Two that arrive as badges, and one that is copied.
        actor.speak(ENDPOINT, ENDPOINT);
        Ok(actor)
    }

    /// What was received goes, and everybody stops.
    fn clear(&self) -> Result<(), SetupError> {
        for actor in [&self.client, &self.server, &self.other] {
            actor.dweller.member.tcb.suspend()?;
            actor.space.clear(RECEIVED)?;
            actor.speak(ENDPOINT, ENDPOINT);
        }
        Ok(())
    }

    /// `actor` makes `call`, and everybody else who can runs.
    fn run(&self, lab: &Lab, actor: &Actor, call: Call) -> Result<(), SetupError> {
        actor.dweller.member.start(&call.once())?;
        lab.settle()
    }

    /// The same, measured.
    fn measure(&self, lab: &Lab, name: &str, actor: &Actor, call: Call) -> Result<(), SetupError> {
        actor.dweller.member.start(&call.measured())?;
        deep(name, self.levels, Cost::First, || lab.settle())?;
        self.clear()
    }

    fn receiving(&self, actor: &Actor) -> Call {
        actor
            .call(Syscall::Recv, ENDPOINT)
            .reply(actor.address(REPLY))
    }

    fn send(&mut self, lab: &Lab) -> Result<(), SetupError> {
        self.run(lab, &self.server, self.receiving(&self.server))?;
        let call = self.client.call(Syscall::Send, ENDPOINT).info(FULL);
        self.measure(lab, "send-120-words-3-caps", &self.client, call)
    }

    fn call(&mut self, lab: &Lab) -> Result<(), SetupError> {
        self.run(lab, &self.server, self.receiving(&self.server))?;
        let call = self.client.call(Syscall::Call, ENDPOINT).info(FULL);
        self.measure(lab, "call-120-words-3-caps", &self.client, call)
    }

    fn receive(&mut self, lab: &Lab) -> Result<(), SetupError> {
        let call = self.client.call(Syscall::Call, ENDPOINT).info(FULL);
        self.run(lab, &self.client, call)?;
        let call = self.receiving(&self.server);
        self.measure(lab, "recv-120-words-3-caps", &self.server, call)
    }

    /// The client has called the server, which has received it.
    fn calling(&self, lab: &Lab) -> Result<(), SetupError> {
        self.run(lab, &self.server, self.receiving(&self.server))?;
        let call = self.client.call(Syscall::Call, ENDPOINT);
        self.run(lab, &self.client, call)?;
        self.server.speak(PASSED, PASSED);
        Ok(())
    }

    fn reply(&mut self, lab: &Lab) -> Result<(), SetupError> {
        self.calling(lab)?;
        let call = self.server.call(Syscall::Send, REPLY).info(FULL);
        self.measure(lab, "reply-120-words-3-caps", &self.server, call)
    }

    /// The answer and the next request are as long as can be.
    fn reply_recv(&mut self, lab: &Lab) -> Result<(), SetupError> {
        self.calling(lab)?;
        let next = self.other.call(Syscall::Call, ENDPOINT).info(FULL);
        self.run(lab, &self.other, next)?;
        let call = self
            .server
            .call(Syscall::ReplyRecv, ENDPOINT)
            .info(FULL)
            .reply(self.server.address(REPLY));
        self.measure(lab, "reply-recv-120-words-3-caps", &self.server, call)
    }

    /// One thread waits for a message, and another's waits to be received.
    fn crossing(&self, lab: &Lab) -> Result<Call, SetupError> {
        let waiting = self
            .client
            .call(Syscall::Recv, OTHER_ENDPOINT)
            .reply(self.client.address(OTHER_REPLY));
        self.run(lab, &self.client, waiting)?;
        let next = self.other.call(Syscall::Call, ENDPOINT).info(FULL);
        self.run(lab, &self.other, next)?;
        self.server.speak(OTHER_ENDPOINT, OTHER_ENDPOINT);
        Ok(self
            .server
            .call(Syscall::NBSendRecv, ENDPOINT)
            .info(FULL)
            .reply(self.server.address(REPLY))
            .destination(self.server.address(OTHER_ENDPOINT)))
    }

    /// A message goes to one thread and, in the same system call, another comes.
    fn send_and_receive(&mut self, lab: &Lab) -> Result<(), SetupError> {
        let call = self.crossing(lab)?;
        self.measure(lab, "nb-send-recv-120-words-3-caps", &self.server, call)
    }

    /// The same, and all three have their budgets in as many pieces as can be; half of the crowd waits
    /// behind the one that is received from, half behind the one that is sent to, and one of these
    /// offers the reply object that the server takes from it.
    fn everything(&mut self, lab: &mut Lab) -> Result<(), SetupError> {
        let authority = lab.process.authority();
        let count = lab.crowd_size();
        lab.crowd.prioritise(authority, count, |_| LOW - 1)?;
        let calls = [
            Call::new(Syscall::Send, self.endpoint.address()),
            Call::new(Syscall::Wait, self.other_endpoint.address()),
        ];
        for (member, i) in lab.crowd.members().iter().zip(0..) {
            member.start(&calls[i % calls.len()].once())?;
        }
        lab.settle()?;
        // Those of odd numbers receive.
        let middle = lab.crowd.members()[((count / 2) | 1) as usize];
        let offering = Call::new(Syscall::Recv, self.other_endpoint.address());
        let offering = offering.reply(self.reply.address());
        let actors = [&self.client, &self.other, &self.server];
        let mut bound = actors.map(|actor| actor.dweller.member.context);
        // Whether the one that is sent to runs next.
        for client_priority in [LOW, HIGH + 1] {
            middle.start(&offering.once())?;
            lab.settle()?;
            let client = self.client.dweller.member;
            client.tcb.set_priority(authority, client_priority)?;
            let mut latest = 0;
            for (actor, bound) in actors.into_iter().zip(&mut bound) {
                let (context, period_us) = refills::fragmented(lab, true)?;
                let member = actor.dweller.member;
                bound.unbind()?;
                context.bind(member.tcb)?;
                *bound = context;
                latest = ticks() + lab.us_to_ticks(period_us);
            }
            let call = self.crossing(lab)?;
            spin_until(latest);
            self.measure(lab, "nb-send-recv-fragmented-budgets", &self.server, call)?;
            client.tcb.set_priority(authority, LOW)?;
        }
        lab.crowd.stop(count)?;
        let restored = |i| if i % 2 == 0 { LOW } else { HIGH };
        lab.crowd.prioritise(authority, count, restored)
    }

    /// The third capability of a call cannot be found, which is a fault that somebody handles; and
    /// what of it is answered.
    fn faults(&mut self, lab: &Lab) -> Result<(), SetupError> {
        let (client, server) = (&self.client, &self.server);
        let vspace = lab.process.space.vspace().root();
        client.dweller.member.tcb.set_space(
            Some(self.endpoint),
            client.space.root,
            client.space.guard,
            vspace,
        )?;
        // Only a guard can fail at the last level; the deepest have none there.
        if self.levels <= 8 {
            self.run(lab, server, self.receiving(server))?;
            client.dweller.set_caps(&[
                client.address(ENDPOINT),
                client.address(ENDPOINT),
                client.address(LEAVES),
            ]);
            let call = client.call(Syscall::Call, ENDPOINT).info(FULL);
            self.measure(lab, "call-whose-last-cap-is-missing", client, call)?;
        }
        self.run(lab, server, self.receiving(server))?;
        self.run(lab, client, Call::new(Syscall::DebugHalt, 0))?;
        let call = server.call(Syscall::Send, REPLY).info(FULL);
        self.measure(lab, "answer-to-unknown-system-call", server, call)
    }
}
