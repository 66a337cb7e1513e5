//! Clients that are not trusted: whatever one does, no time stays allocated for it when it is gone, and what another
//! may still allocate is the same.

use sandglass_allocations::{
    AllocationId, Allowance, Capability, CapabilityId, Client, ClientId, Kind, Manager, Quota,
    Rate, Record, Refusal, ReservationId, Storage, StorageError, Task,
};

const SUPERVISOR: ClientId = ClientId(0);
const HOSTILE: ClientId = ClientId(1);
const HONEST: ClientId = ClientId(2);
const POINTS: usize = 4;
const QUOTA: Quota = Quota {
    records: 8,
    capabilities: 6,
};

/// A processor; the hostile client and the honest one have a third of it each.
struct World<'s> {
    manager: Manager<'s, POINTS>,
    root: CapabilityId,
    hostile: (CapabilityId, AllocationId),
    honest: (CapabilityId, AllocationId),
}

fn with_world(work: impl FnOnce(&mut World<'_>)) {
    let mut records = vec![Record::FREE; 1 + 3 * 8];
    let mut capabilities = vec![Capability::FREE; 1 + 3 * 6];
    let mut clients = [Client::new(QUOTA); 3];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let (mut manager, root) = Manager::new(storage, 1, SUPERVISOR).unwrap();
    let whole = manager.all_allocations().next().unwrap();
    let third = Allowance::linear(Rate::at_most(1, 3).unwrap());
    let mut give = |to| {
        let part = manager
            .add_allocation(SUPERVISOR, root, whole, &third)
            .unwrap();
        (manager.derive(SUPERVISOR, root, &[part], to).unwrap(), part)
    };
    let (hostile, honest) = (give(HOSTILE), give(HONEST));
    let mut world = World {
        manager,
        root,
        hostile,
        honest,
    };
    work(&mut world);
}

fn task(budget: u64) -> Task {
    Task::new(budget, 300, 300).unwrap()
}

/// Its server has had a turn, with this deadline.
fn at(deadline: u64) -> impl FnMut(ReservationId) -> Option<u64> {
    move |_| Some(deadline)
}

impl World<'_> {
    /// Which of some reservations the honest client could make, and how much it may still have.
    fn left_for_honest(&mut self) -> (Vec<bool>, Quota) {
        let (capability, allocation) = self.honest;
        let could = (1..=120).map(|budget| {
            let could = self
                .manager
                .could_reserve(HONEST, capability, allocation, task(budget));
            could.is_ok()
        });
        let could = could.collect();
        (could, self.manager.used(HONEST).unwrap())
    }

    /// Runs what a hostile client does, and checks what the honest one has left; then ends the client, and checks
    /// that nothing of it is left.
    fn endure(&mut self, behaviour: impl FnOnce(&mut Self)) {
        let before = self.left_for_honest();
        assert!(before.0.contains(&true) && before.0.contains(&false));
        behaviour(self);
        assert_eq!(
            self.left_for_honest(),
            before,
            "while the hostile client is there"
        );
        let _revoked = self.manager.end_client(HOSTILE, 1_000, at(1_200)).unwrap();
        self.manager.settle(0, 1_200);
        assert_eq!(self.left_for_honest(), before, "when it is gone");
        let tasks: Vec<_> = self.manager.flattened(0).collect();
        assert_eq!(tasks, [], "no time is allocated");
        assert_eq!(self.manager.used(HOSTILE), Ok(Quota::default()));
        assert_eq!(self.manager.held_by(HOSTILE).count(), 0);
    }

    fn reserve(&mut self, budget: u64) -> Result<ReservationId, Refusal> {
        let (capability, allocation) = self.hostile;
        self.manager
            .add_reservation(HOSTILE, capability, allocation, task(budget), Kind::Soft)
    }
}

#[test]
fn a_client_that_crashes_leaves_no_time_allocated() {
    with_world(|world| {
        world.endure(|world| {
            world.reserve(40).unwrap();
            world.reserve(60).unwrap();
            assert!(world.reserve(1).is_err());
        });
        // What it had can be given to the next one.
        let (_, third) = world.hostile;
        let again = world
            .manager
            .derive(SUPERVISOR, world.root, &[third], HOSTILE)
            .unwrap();
        world.hostile = (again, third);
        world.reserve(100).unwrap();
    });
}

#[test]
fn a_client_that_disappears_in_the_middle_takes_its_whole_subtree_with_it() {
    with_world(|world| {
        world.endure(|world| {
            let (capability, allocation) = world.hostile;
            let sixth = Allowance::linear(Rate::at_most(1, 6).unwrap());
            let part = world
                .manager
                .add_allocation(HOSTILE, capability, allocation, &sixth)
                .unwrap();
            let derived = world
                .manager
                .derive(HOSTILE, capability, &[part], HOSTILE)
                .unwrap();
            let made = world
                .manager
                .add_reservation(HOSTILE, derived, part, task(50), Kind::Hard);
            made.unwrap();
            world.reserve(50).unwrap();
        });
    });
}

