//! Manages the MCP servers of the installation and of its tenants: the registry of entries, the offering that
//! each session is offered, and the connections that carry calls.
//!
//! Static entries come from the operator's settings, the installation's entries from `mcp-config.json`, and a
//! tenant's entries from its records. A session sees all enabled entries; each server that it uses runs for
//! that session alone.

mod administration;
mod authorization;
mod broadcast;
mod bundles;
mod catalogue;
mod connections;
mod error;
mod health;
mod mcp_registry;
mod monitor;
mod news;
pub mod offers;
mod packages;
mod permission;
mod person_connections;
mod registry;
mod session_connection;
mod try_out;

pub use administration::Administration;
pub use administration::fitness::NewServer;
pub use administration::report::{Reports, ServerReport, TestReport};
pub use administration::tools::ToolChange;
pub use administration::trial::Trials;
pub use bundles::{
    BundleFacts, BundleReport, BundleUse, Bundles, Dependencies, NamedPart, WantedValue,
};
pub use catalogue::deferred::asked_for;
pub use catalogue::entry::{BUNDLED, ServerEntry, Source};
pub use catalogue::rule_sets::{ListedRule, RuleOrigin};
pub use catalogue::tool_history::{DefinitionDifference, ToolChangeReport};
pub use catalogue::tool_offering::{OwnTools, ToolOffer, ToolOffering};
pub use catalogue::tool_report::ToolReport;
pub use connections::logs::LogLine;
pub use connections::opening::{Clients, Opened, Phase};
pub use connections::session_reach::SessionReach;
pub use error::Error;
pub use health::health_history::HealthStep;
pub use health::{Health, Status};
pub use mcp_registry::{
    FilledEntry, Listing, MOST_LISTED, McpRegistry, PublishedServer, Question, RegistryError,
    RegistrySearch, RegistrySettings, Way,
};
pub use monitor::start;
pub use news::{News, NewsKind, ServerUpdate};
pub use offers::ListedOffer;
pub use packages::administration::{
    InstallationReport, PackageAdministration, PackagePreview, ToolChanges,
};
pub use packages::packages_settled;
pub use permission::ServerAudience;
pub use person_connections::{
    Begun, ConnectError, ConnectionAnswer, ConnectionReport, ConnectionState, Connections,
    RedirectAddress,
};
pub use registry::{Servers, ServersParts};
pub use session_connection::{LiveConnection, SessionConnection};
pub use try_out::open_for;
