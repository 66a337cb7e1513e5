//! The operations of a time manager, for clients that are not trusted.
//!
//! Each operation is asked for by a client, names a capability that the client must hold, checks everything, and then
//! commits; a refused one changes nothing. Names of things that are gone name nothing.
//!
//! - **A capability is what is revoked.** What was made by a capability, reservations, sub-allocations and further
//!   capabilities, goes with it, and so does all that is in it and stems from it. A client that is gone has its
//!   capabilities revoked, so that nothing stays of what it made.
//! - **Nobody fills what is common.** Records and capabilities are counted for the client that asked for them, against
//!   a quota that is reserved for it.
//! - **Reweighting.** A reservation that is removed counts until its server deadline (operation A3), for at most a
//!   period, *and* until the processor has been idle after that ([`Manager::settle`]). The deadline alone is not
//!   enough, contrary to the paper: in the time up to it the old reservation has used what was allowed in short
//!   intervals, and after it a new one may at once do so again, while what others were promised for longer intervals
//!   that contain both is still to be done. After an instant at which nothing that was released is unfinished, no
//!   interval that matters contains both.

mod query;
mod removal;

use core::fmt;

use crate::allowance::Allowance;
use crate::capability::{Capabilities, Capability, CapabilityId, Held, MEMBERS};
use crate::records::{AllocationId, Content, Maker, Record, Records, ReservationId};
use crate::refusal::Refusal;
use crate::server::Kind;
use crate::task::Task;

pub use query::Reserved;
pub use removal::{Removal, Revoked};

/// The number of a client, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(pub u16);

/// What is reserved for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Allocations and reservations that it has made.
    pub records: u32,
    /// Capabilities that it has derived, granted, or been supplied with.
    pub capabilities: u32,
}

/// A client of the manager.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    quota: Quota,
    used: Quota,
    supplier: Option<ClientId>,
}

impl Client {
    /// A client with a quota, and with no capability.
    pub const fn new(quota: Quota) -> Self {
        Self {
            quota,
            used: Quota {
                records: 0,
                capabilities: 0,
            },
            supplier: None,
        }
    }

    /// The same, supplied with the capability of `supplier` when it asks for one without holding any (paper, section
    /// 4.3).
    #[must_use]
    pub const fn supplied_by(self, supplier: ClientId) -> Self {
        Self {
            supplier: Some(supplier),
            ..self
        }
    }
}

/// Memory of the manager, at first of [`Record::FREE`] and [`Capability::FREE`].
#[derive(Debug)]
pub struct Storage<'s, const K: usize> {
    /// One for each processor, and the quotas of all clients.
    pub records: &'s mut [Record<K>],
    /// One, and the quotas of all clients.
    pub capabilities: &'s mut [Capability],
    /// The clients, in the order of their numbers.
    pub clients: &'s mut [Client],
}

/// Storage that a manager cannot work in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageError {
    /// Quotas must be reserved.
    TooFewRecords {
        there: usize,
        needed: usize,
    },
    TooFewCapabilities {
        there: usize,
        needed: usize,
    },
    /// The root capability is of all processors.
    Processors {
        count: u16,
    },
    /// The holder of the root capability, or a supplier, is no client.
    NoSuchClient(ClientId),
    /// A client supplies itself, by way of others.
    SuppliersInACircle(ClientId),
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFewRecords { there, needed } => write!(
                f,
                "there is room for {there} records: the processors and the clients' quotas need {needed}"
            ),
            Self::TooFewCapabilities { there, needed } => write!(
                f,
                "there is room for {there} capabilities: the root and the clients' quotas need {needed}"
            ),
            Self::Processors { count } => {
                write!(f, "there are {count} processors: must be 1 to {MEMBERS}")
            }
            Self::NoSuchClient(client) => write!(f, "there is no client {}", client.0),
            Self::SuppliersInACircle(client) => write!(
                f,
                "client {} supplies itself by way of others: suppliers must not be in a circle",
                client.0
            ),
        }
    }
}

impl core::error::Error for StorageError {}