#[test]
fn a_client_that_lies_about_names_touches_nothing_of_others() {
    with_world(|world| {
        let (others, part) = world.honest;
        let made = world
            .manager
            .add_reservation(HONEST, others, part, task(10), Kind::Hard)
            .unwrap();
        let before = world.left_for_honest();
        let manager = &mut world.manager;
        let held = [others, world.root];
        for capability in held {
            let refused = [
                manager
                    .add_reservation(HOSTILE, capability, part, task(1), Kind::Hard)
                    .map(|_| ()),
                manager
                    .remove_reservation(HOSTILE, capability, made, 0, at(0))
                    .map(|_| ()),
                manager
                    .reclaim_allocation(HOSTILE, capability, part, 0, at(0))
                    .map(|_| ()),
                manager
                    .derive(HOSTILE, capability, &[part], HOSTILE)
                    .map(|_| ()),
                manager.grant(HOSTILE, capability, HOSTILE).map(|_| ()),
                manager.revoke(HOSTILE, capability, 0, at(0)).map(|_| ()),
                manager.delete(HOSTILE, capability, 0, at(0)).map(|_| ()),
            ];
            assert_eq!(refused, [Err(Refusal::NotHeld); 7]);
        }
        // With a capability of its own, but others' names.
        let (own, _) = world.hostile;
        let refused = [
            manager
                .add_reservation(HOSTILE, own, part, task(1), Kind::Hard)
                .map(|_| ()),
            manager
                .remove_reservation(HOSTILE, own, made, 0, at(0))
                .map(|_| ()),
            manager.remove_allocation(HOSTILE, own, part).map(|_| ()),
            manager.derive(HOSTILE, own, &[part], HOSTILE).map(|_| ()),
        ];
        let reasons = [
            Refusal::NotInCapability,
            Refusal::NoSuchReservation,
            Refusal::NoSuchAllocation,
            Refusal::NotBelow,
        ];
        assert_eq!(refused, reasons.map(Err));
        // With names that are none, and with numbers that were.
        for word in [0, 1, u64::MAX, 1 << 32, (1 << 32) + 1, 77] {
            let forged = CapabilityId::of_word(word);
            let is_own = forged == own;
            assert!(is_own || manager.revoke(HOSTILE, forged, 0, at(0)).is_err());
        }
        assert_eq!(world.left_for_honest(), before);
    });
}

/// A budget that is lied about is the server's to enforce; parameters that cannot be are none of a task.
#[test]
fn a_client_that_lies_about_its_task_is_refused() {
    for (budget, period, deadline) in [
        (0, 10, 10),
        (11, 10, 10),
        (5, 10, 4),
        (5, 10, 11),
        (1, 1 << 60, 1),
    ] {
        assert!(Task::new(budget, period, deadline).is_err());
    }
}

#[test]
fn a_client_that_floods_fills_its_own_quota_only() {
    with_world(|world| {
        world.endure(|world| {
            let (capability, allocation) = world.hostile;
            let made = (0..100).filter(|_| world.reserve(1).is_ok()).count();
            assert_eq!(made, 8);
            assert_eq!(world.reserve(1), Err(Refusal::RecordQuota { most: 8 }));
            let nothing = Allowance::linear(Rate::ZERO);
            let manager = &mut world.manager;
            assert!(manager
                .add_allocation(HOSTILE, capability, allocation, &nothing)
                .is_err());
            let granted = (0..100)
                .filter(|_| manager.grant(HOSTILE, capability, HONEST).is_ok())
                .count();
            assert_eq!(granted, 6);
        });
    });
}

/// Removing and adding at once does not bring a budget back early, and takes no room of others'.
#[test]
fn a_client_that_removes_and_adds_all_the_time_has_no_more() {
    with_world(|world| {
        world.endure(|world| {
            let (capability, allocation) = world.hostile;
            let made = world.reserve(100).unwrap();
            let manager = &mut world.manager;
            let removal = manager
                .remove_reservation(HOSTILE, capability, made, 10, at(300))
                .unwrap();
            assert_eq!(
                removal,
                sandglass_allocations::manager::Removal::Held { until: 300 }
            );
            for now in [10, 200, 299] {
                manager.settle(0, now);
                let early =
                    manager.add_reservation(HOSTILE, capability, allocation, task(1), Kind::Hard);
                assert!(
                    matches!(early, Err(Refusal::TooMuch(_))),
                    "at {now}: {early:?}"
                );
            }
            manager.settle(0, 300);
            world.reserve(100).unwrap();
        });
    });
}

