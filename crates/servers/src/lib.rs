//! Manages the MCP servers of the installation and of its tenants: the registry of entries, the tools that
//! each session is offered, and the connections that carry calls. It never decides whether a call may run.
//!
//! Entries come from the operator's settings, from `mcp-config.json` and from a tenant's records. A session
//! sees all enabled ones; each server that it uses runs for that session alone.
//!
//! Start at [`Servers`]: [`Servers::offering`] is what a session is offered, [`SessionConnection`] its own
//! connection to one server, and [`Administration`] changes entries.

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

pub use administration::{
    Administration, NewServer, Reports, ServerReport, TestReport, ToolChange, Trials,
};
pub use bundles::{
    BundleFacts, BundleReport, BundleUse, Bundles, Dependencies, NamedPart, WantedValue,
};
pub use catalogue::{
    BUNDLED, DefinitionDifference, ListedRule, OwnTools, RuleGroup, RuleOrigin, ServerEntry,
    Source, ToolChangeReport, ToolOffer, ToolOffering, ToolReport, asked_for,
};
pub use connections::{Clients, LogLine, Opened, Phase, SessionReach};
pub use error::Error;
pub use health::{Health, HealthStep, Status};
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
