//! Measures the partition scheduler (Åsberg and Nolte; paper, section 5), as a root task: the main thread is the scheduler, with
//! the library's driver; the threads of partitions compute.
//!
//! What it prints, times in ticks, which are instructions where one takes 1 ns:
//!
//! - `figure PARTITIONS THREADS CLASS COUNT` and then mean and most of an invocation, of its decision and of its switch
//!   ([`recorder`]), for each number of partitions and of threads in each (Figure 8);
//! - `unit TICKS` and `ran PARTITION FROM TO`, what ran when with the parameters of Figure 10;
//! - `served REQUEST BOUND BUDGET ENDED SHORTEST LATEST`: beside a partition whose requests to a shared server take so long,
//!   and may take `BOUND` after the end of its window: how many ended, and of the other partition's windows, which have a
//!   whole budget, the shortest and the latest beginning after its time;
//! - `attacked NAME BUDGET SHORTEST LATEST`: the same of the windows beside a partition that spins, floods the scheduler with
//!   calls, or faults;
//! - `drift SECONDS WINDOWS ASTRAY LATEST`: of all windows, how many were not of their partition's last release, and how
//!   long after its release a window began at most.

#![no_std]
#![no_main]

extern crate alloc;

mod crew;
mod lab;
mod looks;
mod recorder;
mod service;

use alloc::vec::Vec;

use sandglass::cap::SchedParams;
use sandglass::firmware::Files;
use sandglass::time::Tsc;
use sandglass::timer::Timer;
use sandglass::{boot, println, BootInfo, Process, SetupError};
use sandglass_partitions::driver::FULL_US;
use sandglass_partitions::periodic::Parameters;

use crew::{Conduct, Crew};
use lab::{Lab, Set};
use service::Service;

sandglass::entry!(main, stack = 0x1_0000, heap = 0x60_0000);

const CSPACE_RADIX: u32 = 16;
/// Vector of the HPET's interrupt.
const VECTOR: u64 = 5;

/// Periods of Figure 8, in units, and the number of its partitions at most.
const PERIODS: [u64; 9] = [11, 12, 14, 17, 19, 21, 23, 25, 28];
/// A unit there, µs.
const UNIT_US: u64 = 20;
/// More partitions than the paper's.
const MORE: [usize; 3] = [16, 64, 256];
const THREADS: [usize; 3] = [1, 4, 16];

/// A unit of Figure 10, µs, and how many units it is watched for: a hyperperiod.
const TRACE_UNIT_US: u64 = 100;
const TRACE_UNITS: u64 = 60;

/// A unit in the runs with a server, µs; period and budget of both partitions, and how many periods they are watched for.
const SERVED_UNIT_US: u64 = 100;
const SERVED: (u64, u64) = (10, 4);
const SERVED_PERIODS: u64 = 50;
/// How long a request may take after the end of its partition's window, µs; and what requests take: less, and more than
/// whole windows.
const BOUND_US: u64 = 100;
const REQUESTS_US: [u64; 2] = [60, 1_500];

/// What else the first partition does.
const ATTACKS: [(&str, Conduct); 3] = [
    ("spins", Conduct::Spins),
    ("floods", Conduct::Floods),
    ("faults", Conduct::Faults),
];

/// A unit in the run that shows that nothing drifts, µs.
const DRIFT_UNIT_US: u64 = 10_000;

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    process.resources.enlarge_cspace(CSPACE_RADIX)?;
    let files = Files::open(&mut process)?;
    let asked = |name: &str, default| files.number(name).map(|number| number.unwrap_or(default));
    let units = asked("opt/sandglass/units", 500)?;
    let seconds = asked("opt/sandglass/seconds", 10)?;
    let is_short = asked("opt/sandglass/short", 1)? == 1;

    let control = boot.sched_control(0).expect("there is a first core");
    control.configure(boot::SCHED_CONTEXT, SchedParams::new(FULL_US, FULL_US))?;
    let tsc = boot
        .tsc()
        .expect("the kernel reports the clock's frequency");
    let timer = Timer::new(&mut process, VECTOR)?;
    boot::TCB.bind_notification(timer.notification())?;
    let most = MORE[MORE.len() - 1];
    let crew = Crew::new(
        &mut process,
        control,
        most,
        most * THREADS[THREADS.len() - 1],
    )?;
    let service = Service::start(&mut process, control, timer, crew.endpoint)?;
    let lab = Lab {
        crew,
        service,
        timer,
        tsc,
    };

    for (partitions, threads) in configurations(is_short) {
        measure(&lab, partitions, threads, units)?;
    }
    trace(&lab)?;
    for request_us in REQUESTS_US {
        serve(&lab, request_us)?;
    }
    for (name, conduct) in ATTACKS {
        attack(&lab, name, conduct)?;
    }
    drift(&lab, tsc, seconds)?;
    Ok(0)
}

/// Numbers of partitions and threads: the paper's, and more.
fn configurations(is_short: bool) -> Vec<(usize, usize)> {
    if is_short {
        let ends = [2, PERIODS.len(), MORE[MORE.len() - 1]];
        return ends
            .map(|partitions| [(partitions, 1), (partitions, 16)])
            .concat();
    }
    let partitions = (2..=PERIODS.len()).chain(MORE);
    partitions
        .flat_map(|partitions| THREADS.map(|threads| (partitions, threads)))
        .collect()
}

