//! Loads the settings: the command line overrides the environment, the environment the file, the file the
//! defaults.
//!
//! [`table`] defines every key once; loading, the documentation and `sepal config show` follow it.
//! [`load`] is pure and reports all problems at once; only `env.rs` accesses the process.

mod check;
mod derive;
pub mod docs;
mod family;
mod problem;
mod settings;
mod source;
pub mod table;
mod value;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

pub use problem::{Problem, Problems, Source};
pub use settings::{
    Access, Agent, Anchor, ApiFlavour, ApprovalWay, Audit, Auth, AuthMode, Breaker, CacheTtl, Chat,
    CompactedBy, Context, ContextKind, ContextPosition, ContextProviderEntry, ContextRole,
    EditsByOthers, FallbackEntry, Http, Limits, Llm, Log, LogFormat, LogLevel, LogOutput,
    McpRegistry, Metrics, ModelPrice, Notifications, OidcProvider, ProviderEntry, ProviderKind,
    Retry, Reviewer, Runtime, Sandbox, SandboxDriver, ScimLink, Settings, Siem, SiemFormat,
    SignInProxy, Skills, Smtp, Socket, Stdio, Store, Telemetry, Titles, Tool, ToolSearch,
    Transports,
};
pub use source::env::{Flag, Preset, SourceFile, Sources, environment};
pub use source::layer::{LoadedSettings, load};
