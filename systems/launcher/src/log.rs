//! What the launcher says: on the console, or, in a system with a log, there as everybody else. So its lines are whole, and
//! to say something costs those below it no more than writing to memory.

use core::fmt::{self, Write};

use sandglass::abi::sched::{MAX_PRIORITY, ROOT_TASK_SLICE_US};
use sandglass::cap::{
    Attributes, FrameSize, Notification, Rights, SchedContext, SchedControl, SchedParams, Tcb,
    TimeSlice,
};
use sandglass::log::Level;
use sandglass::logging::ring::{Ring, BYTES, MOST_TEXT};
use sandglass::{boot, println, sys, time, BootInfo, Process};
use sandglass_description::policy::log::badge;
use sandglass_description::System;

use crate::failure::{Context, Failure};
use crate::launch::Thread;
use crate::objects::Objects;

/// How often the launcher lets the writer run before the end. It runs for up to 5 ms each time; so this is more than it takes
/// to send all that the memory of 50 components holds through a serial line.
const PATIENCE: u32 = 1 << 14;

/// Where the launcher's lines go.
pub struct Log(Option<Writer>);

/// The component that writes the log.
struct Writer {
    component: u32,
    ring: &'static Ring,
    wake: Notification,
    end: Notification,
    done: Notification,
    tcb: Tcb,
    context: SchedContext,
    control: SchedControl,
}

impl Log {
    /// The log of the system, if it has one.
    pub fn open(
        process: &mut Process,
        info: &BootInfo,
        system: &System,
        objects: &Objects,
        threads: &[alloc::vec::Vec<Thread>],
    ) -> Result<Self, Failure> {
        let Some(log) = system.log else {
            return Ok(Self(None));
        };
        let writer = threads
            .get(log.writer as usize)
            .and_then(|threads| threads.first())
            .context("the description names no writer of the log")?;
        let wake = objects.notification(log.wake)?;
        let mut waking = |badge| {
            let minted = process.resources.mint(wake, Rights::WRITE, badge);
            minted.context("cannot make what wakes the writer of the log")
        };
        Ok(Self(Some(Writer {
            component: log.writer,
            wake: waking(badge::WRITTEN)?,
            end: waking(badge::END)?,
            done: objects.notification(log.done)?,
            tcb: writer.tcb(),
            context: writer.context(),
            control: info
                .sched_control(0)
                .context("there is no control of the time of core 0")?,
            ring: map(process, objects, log.memory)?,
        })))
    }

    /// Says a line.
    pub fn say(&self, level: Level, line: fmt::Arguments<'_>) {
        let Some(writer) = &self.0 else {
            println!("launcher: {line}");
            return;
        };
        let mut text = Text {
            bytes: [0; MOST_TEXT],
            len: 0,
        };
        // What does not fit is cut off.
        let _ = text.write_fmt(line);
        let text = &text.bytes[..text.len];
        writer.ring.write(level as u8, time::ticks(), text);
        writer.wake.signal();
    }

    /// Has all written that has been said, as the last thing of the system: nothing else runs meanwhile on this core.
    pub fn end(&self) {
        let Some(writer) = &self.0 else { return };
        let time = SchedParams {
            time: TimeSlice {
                budget_us: ROOT_TASK_SLICE_US,
                period_us: ROOT_TASK_SLICE_US,
            },
            extra_refills: 0,
            badge: 0,
            sporadic: false,
        };
        // The capabilities are the launcher's own: nothing can fail.
        let _ = boot::TCB.set_priority(boot::TCB, MAX_PRIORITY);
        let _ = writer.control.configure(writer.context, time);
        let _ = writer.tcb.set_priority(boot::TCB, MAX_PRIORITY);
        writer.end.signal();
        for _ in 0..PATIENCE {
            if writer.done.poll() != 0 {
                return;
            }
            sys::yield_now();
        }
    }

    /// Notes that a component has stopped: if it was the writer, the console is the launcher's again.
    pub fn stopped(&mut self, component: u32) {
        if self.0.as_ref().is_some_and(|w| w.component == component) {
            self.0 = None;
        }
    }
}

/// Maps the memory for the launcher's lines.
fn map(process: &mut Process, objects: &Objects, memory: u32) -> Result<&'static Ring, Failure> {
    let what = "the memory for the launcher's lines";
    let frames = &objects.memory(memory)?.frames;
    let bytes = FrameSize::Small.bytes();
    if frames.len() as u64 * bytes < BYTES as u64 {
        return Err(Failure::of(
            &"the memory for the launcher's lines is too small",
        ));
    }
    let address = process.space.reserve(BYTES as u64, 12).context(what)?;
    for (&frame, page) in frames.iter().zip((address..).step_by(bytes as usize)) {
        let copy = process.resources.copy(frame, Rights::ALL).context(what)?;
        let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
        let space = process.space.vspace();
        space
            .map(&mut process.resources, copy, page, rights, attributes)
            .context(what)?;
    }
    // SAFETY: just mapped for good, as long as a ring; any content is a ring.
    Ok(unsafe { &*(address as *const Ring) })
}

/// A line.
struct Text {
    bytes: [u8; MOST_TEXT],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.len..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.len += count;
        Ok(())
    }
}

/// Says a line of a level.
#[macro_export]
macro_rules! say {
    ($log:expr, $level:ident, $($argument:tt)*) => {
        $log.say(sandglass::log::Level::$level, format_args!($($argument)*))
    };
}
