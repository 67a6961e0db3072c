//! The MCP servers of an installation and of its tenants: the registry, what each session is
//! offered, and the connections over which calls go.
//!
//! Static entries come from the operator's settings, the installation's from `mcp-config.json`,
//! and a tenant's from its records. A session sees all of them that are enabled; each server that
//! it uses runs for it alone.

mod connections;
mod catalogue;
mod administration;
mod broadcast;
mod session_connection;
mod error;
mod health;
mod monitor;
mod news;
mod registry;

pub use health::health_history::HealthStep;
pub use catalogue::entry::{ServerEntry, Source};
pub use error::Error;
pub use administration::fitness::NewServer;
pub use health::{Health, Status};
pub use connections::logs::LogLine;
pub use administration::manage::ToolChange;
pub use news::{News, NewsKind};
pub use connections::opening::{Clients, Phase};
pub use registry::{Servers, ServersParts};
pub use administration::report::{ServerReport, TestReport};
pub use catalogue::tool_report::ToolReport;
pub use catalogue::view::View;

pub(crate) use catalogue::entry::BUNDLED;
pub(crate) use session_connection::{Held, SessionConnection};
pub(crate) use news::ServerUpdate;
pub(crate) use connections::opening::Opened;
