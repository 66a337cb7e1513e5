//! Requests, decided: the allocation view of the core, and who is attached to what. No system call but the marks of a
//! trace: what is to be scheduled is said through [`Scheduling`]. What was granted is a note in the trace: the
//! request's label, and the client's number.
//!
//! Client 0 of the library is the manager itself: it holds the whole core, and what the description gives to a client
//! is a sub-allocation of that. A client of number i is client i + 1. Times of the library are µs.

use alloc::vec;
use alloc::vec::Vec;

use sandglass::trace::{self, Mark};
use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_allocations::{
    AllocationId, Allowance, Amount, Capability, CapabilityId, Client, ClientId, Kind, Manager,
    Point, Quota, Rate, Record, Refusal, ReservationId, Storage, Task, LONGEST, MEMBERS,
};
use sandglass_description::policy::allocations::{
    Allocations, Client as Described, MOST_CAPABILITIES, MOST_CLIENTS, MOST_RECORDS, POINTS,
};

use crate::protocol::{ask, Denial, LONGEST_NAME};

/// The manager itself.
const OWN: ClientId = ClientId(0);

/// Most words of a request.
pub const WORDS: usize = 120;

/// The most memory that the library's manager takes, bytes.
pub const MOST_BYTES: usize = size_of::<Record<POINTS>>()
    * (2 + MOST_CLIENTS + MOST_RECORDS as usize)
    + size_of::<Capability>() * (1 + MOST_CLIENTS + MOST_CAPABILITIES as usize)
    + (size_of::<Client>() + size_of::<State>() + size_of::<Described>()) * (1 + MOST_CLIENTS);

/// What the scheduler does for the admission.
pub trait Scheduling {
    /// From now on, the client runs by turns.
    fn serve(&mut self, client: usize, task: Task, kind: Kind);
    /// From now on, it is best effort; the deadline of its server, µs, rounded up, if that had a turn.
    fn dismiss(&mut self, client: usize) -> Option<u64>;
    /// Now, and the last instant at which the core was idle, µs, rounded down.
    fn times(&mut self) -> (u64, u64);
}

/// What a client has.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Of the description: given again when the client has ended.
    allocation: Option<AllocationId>,
    /// What it is attached to.
    attached: Option<ReservationId>,
}

/// The admission of one core.
#[derive(Debug)]
pub struct Admission {
    manager: Manager<'static, POINTS>,
    root: CapabilityId,
    states: Vec<State>,
    described: Vec<Described>,
    /// Period of a reservation, and its deadline, µs.
    shortest_us: u64,
    shortest_deadline_us: u64,
}

impl Admission {
    /// What the description says. All memory is allocated here, for good.
    ///
    /// # Panics
    /// Suppliers are in a circle: the builder refuses that.
    ///
    /// # Errors
    /// What the client of this number is given is more than is left of the core; or, without a number, what is ahead of all
    /// turns is more than the core: the builder has refused that.
    pub fn new(table: &Allocations) -> Result<Self, (Option<usize>, Refusal)> {
        let (mut manager, root) = manager(table);
        let of_root = manager.allocations(OWN, root).map(|mut all| all.next());
        let whole = of_root.ok().flatten().expect("there is a root");
        if let Some(allowance) = ahead(table) {
            // Nobody holds a capability of it.
            let kept = manager.add_allocation(OWN, root, whole, &allowance);
            kept.map_err(|refusal| (None, refusal))?;
        }
        let mut states = vec![State::default(); table.clients.len()];
        for (number, client) in table.clients.iter().enumerate() {
            if let Some(allowance) = allowance(client) {
                let allocation = manager
                    .add_allocation(OWN, root, whole, &allowance)
                    .and_then(|made| manager.derive(OWN, root, &[made], id(number)).map(|_| made));
                states[number].allocation =
                    Some(allocation.map_err(|refusal| (Some(number), refusal))?);
            }
        }
        Ok(Self {
            manager,
            root,
            states,
            described: table.clients.clone(),
            shortest_us: table.shortest_us,
            shortest_deadline_us: shortest_deadline_us(table),
        })
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.states.len()
    }