#[test]
fn a_client_that_grants_to_itself_gains_nothing() {
    with_world(|world| {
        world.endure(|world| {
            let (capability, allocation) = world.hostile;
            let copy = world.manager.grant(HOSTILE, capability, HOSTILE).unwrap();
            let of_copy = world.manager.grant(HOSTILE, copy, HOSTILE).unwrap();
            for held in [capability, copy, of_copy] {
                let made =
                    world
                        .manager
                        .add_reservation(HOSTILE, held, allocation, task(33), Kind::Hard);
                made.unwrap();
            }
            assert!(world.reserve(2).is_err(), "a third is a third");
            // It cannot derive the allocation that it has, which would be as its own parent.
            let refused = world
                .manager
                .derive(HOSTILE, capability, &[allocation], HOSTILE);
            assert_eq!(refused, Err(Refusal::NotBelow));
        });
    });
}

/// Two clients that grant to each other, round and round: revoking the first takes back everything.
#[test]
fn capabilities_that_go_in_circles_are_all_revoked() {
    with_world(|world| {
        let (first, allocation) = world.hostile;
        let manager = &mut world.manager;
        let second = manager.grant(HOSTILE, first, HONEST).unwrap();
        let third = manager.grant(HONEST, second, HOSTILE).unwrap();
        let fourth = manager.grant(HOSTILE, third, HONEST).unwrap();
        for (client, held) in [(HONEST, fourth), (HOSTILE, third), (HONEST, second)] {
            manager
                .add_reservation(client, held, allocation, task(10), Kind::Hard)
                .unwrap();
        }
        let revoked = manager.revoke(HOSTILE, first, 0, |_| None).unwrap();
        assert_eq!(
            (revoked.capabilities, revoked.reservations, revoked.held),
            (3, 3, 0)
        );
        assert_eq!(manager.flattened(0).count(), 0);
        assert_eq!(
            manager.held_by(HONEST).collect::<Vec<_>>(),
            [world.honest.0]
        );
    });
}

#[test]
fn suppliers_in_a_circle_are_refused() {
    let mut clients = [
        Client::new(QUOTA),
        Client::new(QUOTA).supplied_by(ClientId(2)),
        Client::new(QUOTA).supplied_by(ClientId(1)),
    ];
    let mut records = vec![Record::<POINTS>::FREE; 25];
    let mut capabilities = vec![Capability::FREE; 19];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let refused = Manager::new(storage, 1, SUPERVISOR).map(|_| ());
    assert_eq!(refused, Err(StorageError::SuppliersInACircle(HOSTILE)));
}

/// What a supplier holds (paper, section 4.3) is granted on demand, also through others, and goes with it.
#[test]
fn a_supplied_client_has_its_suppliers_capability_and_loses_it_with_it() {
    let mut clients = [
        Client::new(QUOTA),
        Client::new(QUOTA).supplied_by(SUPERVISOR),
        Client::new(QUOTA).supplied_by(HOSTILE),
    ];
    let mut records = vec![Record::<POINTS>::FREE; 25];
    let mut capabilities = vec![Capability::FREE; 19];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let (mut manager, root) = Manager::new(storage, 1, SUPERVISOR).unwrap();
    let whole = manager.all_allocations().next().unwrap();
    let supplied = manager.implicit(HONEST).unwrap();
    assert_eq!(manager.implicit(HONEST), Ok(supplied), "it has one now");
    assert_eq!(
        manager.used(HONEST).unwrap().capabilities,
        1,
        "and pays for it"
    );
    manager
        .add_reservation(HONEST, supplied, whole, task(10), Kind::Soft)
        .unwrap();
    let _revoked = manager.revoke(SUPERVISOR, root, 0, |_| None).unwrap();
    assert_eq!(
        (
            manager.held_by(HONEST).count(),
            manager.flattened(0).count()
        ),
        (0, 0)
    );
}

/// Nobody below is asked, and nothing is left, however deep.
#[test]
fn revoking_is_recursive_and_frees_all() {
    with_world(|world| {
        let (mut capability, mut allocation) = world.hostile;
        let manager = &mut world.manager;
        for depth in 0..4 {
            let share = Allowance::linear(Rate::at_most(1, 4 + depth).unwrap());
            allocation = manager
                .add_allocation(HOSTILE, capability, allocation, &share)
                .unwrap();
            capability = manager
                .derive(HOSTILE, capability, &[allocation], HOSTILE)
                .unwrap();
            manager
                .add_reservation(HOSTILE, capability, allocation, task(1), Kind::Hard)
                .unwrap();
        }
        let revoked = manager
            .revoke(SUPERVISOR, world.root, 100, at(250))
            .unwrap();
        assert_eq!((revoked.reservations, revoked.held), (4, 4));
        assert_eq!(manager.settle(0, 249), 0);
        assert_eq!(manager.settle(0, 250), 4);
        let whole = manager.all_allocations().next().unwrap();
        let all = Allowance::linear(Rate::WHOLE);
        manager
            .could_allocate(SUPERVISOR, world.root, whole, &all)
            .unwrap();
        assert_eq!(manager.all_allocations().count(), 1);
    });
}
