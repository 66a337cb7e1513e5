//! Tests of servers behind gates in parallel virtual time.

#[cfg(feature = "smp")]
mod attacks;
#[cfg(feature = "smp")]
mod key_server;
#[cfg(feature = "smp")]
mod load;
#[cfg(feature = "smp")]
mod modes;
#[cfg(feature = "smp")]
mod nested;
mod single;