    /// Decides a request of a client: a label and words.
    ///
    /// # Errors
    /// The denial; nothing has changed.
    pub fn decide(
        &mut self,
        client: usize,
        label: u64,
        words: &[u64],
        scheduling: &mut impl Scheduling,
    ) -> Result<u64, Denial> {
        if client >= self.states.len() {
            return Err(Denial::WrongRequest);
        }
        let (now, idle_at) = scheduling.times();
        // What was removed, and is past by now, is available.
        self.manager.settle(0, idle_at);
        let outcome = match label {
            ask::CAPABILITY | ask::ALLOCATION | ask::CLIENT => self.look(client, label, words),
            ask::RESERVE | ask::ALLOCATE | ask::DERIVE | ask::GRANT => {
                self.make(client, label, words)
            }
            ask::REMOVE | ask::CLOSE | ask::RECLAIM | ask::REVOKE | ask::DELETE => {
                self.take_back(client, label, words, now, scheduling)
            }
            ask::ATTACH => self.attach(client, reservation_of(word(words, 1)), scheduling),
            _ => Err(Denial::WrongRequest),
        };
        if outcome.is_ok() {
            let value = client as u64;
            trace::mark(Mark::Note { what: label, value });
        }
        outcome
    }

    /// What a client has.
    fn look(&mut self, client: usize, label: u64, words: &[u64]) -> Result<u64, Denial> {
        match label {
            ask::CAPABILITY => Ok(self.manager.implicit(id(client))?.to_word()),
            ask::ALLOCATION => {
                let capability = CapabilityId::of_word(word(words, 0));
                let mut all = self.manager.allocations(id(client), capability)?;
                let found = usize::try_from(word(words, 1))
                    .ok()
                    .and_then(|index| all.nth(index));
                Ok(found.ok_or(Refusal::NotInCapability)?.0.to_word())
            }
            _ => self.named(words),
        }
    }

    /// Something new.
    fn make(&mut self, client: usize, label: u64, words: &[u64]) -> Result<u64, Denial> {
        let (me, capability) = (id(client), CapabilityId::of_word(word(words, 0)));
        let allocation = allocation_of(word(words, 1));
        match label {
            ask::RESERVE => self.reserve(me, capability, allocation, words),
            ask::ALLOCATE => {
                let allowance = allowance_of(words.get(2..).unwrap_or(&[]))?;
                let made = self
                    .manager
                    .add_allocation(me, capability, allocation, &allowance)?;
                Ok(made.0.to_word())
            }
            ask::DERIVE => self.derive(me, capability, words),
            _ => Ok(self
                .manager
                .grant(me, capability, to(word(words, 1)))?
                .to_word()),
        }
    }

    /// Less than before.
    fn take_back(
        &mut self,
        client: usize,
        label: u64,
        words: &[u64],
        now: u64,
        scheduling: &mut impl Scheduling,
    ) -> Result<u64, Denial> {
        let (me, capability) = (id(client), CapabilityId::of_word(word(words, 0)));
        let (allocation, reservation) = (
            allocation_of(word(words, 1)),
            reservation_of(word(words, 1)),
        );
        let (manager, states) = (&mut self.manager, &mut self.states);
        let end = |gone| detach(states, scheduling, gone);
        match label {
            ask::REMOVE => {
                let _removal = manager.remove_reservation(me, capability, reservation, now, end)?;
            }
            ask::CLOSE => manager.remove_allocation(me, capability, allocation)?,
            ask::RECLAIM => {
                let _revoked = manager.reclaim_allocation(me, capability, allocation, now, end)?;
            }
            ask::REVOKE => {
                let _revoked = manager.revoke(me, capability, now, end)?;
            }
            _ => {
                let _revoked = manager.delete(me, capability, now, end)?;
            }
        }
        Ok(0)
    }

    /// A client has ended: it leaves no time allocated, and its allocation of the description is whole again.
    pub fn end(&mut self, client: usize, scheduling: &mut impl Scheduling) {
        let (now, _) = scheduling.times();
        let states = &mut self.states;
        let end = |gone| detach(states, scheduling, gone);
        // There is such a client.
        let _ended = self.manager.end_client(id(client), now, end);
        if let Some(allocation) = self.states.get(client).and_then(|state| state.allocation) {
            // There is room: its capability has just gone.
            let _given = self
                .manager
                .derive(OWN, self.root, &[allocation], id(client));
        }
    }

