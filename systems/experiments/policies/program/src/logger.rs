//! Best effort: executes chunks whenever nobody else does, looks at the clock after each, and so is the judge of how much
//! time is left. At the end it prints what it and the tasks have recorded.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::time::{self, Tsc};
use sandglass::trace::{self, Mark};
use sandglass::{println, Environment};

use crate::board::{Board, TASKS};
use crate::chunk;

/// What is measured begins so long after the first job: every task has begun, and hostile ones attack.
const SETTLED_US: u64 = 39_000;
/// Between two looks at the clock: an emulator takes its time for these.
const CHUNKS: u64 = 4;
/// The note in a trace at both ends of that.
const WINDOW: u64 = 0x7769_6e64;

/// What had been executed at a time.
struct Snapshot {
    at: u64,
    chunks: [u64; TASKS],
    counts: [u64; TASKS],
}

impl Snapshot {
    fn of(board: &Board, at: u64) -> Self {
        let row = |task: usize| &board.rows[task];
        Self {
            at,
            chunks: core::array::from_fn(|task| row(task).chunks.load(Relaxed)),
            counts: core::array::from_fn(|task| row(task).count.load(Relaxed)),
        }
    }
}

/// The logger at work.
struct Logger {
    board: &'static Board,
    /// Looks since the window began.
    looks: u64,
    /// Ticks from one look to the next, if nobody runs in between.
    step: u64,
}

impl Logger {
    /// Executes until a time has passed. When it really was. Not inlined, so that a step is the same instructions everywhere.
    #[inline(never)]
    fn until(&mut self, time: u64) -> u64 {
        let mut before = self.look();
        while before < time {
            // Nobody reads what it counts.
            chunk::execute(&AtomicU64::new(0), CHUNKS);
            let now = self.look();
            self.step = self.step.min(now - before);
            before = now;
        }
        before
    }

    fn look(&mut self) -> u64 {
        let now = time::ticks();
        self.board.look.store(now, Relaxed);
        self.looks += 1;
        now
    }
}

pub fn run(env: &'static Environment) {
    let board = Board::of(env);
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let chunk = chunk::calibrate();
    let mut logger = Logger {
        board,
        looks: 0,
        step: u64::MAX,
    };
    let began = loop {
        if let Some(began) = board.began() {
            break began;
        }
        logger.until(time::ticks() + chunk);
    };
    let begin = logger.until(began + tsc.us_to_ticks(SETTLED_US));
    let first = Snapshot::of(board, begin);
    logger.looks = 0;
    trace::mark(Mark::Note {
        what: WINDOW,
        value: 0,
    });
    let end = logger.until(begin + tsc.us_to_ticks(env.parameter("length")));
    let last = Snapshot::of(board, end);
    trace::mark(Mark::Note {
        what: WINDOW,
        value: 1,
    });
    print(&logger, tsc, chunk, &first, &last);
}

fn print(logger: &Logger, tsc: Tsc, chunk: u64, first: &Snapshot, last: &Snapshot) {
    println!(
        "window {} {} {} {}",
        first.at,
        last.at,
        logger.looks * logger.step,
        tsc.us_to_ticks(1)
    );
    for task in 0..TASKS {
        let worked = (last.chunks[task] - first.chunks[task]) * chunk;
        println!("row {task} {worked}");
        for job in &logger.board.rows[task].jobs[..last.counts[task] as usize] {
            let [release, begin, end, look] =
                [&job.release, &job.begin, &job.end, &job.look].map(|it| it.load(Relaxed));
            println!("job {task} {release} {begin} {end} {look}");
        }
    }
}
