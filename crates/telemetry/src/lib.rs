//! Logging: one subscriber for the process, a panic hook, and the redaction of secrets. Also metrics
//! ([`metrics`]) and traces ([`traces`]), which are independent of the log.

mod level;
mod log;
pub mod metrics;
mod panic;
mod redact;
mod relay;
pub mod traces;

pub use level::Levels;
pub use log::{Error, Telemetry};
pub use metrics::{Present, instruments};
pub use redact::{redact, redact_args, redact_json};
pub use relay::{LogEntry, subscribe};

/// The name of the program. The names of its crates start with it, and so do the targets of their log
/// entries.
pub(crate) const PROGRAM: &str = "sepal";
