//! The admission test: what it says, what it costs, and how much memory an allocation takes.

use allocation_reference::{cost, straightforward};
use proptest::prelude::*;
use sandglass_allocations::demand::Excess;
use sandglass_allocations::{
    AllocationId, Allowance, AllowanceError, Amount, Capability, CapabilityId, Client, ClientId,
    Kind, Manager, Point, Quota, Rate, Record, Refusal, Storage, Task,
};

const CLIENT: ClientId = ClientId(0);

/// One processor, one client that may have so many records.
fn with_manager<const K: usize, T>(
    most: u32,
    work: impl FnOnce(&mut Manager<'_, K>, CapabilityId, AllocationId) -> T,
) -> T {
    let mut records = vec![Record::<K>::FREE; 1 + most as usize];
    let mut capabilities = [Capability::FREE];
    let mut clients = [Client::new(Quota {
        records: most,
        capabilities: 0,
    })];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let (mut manager, capability) = Manager::new(storage, 1, CLIENT).unwrap();
    let root = manager.all_allocations().next().unwrap();
    work(&mut manager, capability, root)
}

#[test]
fn an_allocation_with_twenty_points_takes_a_kibibyte_at_most() {
    assert!(size_of::<Record<20>>() <= 1024);
}

/// Appendix A.2: one more sub-allocation beside 150, with 20 points each.
#[test]
fn one_more_of_150_allocations_is_admitted_for_a_hundredth_of_what_the_straightforward_test_takes()
{
    let cost = cost::measure(20, 150);
    assert!(cost.straightforward >= 100 * cost.steps, "{cost:?}");
}

/// Fractions that people write are exact: nothing is lost to rounding.
#[test]
fn three_thirds_are_a_processor() {
    let third = Task::new(10_000, 30_000, 30_000).unwrap();
    with_manager::<4, _>(4, |manager, capability, root| {
        for _ in 0..3 {
            manager
                .add_reservation(CLIENT, capability, root, third, Kind::Hard)
                .unwrap();
        }
        let more = Task::new(1, 1 << 40, 1 << 40).unwrap();
        let refusal = manager
            .add_reservation(CLIENT, capability, root, more, Kind::Hard)
            .unwrap_err();
        let Refusal::TooMuch(Excess::Utilisation { by }) = refusal else {
            panic!("{refusal}");
        };
        assert_eq!(by, Rate::at_least(1, 1 << 40).unwrap());
    });
}

#[test]
fn a_refusal_says_in_which_interval_how_much_is_too_much() {
    with_manager::<4, _>(4, |manager, capability, root| {
        let urgent = Task::new(5, 100, 5).unwrap();
        manager
            .add_reservation(CLIENT, capability, root, urgent, Kind::Hard)
            .unwrap();
        let other = Task::new(3, 100, 6).unwrap();
        let refusal = manager
            .add_reservation(CLIENT, capability, root, other, Kind::Hard)
            .unwrap_err();
        assert_eq!(
            refusal,
            Refusal::TooMuch(Excess::Demand { interval: 6, by: 2 })
        );
        let text = "the allowance would be exceeded in intervals of 6 ticks: the demand in them must be less by 2 ticks";
        assert_eq!(refusal.to_string(), text);
    });
}

#[test]
fn a_refused_operation_changes_nothing() {
    with_manager::<4, _>(1, |manager, capability, root| {
        let half = Task::new(5, 10, 10).unwrap();
        manager
            .add_reservation(CLIENT, capability, root, half, Kind::Soft)
            .unwrap();
        let before: Vec<_> = manager.flattened(0).collect();
        for _ in 0..3 {
            let refused = manager.add_reservation(CLIENT, capability, root, half, Kind::Soft);
            assert_eq!(refused, Err(Refusal::RecordQuota { most: 1 }));
        }
        assert_eq!(manager.flattened(0).collect::<Vec<_>>(), before);
        assert_eq!(manager.used(CLIENT).unwrap().records, 1);
    });
}

#[test]
fn points_that_are_no_allowance_are_refused_with_what_would_be_right() {
    let point = |at, value| Point {
        at,
        value: Amount::of_ticks(value),
        rate: Rate::at_most(1, 2).unwrap(),
    };
    let refused = |points: &[Point]| Allowance::<3>::new(points).unwrap_err();
    assert_eq!(refused(&[]), AllowanceError::Count { points: 0, most: 3 });
    assert_eq!(
        refused(&[point(5, 1), point(5, 2)]),
        AllowanceError::Order { index: 1 }
    );
    assert_eq!(
        refused(&[point(0, 1), point(9, 5)]),
        AllowanceError::Falls { index: 1, least: 6 }
    );
    let long = point(1 << 57, 1 << 57);
    assert_eq!(refused(&[long]), AllowanceError::TooLong { index: 0 });
    assert!(Allowance::<3>::new(&[point(0, 1), point(9, 6)]).is_ok());
}

fn any_task() -> impl Strategy<Value = Task> {
    (1u64..200)
        .prop_flat_map(|period| (Just(period), 1..=period))
        .prop_flat_map(|(period, budget)| (Just(period), Just(budget), budget..=period))
        .prop_map(|(period, budget, deadline)| Task::new(budget, period, deadline).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Rounding is pessimistic: a function is never below the demand that it stands for.
    #[test]
    fn a_function_is_never_below_the_demand_of_its_task(task in any_task(), steps in 1usize..8) {
        let function = Allowance::<7>::of_task_in(task, steps);
        for interval in 0..2_000 {
            let exact = task.demand(interval);
            prop_assert!(u128::from(function.at(interval)) >= exact);
            let is_in_steps = interval < task.deadline() + (steps.min(7) as u64 - 1) * task.period();
            prop_assert!(!is_in_steps || u128::from(function.at(interval)) == exact);
        }
    }

    /// A subsystem that asks for what its tasks need has room for all of them.
    #[test]
    fn an_allocation_for_tasks_has_room_for_them(tasks in prop::collection::vec(any_task(), 1..6)) {
        let Some(allowance) = Allowance::<6>::of_tasks(&tasks) else {
            return Ok(());
        };
        let functions: Vec<_> = tasks.iter().map(|&task| Allowance::of_task(task)).collect();
        let all: Vec<_> = functions.iter().collect();
        let (last, others) = all.split_last().unwrap();
        prop_assert!(straightforward::admits(&allowance, others, last).is_admitted);
    }

    /// The test decides as the straightforward one does, also among functions of steps and slopes.
    #[test]
    fn the_test_decides_as_the_straightforward_one(tasks in prop::collection::vec(any_task(), 1..12)) {
        with_manager::<3, _>(12, |manager, capability, root| {
            for &task in &tasks {
                let new = Allowance::of_task(task);
                let held: Vec<_> = manager.functions_in(root).collect();
                let plain = straightforward::admits(manager.allowance(root).unwrap(), &held, &new);
                let added = manager.add_reservation(CLIENT, capability, root, task, Kind::Hard);
                prop_assert_eq!(added.is_ok(), plain.is_admitted);
            }
            Ok(())
        })?;
    }
}
