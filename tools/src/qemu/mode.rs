//! Whether the emulator has left the mode in which the kernel runs, which no processor does and QEMU 7.2
//! may (docs, "Run the storm"). The kernel says so when it is entered next; but if interrupts are off in
//! the other mode, it never is, and only the machine's registers tell.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::session::{Folder, Session};
use super::Ending;

/// How long a machine is silent before it is asked, and asked again. A storm says something more often.
const EVERY: Duration = Duration::from_secs(60);
/// The flag of virtual-8086 mode.
const VM: u64 = 1 << 17;

/// Asks one machine.
pub struct Watch {
    folder: Folder,
    has_left: Arc<AtomicBool>,
}

impl Watch {
    /// # Errors
    /// There is no place for the machine's socket.
    pub fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            folder: Folder::new(&format!("mode-{number}"))?,
            has_left: Arc::default(),
        })
    }

    /// Arguments for QEMU.
    pub fn options(&self) -> [OsString; 2] {
        let socket = self.folder.file("socket");
        let listen = format!("unix:{},server=on,wait=off", socket.display());
        ["-qmp".into(), listen.into()]
    }

    /// Ends a run in which it has.
    pub fn ending(&self) -> Ending {
        let socket = self.folder.file("socket");
        let has_left = Arc::clone(&self.has_left);
        let last = Mutex::new(Instant::now());
        Ending::new(EVERY, move || {
            // It is also called for all that the console says, and that is no silence: to stop a machine
            // that runs would cost its clock some ticks.
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            let silence = std::mem::replace(&mut *last, Instant::now()).elapsed();
            if silence < EVERY {
                return false;
            }
            // A machine that does not answer is ending, or ends the run by its silence.
            let registers = Session::of_running(&socket).and_then(|mut it| it.halted_registers());
            has_left.fetch_or(registers.is_ok_and(|it| tells_so(&it)), Ordering::Relaxed);
            has_left.load(Ordering::Relaxed)
        })
    }

    pub fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }
}

/// Whether the flags of some processor in `registers`, QEMU's list of them, have the other mode's. In 64-bit mode
/// QEMU calls them otherwise.
fn tells_so(registers: &str) -> bool {
    let flags = registers.split(" EFL=").skip(1).filter_map(|rest| {
        let digits = rest.split(|it: char| !it.is_ascii_hexdigit()).next()?;
        u64::from_str_radix(digits, 16).ok()
    });
    flags.into_iter().any(|flags| flags & VM != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_every_processor_are_looked_at() {
        let usual = "CPU#0\nRIP=0000000000401000 RFL=00000202 [-------] CPL=3\n";
        let halfway = "CPU#2\nRIP=00000000004229cd RFL=ffffffc2 [DOSZ---] CPL=3 II=0\n";
        let left = "CPU#1\nEIP=0000d070 EFL=00027402 [D------] CPL=3 II=0\n";
        assert!(!tells_so(usual));
        assert!(!tells_so(halfway));
        assert!(tells_so(left));
        assert!(tells_so(&format!("{usual}{left}")));
        assert!(!tells_so("no registers"));
    }
}
