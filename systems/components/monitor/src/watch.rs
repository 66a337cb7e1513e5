//! The threads of the system, as the monitor sees them.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use monitor_view::meter::Meter;
use monitor_view::state::{Doing, Told};
use sandglass::cap::{SchedContext, SchedControl, SchedParams, Tcb, TimeSlice};
use sandglass::{println, time, Environment};
use sandglass_description::monitor::{status, Consumption, Known, Monitor, Watched};
use sandglass_description::policy::Table;

/// A thread, and what the monitor has of it.
struct Thread {
    described: Watched,
    tcb: Tcb,
    context: Option<SchedContext>,
    control: Option<SchedControl>,
    /// As it is now, as far as the monitor knows.
    budget_us: u64,
    period_us: u64,
    meter: Meter,
}

/// All of them.
pub struct Watch {
    threads: Vec<Thread>,
    objects: Vec<Known>,
    /// What the launcher writes.
    status: &'static [AtomicU64],
    /// Threads of the whole system.
    total: usize,
    ticks_per_us: u64,
    /// 0: only when it is asked for.
    interval_us: u64,
    /// Of the last report, in ticks.
    reported: u64,
}

impl Watch {
    /// # Panics
    /// The component is not the one of `[monitor]`.
    pub fn new(env: &'static Environment) -> Self {
        // SAFETY: the builder packs the table as a file, which nobody writes.
        let bytes = unsafe { env.memory(Monitor::NAME).as_bytes() };
        let table = Monitor::decode(bytes).expect("the table is one of a monitor");
        let memory = env.memory(status::NAME);
        let words = memory.len as usize / size_of::<AtomicU64>();
        // SAFETY: whole pages, which the launcher writes by whole words.
        let status = unsafe {
            core::slice::from_raw_parts(memory.as_mut_ptr().cast_const().cast::<AtomicU64>(), words)
        };
        let total = env.parameter("monitor.threads") as usize;
        let mut watch = Self {
            threads: table
                .threads
                .into_iter()
                .map(|t| Thread::new(env, t))
                .collect(),
            objects: table.objects,
            status,
            total,
            ticks_per_us: env.tsc().map_or(1, |tsc| tsc.mhz().into()),
            interval_us: 0,
            reported: 0,
        };
        // What was used before is nobody's concern.
        watch.sample_all();
        watch.begin_report();
        watch
    }

    fn now_us(&self) -> u64 {
        time::ticks() / self.ticks_per_us
    }

    fn sample_all(&mut self) {
        for number in 0..self.threads.len() {
            let now = self.now_us();
            self.threads[number].sample(now);
        }
    }

    /// Begins what the next report is about.
    fn begin_report(&mut self) {
        for thread in &mut self.threads {
            let _ = thread.meter.take_used_us();
        }
        self.reported = time::ticks();
    }

    /// To be called once in each period.
    pub fn sample(&mut self) {
        let passed = (time::ticks() - self.reported) / self.ticks_per_us;
        if self.interval_us != 0 && passed >= self.interval_us {
            self.top();
        } else {
            self.sample_all();
        }
    }

    /// Reports each time that `interval_us` µs have passed; 0: not any more.
    pub fn top_every(&mut self, interval_us: u64) {
        self.interval_us = interval_us;
    }

    /// What each thread has used since the last report.
    pub fn top(&mut self) {
        self.sample_all();
        let (from, to) = (self.reported, time::ticks());
        let passed_us = ((to - from) / self.ticks_per_us).max(1);
        let used: Vec<u64> = self
            .threads
            .iter_mut()
            .map(|t| t.meter.take_used_us())
            .collect();
        self.reported = to;
        println!("top: {passed_us} us, from tick {from} to tick {to}");
        println!(
            "{:<20} {:>4} {:>4} {:>9} {:>6} {:>9} {:>9} {:>9}",
            "thread", "prio", "core", "used us", "%", "budget us", "period us", "left us"
        );
        for (thread, used_us) in self.threads.iter().zip(used) {
            thread.show_use(used_us, passed_us);
        }
    }