    fn reserve(
        &mut self,
        me: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
        words: &[u64],
    ) -> Result<u64, Denial> {
        let &[_, _, budget, period, deadline, is_hard] = words else {
            return Err(Denial::WrongRequest);
        };
        let task = Task::new(budget, period, deadline).map_err(|_| Denial::WrongTask)?;
        let is_short = period < self.shortest_us || deadline < self.shortest_deadline_us;
        if budget < MIN_BUDGET_US || budget == period || is_short {
            return Err(Denial::WrongBudget);
        }
        let kind = if is_hard == 0 { Kind::Soft } else { Kind::Hard };
        let made = self
            .manager
            .add_reservation(me, capability, allocation, task, kind)?;
        Ok(made.0.to_word())
    }

    fn derive(
        &mut self,
        me: ClientId,
        capability: CapabilityId,
        words: &[u64],
    ) -> Result<u64, Denial> {
        let named = words.get(2..).unwrap_or(&[]);
        let mut allocations = [allocation_of(0); MEMBERS];
        let chosen = allocations.get_mut(..named.len());
        let chosen = chosen.ok_or(Refusal::Members { count: named.len() })?;
        for (allocation, &word) in chosen.iter_mut().zip(named) {
            *allocation = allocation_of(word);
        }
        let other = to(words.get(1).copied().unwrap_or(0));
        Ok(self
            .manager
            .derive(me, capability, chosen, other)?
            .to_word())
    }

    /// The client's thread runs by a reservation that it has made.
    fn attach(
        &mut self,
        client: usize,
        reservation: ReservationId,
        scheduling: &mut impl Scheduling,
    ) -> Result<u64, Denial> {
        let mut all = self
            .manager
            .flattened(0)
            .filter(|reserved| !reserved.is_leaving);
        let found =
            all.find(|reserved| reserved.id == reservation && reserved.client == id(client));
        let reserved = found.ok_or(Refusal::NoSuchReservation)?;
        if self.states[client].attached.is_some() {
            return Err(Denial::Attached);
        }
        self.states[client].attached = Some(reservation);
        scheduling.serve(client, reserved.task, reserved.kind);
        Ok(0)
    }

    fn named(&self, words: &[u64]) -> Result<u64, Denial> {
        let mut bytes = [0; LONGEST_NAME];
        for (place, word) in bytes.chunks_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let is_meant = |client: &Described| {
            let name = client.name.as_bytes();
            bytes.starts_with(name) && bytes[name.len()..].iter().all(|&byte| byte == 0)
        };
        let found = self
            .described
            .iter()
            .position(is_meant)
            .ok_or(Denial::NoSuchName)?;
        Ok(found as u64)
    }
}

/// A reservation has gone: whoever is attached to it is best effort. The deadline of its server.
fn detach(
    states: &mut [State],
    scheduling: &mut impl Scheduling,
    gone: ReservationId,
) -> Option<u64> {
    let client = states
        .iter()
        .position(|state| state.attached == Some(gone))?;
    states[client].attached = None;
    scheduling.dismiss(client)
}

/// A word of a request; 0 for one that was not sent.
fn word(words: &[u64], index: usize) -> u64 {
    words.get(index).copied().unwrap_or(0)
}

fn id(client: usize) -> ClientId {
    ClientId(client as u16 + 1)
}

/// The client that a word names.
fn to(word: u64) -> ClientId {
    ClientId(u16::try_from(word.saturating_add(1)).unwrap_or(u16::MAX))
}

fn allocation_of(word: u64) -> AllocationId {
    AllocationId(sandglass_allocations::records::RecordId::of_word(word))
}

fn reservation_of(word: u64) -> ReservationId {
    ReservationId(sandglass_allocations::records::RecordId::of_word(word))
}

/// An allowance of four words for each point.
fn allowance_of(words: &[u64]) -> Result<Allowance<POINTS>, Denial> {
    let mut points = [Point::default(); POINTS];
    let count = words.len() / 4;
    let chosen = points.get_mut(..count).ok_or(Denial::WrongAllowance)?;
    for (point, words) in chosen.iter_mut().zip(words.chunks_exact(4)) {
        *point = Point {
            at: words[0],
            value: Amount::new(words[1], words[2]).ok_or(Denial::WrongAllowance)?,
            rate: Rate::of_parts(words[3]).ok_or(Denial::WrongAllowance)?,
        };
    }
    Allowance::new(chosen).map_err(|_| Denial::WrongAllowance)
}

