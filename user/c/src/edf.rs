//! The side of a task that a scheduler by deadlines releases.

use sandglass_edf::Task;

use crate::environment;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub number: u64,
    /// Ticks.
    pub release: u64,
    /// Ticks.
    pub deadline: u64,
}

#[no_mangle]
pub extern "C" fn sg_edf_next() -> Job {
    let job = Task::described(environment::get()).next();
    Job {
        number: job.number,
        release: job.release,
        deadline: job.deadline,
    }
}
