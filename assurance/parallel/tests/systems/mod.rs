//! Random systems: tasks that compute, call servers, wake each other, stop each other and move.

use proptest::prelude::*;
use sandglass_abi::boot::slot;
use sandglass_assurance::census::Anchor;
use sandglass_assurance::invariants::{sweep, Violation};
use sandglass_kernel::{Kernel, CORES};
use sandglass_parallel::{
    migrate, Costs, Made, Message, Script, Simulation, Step, System, Task, Time,
};
use sandglass_testkit::isa;

const SERVERS: u64 = 3;
/// What each server adds to the words that it answers.
const PLUS: [u64; SERVERS as usize] = [1, 10, 101];
const SERVER_PRIORITY: u8 = 210;
/// Where frames are mapped; no two mappers share a place.
const MAPPED: u64 = 0x6000_0000;

/// What a task does in each round, after its computation.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Nothing but a job.
    Spins,
    Yields,
    /// Calls this server with words of its own.
    Calls(u64),
    Signals,
    Waits,
    /// Goes to this core next.
    Moves(usize),
    /// Moves one that spins to this core.
    Pushes(usize, usize),
    /// Stops another for a while.
    Stops(usize),
    /// Maps a page and takes it away again.
    Maps,
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    kind: Kind,
    priority: u8,
    core: usize,
    time: Time,
    /// Ticks of its computation.
    ticks: u64,
}

/// A system.
#[derive(Clone, Debug)]
pub struct Plan {
    cores: usize,
    plants: Vec<Plant>,
    /// Ticks of each server's computation.
    services: [u64; SERVERS as usize],
}

/// A system that was built.
pub struct Built {
    anchor: Anchor,
    all: Vec<Made>,
    /// Those with a budget.
    pub budgets: Vec<(Made, Time)>,
    /// Those that do one computation of so many ticks for each job, and nothing else in user code.
    pub jobs: Vec<(Made, u64)>,
}

impl Built {
    /// The kernel's invariants hold.
    pub fn sweep(&self, k: &Kernel) -> Result<(), Violation> {
        sweep(k, self.anchor)
    }

    /// All tasks.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + '_ {
        self.all.iter().map(|made| made.task)
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just(Kind::Spins),
        1 => Just(Kind::Yields),
        4 => (0..SERVERS).prop_map(Kind::Calls),
        2 => Just(Kind::Signals),
        2 => Just(Kind::Waits),
        2 => (0..CORES).prop_map(Kind::Moves),
        2 => (0..16usize, 0..CORES).prop_map(|(whom, to)| Kind::Pushes(whom, to)),
        1 => (0..16usize).prop_map(Kind::Stops),
        1 => Just(Kind::Maps),
    ]
}

fn time() -> impl Strategy<Value = Time> {
    let budget = prop_oneof![20u64..100, 100u64..2_000];
    (budget, 1u64..8, 0u64..5).prop_map(|(budget, factor, extra_refills)| Time {
        extra_refills,
        // Never all of the time.
        ..Time::new(budget, budget * factor + u64::from(factor == 1))
    })
}

fn plant() -> impl Strategy<Value = Plant> {
    let ticks = prop_oneof![500u64..5_000, 5_000u64..400_000];
    (kind(), 1u8..200, 0..CORES, time(), ticks).prop_map(|(kind, priority, core, time, ticks)| {
        Plant {
            kind,
            priority,
            core,
            time,
            ticks,
        }
    })
}

/// Systems on one to as many cores as the kernel is built for.
pub fn system() -> impl Strategy<Value = Plan> {
    let plants = prop::collection::vec(plant(), 1..12);
    let services = prop::array::uniform(1u64..50_000);
    let all = (1..=CORES, plants, services, any::<bool>());
    all.prop_map(|(cores, mut plants, services, has_sporadic)| {
        for plant in &mut plants {
            plant.core %= cores;
        }
        if has_sporadic {
            // Above all others, also when it would be in a server: the refills of one that is kept
            // from running keep their times (04, section 5.4).
            plants[0].priority = 250;
            plants[0].time.sporadic = true;
            if let Kind::Calls(_) = plants[0].kind {
                plants[0].kind = Kind::Waits;
            }
        }
        Plan {
            cores,
            plants,
            services,
        }
    })
}

/// Builds `plan`.
pub fn build(plan: &Plan) -> (Simulation, Built) {
    let system = System::new(plan.cores);
    let mut builder = Builder {
        plan,
        endpoints: Vec::new(),
        bell: 0,
        spinners: Vec::new(),
        others: Vec::new(),
        built: Built {
            anchor: Anchor::of(system.kernel()),
            all: Vec::new(),
            budgets: Vec::new(),
            jobs: Vec::new(),
        },
        system,
    };
    builder.build();
    let Builder { system, built, .. } = builder;
    (system.start(Costs::default(), 0), built)
}

