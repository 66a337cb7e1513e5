//! Threads of the root task, and messages between them.

use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::alarm::Alarm;
use sandglass::cap::{Rights, SchedParams};
use sandglass::fault::Fault;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{ensure, ensure_eq, heap, sys, thread_block, time, Message, SetupError};

use crate::{Bench, FULL};

pub fn run(suite: &mut Suite, bench: &mut Bench) {
    suite.run("threads::long_messages_arrive_whole", || {
        long_messages(bench)
    });
    suite.run("threads::a_granted_capability_can_be_used", || {
        cap_transfer(bench)
    });
    suite.run("threads::a_fault_is_decoded_and_repaired", || fault(bench));
    suite.run("threads::many_threads_share_the_heap", || {
        shared_heap(bench)
    });
    suite.run(
        "threads::an_alarm_keeps_to_the_clock_for_a_thread_that_is_preempted",
        || alarm(bench),
    );
    suite.run(
        "threads::an_alarm_is_not_late_by_what_preempted_it_while_it_was_set",
        || preempted_alarm(bench),
    );
}

fn long_messages(bench: &mut Bench) -> TestResult {
    let endpoint = bench.process.resources.endpoint()?;
    let reply = bench.process.resources.reply()?;
    let context = bench.context(FULL)?;
    let server = Thread::spawn(
        &mut bench.process,
        ThreadParams::new(254, context),
        move || {
            let mut request = endpoint.recv(reply);
            loop {
                let mut words = [0; 120];
                let count = request.message.copy_words(&mut words);
                words[..count].reverse();
                request = reply.reply_recv(endpoint, Message::long(9, &words[..count]));
            }
        },
    )?;
    for len in [0, 1, 4, 5, 119, 120] {
        let mut words = [0; 120];
        for (i, word) in words.iter_mut().enumerate() {
            *word = 1000 + i as u64;
        }
        let answer = endpoint.call(Message::long(1, &words[..len]));
        let mut back = [0; 120];
        ensure_eq!((answer.label(), answer.copy_words(&mut back)), (9, len));
        words[..len].reverse();
        ensure!(back[..len] == words[..len], "{len} words came back wrong");
    }
    server.tcb().suspend()?;
    Ok(())
}

fn cap_transfer(bench: &mut Bench) -> TestResult {
    let resources = &mut bench.process.resources;
    let endpoint = resources.endpoint()?;
    let notification = resources.notification()?;
    let slot = resources.allocate_slot()?;
    let context = bench.context(FULL)?;
    let sender = Thread::spawn(
        &mut bench.process,
        ThreadParams::new(254, context),
        move || {
            use sandglass::cap::Capability;
            let caps = [endpoint.cptr(), notification.cptr()];
            endpoint.send(Message::new(3, [1]).with_caps(&caps));
        },
    )?;
    thread_block::set_receive_slot(slot);
    let received = endpoint.wait();
    ensure_eq!(received.message.info().extra_caps(), 2);
    // The endpoint itself arrives as its badge, 0; the notification as a capability.
    ensure_eq!(received.message.unwrapped_badge(0), Some(0));
    ensure_eq!(received.message.unwrapped_badge(1), None);
    slot.capability::<sandglass::cap::Notification>().signal();
    let badged = bench.process.resources.mint(notification, Rights::ALL, 8)?;
    badged.signal();
    ensure_eq!(notification.wait(), 8);
    sender.tcb().suspend()?;
    Ok(())
}

fn fault(bench: &mut Bench) -> TestResult {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let handler = bench.process.resources.endpoint()?;
    let reply = bench.process.resources.reply()?;
    let address = bench.process.space.reserve(4096, 12)?;
    let context = bench.context(FULL)?;
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..ThreadParams::new(254, context)
    };
    let thread = Thread::spawn(&mut bench.process, params, move || {
        // SAFETY: the test maps the page before it lets this continue.
        SEEN.store(
            unsafe { (address as *const u64).read_volatile() } + 1,
            Ordering::SeqCst,
        );
    })?;
    let received = handler.recv(reply);
    let fault = Fault::decode(&received.message).ok_or("no fault")?;
    ensure!(
        matches!(fault, Fault::Memory { address: at, instruction: false, .. } if at == address),
        "{fault:?}"
    );
    let process = &mut bench.process;
    let frame = process.resources.frame(sandglass::cap::FrameSize::Small)?;
    let attributes = sandglass::cap::Attributes::WriteBack;
    let vspace = process.space.vspace();
    vspace.map(
        &mut process.resources,
        frame,
        address,
        Rights::READ_WRITE,
        attributes,
    )?;
    ensure_eq!(SEEN.load(Ordering::SeqCst), 0);
    // The end of the thread is a fault too: a capability fault on the null capability.
    let received = reply.reply_recv(handler, Message::EMPTY);
    ensure_eq!(SEEN.load(Ordering::SeqCst), 1);
    let fault = Fault::decode(&received.message).ok_or("no fault")?;
    let stopped = matches!(
        fault,
        Fault::Capability {
            address: 0,
            in_receive_phase: true,
            ..
        }
    );
    ensure!(stopped, "{fault:?}");
    thread.tcb().suspend()?;
    Ok(())
}

