//! The doors: REST, Socket.IO, the agent as an MCP server, and the page. The only place that knows wire forms; every door
//! reaches sessions through `agent::Sessions`, and nothing is built here.

mod access;
mod api_router;
mod auth;
mod body_time;
mod bounds;
mod documents;
mod error;
mod export;
mod extract;
mod guard;
mod http;
mod import;
pub mod mcp;
mod openapi;
pub mod socket;
mod spa;
mod unread_body;
mod unreadable_head;
pub mod wire;
mod word_list;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::response::IntoResponse as _;
use axum::routing::get;
use tokio_util::task::TaskTracker;

pub use access::{AccessRules, AddressShare, Addresses, Asked, Crowd, Peer, Refused};
pub use auth::{Entered, authenticate_handshake};
pub use documents::Documents;
pub use error::{ApiError, FieldError};
pub use guard::{guard, turn_away};
pub use http::{
    Check, DISK_CHECK, DiskPressure, Installation, ModelInfo, ModelList, SandboxInfo,
    SandboxLimits, StorageInfo, System, SystemInfo, open_metrics,
};
pub use openapi::openapi_json;
pub use spa::page_is_built;
pub use unreadable_head::explain as explain_unreadable_head;

use crate::agent::{Notifications, Sessions};
use crate::config::AuthMode;
use crate::domain::{Code, Shares};
use crate::providers::Providers;
use crate::servers::Servers;
use crate::skills::Skills;
use crate::store::Probe;
use crate::tenancy::Tenancy;

/// What every door works with. Clones share everything.
#[derive(Clone)]
pub struct GatewayState {
    /// The one corridor to sessions.
    pub sessions: Sessions,
    /// The MCP servers of the installation and its tenants.
    pub servers: Servers,
    /// The skills of its tenants and their people.
    pub skills: Skills,
    pub tenancy: Tenancy,
    /// For lists and the readiness probe; sessions are reached through `sessions` only.
    pub store: Probe,
    /// Under which names we answer.
    pub access: Arc<AccessRules>,
    /// How people sign in.
    pub auth_mode: AuthMode,
    /// Which Sepal this is.
    pub installation: Arc<Installation>,
    /// What it runs on.
    pub system: System,
    pub models: Arc<ModelList>,
    /// The model providers that sessions may use.
    pub providers: Providers,
    /// Who is told outside of the page when calls wait.
    pub notifications: Notifications,
    /// Bytes that one request body may have.
    pub body_limit: usize,
    /// How much of a door one client may have.
    pub limits: DoorLimits,
    /// Exports, and what is shared.
    pub documents: Documents,
}

/// How much of the doors one client may have. Clones share what is counted.
#[derive(Clone)]
pub struct DoorLimits {
    /// Requests that run for one client behind a trusted proxy.
    pub requests: Arc<Addresses>,
    /// How long the body of a request may take, beside a second for each KiB of it.
    pub body_time: Option<Duration>,
    /// Read what is left of the bodies of refused requests.
    pub readers: TaskTracker,
    /// Questions of MCP clients that are being answered.
    pub questions: Arc<Shares>,
    /// Connections and event streams of MCP clients.
    pub streams: Arc<Shares>,
}

impl DoorLimits {
    /// Without limits.
    #[cfg(test)]
    fn none() -> Self {
        Self {
            requests: Addresses::new(None, None),
            body_time: None,
            readers: TaskTracker::new(),
            questions: Arc::default(),
            streams: Arc::default(),
        }
    }
}

/// The routes of REST and page. The socket's layer goes around it, and [`guard()`] around both.
pub fn router(state: GatewayState) -> axum::Router {
    http::routes()
        .into_routes()
        .route("/api/openapi.json", get(openapi::read_description))
        .route("/shared/{word}", get(http::show_shared))
        .method_not_allowed_fallback(wrong_method)
        .fallback(spa::fallback)
        .layer(DefaultBodyLimit::max(state.body_limit))
        .with_state(state)
}

async fn wrong_method(method: Method) -> axum::response::Response {
    let text = format!("`{method}` is not possible at this address");
    ApiError::new(Code::MethodNotAllowed, text).into_response()
}
