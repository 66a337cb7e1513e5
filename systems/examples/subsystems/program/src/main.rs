//! A component of the example, by its parameters: a client of the time manager that works in turns; the planner, which
//! subdivides what it has; a thread of a partition that does jobs, never stops, or waits for ever; or the judge, which waits
//! until all are done, prints the counts and ends the system: with status 0 if no turn was late, no job is missing, and no
//! answer of the key server came later than by the job after the next.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::Notification;
use sandglass::{print, println, time, Environment};
use sandglass_allocations::{AllocationId, Allowance, CapabilityId, Kind, Rate, Refusal};
use sandglass_mc_ipc::client::{Courier, Gate, Refusal as Refused};
use sandglass_partitions::Member;
use sandglass_time_manager::{Denial, Reservation, TimeManager};

sandglass::entry!(main, stack = 0x8000, heap = 0x1000);

/// Rows of the board: those with turns, then those with jobs.
const CLIENTS: [&str; 3] = ["control", "tracker", "mapper"];
const MEMBERS: [(&str, &str); 2] = [("pilot", "period-pilot"), ("player", "period-player")];
/// Who is promised seals, with its row.
const SEALED: [(&str, u64); 2] = [("tracker", 1), ("pilot", 3)];
/// Words of a seal: its number, and a code.
const SEAL: usize = 5;
/// Words of a row.
const WORDS: u64 = 16;
/// What tells a client that it has been given time, if that is to come.
const GRANTED: [&str; 2] = ["tracker.granted", "mapper.granted"];
/// What all that come to an end signal together.
const ALL: u64 = 0b11111;

fn main(env: &'static Environment) -> u8 {
    let is = |parameter| env.find_parameter(parameter).is_some();
    if is("rounds") {
        plan(env)
    } else if is("turns") {
        take_turns(env)
    } else if is("jobs") {
        do_jobs(env)
    } else if is("spins") {
        spin(env)
    } else if is("asks") {
        ask(env)
    } else if is("sleeps") {
        let never: Notification = env.capability("never");
        Member::described(env).run(|| _ = never.wait())
    } else {
        judge(env)
    }
}

/// A row of the board: turns and how many of them ended late; or jobs and ticks from the first to the last. And what the key
/// server has sealed.
struct Row {
    count: &'static AtomicU64,
    other: &'static AtomicU64,
    seals: &'static AtomicU64,
    /// The most jobs in a row that came before the answer.
    waited: &'static AtomicU64,
    /// The job that was sealed last, and its seal.
    sealed: &'static AtomicU64,
    seal: [&'static AtomicU64; SEAL],
}

fn row(env: &Environment, row: u64) -> Row {
    let board = env.memory("board");
    assert!(
        (row + 1) * WORDS * 8 <= board.len,
        "the board has room for row {row}"
    );
    let word = |index: u64| {
        let word = (row * WORDS + index) as usize;
        // SAFETY: inside of the board, which stays mapped; all who see it use atomics.
        unsafe { AtomicU64::from_ptr(board.as_mut_ptr().add(word * 8).cast()) }
    };
    Row {
        count: word(0),
        other: word(1),
        seals: word(2),
        waited: word(3),
        sealed: word(4),
        seal: [5, 6, 7, 8, 9].map(word),
    }
}

/// Has jobs sealed, one at a time.
struct Sealing {
    courier: Courier,
    row: Row,
    /// The job that was posted last, and how many came since then.
    posted: u64,
    waited: u64,
}

impl Sealing {
    fn new(env: &Environment) -> Self {
        Self {
            courier: Courier::described(env, "seal"),
            row: row(env, env.parameter("row")),
            posted: 0,
            waited: 0,
        }
    }