    /// What each thread does.
    pub fn ps(&self) {
        println!(
            "{:<20} {:>4} {:>4} {:<7} waits",
            "thread", "prio", "core", "state"
        );
        for thread in &self.threads {
            let described = &thread.described;
            let find = |cptr| self.find(described.component, cptr);
            let told = self.told(described.number as usize);
            // Of a thread that has ended there may be no registers.
            let context = thread.tcb.read_registers(false).unwrap_or_default();
            let doing = Doing::of(told, &context, find);
            println!(
                "{:<20} {:>4} {:>4} {:<7} {doing}",
                described.name,
                described.priority,
                described.core,
                doing.word()
            );
        }
    }

    /// Gives a thread another budget.
    pub fn set_budget(&mut self, name: &str, budget_us: u64, period_us: Option<u64>) {
        let Some(thread) = self.threads.iter_mut().find(|t| t.described.name == name) else {
            println!("monitor: no thread is called `{name}`; `ps` lists them");
            return;
        };
        let core = thread.described.core;
        let Some((control, context)) = thread.control.zip(thread.context) else {
            println!(
                "monitor: it may not change the budget of `{name}`: it needs \
                 `scheduling-control = [{core}]`, and nobody else may ask for the thread's consumption"
            );
            return;
        };
        let period_us = period_us.unwrap_or(thread.period_us);
        match control.configure(context, thread.params(budget_us, period_us)) {
            Ok(()) => {
                (thread.budget_us, thread.period_us) = (budget_us, period_us);
                println!("monitor: {name} has {budget_us} us of {period_us} us from now on");
            }
            Err(error) => println!(
                "monitor: the kernel refuses {budget_us} us of {period_us} us ({error}): a budget is at \
                 least 20 us, and at most its period"
            ),
        }
    }

    /// What the launcher knows of the thread `number`.
    fn told(&self, number: usize) -> Told {
        let first = status::thread(number);
        // The state is written last.
        let state = self.word(first);
        [
            state,
            self.word(first + 1),
            self.word(first + 2),
            self.word(first + 3),
        ]
    }

    /// What `component` knows by a capability.
    fn find(&self, component: u32, cptr: u64) -> Option<&Known> {
        let mut objects = self.objects.iter().enumerate();
        objects
            .find(|(index, known)| {
                known.component == component && self.word(status::known(self.total, *index)) == cptr
            })
            .map(|(_, known)| known)
    }

    fn word(&self, place: usize) -> u64 {
        self.status
            .get(place)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }
}

impl Thread {
    fn new(env: &Environment, described: Watched) -> Self {
        let name = &described.name;
        Self {
            tcb: env.capability(&format!("{name}.tcb")),
            context: match described.consumption {
                Consumption::Monitor => Some(env.capability(&format!("{name}.context"))),
                Consumption::Other | Consumption::Passive => None,
            },
            control: env.find_capability(&format!("sched-control.{}", described.core)),
            budget_us: described.budget_us,
            period_us: described.period_us,
            meter: Meter::default(),
            described,
        }
    }

    fn sample(&mut self, now_us: u64) {
        if let Some(context) = self.context {
            self.meter
                .add(now_us, context.consumed_us().ok(), self.period_us);
        }
    }

    fn is_round_robin(&self) -> bool {
        self.budget_us == self.period_us
    }

    fn params(&self, budget_us: u64, period_us: u64) -> SchedParams {
        SchedParams {
            time: TimeSlice {
                budget_us,
                period_us,
            },
            extra_refills: self.described.extra_refills,
            badge: self.described.badge,
            sporadic: self.described.sporadic,
        }
    }

    fn show_use(&self, used_us: u64, passed_us: u64) {
        let described = &self.described;
        let (name, priority, core) = (&described.name, described.priority, described.core);
        match described.consumption {
            Consumption::Passive => {
                println!("{name:<20} {priority:>4} {core:>4} on its clients' time");
            }
            Consumption::Other => println!(
                "{name:<20} {priority:>4} {core:>4} {:>9} {:>6} {:>9} {:>9} {:>9}",
                "-", "-", self.budget_us, self.period_us, "-"
            ),
            Consumption::Monitor => {
                let tenths = used_us.saturating_mul(1000) / passed_us;
                let percent = format!("{}.{}", tenths / 10, tenths % 10);
                let left = match self.is_round_robin() {
                    true => "-".into(),
                    false => format!("{}", self.meter.left_us(self.budget_us)),
                };
                println!(
                    "{name:<20} {priority:>4} {core:>4} {used_us:>9} {percent:>6} {:>9} {:>9} {left:>9}",
                    self.budget_us, self.period_us
                );
            }
        }
    }
}
