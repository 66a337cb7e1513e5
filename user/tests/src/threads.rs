//! Threads of the root task, and messages between them.

use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::Rights;
use sandglass::fault::Fault;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{ensure, ensure_eq, heap, thread_block, Message};

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
        let context = bench.context(sandglass::cap::SchedParams::new(50 + number, 50 + number))?;
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