/// Threads of equal priority allocate until they have been preempted many times.
fn shared_heap(bench: &mut Bench) -> TestResult {
    extern crate alloc;
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 2_000;
    heap::share(bench.process.resources.notification()?);
    let done = bench.process.resources.notification()?;
    for number in 0..THREADS {
        // Time slices that end inside of the allocator, sooner or later.
        let context = bench.context(SchedParams::new(50 + number, 50 + number))?;
        let finished = bench
            .process
            .resources
            .mint(done, Rights::ALL, 1 << number)?;
        Thread::spawn(
            &mut bench.process,
            ThreadParams::new(100, context),
            move || {
                for round in 0..ROUNDS {
                    let value = alloc::vec![number; (round % 97) as usize + 1];
                    assert!(
                        value.iter().all(|&n| n == number),
                        "the heap gave memory out twice"
                    );
                }
                finished.signal();
            },
        )?;
    }
    let mut all = 0;
    while all != (1 << THREADS) - 1 {
        all |= done.wait();
    }
    Ok(())
}

/// How a thread waits for the next one of its times, µs after it began.
type Waits = fn(&Alarm, u64);

/// Another thread cuts its budget into pieces: who waits by an alarm goes on at its times, who just yields does not.
fn alarm(bench: &mut Bench) -> TestResult {
    const OTHERS: SchedParams = SchedParams::new(50, 170);
    const EVERY_US: u64 = 1_000;
    // What keeps it from running: the other one's budget, and some system calls.
    const MOST_LATE_US: u64 = 100;
    let context = bench.context(OTHERS)?;
    let params = ThreadParams::new(254, context);
    let other = Thread::spawn(&mut bench.process, params, || loop {
        time::nop();
    })?;
    let yields: Waits = |_, _| sys::yield_now();
    let waits: Waits = |alarm, at| alarm.wait_until(at).unwrap_or_default();
    let by_yields = times(bench, EVERY_US, yields)?;
    let by_alarm = times(bench, EVERY_US, waits)?;
    other.tcb().suspend()?;
    let is_right = |(time, at): (&u64, u64)| (at..=at + MOST_LATE_US).contains(time);
    let wanted = || (1..).map(|number| number * EVERY_US);
    ensure!(
        !by_yields.iter().zip(wanted()).all(is_right),
        "{by_yields:?}"
    );
    ensure!(by_alarm.iter().zip(wanted()).all(is_right), "{by_alarm:?}");
    Ok(())
}

/// Another thread preempts it, for long, at each moment on its way into the wait.
fn preempted_alarm(bench: &mut Bench) -> TestResult {
    const PERIOD_US: u64 = 2_000;
    const RUNS_US: u64 = 400;
    // From this long before the other one runs, to as long after it was to.
    const AROUND_US: u64 = 20;
    const STEPS: u64 = 80;
    const MOST_LATE_US: u64 = 60;
    // When the other one last began to run, and the latest that the alarm was, in ticks.
    static BEGAN: AtomicU64 = AtomicU64::new(0);
    static LATEST: AtomicU64 = AtomicU64::new(0);
    let tsc = bench.boot.tsc().expect("the kernel reports it");
    let control = bench.boot.sched_control(0).expect("there is a first core");
    let pause = tsc.us_to_ticks(PERIOD_US / 2);
    let context = bench.context(SchedParams::new(RUNS_US, PERIOD_US))?;
    let params = ThreadParams::new(254, context);
    let other = Thread::spawn(&mut bench.process, params, move || {
        let mut last = 0;
        loop {
            let now = time::ticks();
            if now - last > pause {
                BEGAN.store(now, Ordering::Relaxed);
            }
            last = now;
        }
    })?;
    let context = bench.context(SchedParams::new(PERIOD_US / 4, PERIOD_US / 2))?;
    let done = bench.process.resources.notification()?;
    let params = ThreadParams::new(200, context);
    let thread = Thread::spawn(&mut bench.process, params, move || {
        let alarm = Alarm::new(context, control, tsc, PERIOD_US / 4);
        for step in 0..STEPS {
            let next = BEGAN.load(Ordering::Relaxed) + tsc.us_to_ticks(PERIOD_US);
            let enter = next + tsc.us_to_ticks(2 * AROUND_US) * step / STEPS;
            let at = next + tsc.us_to_ticks(PERIOD_US / 2);
            let _ = alarm.wait_until(enter - tsc.us_to_ticks(AROUND_US));
            let _ = alarm.wait_until(at);
            let late = time::ticks() - at;
            LATEST.fetch_max(late, Ordering::Relaxed);
        }
        done.signal();
    })?;
    done.wait();
    thread.tcb().suspend()?;
    other.tcb().suspend()?;
    let latest = tsc.ticks_to_us(LATEST.load(Ordering::Relaxed));
    ensure!(latest <= MOST_LATE_US, "{latest} µs late");
    Ok(())
}

/// When a thread goes on that waits so, µs after it began; it works in between.
fn times(bench: &mut Bench, every_us: u64, wait: Waits) -> Result<[u64; 10], SetupError> {
    static TIMES: [AtomicU64; 10] = [const { AtomicU64::new(0) }; 10];
    let tsc = bench.boot.tsc().expect("the kernel reports it");
    let context = bench.context(SchedParams::new(every_us / 2, every_us))?;
    let control = bench.boot.sched_control(0).expect("there is a first core");
    let done = bench.process.resources.notification()?;
    let params = ThreadParams::new(200, context);
    let thread = Thread::spawn(&mut bench.process, params, move || {
        let alarm = Alarm::new(context, control, tsc, every_us / 2);
        let began = time::ticks();
        for (time, number) in TIMES.iter().zip(1..) {
            tsc.spin_us(every_us / 5);
            wait(&alarm, began + tsc.us_to_ticks(number * every_us));
            let passed = tsc.ticks_to_us(time::ticks() - began);
            time.store(passed, Ordering::Relaxed);
        }
        done.signal();
    })?;
    done.wait();
    thread.tcb().suspend()?;
    Ok(TIMES.each_ref().map(|time| time.load(Ordering::Relaxed)))
}
