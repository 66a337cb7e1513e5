//! The side of a user.

use alloc::format;

use sandglass::cap::{Endpoint, Notification};
use sandglass::{time, Environment};

use crate::decide::{Armed, Refusal, Timing};
use crate::protocol::{Answer, Request};

/// A timer of a described system: `[[timer]]`. All times are ticks of the time-stamp counter
/// ([`sandglass::time::ticks`]), which all components can read.
///
/// Arming and cancelling are calls, on the caller's time. An expiry is a signal; the signals of several expiries that
/// nobody has waited for are one.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    service: Endpoint,
    signal: Notification,
    /// Within its group.
    number: u64,
}

impl Timer {
    /// The timer that the description calls `name`; of several, the first.
    ///
    /// # Panics
    /// The component has none of that name, or one that signals a notification of another name: then see
    /// [`Self::with_parts`].
    pub fn described(env: &Environment, name: &str) -> Self {
        let signal = env.capability(&format!("{name}.signal"));
        Self::with_parts(env.capability(name), signal)
    }

    /// A timer of the service that is asked at `service`, which signals `signal`.
    pub const fn with_parts(service: Endpoint, signal: Notification) -> Self {
        Self {
            service,
            signal,
            number: 0,
        }
    }

    /// The timer of this number, from 0, of a `[[timer]]` with a `count`. All of them have one signal.
    pub const fn nth(self, number: u64) -> Self {
        Self { number, ..self }
    }

    /// What is signalled when the timer expires, for a caller that waits for more than that.
    pub const fn signal(self) -> Notification {
        self.signal
    }

    /// Lets the timer expire once, at the time `at`. If that has passed, it does not.
    ///
    /// # Errors
    /// There is no timer of that number.
    #[inline]
    pub fn at(self, at: u64) -> Result<Armed, Refusal> {
        self.arm(at, None)
    }

    /// Lets the timer expire at `first + k * period` for all k from 0, without drift; what of that has passed is counted
    /// by [`Self::expiries`], and not signalled.
    ///
    /// # Errors
    /// The period is below the `every` of the description.
    pub fn every(self, first: u64, period: u64) -> Result<(), Refusal> {
        self.arm(first, Some(period)).map(|_| ())
    }

    /// Lets the timer not expire any more; true if it would have. A signal of it may have been there before.
    ///
    /// # Errors
    /// There is no timer of that number.
    pub fn cancel(self) -> Result<bool, Refusal> {
        let timer = self.number;
        self.number(Request::Cancel { timer })
            .map(|was_armed| was_armed != 0)
    }

    /// How often it has expired since it was armed.
    ///
    /// # Errors
    /// There is no timer of that number.
    pub fn expiries(self) -> Result<u64, Refusal> {
        let timer = self.number;
        self.number(Request::Expiries { timer })
    }

    /// Waits for the signal. It may be one of an earlier expiry that nobody has waited for: look at the time.
    #[inline]
    pub fn wait(self) {
        self.signal.wait();
    }

    /// Waits until the time `at`. Nobody else may wait for the signal meanwhile.
    ///
    /// # Errors
    /// There is no timer of that number.
    pub fn wait_until(self, at: u64) -> Result<(), Refusal> {
        if self.at(at)? == Armed::Passed {
            return Ok(());
        }
        while time::ticks() < at {
            self.wait();
        }
        Ok(())
    }

    #[inline]
    fn arm(self, first: u64, period: Option<u64>) -> Result<Armed, Refusal> {
        let timing = Timing { first, period };
        let timer = self.number;
        match self.ask(Request::Arm { timer, timing }) {
            Answer::Armed(armed) => Ok(armed),
            Answer::Refused(refusal) => Err(refusal),
            Answer::Number(_) => Err(Refusal::NoSuchRequest),
        }
    }

    fn number(self, request: Request) -> Result<u64, Refusal> {
        match self.ask(request) {
            Answer::Number(number) => Ok(number),
            Answer::Refused(refusal) => Err(refusal),
            Answer::Armed(_) => Err(Refusal::NoSuchRequest),
        }
    }

    #[inline]
    fn ask(self, request: Request) -> Answer {
        Answer::of(self.service.call(request.message()))
    }
}