/// The periods of so many partitions, in units. More than the paper's have them as many times longer as they are more,
/// so that they take as much of the processor; and no two have the same.
fn periods(partitions: usize) -> impl Iterator<Item = u64> {
    let stretch = stretch(partitions);
    (0..partitions).map(move |index| {
        let period = PERIODS[index % PERIODS.len()] * stretch;
        period + (index / PERIODS.len()) as u64
    })
}

const fn stretch(partitions: usize) -> u64 {
    partitions.div_ceil(PERIODS.len()) as u64
}

/// Partitions with these periods and a budget of a unit, whose first releases are spread over a period: else all of them
/// would be at one instant.
fn spread(
    periods: impl Iterator<Item = u64>,
    partitions: usize,
    unit: u64,
) -> impl Iterator<Item = Parameters> {
    periods.enumerate().map(move |(index, period)| Parameters {
        offset: period * index as u64 / partitions as u64,
        ..implicit(period, unit)
    })
}

fn implicit(period: u64, budget: u64) -> Parameters {
    Parameters {
        period,
        deadline: period,
        budget,
        ..Parameters::default()
    }
}

fn measure(lab: &Lab, partitions: usize, threads: usize, units: u64) -> Result<(), SetupError> {
    let unit = lab.tsc.us_to_ticks(UNIT_US);
    let parameters: Vec<_> = spread(periods(partitions), partitions, unit).collect();
    let set = Set {
        parameters: &parameters,
        threads,
        unit,
        job: unit / 16,
        conduct: None,
    };
    // As many releases of each partition, however many there are.
    let length = units * stretch(partitions) * unit;
    let recorder = lab.run(&set, length)?;
    for (class, figures) in recorder.figures() {
        println!("figure {partitions} {threads} {class} {figures}");
    }
    Ok(())
}

/// Figure 10: T = 3, 4, 5 and Θ = 1, 1, 2.
fn trace(lab: &Lab) -> Result<(), SetupError> {
    let unit = lab.tsc.us_to_ticks(TRACE_UNIT_US);
    let parameters =
        [(3, 1), (4, 1), (5, 2)].map(|(period, budget)| implicit(period, budget * unit));
    let set = Set {
        parameters: &parameters,
        threads: 1,
        unit,
        job: 0,
        conduct: None,
    };
    let recorder = lab.run(&set, TRACE_UNITS * unit)?;
    println!("unit {unit}");
    for ran in recorder.ran() {
        println!("ran {} {} {}", ran.partition, ran.from, ran.to);
    }
    Ok(())
}

/// The first partition does nothing but requests.
fn serve(lab: &Lab, request_us: u64) -> Result<(), SetupError> {
    service::set_request(lab.tsc.us_to_ticks(request_us));
    let [budget, shortest, latest] = beside(lab, Conduct::Asks { bound_us: BOUND_US })?;
    let ticks = |us| lab.tsc.us_to_ticks(us);
    let (request, bound) = (ticks(request_us), ticks(BOUND_US));
    let ended = service::ended();
    println!("served {request} {bound} {budget} {ended} {shortest} {latest}");
    Ok(())
}

/// The first partition does what it can to disturb.
fn attack(lab: &Lab, name: &str, conduct: Conduct) -> Result<(), SetupError> {
    let [budget, shortest, latest] = beside(lab, conduct)?;
    println!("attacked {name} {budget} {shortest} {latest}");
    Ok(())
}

/// Two equal partitions, of which the first is the first one in every period, and does so. Of the other one's windows: how
/// long they should be, the shortest, and the latest beginning after its time, in ticks.
fn beside(lab: &Lab, conduct: Conduct) -> Result<[u64; 3], SetupError> {
    let unit = lab.tsc.us_to_ticks(SERVED_UNIT_US);
    let (period, budget) = SERVED;
    let parameters = [implicit(period, budget * unit); 2];
    let set = Set {
        parameters: &parameters,
        threads: 1,
        unit,
        job: 0,
        conduct: Some(conduct),
    };
    let recorder = lab.run(&set, SERVED_PERIODS * period * unit)?;
    // The end of the run cuts off the last one.
    let mut ran = recorder.ran().iter();
    ran.next_back();
    let of_other = ran.filter(|ran| ran.partition == 1);
    let shortest = of_other.clone().map(|ran| ran.to - ran.from).min();
    let late = |ran: &recorder::Ran| (ran.from % (period * unit)).saturating_sub(budget * unit);
    let latest = of_other.map(late).max();
    Ok([
        budget * unit,
        shortest.unwrap_or(0),
        latest.unwrap_or(u64::MAX),
    ])
}

/// Partitions without threads: their windows pass, and time passes quickly in virtual time.
fn drift(lab: &Lab, tsc: Tsc, seconds: u64) -> Result<(), SetupError> {
    let unit = tsc.us_to_ticks(DRIFT_UNIT_US);
    let parameters = PERIODS.map(|period| implicit(period, unit));
    let set = Set {
        parameters: &parameters,
        threads: 0,
        unit,
        job: 0,
        conduct: None,
    };
    let recorder = lab.run(&set, tsc.us_to_ticks(seconds * 1_000_000))?;
    let drift = recorder.drift();
    println!(
        "drift {seconds} {} {} {}",
        drift.windows, drift.astray, drift.latest
    );
    Ok(())
}
