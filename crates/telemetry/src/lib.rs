//! The log: one subscriber for the process, a hook for panics, and what keeps secrets out of both.
//! Beside it figures ([`metrics`]) and traces ([`traces`]), which know nothing of the log.

mod level;
mod log;
pub mod metrics;
mod panic;
mod redact;
mod relay;
pub mod traces;

pub use log::{Error, Telemetry};
pub use metrics::{Present, instruments};
pub use redact::{redact, redact_args, redact_json};
pub use relay::{LogEntry, subscribe};

/// The name of the program, with which the names of its crates begin, so also the targets of their log entries.
pub(crate) const PROGRAM: &str = "sepal";
