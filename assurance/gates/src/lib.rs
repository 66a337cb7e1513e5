//! Servers behind gates in parallel virtual time.
//!
//! The threads of a server behind a gate ([`sandglass_mc_ipc::driver`]) run here as they run on the bare kernel: the same code,
//! on the kernel that ships, on a machine whose cores have exact clocks of their own ([`sandglass_parallel`]). Clients are
//! programs, and may be hostile ones.
//!
//! ```
//! use sandglass_gates::{Gates, Parameters, Protocol, Spec, US};
//!
//! let mut gates = Gates::new(&Parameters { protocol: Protocol::McIpc, ..Parameters::default() });
//! gates.client(Spec::sporadic(0, 100, 3_000, 10_000), |client| async move {
//!     loop {
//!         client.compute(100 * US).await;
//!         client.request(&[7]).await;
//!         client.next_period().await;
//!     }
//! });
//! let history = gates.run_until(100_000 * US);
//! assert_eq!(history.requests.len(), 10);
//! ```

#![forbid(unsafe_code)]

pub mod calibration;
mod client;
mod costs;
mod director;
mod history;
pub mod key_server;
mod machine;
mod system;

pub use client::ClientThread;
pub use costs::UserCosts;
pub use director::Director;
pub use history::{Event, History, Served};
pub use sandglass_mc_ipc::{
    driver::{Control, Mark, Timing},
    ClientId,
};
pub use sandglass_parallel::{Costs, Made, Step, US};
pub use system::{Gates, Paid, Parameters, Protocol, Slot, Spec, Which};
