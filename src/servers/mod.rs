//! The MCP servers of an installation and of its tenants: the registry, what each session is
//! offered, and the connections over which calls go.
//!
//! Static entries come from the operator's settings, the installation's from `mcp-config.json`,
//! and a tenant's from its records. A session sees all of them that are enabled; each server that
//! it uses runs for it alone.

mod day;
mod definitions;
mod entry;
mod error;
mod fitness;
mod health;
mod link;
mod logs;
mod manage;
mod masking;
mod monitor;
mod moved;
mod news;
mod opening;
mod others;
mod permission;
mod registry;
mod report;
mod restart;
mod running;
mod secrets;
mod tool_report;
mod trials;
mod turns;
mod view;

pub use day::HealthStep;
pub use entry::{ServerEntry, Source};
pub use error::Error;
pub use fitness::NewServer;
pub use health::{Health, Status};
pub use logs::LogLine;
pub use manage::ToolChange;
pub use news::{News, NewsKind};
pub use opening::{Clients, Phase};
pub use registry::{Servers, ServersParts};
pub use report::{ServerReport, TestReport};
pub use tool_report::ToolReport;
pub use view::View;

pub(crate) use entry::BUNDLED;
pub(crate) use link::{Held, Link};
pub(crate) use news::Told;
pub(crate) use opening::Opened;