/// What the description gives to a client: a share, or what its tasks need.
pub fn allowance(client: &Described) -> Option<Allowance<POINTS>> {
    if let Some(parts) = client.share {
        return Rate::of_parts(parts).map(Allowance::linear);
    }
    let tasks = client.tasks.iter();
    let tasks: Option<Vec<Task>> = tasks
        .map(|task| Task::new(task.budget_us, task.period_us, task.deadline_us).ok())
        .collect();
    Allowance::of_tasks(&tasks?)
}

/// The shortest deadline that a task may have, µs.
pub fn shortest_deadline_us(table: &Allocations) -> u64 {
    if table.ahead.is_empty() {
        0
    } else {
        table.shortest_us
    }
}

/// What those ahead of turns may take in an interval; `None` if there are none.
///
/// One that has Q in every window of P takes at most ⌊t/P⌋·Q + min(Q, t mod P) in an interval of length t, which is not above
/// the line Q + (t − Q)·Q/P, for any t. Intervals that are shorter than all deadlines need not be looked at: the demand of
/// turns in them is 0. So the function is 0 there, and the sum of these lines from the shortest deadline on.
fn ahead(table: &Allocations) -> Option<Allowance<POINTS>> {
    if table.ahead.is_empty() {
        return None;
    }
    let at = table.shortest_us;
    let (mut value, mut parts) = (0_u64, 0_u64);
    for of in &table.ahead {
        let (budget, period) = (of.budget_us, of.period_us.max(1));
        let later = u128::from(at.saturating_sub(budget)) * u128::from(budget);
        let later = u64::try_from(later.div_ceil(u128::from(period))).unwrap_or(u64::MAX);
        value = value.saturating_add(budget).saturating_add(later);
        let rate = Rate::at_least(budget, period).unwrap_or(Rate::WHOLE);
        parts = parts.saturating_add(rate.parts());
    }
    let point = Point {
        at,
        // What is more than there can be is more than the core.
        value: Amount::of_ticks(value.min(LONGEST)),
        rate: Rate::of_parts(parts).unwrap_or(Rate::WHOLE),
    };
    Allowance::new(&[point]).ok()
}

/// A library's manager in memory that is its for good.
///
/// # Panics
/// Suppliers are in a circle: the builder refuses that.
fn manager(table: &Allocations) -> (Manager<'static, POINTS>, CapabilityId) {
    let given = table
        .clients
        .iter()
        .filter(|client| client.is_given())
        .count() as u32;
    let own = Client::new(Quota {
        records: given + u32::from(!table.ahead.is_empty()),
        // While a client ends, its old capability and its new one are never both there.
        capabilities: given,
    });
    let clients = table.clients.iter().map(|client| {
        let quota = Quota {
            records: client.records,
            capabilities: client.capabilities,
        };
        match client.supplier {
            None => Client::new(quota),
            Some(supplier) => Client::new(quota).supplied_by(id(supplier as usize)),
        }
    });
    let clients: Vec<Client> = core::iter::once(own).chain(clients).collect();
    let (records, capabilities) = memory(table);
    let storage = Storage {
        records: vec![Record::<POINTS>::FREE; records].leak(),
        capabilities: vec![Capability::FREE; capabilities].leak(),
        clients: clients.leak(),
    };
    Manager::new(storage, 1, OWN)
        .expect("the memory is computed from the quotas, and suppliers are in no circle")
}

/// Records and capabilities that a table needs.
fn memory(table: &Allocations) -> (usize, usize) {
    let given = table
        .clients
        .iter()
        .filter(|client| client.is_given())
        .count();
    let records = table.clients.iter().map(|client| client.records as usize);
    let capabilities = table
        .clients
        .iter()
        .map(|client| client.capabilities as usize);
    let ahead = usize::from(!table.ahead.is_empty());
    (
        1 + ahead + given + records.sum::<usize>(),
        1 + given + capabilities.sum::<usize>(),
    )
}
