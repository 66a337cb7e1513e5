//! A component in its own address space: a passive server with a timeout handler.

use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{
    Attributes, Endpoint, FrameSize, Notification, Reply, Rights, SchedContext, SchedParams,
};
use sandglass::component::Component;
use sandglass::fault::Fault;
use sandglass::image::ImageError;
use sandglass::server::make_passive;
use sandglass::testing::{Failure, Suite, TestResult};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::timeout::{Checkpoint, Rollback};
use sandglass::vspace::Region;
use sandglass::{ensure, ensure_eq, Message, SetupError};

use crate::{Bench, FULL};

static IMAGE: &[u8] = include_bytes!(env!("TEST_COMPONENT"));

/// Labels of requests; the component has the same.
mod request {
    pub const PARAMETER: u64 = 1;
    pub const SUM: u64 = 2;
    pub const MEMORY: u64 = 3;
    pub const SPIN: u64 = 4;
    pub const OVERFLOW: u64 = 5;
}

const SERVER_PRIORITY: u8 = 200;

/// The server, and what belongs to it.
struct Server {
    component: Component,
    endpoint: Endpoint,
    reply: Reply,
    ready: Notification,
    context: SchedContext,
    checkpoint: Checkpoint,
    timeouts: Endpoint,
    faults: Endpoint,
    shared: Region,
}

pub fn run(suite: &mut Suite, bench: &mut Bench) {
    suite.run("components::what_is_no_program_is_refused", || {
        bad_image(bench)
    });
    let mut server = None;
    suite.run("components::a_component_becomes_a_passive_server", || {
        server = Some(start_server(bench)?);
        Ok(())
    });
    suite.run("components::it_finds_what_it_was_given", || {
        given(server.as_ref().ok_or("it did not start")?, bench)
    });
    suite.run("components::a_timeout_handler_rolls_it_back", || {
        roll_back(server.as_ref().ok_or("it did not start")?, bench)
    });
    suite.run("components::an_overflowing_stack_is_a_fault", || {
        overflow(server.as_ref().ok_or("it did not start")?, bench)
    });
}

fn bad_image(bench: &mut Bench) -> TestResult {
    let loaded = Component::load(&mut bench.process, "bad", b"no program", 4);
    let refused = matches!(loaded, Err(SetupError::Image(ImageError::NotElf)));
    ensure!(refused);
    Ok(())
}

fn start_server(bench: &mut Bench) -> Result<Server, Failure> {
    let context = bench.context(FULL)?;
    let process = &mut bench.process;
    let endpoint = process.resources.endpoint()?;
    let timeouts = process.resources.endpoint()?;
    let faults = process.resources.endpoint()?;
    let reply = process.resources.reply()?;
    let ready = process.resources.notification()?;
    let shared = process.space.map_new(&mut process.resources, 2 * 4096)?;

    let mut component = Component::load(process, "server", IMAGE, Component::DEFAULT_RADIX)?;
    component.share_console(process)?;
    component.grant(process, "requests", endpoint, Rights::READ)?;
    component.grant(process, "reply", reply, Rights::ALL)?;
    component.grant(process, "ready", ready, Rights::WRITE)?;
    component.grant_memory(
        process,
        "shared",
        shared.frames(),
        FrameSize::Small,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    component.set_parameter("number", 12345)?;
    let params = ThreadParams {
        timeout_handler: Some(timeouts),
        fault_handler: Some(faults),
        ..ThreadParams::new(SERVER_PRIORITY, context)
    };
    component.configure(process, params)?;
    component.start()?;
    make_passive(ready, component.tcb(), context)?;
    let checkpoint = Checkpoint::take(component.tcb())?;
    Ok(Server {
        component,
        endpoint,
        reply,
        ready,
        context,
        checkpoint,
        timeouts,
        faults,
        shared,
    })
}

fn given(server: &Server, bench: &mut Bench) -> TestResult {
    let badged = bench
        .process
        .resources
        .mint(server.endpoint, Rights::ALL, 77)?;
    let answer = badged.call(Message::new(request::PARAMETER, []));
    ensure_eq!(
        (answer.label(), answer.word(0), answer.word(1)),
        (77, 12345, 2 * 4096)
    );

    let words: [u64; 100] = core::array::from_fn(|i| i as u64);
    let answer = badged.call(Message::long(request::SUM, &words));
    ensure_eq!(answer.word(0), 99 * 100 / 2);

    // SAFETY: the region is mapped; the server only reads it meanwhile.
    unsafe {
        server
            .shared
            .as_mut_ptr()
            .cast::<u64>()
            .write_volatile(0xfeed)
    };
    ensure_eq!(
        badged.call(Message::new(request::MEMORY, [])).word(0),
        0xfeed
    );
    Ok(())
}

/// A client whose request never ends: each time its budget runs out in the server, the handler
/// answers it and sends the server back. The server then serves others.
fn roll_back(server: &Server, bench: &mut Bench) -> TestResult {
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    const BADGE: u64 = 4711;
    let tcb = server.component.tcb();
    let rollback = Rollback {
        server: tcb,
        checkpoint: server.checkpoint,
        client: server.reply,
        ready: server.ready,
        context: server.context,
    };
    let progress = server.shared.as_mut_ptr().cast::<u64>();
    // SAFETY: mapped; the server does not run now.
    unsafe { progress.write_volatile(0) };

    let client_context = bench.context(SchedParams::new(500, 2_000).badge(BADGE))?;
    let endpoint = server.endpoint;
    let client = Thread::spawn(
        &mut bench.process,
        ThreadParams::new(100, client_context),
        move || loop {
            let answer = endpoint.call(Message::new(request::SPIN, []));
            ANSWERS.store(answer.label(), Ordering::SeqCst);
        },
    )?;
    let fault_reply = bench.process.resources.reply()?;
    let mut before = 0;
    for round in 1..=3 {
        let received = server.timeouts.recv(fault_reply);
        let fault = Fault::decode(&received.message).ok_or("no fault")?;
        ensure!(
            matches!(fault, Fault::Timeout { badge: BADGE, .. }),
            "{fault:?}"
        );
        // SAFETY: mapped; the server waits.
        let now = unsafe { progress.read_volatile() };
        ensure!(now > before, "round {round}: the server made no progress");
        before = now;
        rollback.perform(fault_reply, Message::new(round, []))?;
        let answer = endpoint.call(Message::new(request::MEMORY, []));
        ensure_eq!(answer.word(0), now);
        ensure_eq!(ANSWERS.load(Ordering::SeqCst), round - 1);
    }
    client.tcb().suspend()?;
    Ok(())
}

fn overflow(server: &Server, bench: &mut Bench) -> TestResult {
    const WRITE: u64 = 1 << 1;
    let context = bench.context(FULL)?;
    let endpoint = server.endpoint;
    let client = Thread::spawn(
        &mut bench.process,
        ThreadParams::new(100, context),
        move || {
            endpoint.call(Message::new(request::OVERFLOW, []));
        },
    )?;
    let reply = bench.process.resources.reply()?;
    let received = server.faults.recv(reply);
    let fault = Fault::decode(&received.message).ok_or("no fault")?;
    ensure!(
        matches!(fault, Fault::Memory { address, status, .. }
            if address > 0x40_0000 && status & WRITE != 0),
        "{fault:?}"
    );
    client.tcb().suspend()?;
    Ok(())
}