/// The allocation view of a system (paper, section 3.3), with functions of at most `K` points.
#[derive(Debug)]
pub struct Manager<'s, const K: usize> {
    records: Records<'s, K>,
    capabilities: Capabilities<'s>,
    clients: &'s mut [Client],
}

impl<'s, const K: usize> Manager<'s, K> {
    /// All of `processors` processors, in one capability, which `holder` holds (paper, section 3.3).
    ///
    /// # Errors
    /// The storage does not suffice, or suppliers are in a circle.
    pub fn new(
        storage: Storage<'s, K>,
        processors: u16,
        holder: ClientId,
    ) -> Result<(Self, CapabilityId), StorageError> {
        check(&storage, processors, holder)?;
        for client in storage.clients.iter_mut() {
            client.used = Quota::default();
        }
        let mut manager = Self {
            records: Records::new(storage.records),
            capabilities: Capabilities::new(storage.capabilities),
            clients: storage.clients,
        };
        let root = manager.make_roots(processors, holder);
        Ok((manager, root))
    }

    fn make_roots(&mut self, processors: u16, holder: ClientId) -> CapabilityId {
        let maker = Maker {
            capability: CapabilityId::NONE,
            client: holder,
        };
        let roots = (0..processors).filter_map(|processor| {
            let index = self.records.insert_root(processor, maker)?;
            Some(AllocationId(self.records.id(index)))
        });
        let root = Held::new(holder, holder, None, roots);
        // There is room: `check`.
        self.capabilities.insert(root).unwrap_or(CapabilityId::NONE)
    }

    /// A1: a reservation for a task, in one of the capability's allocations.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn add_reservation(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
        task: Task,
        kind: Kind,
    ) -> Result<ReservationId, Refusal> {
        let function = Allowance::of_task(task);
        let content = Content::Reservation { task, kind };
        let index = self.add(client, capability, allocation, function, content)?;
        Ok(ReservationId(self.records.id(index)))
    }

    /// A2: a sub-allocation in one of the capability's allocations. Nobody can use it yet: see [`Self::derive`].
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn add_allocation(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
        allowance: &Allowance<K>,
    ) -> Result<AllocationId, Refusal> {
        let index = self.add(
            client,
            capability,
            allocation,
            *allowance,
            Content::Allocation,
        )?;
        Ok(AllocationId(self.records.id(index)))
    }

    fn add(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
        function: Allowance<K>,
        content: Content,
    ) -> Result<u32, Refusal> {
        let parent = self.member(client, capability, allocation)?;
        let Client { quota, used, .. } = *self.client(client)?;
        let full = Refusal::RecordQuota {
            most: quota.records,
        };
        if used.records >= quota.records {
            return Err(full);
        }
        let admission = self.records.admit(parent, &function)?;

        let maker = Maker { capability, client };
        let inserted = self
            .records
            .insert(parent, function, admission, content, maker);
        let index = inserted.ok_or(full)?;
        self.clients[usize::from(client.0)].used.records += 1;
        Ok(index)
    }

    /// A new capability for `to`, of allocations that are in this one's at any depth (equation 3.1).
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn derive(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        allocations: &[AllocationId],
        to: ClientId,
    ) -> Result<CapabilityId, Refusal> {
        let held = self.held(client, capability)?;
        let count = allocations.len();
        if !(1..=MEMBERS).contains(&count) {
            return Err(Refusal::Members { count });
        }
        let is_below = |allocation: &AllocationId| self.is_below(held, *allocation);
        if !allocations.iter().all(is_below) {
            return Err(Refusal::NotBelow);
        }
        let new = Held::new(to, client, Some(capability), allocations.iter().copied());
        self.hand_out(new)
    }

    /// The same capability for `to`, too: both share its allocations. This one's holder can revoke it.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn grant(
        &mut self,
        client: ClientId,
        capability: CapabilityId,
        to: ClientId,
    ) -> Result<CapabilityId, Refusal> {
        let held = self.held(client, capability)?;
        self.hand_out(Held::new(to, client, Some(capability), held.members()))
    }

    /// A capability of a client that need not have been granted one: its own if it holds one, else its supplier's,
    /// or of that one's supplier (paper, section 4.3). It is granted on demand.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed.
    pub fn implicit(&mut self, client: ClientId) -> Result<CapabilityId, Refusal> {
        self.client(client)?;
        let mut supplier = client;
        let (origin, held) = loop {
            let mut held = self.capabilities.iter();
            if let Some(found) = held.find(|(_, held)| held.holder == supplier) {
                break found;
            }
            supplier = self.client(supplier)?.supplier.ok_or(Refusal::NoSupplier)?;
        };
        if supplier == client {
            return Ok(origin);
        }
        self.hand_out(Held::new(client, client, Some(origin), held.members()))
    }

    fn hand_out(&mut self, held: Held) -> Result<CapabilityId, Refusal> {
        self.client(held.holder)?;
        let Client { quota, used, .. } = *self.client(held.charged)?;
        let full = Refusal::CapabilityQuota {
            most: quota.capabilities,
        };
        if used.capabilities >= quota.capabilities {
            return Err(full);
        }
        let charged = held.charged;
        let id = self.capabilities.insert(held).ok_or(full)?;
        self.clients[usize::from(charged.0)].used.capabilities += 1;
        Ok(id)
    }

    fn client(&self, client: ClientId) -> Result<&Client, Refusal> {
        let found = self.clients.get(usize::from(client.0));
        found.ok_or(Refusal::NoSuchClient(client))
    }

    fn held(&self, client: ClientId, capability: CapabilityId) -> Result<&Held, Refusal> {
        let held = self.capabilities.find(capability);
        held.filter(|held| held.holder == client)
            .ok_or(Refusal::NotHeld)
    }

    /// The record of an allocation that is one of the capability's.
    fn member(
        &self,
        client: ClientId,
        capability: CapabilityId,
        allocation: AllocationId,
    ) -> Result<u32, Refusal> {
        let held = self.held(client, capability)?;
        let is_member = held.members().any(|member| member == allocation);
        let index = self.records.find(allocation.0).filter(|_| is_member);
        index.ok_or(Refusal::NotInCapability)
    }

    /// The allocation is in one of the capability's, and is not it.
    fn is_below(&self, held: &Held, allocation: AllocationId) -> bool {
        let Some(index) = self.records.find(allocation.0) else {
            return false;
        };
        let record = self.records.at(index);
        let mut members = held
            .members()
            .filter_map(|member| self.records.find(member.0));
        record.is_allocation()
            && members.any(|member| self.records.is_within(record.parent, member))
    }
}

