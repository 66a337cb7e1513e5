//! Several cores at work, for `sandglass experiment multicore`: the thesis's multiprocessor
//! benchmarks (8.5).
//!
//! | window | what runs | thesis |
//! | --- | --- | --- |
//! | `single` | one passive cipher server, and a client on each core | 8.5.2, Figure 8.10 |
//! | `multiple` | a passive cipher server and a client on each core | 8.5.2, Figure 8.10 |
//! | `pairs N` | a client and a passive server on each core; up to N instructions between calls | 8.5.1, Figure 8.9 |
//!
//! Marks in the program ([`marks`]) tell a plugin of the emulator where a window begins and ends,
//! and when a server is busy; the plugin counts what each core executes. For each window, in the
//! order of the marks, a line `multicore KIND SPIN CORES WORK` is printed, WORK being bytes
//! encrypted or calls; and for each client of a cipher server, `multicore-digest CLIENT DIGEST` of
//! the ciphertext, for the host to compare.
//!
//! With one core or several, on any kernel: it only asks how many there are.

#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod cipher;
mod crew;
mod marks;
mod options;
mod pairs;

use sandglass::testing::Suite;
use sandglass::{BootInfo, SetupError};

use crew::Crew;
use options::Options;

sandglass::entry!(main, stack = 0x1_0000, heap = 0x60_0000);

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut crew = Crew::new(boot)?;
    let options = Options::read(&mut crew.process)?;
    let texts = cipher::texts(crew.cores(), options);
    let mut suite = Suite::titled("multicore");
    suite.run("one_server_serves_all_cores", || {
        cipher::run(&mut crew, cipher::Servers::Single, &texts)
    });
    suite.run("each_core_has_its_server", || {
        cipher::run(&mut crew, cipher::Servers::Multiple, &texts)
    });
    suite.run("pairs_call_and_reply", || {
        for spin in pairs::SPINS {
            pairs::run(&mut crew, spin, options)?;
        }
        Ok(())
    });
    Ok(suite.finish())
}
