//! The smallest root task that uses what makes this kernel what it is: it prints what it was
//! given, makes a passive server, and calls it, lending it its own processor time.

#![no_std]
#![no_main]

use core::fmt;

use sandglass::abi::boot::extra::clock_source;
use sandglass::cap::SchedParams;
use sandglass::server::{make_passive, Service};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{println, BootInfo, Message, Process, SetupError};

sandglass::entry!(main);

/// Above the root task's priority nothing runs; the server takes the highest below it.
const SERVER_PRIORITY: u8 = 254;

fn main(boot: &'static BootInfo) -> Result<(), SetupError> {
    let mut process = Process::root_task(boot);
    // Without ports (a kernel that withholds them), the debug console serves.
    let serial = process.use_serial_console();
    process.use_exit_port()?;
    if let Err(error) = serial {
        println!("no serial port: {error}");
    }
    describe(boot);

    let answer = ask_passive_server(&mut process, boot)?;
    println!("the passive server answers {answer}");
    assert_eq!(answer, 42);
    println!("hello is done");
    Ok(())
}

/// Prints the boot information.
fn describe(boot: &BootInfo) {
    println!("Sandglass says hello");
    println!("  cores                {}", boot.cores());
    let slots = boot.empty_slots();
    println!("  empty slots          {} to {}", slots.start, slots.end);
    let (mut memory, mut memory_untypeds, mut devices) = (0u64, 0, 0);
    for untyped in boot.untypeds() {
        if untyped.is_device {
            devices += 1;
        } else {
            memory_untypeds += 1;
            memory += 1 << untyped.size_bits;
        }
    }
    println!(
        "  untyped memory       {} KiB in {memory_untypeds} pieces",
        memory / 1024
    );
    println!("  device untypeds      {devices}");
    match boot.tsc() {
        Some(tsc) => println!("  time-stamp counter   {} MHz", tsc.mhz()),
        None => println!("  time-stamp counter   of unknown frequency"),
    }
    if let Some(clock) = boot.clock() {
        println!(
            "  measured             {} to {} kHz by {}",
            clock.least_hz / 1_000,
            clock.most_hz / 1_000,
            Sources(clock.sources)
        );
    }
}

/// What a clock was measured by, in words.
struct Sources(u64);

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (clock_source::PROCESSOR, "processor"),
            (clock_source::HPET, "HPET"),
            (clock_source::POWER_TIMER, "ACPI timer"),
            (clock_source::PIT, "PIT"),
        ];
        let present = names.iter().filter(|(bit, _)| self.0 & bit != 0);
        for (number, (_, name)) in present.enumerate() {
            let before = if number == 0 { "" } else { ", " };
            write!(f, "{before}{name}")?;
        }
        Ok(())
    }
}

/// Starts a server that doubles a number, lets it become passive, and calls it.
fn ask_passive_server(process: &mut Process, boot: &BootInfo) -> Result<u64, SetupError> {
    let service = Service {
        ready: process.resources.notification()?,
        endpoint: process.resources.endpoint()?,
        reply: process.resources.reply()?,
    };
    // Time for its start: round robin, 5 ms.
    let params = SchedParams::new(5_000, 5_000);
    let context = process.resources.sched_context(params.size_bits())?;
    boot.sched_control(0)
        .expect("there is a first core")
        .configure(context, params)?;

    let server = Thread::spawn(
        process,
        ThreadParams::new(SERVER_PRIORITY, context),
        move || service.serve(|request| Message::new(0, [request.message.word(0) * 2])),
    )?;
    make_passive(service.ready, server.tcb(), context)?;
    println!("the server is passive now");
    Ok(service.endpoint.call(Message::new(0, [21])).word(0))
}