fn check<const K: usize>(
    storage: &Storage<'_, K>,
    processors: u16,
    holder: ClientId,
) -> Result<(), StorageError> {
    if !(1..=MEMBERS).contains(&usize::from(processors)) {
        return Err(StorageError::Processors { count: processors });
    }
    let quotas = |part: fn(&Quota) -> u32| -> usize {
        storage
            .clients
            .iter()
            .map(|client| part(&client.quota) as usize)
            .sum()
    };
    let needed = usize::from(processors) + quotas(|quota| quota.records);
    let there = storage.records.len().min(Records::<K>::MOST);
    if there < needed {
        return Err(StorageError::TooFewRecords { there, needed });
    }
    let needed = 1 + quotas(|quota| quota.capabilities);
    let there = storage.capabilities.len();
    if there < needed {
        return Err(StorageError::TooFewCapabilities { there, needed });
    }
    if usize::from(holder.0) >= storage.clients.len() {
        return Err(StorageError::NoSuchClient(holder));
    }
    let numbers = (0..=u16::MAX).take(storage.clients.len());
    numbers
        .map(ClientId)
        .try_for_each(|client| check_supplier(storage.clients, client))
}

/// The chain of a client's suppliers ends.
fn check_supplier(clients: &[Client], client: ClientId) -> Result<(), StorageError> {
    let mut current = client;
    for _ in clients {
        let found = clients.get(usize::from(current.0));
        let found = found.ok_or(StorageError::NoSuchClient(current))?;
        match found.supplier {
            None => return Ok(()),
            Some(supplier) => current = supplier,
        }
    }
    Err(StorageError::SuppliersInACircle(client))
}
