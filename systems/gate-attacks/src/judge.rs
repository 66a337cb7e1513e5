//! Who decides what becomes of the victim: it has the victim's thread, context and CNode, and the time of cores. By the CNodes of
//! the gate and of the maker, it has others be the gate's client in the victim's place, and destroys them.

use alloc::format;
use core::hint;
use core::sync::atomic::AtomicU64;

use sandglass::cap::{
    CNode, Endpoint, Notification, Reply, Rights, SchedContext, SchedControl, SchedParams, Slot,
    Tcb,
};
use sandglass::{println, sys, time, Environment, Message};
use sandglass_mc_ipc::client::Supervised;

use crate::board::{board, get, moment, set, Board, HONEST};
use crate::heir::{self, Slots};
use crate::victim::order;
use crate::GATE;

/// What is done to the victim, while its request is in the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attack {
    /// Its thread is stopped, and goes on later.
    Stop,
    /// The same for good, and the gate is told. Then it is brought back.
    Die,
    /// Its context is taken from whoever has it.
    Unbind,
    /// Its budget becomes next to nothing.
    Starve,
    /// It is moved to another core.
    Move,
    /// Its capability of the gate is taken away, and given back.
    Rob,
}

const ATTACKS: [Attack; 6] = [
    Attack::Stop,
    Attack::Die,
    Attack::Unbind,
    Attack::Starve,
    Attack::Move,
    Attack::Rob,
];

/// What of an heir is destroyed, while its request is in the gate: the last capability goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    /// Its thread; nobody tells the gate before the request is finished.
    Thread,
    /// Its context; the same.
    Context,
    /// All that it is made of, by revoking the memory; and the gate is told.
    Memory,
}

const LOSSES: [Loss; 3] = [Loss::Thread, Loss::Context, Loss::Memory];

/// Status of the system when something is not as described.
const WRONG: u8 = 1;
/// Times that the right moment may be missed: nobody else may be in service.
const TRIES: usize = 20;
/// How many of the judge's periods something may take that is bound to happen.
const LIMIT: u64 = 200;
/// How many of them what was done to the victim lasts: several requests of others.
const LASTS: u64 = 2;
/// Until a request is in the gate for certain, from when its client is about to call, µs.
const ON_ITS_WAY_US: u64 = 10;
/// Longest further time within the moment, by the seed, µs.
const LATER_US: u64 = 20;
/// A budget and a period that are next to nothing, µs. A replenishment that has been scheduled comes at its time, whatever is
/// configured then.
const NOTHING: [u64; 2] = [20, 15_000];
/// Requests of each honest client after the last attack.
const FURTHER: u64 = 2;

pub struct Judge {
    env: &'static Environment,
    board: &'static Board,
    go: Notification,
    /// Where the operation tells of a moment.
    moment: Endpoint,
    reply: Reply,
    tcb: Tcb,
    context: SchedContext,
    cnode: CNode,
    gate_cnode: CNode,
    maker_cnode: CNode,
    /// Where heirs are made, and what they wait for.
    heirs: Endpoint,
    heir: Notification,
    gate: Supervised,
    number: u64,
    /// For moments that differ.
    random: u64,
}

