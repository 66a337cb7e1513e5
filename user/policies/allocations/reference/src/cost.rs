//! What an admission costs, and an allocation takes (appendices A.2 and A.3, Figures 3 and 4).

use std::time::{Duration, Instant};

use sandglass_allocations::{
    Allowance, Capability, Client, ClientId, Manager, Quota, Record, Storage, Task,
};

use crate::straightforward;

/// Points of functions that are compared.
pub const POINTS: [usize; 4] = [2, 5, 10, 20];

/// One more sub-allocation in an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Points of each function.
    pub points: usize,
    /// Sub-allocations that are there before.
    pub held: u64,
    /// Points that are looked at.
    pub steps: u64,
    /// By the straightforward test.
    pub straightforward: u64,
    /// What both take on this host, now: for people, and not for comparisons.
    pub time: Duration,
    pub straightforward_time: Duration,
}

/// Adds an allocation beside so many, of tasks with constrained deadlines and different periods.
///
/// # Panics
/// There are no such [`POINTS`]; or both tests do not agree.
pub fn measure(points: usize, held: u64) -> Cost {
    match points {
        2 => with::<2>(held),
        5 => with::<5>(held),
        10 => with::<10>(held),
        20 => with::<20>(held),
        _ => panic!("{points} points are not compared"),
    }
}

/// Bytes that an allocation takes whose function has up to so many points.
///
/// # Panics
/// There are no such [`POINTS`].
pub const fn bytes(points: usize) -> usize {
    match points {
        2 => size_of::<Record<2>>(),
        5 => size_of::<Record<5>>(),
        10 => size_of::<Record<10>>(),
        20 => size_of::<Record<20>>(),
        _ => panic!("that many points are not compared"),
    }
}

fn with<const K: usize>(held: u64) -> Cost {
    const CLIENT: ClientId = ClientId(0);
    let count = held + 1;
    let mut records = vec![Record::<K>::FREE; 1 + count as usize];
    let mut capabilities = [Capability::FREE];
    let mut clients = [Client::new(Quota {
        records: count as u32,
        capabilities: 0,
    })];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let (mut manager, capability) = Manager::new(storage, 1, CLIENT).expect("the storage suffices");
    let root = manager.all_allocations().next().expect("there is a root");
    for index in 0..held {
        let allowance = Allowance::of_task(task(index, count));
        let added = manager.add_allocation(CLIENT, capability, root, &allowance);
        added.expect("it fits");
    }
    let new = Allowance::of_task(task(held, count));

    let functions: Vec<_> = manager.functions_in(root).collect();
    let begin = Instant::now();
    let plain = straightforward::admits(
        manager.allowance(root).expect("it is there"),
        &functions,
        &new,
    );
    let straightforward_time = begin.elapsed();
    let before = manager.steps();
    let begin = Instant::now();
    let added = manager.add_allocation(CLIENT, capability, root, &new);
    let time = begin.elapsed();
    assert!(added.is_ok() && plain.is_admitted, "both admit it");
    Cost {
        points: K,
        held,
        steps: manager.steps() - before,
        straightforward: plain.steps,
        time,
        straightforward_time,
    }
}

/// One of `count` tasks that have half of a processor.
fn task(index: u64, count: u64) -> Task {
    let period = 10_000_000 + 97_711 * index;
    Task::new(period / count / 2, period, period / 2).expect("the parameters are in order")
}
