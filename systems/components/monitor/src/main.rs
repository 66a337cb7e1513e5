//! Shows on the console what the threads of a system do, and what time they use: the ready-made component of
//! `[monitor]`.
//!
//! Once in each of its periods it asks the kernel what was used, and reads what was typed. Of the threads it only reads:
//! it changes a budget when it is told to, and if it has the time of that core to give out. With the parameter `top`,
//! a time, it shows `top` again and again from the start; with `ps = 1`, `ps` once.

#![no_std]
#![no_main]

extern crate alloc;

mod watch;

use core::convert::Infallible;

use monitor_view::command::{Command, HELP};
use monitor_view::line::{Line, Typed};
use sandglass::{console, print, println, sys, Environment};

use watch::Watch;

sandglass::entry!(main, stack = 0x8000, heap = 0x2_0000);

/// Bytes that are read in one period: as many as arrive while it waits, and no more than it has time for.
const AT_ONCE: usize = 64;

fn main(env: &'static Environment) -> Infallible {
    let mut watch = Watch::new(env);
    let mut line = Line::default();
    watch.top_every(env.find_parameter("top").unwrap_or(0));
    if env.find_parameter("ps").is_some_and(|wanted| wanted != 0) {
        watch.ps();
    }
    loop {
        watch.sample();
        for _ in 0..AT_ONCE {
            let Some(byte) = console::read() else { break };
            typed(&mut watch, line.push(byte));
        }
        sys::yield_now();
    }
}

fn typed(watch: &mut Watch, typed: Typed) {
    match typed {
        Typed::Nothing => {}
        Typed::Echo(byte) => print!("{}", char::from(byte)),
        Typed::Erased => print!("\u{8} \u{8}"),
        Typed::Line(line) => {
            println!();
            match Command::parse(&line) {
                Ok(Command::Help) => println!("{HELP}"),
                Ok(Command::Ps) => watch.ps(),
                Ok(Command::Top(None)) => watch.top(),
                Ok(Command::Top(Some(interval_us))) => watch.top_every(interval_us),
                Ok(Command::Budget {
                    thread,
                    budget_us,
                    period_us,
                }) => watch.set_budget(thread, budget_us, period_us),
                Err(right) => println!("monitor: {right}"),
            }
        }
    }
}