struct Builder<'a> {
    system: System,
    plan: &'a Plan,
    endpoints: Vec<u64>,
    /// The notification that all signal and wait for.
    bell: u64,
    /// Those that are always runnable, and those that may be stopped.
    spinners: Vec<(Made, Time)>,
    others: Vec<Made>,
    built: Built,
}

impl Builder<'_> {
    fn build(&mut self) {
        self.bell = self.system.notification();
        for number in 0..SERVERS as usize {
            self.serve(number);
        }
        // Those that do something to others come after these.
        let mut plants: Vec<_> = self.plan.plants.iter().enumerate().collect();
        plants.sort_by_key(|(_, plant)| matches!(plant.kind, Kind::Pushes(..) | Kind::Stops(_)));
        for (number, plant) in plants {
            self.plant(number as u64, plant);
        }
    }

    /// A passive server; the second one asks the first, too.
    fn serve(&mut self, number: usize) {
        let endpoint = self.system.endpoint();
        let asks = (number == 1).then(|| self.endpoints[0]);
        let ticks = self.plan.services[number];
        let priority = SERVER_PRIORITY - number as u8;
        let answer = Message::Received { plus: PLUS[number] };
        let made = self.system.server(priority, endpoint, |_, reply| {
            let mut steps = vec![Step::Compute(ticks)];
            steps.extend(asks.map(Step::forward));
            steps.push(Step::reply_recv(endpoint, reply, answer));
            Script::forever(steps)
        });
        self.endpoints.push(endpoint);
        self.built.all.push(made);
    }

    fn plant(&mut self, number: u64, plant: &Plant) {
        let vaddr = MAPPED + number * 4096;
        let frame = match plant.kind {
            Kind::Maps => {
                self.system.map_tables(vaddr);
                self.system.frame()
            }
            _ => 0,
        };
        let made = self.system.thread(plant.priority, plant.core, plant.time);
        let mut steps = vec![Step::Compute(plant.ticks), Step::Done];
        steps.extend(self.rest(number, plant, made, (frame, vaddr)));
        self.system.run(made, Script::forever(steps));
        self.built.all.push(made);
        self.built.budgets.push((made, plant.time));
        match plant.kind {
            Kind::Stops(_) => {}
            Kind::Spins => self.spinners.push((made, plant.time)),
            _ => self.others.push(made),
        }
        self.built.jobs.push((made, plant.ticks));
    }

    /// What follows the computation.
    fn rest(
        &self,
        number: u64,
        plant: &Plant,
        made: Made,
        (frame, vaddr): (u64, u64),
    ) -> Vec<Step> {
        match plant.kind {
            Kind::Spins => vec![],
            Kind::Yields => vec![Step::yield_rest()],
            Kind::Calls(server) => {
                let server = server as usize;
                let plus = PLUS[server] + if server == 1 { PLUS[0] } else { 0 };
                let words = [1_000 * number, 1_000 * number + 500];
                vec![
                    Step::call(self.endpoints[server], &words),
                    Step::Expect(words.iter().map(|word| word + plus).collect()),
                ]
            }
            Kind::Signals => vec![Step::signal(self.bell)],
            Kind::Waits => vec![Step::wait(self.bell)],
            Kind::Moves(to) => {
                let to = to % self.plan.cores;
                vec![
                    migrate(made, to, plant.time),
                    Step::Compute(plant.ticks),
                    Step::Done,
                    migrate(made, plant.core, plant.time),
                ]
            }
            Kind::Pushes(whom, to) => {
                let whom = self.spinners.get(whom % self.spinners.len().max(1));
                whom.map_or(vec![], |&(whom, time)| {
                    vec![migrate(whom, to % self.plan.cores, time)]
                })
            }
            Kind::Stops(whom) => {
                let whom = self.others.get(whom % self.others.len().max(1));
                whom.map_or(vec![], |whom| {
                    vec![
                        Step::suspend(whom.tcb),
                        Step::Compute(plant.ticks),
                        Step::Done,
                        Step::resume(whom.tcb),
                    ]
                })
            }
            Kind::Maps => {
                let vspace = [slot::VSPACE];
                vec![
                    Step::invoke(frame, isa::label::PAGE_MAP, &[vaddr, 3, 0], &vspace),
                    Step::Compute(plant.ticks),
                    Step::Done,
                    Step::invoke(frame, isa::label::PAGE_UNMAP, &[], &[]),
                ]
            }
        }
    }
}
