//! A shared cipher server on several cores (thesis, section 8.5.2, Figure 8.10).
//!
//! One client per core has its data encrypted, request by request, by a passive server. *Single*:
//! one server for all, which goes to the core of whoever calls it; the others wait for it, so
//! nothing is gained by more cores. *Multiple*: each core has a server of its own.

use serde::{Deserialize, Serialize};

use super::{spent, LATEST};
use crate::costs::Costs;
use crate::record::Spent;
use crate::script::{Message, Script, Step};
use crate::system::{System, Time};

const SERVER_PRIORITY: u8 = 200;
const CLIENT_PRIORITY: u8 = 100;
/// What the server's answer is more than the request.
const ANSWER: u64 = 1;

/// Who serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// One server that goes from core to core.
    Single,
    /// One server for each core.
    Multiple,
}

impl Variant {
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Single => "single",
            Variant::Multiple => "multiple",
        }
    }
}

/// The work of a request, and how many each client makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// Bytes that a request has encrypted.
    pub request_bytes: u64,
    /// Ticks of the server for a request, besides those for each byte.
    pub server_ticks: u64,
    /// Ticks of the server for each byte.
    pub ticks_per_byte: u64,
    /// Ticks of the client between two requests.
    pub client_ticks: u64,
    /// Requests of each client.
    pub requests: u64,
    pub costs: Costs,
}

impl Default for Parameters {
    /// 1 MiB for each client, as in the thesis, in requests of 4 KiB. What a request takes is counted
    /// by `./sandglass experiment multicore`: 341,164 instructions from a server's receiving it to
    /// its reply, with AES-256 in software, and 44 of the client.
    fn default() -> Self {
        Parameters {
            request_bytes: 4096,
            server_ticks: 1_196,
            ticks_per_byte: 83,
            client_ticks: 44,
            requests: 256,
            costs: Costs::default(),
        }
    }
}

impl Parameters {
    fn service(&self) -> u64 {
        self.server_ticks + self.request_bytes * self.ticks_per_byte
    }
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    pub variant: Variant,
    pub cores: usize,
    /// Bytes encrypted.
    pub bytes: u64,
    /// Until the last request was answered.
    pub ticks: u64,
    /// Throughput relative to that on one core.
    pub speedup: f64,
    /// How each core spent its time, in ticks.
    pub spent: Vec<Spent>,
    /// The longest wait for the lock, in ticks.
    pub longest_wait: u64,
}

/// Both variants on every number of cores from 1 to `most`.
pub fn run(parameters: &Parameters, most: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for variant in [Variant::Single, Variant::Multiple] {
        let first = points.len();
        points.extend((1..=most).map(|cores| measure(parameters, variant, cores)));
        let alone = points[first].ticks as f64 / points[first].bytes as f64;
        for point in &mut points[first..] {
            point.speedup = alone * point.bytes as f64 / point.ticks as f64;
        }
    }
    points
}

/// One run of `variant`; its speed-up is not known yet.
///
/// # Panics
/// If an answer is wrong.
pub fn measure(parameters: &Parameters, variant: Variant, cores: usize) -> Point {
    let mut system = System::new(cores);
    let mut endpoint = 0;
    for core in 0..cores {
        if core == 0 || variant == Variant::Multiple {
            endpoint = system.endpoint();
            serve(&mut system, endpoint, parameters.service());
        }
        client(&mut system, core, endpoint, parameters);
    }
    let simulation = system.start(parameters.costs, 0);
    let requests = parameters.requests * cores as u64;
    let record = simulation.run_until_done(requests as usize, LATEST);
    assert_eq!(record.surprises, Vec::<String>::new(), "wrong answers");
    Point {
        variant,
        cores,
        bytes: requests * parameters.request_bytes,
        ticks: record.jobs.last().map_or(0, |job| job.at),
        speedup: 1.0,
        spent: spent(&record),
        longest_wait: record.longest_wait(),
    }
}

fn serve(system: &mut System, endpoint: u64, ticks: u64) {
    system.server(SERVER_PRIORITY, endpoint, |_, reply| {
        let answer = Message::Received { plus: ANSWER };
        Script::forever(vec![
            Step::Compute(ticks),
            Step::reply_recv(endpoint, reply, answer),
        ])
    });
}

/// A client that has all the time of its core.
fn client(system: &mut System, core: usize, endpoint: u64, parameters: &Parameters) {
    let request = 100 * core as u64;
    system.task(CLIENT_PRIORITY, core, Time::new(10_000, 10_000), |_| {
        let steps = vec![
            Step::Compute(parameters.client_ticks),
            Step::call(endpoint, &[request]),
            Step::Expect(vec![request + ANSWER]),
            Step::Done,
        ];
        Script::repeat(parameters.requests, steps)
    });
}
