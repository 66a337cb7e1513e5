//! Reloading a component: a thread of the launcher that does it on the component's own time and at its priority, so that it
//! delays nobody more than the component does when it runs.

use sandglass::cap::{Notification, Tcb};
use sandglass::component::Component;
use sandglass::image::Image;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{Process, SetupError};

use crate::window::Window;

/// Bytes.
const STACK: u64 = 16 << 10;

/// The thread. It has no time of its own.
pub struct Reloader {
    thread: Thread,
    go: Notification,
}

impl Reloader {
    /// Makes the thread, which signals `done` whenever it has reloaded the component.
    pub fn make(
        process: &mut Process,
        component: &'static Component,
        image: Image<'static>,
        priority: u8,
        window: Window,
        done: Notification,
    ) -> Result<Self, SetupError> {
        let go = process.resources.notification()?;
        let mut work = Work {
            component,
            image,
            window,
        };
        let params = ThreadParams {
            stack_bytes: STACK,
            ..ThreadParams::passive(priority)
        };
        let thread = Thread::new(process, params, move || loop {
            go.wait();
            work.reload();
            done.signal();
        })?;
        thread.start()?;
        Ok(Self { thread, go })
    }

    pub const fn tcb(&self) -> Tcb {
        self.thread.tcb()
    }

    /// Lets it work once it has time.
    pub fn begin(&self) {
        self.go.signal();
    }
}

/// What is to be done. It uses nothing that others use, the heap least of all.
struct Work {
    component: &'static Component,
    image: Image<'static>,
    window: Window,
}

impl Work {
    /// Gives all memory that the component could have written its first content.
    fn reload(&mut self) {
        let pages = self.image.pages();
        for (address, frame) in self.component.own_frames() {
            let number = pages.binary_search_by_key(&address, |page| page.vaddr);
            if number.is_ok_and(|number| !pages[number].writable) {
                continue;
            }
            let image = &self.image;
            // The frame and the window are there: nothing can fail.
            let _ = self.window.with(frame, |page| {
                page.fill(0);
                image.fill(address, page);
            });
        }
    }
}
