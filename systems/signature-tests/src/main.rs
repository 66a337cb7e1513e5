//! Signatures on the machine, as a root task. Under virtual time a tick is an instruction (`-icount shift=0`), so what a
//! signature takes is read from the counter.

#![no_std]
#![no_main]

use sandglass::cap::SchedParams;
use sandglass::testing::{Suite, TestResult};
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{ensure, ensure_eq, println, time, BootInfo, Process, SetupError};
use signatures::known::{known, KNOWN_BEGIN};
use signatures::{digest, Failed, Key, Signer};

// No more memory than a key server needs.
sandglass::entry!(main, stack = 0x8000, heap = 0x8000);

/// Signatures that are measured.
const SAMPLES: usize = 8;

/// Longer than the tests: no interrupt of a budget's end is among what is counted.
const WHOLE: SchedParams = SchedParams::new(3_600_000_000, 3_600_000_000);

fn main(boot: &'static BootInfo) -> Result<(), SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    let context = process.resources.sched_context(WHOLE.size_bits())?;
    let control = boot.sched_control(0).expect("there is a first core");
    control.configure(context, WHOLE)?;
    let params = ThreadParams::new(200, context);
    let never = process.resources.notification()?;
    Thread::spawn(&mut process, params, || sandglass::exit::exit(run()))?;
    never.wait();
    Ok(())
}

fn run() -> u8 {
    let mut suite = Suite::new();
    suite.run(
        "a_signature_is_that_of_another_implementation",
        is_that_of_another_implementation,
    );
    suite.run(
        "all_signatures_take_nearly_as_many_instructions",
        all_take_nearly_as_many_instructions,
    );
    suite.finish()
}

fn is_that_of_another_implementation() -> TestResult {
    let signature = Key::for_tests()?.sign(&known())?;
    ensure_eq!(signature[..8], KNOWN_BEGIN.to_be_bytes());
    Ok(())
}

/// Most by which signatures may differ, in instructions: where the heap's allocator finds room depends on what it was asked
/// for before, so not all of its ways are equally long.
const SPREAD: u64 = 100;

/// Whatever is signed, but for what the allocator does. Nobody else asks it meanwhile, and the first signature is not counted.
fn all_take_nearly_as_many_instructions() -> TestResult {
    let mut signer = Signer::new(Key::for_tests()?);
    let mut measure = |sample: u64| -> Result<u64, Failed> {
        let digest = digest(&sample.to_le_bytes());
        let begin = time::ticks();
        signer.sign(digest, begin)?;
        Ok(time::ticks() - begin)
    };
    measure(0)?;
    let mut counts = [0; SAMPLES];
    for (sample, count) in (1..).zip(&mut counts) {
        *count = measure(sample)?;
    }
    println!("a signature takes {} instructions", counts[0]);
    let (least, most) = counts.iter().fold((u64::MAX, 0), |(least, most), count| {
        (least.min(*count), most.max(*count))
    });
    ensure!(most - least <= SPREAD, "{counts:?}");
    Ok(())
}
