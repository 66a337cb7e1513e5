//! After the start: faults that nobody else handles, and the system's end.

use alloc::vec::Vec;
use core::fmt;

use sandglass::component;
use sandglass::exit;
use sandglass::fault::Fault;
use sandglass::println;
use sandglass_description::{Component, System, ThreadId};

use crate::launch::Thread;
use crate::objects::Objects;

/// Status of a system that nobody can end any more.
const NOBODY_LEFT: u8 = 1;

/// The badge under which a thread's faults and end arrive.
pub const fn badge(id: ThreadId) -> u64 {
    ((id.component as u64) << 32 | id.thread as u64) + 1
}

const fn thread_of(badge: u64) -> ThreadId {
    let number = badge.wrapping_sub(1);
    ThreadId {
        component: (number >> 32) as u32,
        thread: number as u32,
    }
}

/// Reports faults until a component ends whose end is the system's; returns the status. Stopped
/// threads stay stopped: what else to do about a fault is the business of a described handler.
pub fn until_end(
    system: &System,
    components: &[component::Component],
    threads: &[Vec<Thread>],
    objects: &Objects,
) -> u8 {
    // Those of the components whose end is the system's that can still end.
    let mut awaited: Vec<u32> = (0..)
        .zip(&system.components)
        .filter_map(|(index, component)| component.exit.then_some(index))
        .collect();
    let may_end = !awaited.is_empty();
    loop {
        // Receiving anew drops the previous caller, who then never runs again.
        let received = objects.launcher.recv(objects.launcher_reply);
        let id = thread_of(received.badge);
        let Some(component) = system.components.get(id.component as usize) else {
            continue;
        };
        if received.message.label() == exit::LABEL {
            let status = received.message.word(0) as u8;
            if component.exit {
                return status;
            }
            for thread in threads.iter().skip(id.component as usize).take(1).flatten() {
                // The capability is the launcher's own: nothing can fail.
                let _ = thread.tcb().suspend();
            }
            if let Some(ended) = components.get(id.component as usize) {
                let _ = ended.end_spawned();
            }
            if status != 0 {
                println!(
                    "launcher: component `{}` ended with status {status}{}",
                    component.name,
                    if status == exit::PANIC_STATUS {
                        " (a panic)"
                    } else {
                        ""
                    }
                );
            }
        } else if let Some(fault) = Fault::decode(&received.message) {
            report(component, id.thread, fault);
            if id.thread == 0 {
                awaited.retain(|&index| index != id.component);
            }
        }
        if may_end && awaited.is_empty() {
            println!("launcher: no component is left whose end would be the system's");
            return NOBODY_LEFT;
        }
    }
}

fn report(component: &Component, thread: u32, fault: Fault) {
    let fault = Description(fault);
    match component.threads.get(thread as usize) {
        Some(thread) if thread.name != component.name => println!(
            "launcher: `{}/{}` is stopped by a fault: {fault}",
            component.name, thread.name
        ),
        Some(_) => println!(
            "launcher: `{}` is stopped by a fault: {fault}",
            component.name
        ),
        None => println!(
            "launcher: a thread that `{}` made is stopped by a fault: {fault}",
            component.name
        ),
    }
}

/// A fault in words.
struct Description(Fault);

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fault::Memory {
                ip,
                address,
                instruction,
                status,
            } => {
                const WRITE: u64 = 1 << 1;
                let access = match (instruction, status & WRITE != 0) {
                    (true, _) => "executing",
                    (false, true) => "writing",
                    (false, false) => "reading",
                };
                write!(f, "{access} address {address:#x}, at instruction {ip:#x}")
            }
            Fault::Capability {
                ip,
                address,
                in_receive_phase,
                failure,
            } => {
                let phase = if in_receive_phase {
                    "receiving from"
                } else {
                    "sending to"
                };
                write!(
                    f,
                    "{phase} the capability {address:#x}, which is not there ({failure:?}), at \
                     instruction {ip:#x}"
                )
            }
            Fault::UnknownSyscall { ip, number } => {
                write!(f, "system call {number:#x}, at instruction {ip:#x}")
            }
            Fault::Exception {
                ip, number, code, ..
            } => write!(
                f,
                "processor exception {number} with error code {code:#x}, at instruction {ip:#x}"
            ),
            Fault::Timeout { badge, consumed_us } => write!(
                f,
                "its budget ran out after {consumed_us} µs (scheduling context {badge})"
            ),
        }
    }
}
