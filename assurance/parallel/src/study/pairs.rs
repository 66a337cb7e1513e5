//! Calls within every core at once (thesis, section 8.5.1, Figure 8.9).
//!
//! Each core has a client and a passive server of the same priority. The client calls without words,
//! the server answers; between two calls the client does a random amount of work, at most a bound.
//! What limits the number of calls is the kernel's one lock, when the work is little.

use serde::{Deserialize, Serialize};

use super::{spent, LATEST};
use crate::costs::Costs;
use crate::record::Spent;
use crate::script::{Message, Script, Step};
use crate::system::{System, Time};

const PRIORITY: u8 = 100;
/// Ticks of user code for a call, the client's and the server's: 39 in all, as counted by
/// `./sandglass experiment multicore`.
const CLIENT: u64 = 21;
const SERVER: u64 = 18;

/// The work between calls, and how many each pair makes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// Bounds of the random work, in ticks: a curve each.
    pub bounds: Vec<u64>,
    /// Calls of each client.
    pub calls: u64,
    /// The random numbers follow from this.
    pub seed: u64,
    pub costs: Costs,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            bounds: vec![0, 500, 2_000, 8_000, 32_000, 128_000],
            calls: 2_000,
            seed: 1,
            costs: Costs::default(),
        }
    }
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    pub cores: usize,
    /// Bound of the random work, in ticks.
    pub bound: u64,
    /// Calls that were answered, on all cores.
    pub calls: u64,
    /// Until the last call was answered.
    pub ticks: u64,
    /// Throughput relative to that on one core with this bound.
    pub speedup: f64,
    /// How each core spent its time, in ticks.
    pub spent: Vec<Spent>,
    /// The longest wait for the lock, in ticks.
    pub longest_wait: u64,
}

/// Every bound on every number of cores from 1 to `most`.
pub fn run(parameters: &Parameters, most: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for &bound in &parameters.bounds {
        let first = points.len();
        points.extend((1..=most).map(|cores| measure(parameters, bound, cores)));
        let alone = points[first].ticks as f64 / points[first].calls as f64;
        for point in &mut points[first..] {
            point.speedup = alone * point.calls as f64 / point.ticks as f64;
        }
    }
    points
}

/// One run; its speed-up is not known yet.
///
/// # Panics
/// If an answer is wrong.
pub fn measure(parameters: &Parameters, bound: u64, cores: usize) -> Point {
    let mut system = System::new(cores);
    for core in 0..cores {
        pair(&mut system, core, bound, parameters.calls);
    }
    let simulation = system.start(parameters.costs, parameters.seed);
    let calls = parameters.calls * cores as u64;
    let record = simulation.run_until_done(calls as usize, LATEST);
    assert_eq!(record.surprises, Vec::<String>::new(), "wrong answers");
    Point {
        cores,
        bound,
        calls,
        ticks: record.jobs.last().map_or(0, |job| job.at),
        speedup: 1.0,
        spent: spent(&record),
        longest_wait: record.longest_wait(),
    }
}

/// A server and its client on `core`.
fn pair(system: &mut System, core: usize, bound: u64, calls: u64) {
    let endpoint = system.endpoint();
    system.server(PRIORITY, endpoint, |_, reply| {
        Script::forever(vec![
            Step::Compute(SERVER),
            Step::reply_recv(endpoint, reply, Message::EMPTY),
        ])
    });
    system.task(PRIORITY, core, Time::new(10_000, 10_000), |_| {
        let steps = vec![
            Step::Compute(CLIENT),
            Step::ComputeUpTo(bound),
            Step::call(endpoint, &[]),
            Step::Expect(vec![]),
            Step::Done,
        ];
        Script::repeat(calls, steps)
    });
}
