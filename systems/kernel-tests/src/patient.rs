//! A thread whose faults the test handles.

use sandglass::cap::{Endpoint, Reply, SchedControl, SchedParams, Tcb};
use sandglass::fault::Fault;
use sandglass::thread::ThreadParams;
use sandglass::SetupError;

use crate::fixture::Fixture;

const PRIORITY: u8 = 100;

/// A thread whose faults the test handles.
pub struct Patient {
    pub tcb: Tcb,
    handler: Endpoint,
    reply: Reply,
}

impl Patient {
    /// Starts it on the core of `control`, with a context of these parameters.
    pub fn on(
        fixture: &mut Fixture,
        control: SchedControl,
        params: SchedParams,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Self, SetupError> {
        let handler = fixture.process.resources.endpoint()?;
        let context = fixture.context_on(control, params)?;
        let params = ThreadParams {
            fault_handler: Some(handler),
            ..ThreadParams::new(PRIORITY, context)
        };
        Ok(Self {
            tcb: fixture.spawn(params, body)?,
            handler,
            reply: fixture.process.resources.reply()?,
        })
    }

    /// The next fault.
    pub fn next(&self) -> Result<Fault, &'static str> {
        Fault::decode(&self.handler.recv(self.reply).message).ok_or("no fault")
    }
}