    /// In each job: takes a seal that is there, and asks for the next unless it still waits for one.
    fn job(&mut self, job: u64) {
        let mut seal = [0; SEAL];
        if let Some(taken) = self.courier.take(&mut seal) {
            assert_eq!(taken, Ok(SEAL));
            self.row.seals.fetch_add(1, Relaxed);
            self.row.sealed.store(self.posted, Relaxed);
            for (word, value) in self.row.seal.iter().zip(seal) {
                word.store(value, Relaxed);
            }
        }
        match self.courier.post(0, &[job]) {
            Ok(()) => {
                self.posted = job;
                self.waited = 0;
            }
            Err(refused) => {
                assert_eq!(refused, Refused::Busy);
                self.waited += 1;
                self.row.waited.fetch_max(self.waited, Relaxed);
            }
        }
    }
}

/// Asks for seals on time of its own, one after the other.
fn ask(env: &Environment) -> ! {
    let gate = Gate::described(env, "seal");
    loop {
        let sealed = gate.call(0, &[0], &mut [0; SEAL]);
        assert_eq!(sealed, Ok(SEAL));
    }
}

/// Never stops; one with a courier asks for seals as fast as it can.
fn spin(env: &Environment) -> ! {
    let floods = env.parameter("spins") > 1;
    let mut courier = floods.then(|| Courier::described(env, "seal"));
    Member::described(env).run(|| loop {
        if let Some(courier) = &mut courier {
            // Mostly, the last request is not carried out.
            let _ = courier.post(0, &[u64::MAX]);
        }
    })
}

fn work(env: &Environment) {
    time::work(env.parameter("work"));
}

fn signal(env: &Environment, name: &str) {
    if let Some(signal) = env.find_capability::<Notification>(name) {
        signal.signal();
    }
}

/// Gives a half of its share for good, and the other one round after round.
fn plan(env: &'static Environment) -> u8 {
    let time = TimeManager::described(env, "time");
    match divide(env, time) {
        Ok(()) => {
            signal(env, "done");
            // If it ended, all that it has given would be taken back.
            loop {
                env.capability::<Notification>("mapper.ran").wait();
            }
        }
        Err(denial) => {
            println!("planner: {denial}");
            1
        }
    }
}

fn divide(env: &'static Environment, time: TimeManager) -> Result<(), Denial> {
    let own = time.capability()?;
    let third = time.allocation(own, 0)?;
    give(time, own, third, "tracker")?;
    signal(env, "tracker.granted");
    let ran: Notification = env.capability("mapper.ran");
    for _ in 0..env.parameter("rounds") {
        let part = give(time, own, third, "mapper")?;
        signal(env, "mapper.granted");
        ran.wait();
        time.reclaim(own, part)?;
    }
    Ok(())
}

/// Derives a capability of an eighth of the processor, for that client. What it has just lost is there when its deadlines
/// have passed and the processor was idle.
fn give(
    time: TimeManager,
    own: CapabilityId,
    third: AllocationId,
    client: &str,
) -> Result<AllocationId, Denial> {
    let eighth = Rate::at_most(1, 8).map(Allowance::linear);
    let eighth = eighth.expect("an eighth is below 1");
    let part = loop {
        match time.allocate(own, third, &eighth) {
            Err(Denial::Refused(Refusal::TooMuch(_))) => {}
            made => break made?,
        }
    };
    time.derive(own, &[part], time.client(client)?)?;
    Ok(part)
}

/// Works in turns; whenever it is given time, if that is taken back.
fn take_turns(env: &'static Environment) -> u8 {
    let time = TimeManager::described(env, "time");
    let mut names = GRANTED.into_iter();
    let granted: Option<Notification> = names.find_map(|name| env.find_capability(name));
    loop {
        if let Some(granted) = granted {
            granted.wait();
        }
        if let Err(denial) = attach(env, time) {
            println!("{}: {denial}", env.name());
            return 1;
        }
        run(env, time);
    }
}

fn attach(env: &Environment, time: TimeManager) -> Result<(), Denial> {
    let wanted = Reservation {
        budget_us: env.parameter("budget"),
        period_us: env.parameter("period"),
        deadline_us: env.parameter("deadline"),
        kind: Kind::Hard,
    };
    let capability = time.capability()?;
    let allocation = time.allocation(capability, 0)?;
    let reservation = time.reserve(capability, allocation, wanted)?;
    time.attach(capability, reservation)
}

/// Until the reservation is taken back.
fn run(env: &Environment, time: TimeManager) {
    let Row {
        count, other: late, ..
    } = row(env, env.parameter("row"));
    let seals = env.find_parameter("seals").is_some();
    let mut sealing = seals.then(|| Sealing::new(env));
    let mut turns = 0;
    while let Some(turn) = time.next() {
        work(env);
        if let Some(sealing) = &mut sealing {
            sealing.job(turns);
        }
        late.fetch_add(u64::from(time::ticks() > turn.deadline), Relaxed);
        count.fetch_add(1, Relaxed);
        turns += 1;
        if turns == env.parameter("turns") {
            signal(env, "done");
            signal(env, "mapper.ran");
        }
    }
}

/// Does its jobs, and says so when it has done as many as it should.
fn do_jobs(env: &'static Environment) -> ! {
    let Row {
        count, other: took, ..
    } = row(env, env.parameter("row"));
    let mut sealing = Sealing::new(env);
    let mut first = 0;
    Member::described(env).run(|| {
        if count.load(Relaxed) == 0 {
            first = time::ticks();
        }
        work(env);
        let job = count.fetch_add(1, Relaxed);
        sealing.job(job);
        if job + 1 == env.parameter("jobs") {
            took.store(time::ticks() - first, Relaxed);
            signal(env, "done");
        }
    })
}

fn judge(env: &'static Environment) -> u8 {
    let done: Notification = env.capability("done");
    let mut seen = 0;
    while seen != ALL {
        seen |= done.wait();
    }
    let mut is_right = true;
    for (number, name) in (0..).zip(CLIENTS) {
        let Row {
            count, other: late, ..
        } = row(env, number);
        let (count, late) = (count.load(Relaxed), late.load(Relaxed));
        println!("{name}: {count} turns, {late} late");
        is_right &= late == 0;
    }
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    for (number, (name, period)) in (CLIENTS.len() as u64..).zip(MEMBERS) {
        let Row {
            count, other: took, ..
        } = row(env, number);
        let period = tsc.us_to_ticks(env.parameter(period));
        let (jobs, periods) = (count.load(Relaxed), took.load(Relaxed).div_ceil(period));
        println!("{name}: {jobs} jobs");
        is_right &= jobs.abs_diff(periods) <= 1;
    }
    for (name, number) in SEALED {
        is_right &= show_seals(name, &row(env, number));
    }
    u8::from(!is_right)
}

/// Prints how many there are and the last; tells whether none was late.
fn show_seals(name: &str, row: &Row) -> bool {
    let (seals, waited) = (row.seals.load(Relaxed), row.waited.load(Relaxed));
    let job = row.sealed.load(Relaxed);
    let [number, code @ ..] = row.seal.map(|word| word.load(Relaxed));
    print!("{name}: {seals} seals, {waited} jobs waited; number {number}, of job {job}: ");
    for byte in code.into_iter().flat_map(u64::to_le_bytes) {
        print!("{byte:02x}");
    }
    println!();
    seals > 0 && waited <= 1
}