/// Something did not happen within [`LIMIT`].
struct Late(&'static str);

impl Judge {
    pub fn new(env: &'static Environment) -> Self {
        Self {
            env,
            board: board(env),
            go: env.capability("go"),
            moment: env.capability("moment"),
            reply: env.capability("moment.reply"),
            tcb: env.capability("victim.tcb"),
            context: env.capability("victim.context"),
            cnode: env.capability("victim.cnode"),
            gate_cnode: env.capability("server.cnode"),
            maker_cnode: env.capability("maker.cnode"),
            heirs: env.capability("heirs"),
            heir: env.capability("heir"),
            gate: Supervised::described(env, "victim", GATE),
            number: 0,
            random: env.parameter("seed").wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// All attacks, one after the other. Returns the system's status.
    pub fn run(mut self) -> u8 {
        match self.attack_all() {
            Ok(attacks) => {
                println!("judge: {attacks} attacks, and everybody honest is served");
                0
            }
            Err(Late(what)) => {
                println!("judge: late: {what}");
                WRONG
            }
        }
    }

    fn attack_all(&mut self) -> Result<usize, Late> {
        // When everybody else has begun.
        self.until_all_are_served(1)?;
        for (kind, what) in [
            (order::FORGE, "the victim that forges messages"),
            (order::FAIL, "the victim whose operations fail"),
            (order::FLOOD, "the victim that floods the gate"),
        ] {
            self.order(kind);
            self.until_answered(what)?;
            self.until_usable()?;
        }
        let mut attacks = 3;
        for attack in ATTACKS {
            if attack == Attack::Move && self.other_core().is_none() {
                continue;
            }
            for moment in [moment::QUEUED, moment::SERVED] {
                self.attack(attack, moment)?;
                self.until_usable()?;
                attacks += 1;
            }
        }
        let handed_on = self
            .maker_slot(heir::gate_slot(self.cspace_bits()))
            .copy_from(self.gate_slot(), Rights::ALL);
        assert!(handed_on.is_ok(), "{handed_on:?}");
        for loss in LOSSES {
            for moment in [moment::QUEUED, moment::SERVED] {
                self.destroy(loss, moment)?;
                self.until_usable()?;
                attacks += 1;
            }
        }
        self.rob_for_good()?;
        self.until_all_are_served(FURTHER)?;
        Ok(attacks + 1)
    }

    /// Tries until the victim is struck at the right moment.
    fn attack(&mut self, attack: Attack, moment: u64) -> Result<(), Late> {
        for _ in 0..TRIES {
            self.begin(moment, self.go);
            let is_struck = self.at(moment, |judge| judge.strike(attack));
            if is_struck {
                self.pause();
                self.restore(attack, moment);
            }
            self.until("the victim that was attacked", |judge| {
                judge.gives_back(attack);
                get(&judge.board.done) == judge.number
            })?;
            self.until_usable()?;
            if is_struck {
                return Ok(());
            }
        }
        Err(Late("the moment to attack"))
    }

    /// Orders a request, of who waits for `go`. If it is to be queued, when another one is in service.
    fn begin(&mut self, moment: u64, go: Notification) {
        if moment == moment::QUEUED {
            set(&self.board.awaited, moment::BEFORE);
            self.moment.recv(self.reply);
        }
        set(&self.board.awaited, moment);
        self.order_by(order::ASK, go);
        if moment == moment::QUEUED {
            self.reply.send(Message::EMPTY);
        }
    }

    /// Waits until the victim's request is in the gate, and does something in the middle of an operation, if it is that moment.
    fn at(&mut self, moment: u64, act: impl FnOnce(&Self)) -> bool {
        let told = self.moment.recv(self.reply);
        set(&self.board.awaited, 0);
        let is_right = told.message.label() == moment;
        if is_right {
            let later = self.random_below(LATER_US);
            self.spin(ON_ITS_WAY_US + later);
            act(self);
        }
        self.reply.send(Message::EMPTY);
        is_right
    }

    fn strike(&self, attack: Attack) {
        let done = match attack {
            Attack::Stop => self.tcb.suspend(),
            Attack::Die => {
                let stopped = self.tcb.suspend();
                assert_eq!(self.gate.withdraw(), Ok(()), "the gate is there");
                stopped
            }
            Attack::Unbind => self.context.unbind(),
            Attack::Starve => self.give_time(self.own_core(), NOTHING),
            Attack::Move => {
                let other = self.other_core().unwrap_or(self.own_core());
                self.give_time(other, self.own_time())
            }
            Attack::Rob => self.spare().move_from(self.gate_slot()),
        };
        assert!(done.is_ok(), "{attack:?}: {done:?}");
    }

    /// The victim is as it was before.
    fn restore(&self, attack: Attack, moment: u64) {
        let done = match attack {
            Attack::Stop => self.tcb.resume(),
            Attack::Die => {
                let was_served = get(&self.board.finished) == self.number;
                // One in service is finished; one that waits is not served any more.
                assert_eq!(was_served, moment == moment::SERVED, "{moment}");
                self.tcb.resume()
            }
            Attack::Unbind => Ok(()),
            Attack::Starve | Attack::Move => self.give_time(self.own_core(), self.own_time()),
            Attack::Rob => self.gate_slot().move_from(self.spare()),
        };
        assert!(done.is_ok(), "{attack:?}: {done:?}");
    }

    /// A context that was taken away is the victim's again, and the gate is told; or it is already, or that one is blocked, and
    /// there is nothing left of its budget.
    fn gives_back(&self, attack: Attack) {
        if attack == Attack::Unbind {
            assert_eq!(self.gate.withdraw(), Ok(()), "the gate is there");
            let _ = self.context.bind(self.tcb);
        }
    }

    /// An heir is the gate's client in the victim's place, until it is destroyed at the right moment. Then the victim is again.
    fn destroy(&mut self, loss: Loss, moment: u64) -> Result<(), Late> {
        let heir = self.install_heir();
        let mut is_struck = false;
        for _ in 0..TRIES {
            self.begin(moment, self.heir);
            is_struck = self.at(moment, |judge| judge.destroy_at_once(loss, heir));
            if is_struck {
                break;
            }
            self.until_answered("the heir that is not attacked")?;
        }
        if !is_struck {
            return Err(Late("the moment to destroy"));
        }
        if loss == Loss::Memory && moment == moment::QUEUED {
            self.pause();
            assert_ne!(get(&self.board.finished), self.number, "it is withdrawn");
        } else {
            // On the time of others, as far as the heir had it.
            self.until("the request of who is destroyed", |judge| {
                get(&judge.board.finished) == judge.number
            })?;
        }
        self.remove_heir(heir);
        assert_ne!(get(&self.board.done), self.number, "{loss:?}: it goes on");
        Ok(())
    }

    /// The gate has an heir's capabilities where it had the victim's.
    fn install_heir(&self) -> Slots {
        let heir = Slots::of(self.heirs.call(Message::EMPTY));
        let made = [heir.tcb, heir.context];
        for ((place, spare), made) in self.client_slots().into_iter().zip(made) {
            let made = self.maker_slot(made);
            let moved = spare.move_from(place);
            let installed = moved.and_then(|()| place.copy_from(made, Rights::ALL));
            assert!(installed.is_ok(), "{installed:?}");
        }
        heir
    }

    /// The capabilities with which objects were made are here, and all others, also the gate's, were copied from them. So
    /// nothing is left of an object when these are revoked and deleted.
    fn destroy_at_once(&self, loss: Loss, heir: Slots) {
        let slot = |index| self.maker_slot(index);
        let last = |slot: Slot| slot.revoke().and_then(|()| slot.delete());
        let done = match loss {
            Loss::Thread => last(slot(heir.tcb)),
            Loss::Context => last(slot(heir.context)),
            Loss::Memory => slot(heir.memory).revoke(),
        };
        assert!(done.is_ok(), "{loss:?}: {done:?}");
        if loss == Loss::Memory {
            assert_eq!(self.gate.withdraw(), Ok(()), "the gate is there");
        }
    }

    /// What is left of an heir is destroyed, too, and the gate has the victim's capabilities again: each moves to an empty slot
    /// only, so the gate has none of the heir's any more. The next heir is made of the same memory, which must be free.
    fn remove_heir(&self, heir: Slots) {
        let revoked = self.maker_slot(heir.memory).revoke();
        assert!(revoked.is_ok(), "{revoked:?}");
        assert_eq!(self.gate.withdraw(), Ok(()), "the gate is there");
        for (place, spare) in self.client_slots() {
            let restored = place.move_from(spare);
            assert!(restored.is_ok(), "{restored:?}");
        }
    }

    /// The victim's next request is its last: it has no capability for it any more.
    fn rob_for_good(&mut self) -> Result<(), Late> {
        set(&self.board.awaited, moment::SERVED);
        self.order(order::ASK);
        let is_robbed = self.at(moment::SERVED, |judge| {
            let deleted = judge.gate_slot().delete();
            assert!(deleted.is_ok(), "{deleted:?}");
        });
        assert!(is_robbed, "it is the only moment that is told of");
        self.until_answered("the request of who has no capability any more")?;
        self.order(order::ASK);
        self.until("the victim's end", |judge| {
            get(&judge.board.called) == judge.number
        })?;
        self.pause();
        assert_ne!(get(&self.board.finished), self.number, "it cannot call");
        Ok(())
    }

    fn give_time(&self, core: u64, [budget, period]: [u64; 2]) -> sandglass::error::Result<()> {
        let control: SchedControl = self.env.capability(&format!("sched-control.{core}"));
        let params = SchedParams::new(budget, period).badge(self.env.parameter("victim-badge"));
        control.configure(self.context, params)
    }

    fn own_time(&self) -> [u64; 2] {
        ["victim-budget", "victim-period"].map(|name| self.env.parameter(name))
    }

    fn own_core(&self) -> u64 {
        self.env.parameter("victim-core")
    }

    fn other_core(&self) -> Option<u64> {
        self.env.find_parameter("other-core")
    }

    fn gate_slot(&self) -> Slot {
        self.slot(get(&self.board.slot))
    }

    /// The last one, which nobody uses.
    fn spare(&self) -> Slot {
        self.slot((1 << self.cspace_bits()) - 1)
    }

    fn slot(&self, index: u64) -> Slot {
        self.cnode.slot_at(index, self.cspace_bits() as u8)
    }

    fn maker_slot(&self, index: u64) -> Slot {
        self.maker_cnode.slot_at(index, self.cspace_bits() as u8)
    }

    fn cspace_bits(&self) -> u64 {
        self.env.parameter("cspace-bits")
    }

    /// The gate's slots of the thread and the context of the victim, and those where they are kept meanwhile.
    fn client_slots(&self) -> [(Slot, Slot); 2] {
        let client = self.env.parameter("victim-number");
        let bits = self.env.parameter("gate-cspace-bits");
        let last = (1 << bits) - 1;
        [0, 1].map(|which| {
            let first = get(&self.board.clients[which]);
            let slot = |index| self.gate_cnode.slot_at(index, bits as u8);
            (slot(first + client), slot(last - which as u64))
        })
    }

    fn order(&mut self, order: u64) {
        self.order_by(order, self.go);
    }

    fn order_by(&mut self, order: u64, go: Notification) {
        self.number += 1;
        set(&self.board.order, order);
        set(&self.board.number, self.number);
        go.signal();
    }

    fn until_answered(&self, what: &'static str) -> Result<(), Late> {
        self.until(what, |judge| get(&judge.board.done) == judge.number)
    }

    /// The victim has a request that is carried out.
    fn until_usable(&mut self) -> Result<(), Late> {
        self.order(order::ASK);
        self.until_answered("the victim, after an attack")?;
        assert_eq!(
            get(&self.board.finished),
            self.number,
            "a request that is answered"
        );
        Ok(())
    }

    /// Each honest client is answered so many times from now on.
    fn until_all_are_served(&self, times: u64) -> Result<(), Late> {
        let honest = self.env.parameter("honest") as usize;
        let answers = &self.board.answers[..honest.min(HONEST)];
        let mut before = [0; HONEST];
        for (before, now) in before.iter_mut().zip(answers) {
            *before = get(now);
        }
        let is_served = |(before, now): (&u64, &AtomicU64)| get(now) >= before + times;
        self.until("honest clients", |_| {
            before.iter().zip(answers).all(is_served)
        })
    }

    /// Looks in each of its periods.
    fn until(&self, what: &'static str, is_so: impl Fn(&Self) -> bool) -> Result<(), Late> {
        for _ in 0..LIMIT {
            if is_so(self) {
                return Ok(());
            }
            sys::yield_now();
        }
        Err(Late(what))
    }

    fn pause(&self) {
        for _ in 0..LASTS {
            sys::yield_now();
        }
    }

    fn spin(&self, us: u64) {
        let start = time::ticks();
        while time::ticks() - start < self.ticks(us) {
            hint::spin_loop();
        }
    }

    fn ticks(&self, us: u64) -> u64 {
        let tsc = self
            .env
            .tsc()
            .expect("the kernel reports the clock's frequency");
        tsc.us_to_ticks(us)
    }

    fn random_below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }
}
