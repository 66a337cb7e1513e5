//! Manages the modes of a system, as `[modes]` describes them. With `verbose = 1` among its
//! parameters, and a console, it says what happens; printing takes its time.

#![no_std]
#![no_main]

extern crate alloc;

use core::convert::Infallible;

use sandglass::{println, Environment};
use sandglass_modes::{badge, Event, Manager};

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

fn main(env: &'static Environment) -> Infallible {
    let manager = Manager::new(env);
    let idle = manager.idle();
    env.thread("idle").prepare(move || idle.run());
    let verbose = env
        .find_parameter("verbose")
        .is_some_and(|value| value != 0);
    manager.serve(env.ready(), |manager, event| {
        if verbose {
            report(manager, event);
        }
    })
}

fn report(manager: &Manager, event: Event) {
    let table = manager.table();
    let level = |mode: u32| {
        table
            .levels
            .get(mode as usize)
            .map_or("?", |name| name.as_str())
    };
    match event {
        Event::Raised { task, from, to } => println!(
            "modes: {} needs more: from {} to {}",
            table.tasks[task].name,
            level(from),
            level(to)
        ),
        Event::Throttled { task } => {
            println!(
                "modes: {} waits for its next period",
                table.tasks[task].name
            );
        }
        Event::Fell { from } => println!("modes: idle: from {} to {}", level(from), level(0)),
        Event::Idle => {}
        Event::Ended { tasks } => {
            for (number, task) in table.tasks.iter().enumerate() {
                if tasks & badge::bit(number) != 0 {
                    let shared = if number + 1 < badge::BITS {
                        ""
                    } else {
                        ", or another that is told of together with it"
                    };
                    println!("modes: {} has ended{shared}", task.name);
                }
            }
        }
        Event::Other(received) => println!("modes: unexpected message: {received:?}"),
    }
}
