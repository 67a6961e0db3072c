//! The settings: command line, then environment, then file, then defaults.
//!
//! [`table`] defines every key once; loading, the documentation and `sepal config show` follow it.
//! [`load`] is pure and names every problem at once; only `env.rs` looks at the process.

mod check;
mod derive;
pub mod docs;
mod env;
mod family;
mod file;
mod layer;
mod pairs;
mod problem;
mod settings;
pub mod table;
mod value;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

pub use env::{Flag, Preset, SourceFile, Sources, environment};
pub use layer::{Loaded, load};
pub use problem::{Problem, Problems, Source};
pub use settings::{
    Access, Agent, ApiFlavour, ApprovalWay, Auth, AuthMode, Chat, CompactionStrategy, Http, Limits,
    Llm, Log, LogFormat, LogLevel, LogOutput, Metrics, ModelPrice, ProviderEntry, ProviderKind,
    Retry, Runtime, Sandbox, SandboxDriver, Settings, Socket, Stdio, Store, Telemetry, Tool,
    Transports,
};
