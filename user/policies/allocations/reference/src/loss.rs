//! What is lost because functions have few points (appendix A.4, Figure 5).

use sandglass_allocations::{
    Capability, Client, ClientId, Kind, Manager, Quota, Record, Storage, Task,
};

use crate::exact;

/// Points of functions that are compared.
pub const POINTS: [usize; 6] = [1, 2, 3, 5, 10, 20];

/// Whether a set of tasks is admitted on an empty processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// By the exact test.
    pub exactly: bool,
    /// With functions of so many points, as in [`POINTS`].
    pub by_points: [bool; POINTS.len()],
}

/// Asks all of them.
pub fn admitted(tasks: &[Task]) -> Admitted {
    Admitted {
        exactly: exact::is_schedulable(tasks),
        by_points: [
            is_admitted::<1>(tasks),
            is_admitted::<2>(tasks),
            is_admitted::<3>(tasks),
            is_admitted::<5>(tasks),
            is_admitted::<10>(tasks),
            is_admitted::<20>(tasks),
        ],
    }
}

/// All of the tasks have reservations, one after the other.
fn is_admitted<const K: usize>(tasks: &[Task]) -> bool {
    const CLIENT: ClientId = ClientId(0);
    let mut records = vec![Record::<K>::FREE; 1 + tasks.len()];
    let mut capabilities = [Capability::FREE];
    let mut clients = [Client::new(Quota {
        records: tasks.len() as u32,
        capabilities: 0,
    })];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let (mut manager, capability) = Manager::new(storage, 1, CLIENT).expect("the storage suffices");
    let root = manager.all_allocations().next().expect("there is a root");
    tasks.iter().all(|&task| {
        manager
            .add_reservation(CLIENT, capability, root, task, Kind::Hard)
            .is_ok()
    })
}
